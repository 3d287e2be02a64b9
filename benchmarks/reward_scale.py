"""What the unit of rewards does to `auto`, with and without a scale of rewards.

    python benchmarks/reward_scale.py [--seeds 5]

Rewards of three tasks are multiplied by a number. For each number and each scale: the mean score of
the last 50 episodes of every seed, in the task's own unit. Writes docs/data/reward-scale.json.
"""

import argparse
import dataclasses
import json
from pathlib import Path

import numpy as np

import rove
from rove.environments.base import Environment, Step

CASES = {
    "cartpole": (20_000, (0.01, 1.0, 10_000.0)),
    "sparse-mountain-car": (30_000, (0.01, 1.0, 10_000.0)),
    "deep-sea-10": (20_000, (0.01, 1.0, 1_000.0)),
}
"""The number of steps per seed, and what rewards are multiplied by."""
SCALES = (1.0, "growing", "running")
FIRST_SEED, RECENT = 400, 50


def multiplied(task: Environment, factor: float) -> Environment:
    """Return a task with other rewards."""
    kind = type(task)

    class Multiplied(kind):
        optimum = score_range = None

        def step(self, state, action, key) -> Step:
            after = super().step(state, action, key)
            return after._replace(reward=factor * after.reward)

    Multiplied.__name__ = f"{kind.__name__}Times{factor:g}"
    fields = (field.name for field in dataclasses.fields(task) if field.init)
    return Multiplied(**{name: getattr(task, name) for name in fields})


def study(name: str, steps: int, factor: float, scale: float | str, seeds: int) -> list[float]:
    """Return the score of each seed."""
    task = rove.make(name)
    run = rove.train(
        rove.Auto(reward_scale=scale),
        multiplied(task, factor),
        seeds=range(FIRST_SEED, FIRST_SEED + seeds),
        steps=steps,
        on="threads",
    )
    scores = []
    for outcome in run.outcomes:
        returns, length, ended = (
            np.asarray(getattr(outcome.episodes, field))[-RECENT:]
            for field in ("returns", "length", "terminated")
        )
        scores.append(round(float(np.mean(task.score(returns / factor, length, ended))), 3))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    results = []
    print("| task | rewards times | reward_scale | mean score of the seeds | scores |")
    print("|---" * 5 + "|")
    for name, (steps, factors) in CASES.items():
        for factor in factors:
            for scale in SCALES:
                scores = study(name, steps, factor, scale, seeds)
                results.append({"task": name, "factor": factor, "scale": scale, "scores": scores})
                words = name, f"{factor:g}", scale, f"{np.mean(scores):.3g}", scores
                print("| " + " | ".join(map(str, words)) + " |", flush=True)
    out = Path(__file__).parent.parent / "docs" / "data" / "reward-scale.json"
    out.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
