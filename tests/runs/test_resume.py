"""Kill -9 at any moment, run the same command again: the end is the same, to the bit."""

import random
import time
from pathlib import Path

import numpy as np
import pytest

import killing
import rove
from rove.training import checkpoint, progress

EPISODES = 400
SMALL = {"hidden": (32, 32), "buffer_size": 700, "learning_starts": 100}
AGENTS = {
    "dqn": rove.DQN(**SMALL, n_step=3, prioritised=0.6),
    "ge": rove.GE(**SMALL, resample="episode", reward_scale="running"),
}
"""One with priorities, and one that holds its θ and a scale of rewards."""


def train(out: Path, agent: str) -> None:
    """A run with many short chunks, and a file after each."""
    progress.CHUNK_SECONDS, progress.CHECKPOINT_SECONDS = 0.05, 0.0
    rove.train(AGENTS[agent], "chain-8", seeds=2, episodes=EPISODES, out=out)


def content(out: Path) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    files = sorted((out / "lanes").glob("*.safetensors"))
    return (out / "episodes.csv").read_bytes(), [checkpoint.load_arrays(f)[0] for f in files]


def until_first_file(process, out: Path) -> None:
    """Waits until a run has written its first checkpoint, or has ended."""
    while process.is_alive() and not any(out.glob("lanes/*")):
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("agent", "limit"),
    [("ge", 2), *(pytest.param(agent, 20, marks=pytest.mark.slow) for agent in AGENTS)],
)
def test_killed_runs_end_bit_identical(tmp_path, agent, limit):
    """Kills at random moments: every other one at any time since the start, the others at any time
    since the first checkpoint. A run that reached its end before its kill does not count, and the
    next starts anew."""
    killing.finish(train, tmp_path / "whole", agent)
    began, process = time.monotonic(), killing.start(train, tmp_path / "warm", agent)
    until_first_file(process, tmp_path / "warm")
    first = time.monotonic() - began
    process.join()
    takes = time.monotonic() - began
    rng, kills, runs, inside = random.Random(agent), 0, 0, 0
    while kills < limit:
        out = tmp_path / f"killed-{runs}"
        runs += 1
        assert runs < 5 * limit, "runs end before they can be killed"
        for attempt in range(3 if limit == 2 else 5):
            process = killing.start(train, out, agent)
            if attempt % 2:
                until_first_file(process, out)
                process.join(rng.uniform(0.0, (takes - first) / 2))
            else:
                process.join(rng.uniform(0.0, takes))
            alive = process.is_alive()
            process.kill()
            process.join()
            kills += alive
            inside += alive and any(out.glob("lanes/*"))
            if not alive:
                break
        killing.finish(train, out, agent)
        (csv, arrays), (csv_whole, arrays_whole) = content(out), content(tmp_path / "whole")
        assert csv == csv_whole
        for mine, theirs in zip(arrays, arrays_whole, strict=True):
            assert mine.keys() == theirs.keys()
            for name in mine:
                np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
    assert inside >= min(limit // 2, 3), "too few kills fell after the first checkpoint"
