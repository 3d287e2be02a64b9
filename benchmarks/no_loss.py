"""Whether agents still do as well as when the data of the scoreboard and of Figure 3 were measured.

    python benchmarks/no_loss.py run OUT          # trains in the folder OUT; resumable
    python benchmarks/no_loss.py compare OUT      # prints the table; also of a part of the runs

The chains, permuted chains and Deep Seas of the scoreboard and the sparse control tasks of Figure 3
are trained with the present code, with the same settings, seeds and budgets. `compare` sets the
results beside those in docs/data/: the number of seeds that solve a task, by Fisher's exact test,
and on sparse control the mean score of a seed over all episodes, by the exact test of Mann and
Whitney. P-values are two-sided, and adjusted over all rows by Holm's method.
"""

import argparse
import csv
import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import fisher_exact, mannwhitneyu

from rove.analysis.intervals import proportion_interval
from rove.paper.figure_3 import EPISODES as CONTROL
from rove.paper.figure_3 import Figure3
from rove.paper.scoreboard import ORDER, Scoreboard, cell
from rove.runs.config import Config
from rove.runs.execution import run_all
from rove.training.progress import Progress

DATA = Path(__file__).parent.parent / "docs" / "data"
AGENTS = ("dqn", "noisynet", "ge", "ige", "bootstrapped_dqn", "bayesian_dqn")
"""Agents of the scoreboard: one of each kind that learns by gradient."""
EXPLORING = tuple(name for name in ORDER if "bandit" not in name)
Key = tuple[str, str]


class Row(NamedTuple):
    """A task and an agent, before and after."""

    key: Key
    before: str
    after: str
    p: float


def plan(agents: Iterable[str]) -> dict[Key, Config]:
    """Return the runs: the named agents of the scoreboard, and all agents of Figure 3."""
    board = Scoreboard(agents=tuple(agents)).configs()
    control = Figure3().configs()
    return {k: v for k, v in board.items() if k[0] in EXPLORING} | {
        k: v for k, v in control.items() if k[0] in CONTROL
    }


def train(out: Path, agents: Iterable[str], tasks: list[str], workers: int | None) -> None:
    """Train everything, a run at a time, and write the results of each."""
    out.mkdir(parents=True, exist_ok=True)
    for key, config in plan(agents).items():
        file = out / f"{'-'.join(key)}.csv"
        if file.exists() or (tasks and key[0] not in tasks):
            continue
        print(*key, flush=True)
        (run,) = run_all([(config, out / "runs" / "-".join(key))], _quiet, workers, "processes")
        if run.errors:
            print(f"left out: {run.errors[0]}", flush=True)
            continue
        if key[0] in CONTROL:
            values = [float(np.mean(outcome.scores)) for outcome in run.outcomes]
        else:
            values = [float(x) for x in cell(run).solved]
        file.write_text("".join(f"{value:.6g}\n" for value in values), "utf-8")


def _quiet(progress: Progress) -> None:
    pass


def before() -> dict[Key, list[float]]:
    """Return the published results of each seed: whether it solved the task, or its mean score."""
    results: dict[Key, list[float]] = {}
    with (DATA / "scoreboard.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["environment"] in EXPLORING:
                key = row["environment"], row["agent"]
                results.setdefault(key, []).append(float(row["solved"]))
    scores: dict[tuple[str, str, str], list[float]] = {}
    with gzip.open(DATA / "figure-3.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            seed = row["environment"], row["agent"], row["seed"]
            scores.setdefault(seed, []).append(float(row["score"]))
    for (environment, agent, _), row_scores in scores.items():
        results.setdefault((environment, agent), []).append(float(np.mean(row_scores)))
    return results


def compared(out: Path) -> list[Row]:
    """Return a row for every run that has been trained."""
    rows, old = [], before()
    for key, was in old.items():
        file = out / f"{'-'.join(key)}.csv"
        if not file.exists():
            continue
        now = [float(line) for line in file.read_text("utf-8").split()]
        if key[0] in CONTROL:
            p = float(mannwhitneyu(was, now, method="auto").pvalue)
            rows.append(Row(key, _mean(was), _mean(now), p))
            continue
        counts = [[sum(x), len(x) - sum(x)] for x in (was, now)]
        rows.append(Row(key, _count(was), _count(now), float(fisher_exact(counts).pvalue)))
    return rows


def _count(solved: list[float]) -> str:
    count, n = int(sum(solved)), len(solved)
    low, high = proportion_interval(count, n)
    return f"{count}/{n} ({low * 100:.0f}–{high * 100:.0f}%)"


def _mean(scores: list[float]) -> str:
    return f"{np.mean(scores):.3g} (seeds {min(scores):.3g} to {max(scores):.3g})"


def holm(p: list[float]) -> list[float]:
    """Return p-values that are adjusted over all of them by Holm's method."""
    adjusted, largest = [1.0] * len(p), 0.0
    for rank, i in enumerate(np.argsort(p)):
        largest = max(largest, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = largest
    return adjusted


def main() -> None:
    parser = argparse.ArgumentParser(description="Present results beside those in docs/data/.")
    parser.add_argument("part", choices=("run", "compare"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--agents", nargs="+", default=AGENTS, help="agents of the scoreboard")
    parser.add_argument("--tasks", nargs="+", default=[], help="names of tasks; default: all")
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    if given.part == "run":
        train(given.out, given.agents, given.tasks, given.workers)
    rows = compared(given.out)
    print("| task | agent | before | after | p | p (Holm) |\n|---|---|---|---|---|---|")
    for row, adjusted in zip(rows, holm([row.p for row in rows]), strict=True):
        task, agent = row.key
        numbers = f"{row.p:.2g} | {adjusted:.2g}"
        print(f"| {task} | `{agent}` | {row.before} | {row.after} | {numbers} |")


if __name__ == "__main__":
    main()
