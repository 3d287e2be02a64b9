"""Does an agent learn as well as in another version of rove?

    git worktree add OTHER COMMIT
    python benchmarks/versions.py OTHER

trains the agents below in this version and in the other one, with the same settings and ten seeds
each, and compares them: seeds that solve the task, by an exact test of counts, and the mean score
of each seed, by an exact test of ranks. A change that only makes steps faster, or rounds otherwise,
should leave no small p-value. The table is written to docs/data/versions.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rove.analysis.intervals import counts_test
from rove.analysis.ranks import rank_test

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data" / "versions.json"
SEEDS = 10
RUNS = (
    ("ge", "chain-100", 250), ("noisynet", "chain-100", 250), ("bayesian_dqn", "chain-100", 100),
    ("full_covariance", "chain-50", 100), ("c51", "chain-50", 250), ("ige", "deep-sea-20", 600),
    ("bootstrapped_dqn", "deep-sea-20", 600), ("ge", "sparse-mountain-car", 300),
    ("dqn", "sparse-mountain-car", 300),
)  # fmt: skip
"""Agents, environments and numbers of episodes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="Folder of a checkout of the other version.")
    other = parser.parse_args().other.resolve()
    rows = [compare(*run, other) for run in RUNS]
    DATA.write_text(json.dumps({"commit": commit(other), "rows": rows}, indent=1) + "\n", "utf-8")


def compare(agent: str, environment: str, episodes: int, other: Path) -> dict[str, Any]:
    """Return the results of both versions, and the p-values of their differences."""
    results = [train(place, agent, environment, episodes) for place in (ROOT, other)]
    solved = [solved_seeds(result) for result in results]
    means = [result["mean"] for result in results]
    row = {
        "agent": agent, "environment": environment, "episodes": episodes, "seeds": SEEDS,
        "solved": solved[0], "solved_other": solved[1],
        "p_solved": counts_test(solved[0], SEEDS, solved[1], SEEDS),
        "mean": float(np.mean(means[0])), "mean_other": float(np.mean(means[1])),
        "p_mean": rank_test(*map(np.asarray, means)).p,
    }  # fmt: skip
    print(json.dumps(row), flush=True)
    return row


def train(place: Path, agent: str, environment: str, episodes: int) -> dict[str, Any]:
    """Train with the rove of a folder, and return what `rove train --json` prints."""
    with tempfile.TemporaryDirectory() as out:
        command = ["train", agent, environment, "--episodes", str(episodes), "--seeds", str(SEEDS)]
        done = subprocess.run(
            [sys.executable, "-m", "rove", *command, "--json", "--out", out],
            env=os.environ | {"PYTHONPATH": str(place / "src")},
            check=True,
            capture_output=True,
            text=True,
        )
    return json.loads(done.stdout)


def solved_seeds(result: dict[str, Any]) -> int:
    """Return the number of seeds that solved the task: ten optimal episodes in a row, or, where the
    score is whether the goal was reached, at least 0.9 over the last 20 episodes."""
    if any(step is not None for step in result["solved_at"]):
        return sum(step is not None for step in result["solved_at"])
    return sum(score >= 0.9 for score in result["last_20"])


def commit(place: Path) -> str:
    """Return the commit of a checkout."""
    command = ["git", "-C", str(place), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
