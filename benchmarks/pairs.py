"""Whether seeds of one number do alike under different agents: correlations of their scores.

    python benchmarks/pairs.py

Agents with equal layers start from equal weights where their seeds are equal. For every pair of
agents on one task, the mean scores of their seeds are correlated; the mean over all pairs is held
against what it is when seeds are shuffled.
"""

import csv
import gzip
import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent.parent / "docs" / "data"
SHUFFLES = 2000


def tables(path: Path) -> list[list[np.ndarray]]:
    """For each task, the mean scores of each agent's seeds, in their order."""
    scores: dict[tuple[str, str, str], dict[int, list[float]]] = defaultdict(dict)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = (row["environment"], row["agent"], row["resample"])
            scores[key].setdefault(int(row["seed"]), []).append(float(row["score"]))
    tasks: dict[str, list[np.ndarray]] = defaultdict(list)
    for (task, _, _), seeds in scores.items():
        means = np.array([np.mean(seeds[seed]) for seed in sorted(seeds)])
        if np.ptp(means) > 0:
            tasks[task].append(means)
    return list(tasks.values())


def correlations(tasks: list[list[np.ndarray]]) -> list[float]:
    """Of every two agents on one task that have equally many seeds."""
    pairs = [pair for agents in tasks for pair in itertools.combinations(agents, 2)]
    return [float(np.corrcoef(a, b)[0, 1]) for a, b in pairs if len(a) == len(b)]


def main() -> None:
    rng = np.random.default_rng(0)
    for name in ("figure-2", "figure-3"):
        tasks = tables(DATA / f"{name}.csv.gz")
        found = correlations(tasks)
        shuffled = [
            np.mean(correlations([[rng.permutation(x) for x in agents] for agents in tasks]))
            for _ in range(SHUFFLES)
        ]
        low, high = np.quantile(shuffled, [0.025, 0.975])
        print(
            f"{name}: {len(found)} pairs of agents, {len(tasks[0][0])} seeds; mean correlation "
            f"{np.mean(found):+.2f}, {low:+.2f} to {high:+.2f} in 95% of shuffles"
        )


if __name__ == "__main__":
    main()
