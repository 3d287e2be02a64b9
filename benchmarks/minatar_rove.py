"""rove's `dqn` on gymnax's Breakout with MinAtar's settings, as a contestant of `minatar.py`."""

import rove
from rove.parts import platform
from rove.runs.configure import configure
from rove_side import _compiled
from serving import serve

SETTINGS = {
    "hidden": (128,), "lr": 0.00025, "batch_size": 32, "buffer_size": 100_000,
    "target_period": 1000, "learning_starts": 500, "epsilon": 0.1, "epsilon_steps": 100_000,
}  # fmt: skip
"""Those of docs/how-to/images.md, except that learning starts as early as possible."""


def main() -> None:
    platform.prepare(lanes=1)  # as rove's own workers
    task = rove.make("gymnax/Breakout-MinAtar")
    jobs = configure(rove.DQN(**SETTINGS), task, seeds=[0], steps=2**30).jobs(None)
    serve(_compiled(jobs), 1, ("rove", "jax", "jaxlib", "gymnax"))


if __name__ == "__main__":
    main()
