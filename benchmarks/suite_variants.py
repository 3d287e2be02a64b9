"""Variants of `dqn` and `auto` on the tasks of the suite, one setting for all tasks.

    python benchmarks/suite_variants.py search      # dqn: development half, seeds 100 to 102
    python benchmarks/suite_variants.py ablation    # auto, best dqn: held-out half, seeds 0 to 9
    python benchmarks/suite_variants.py invaders    # best dqn: MinAtar's Space Invaders, same seeds

`search` gives `dqn` as many variants as were tried of `auto`. `ablation` runs the best of them, and
`auto` without one of its parts at a time, on the held-out half. The tasks of MinAtar are left out,
because they take longer than all others together; `invaders` runs the best `dqn` on the held-out
one, for which the suite has the results of `auto`. Every row of docs/data/suite-variants.csv is a
seed of a variant on a task. An interrupted command continues when it is run again.
"""

import argparse
import csv
import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rove.paper.suite.experiment import plain_settings, result_of
from rove.paper.suite.tasks import TASKS, SuiteTask
from rove.runs.configure import configure
from rove.runs.execution import run_all

OUT = Path(__file__).parent.parent / "docs" / "data" / "suite-variants.csv"
COLUMNS = ("study", "half", "variant", "task", "seed", "score", "solved")
SLOW_DECAY = {"epsilon_steps": 15_000, "epsilon": 0.02}
SEARCH = {
    "dqn": {},
    "n_step=3": {"n_step": 3},
    "n_step=5": {"n_step": 5},
    "n_step=10": {"n_step": 10},
    "epsilon=0.02": {"epsilon": 0.02},
    "slow decay": SLOW_DECAY,
    "lr=3e-4": {"lr": 3e-4},
    "double": {"double": True},
    "target_period=500": {"target_period": 500},
    "n_step=5, slow decay": {"n_step": 5} | SLOW_DECAY,
    "n_step=10, slow decay": {"n_step": 10} | SLOW_DECAY,
    "n_step=5, double": {"n_step": 5, "double": True},
}
"""Settings of `dqn` that differ from its defaults."""
ABLATION = {
    "auto": {},
    "auto without visit counts": {"bonus": "none"},
    "auto without repeated actions": {"repeat": 1},
    "auto with one-step targets": {"n_step": 1},
}
"""Settings of `auto` that differ from its defaults."""


class Study(NamedTuple):
    """Variants that are compared on one half of the tasks."""

    half: str
    seeds: range
    variants: dict[str, tuple[str, dict]]
    """For each variant, its agent and the settings that differ from the agent's defaults."""


def study_of(name: str, rows: list[dict]) -> Study:
    """Return a study, given the rows so far: the ablation needs those of the whole search."""
    if name == "search":
        variants = {variant: ("dqn", changes) for variant, changes in SEARCH.items()}
        return Study("development", range(100, 103), variants)
    of_search = [row for row in rows if row["study"] == "search"]
    if {row["variant"] for row in of_search} != set(SEARCH):
        raise SystemExit("run the search first: python benchmarks/suite_variants.py search")
    best = max(SEARCH, key=lambda variant: summary(of_search, variant))
    variants = {variant: ("auto", changes) for variant, changes in ABLATION.items()}
    searched = {f"dqn, {best}": ("dqn", SEARCH[best])}
    return Study("held-out", range(10), searched if name == "invaders" else variants | searched)


def summary(rows: list[dict], variant: str) -> tuple[float, float]:
    """Return the fraction of runs of a variant that solve their task, and the mean score."""
    own = [row for row in rows if row["variant"] == variant]
    solved = float(np.mean([row["solved"] == "True" for row in own]))
    return solved, float(np.mean([float(row["score"]) for row in own]))


def rows_of(name: str, study: Study, variant: str, task: SuiteTask) -> list[dict]:
    """Train a variant on a task; return a row for each seed."""
    agent, changes = study.variants[variant]
    settings = dataclasses.replace(plain_settings(agent, task), **changes)
    config = configure(settings, task.make(), steps=task.steps)
    plan = [(dataclasses.replace(config, seeds=(seed,)), None) for seed in study.seeds]
    rows = []
    for result in (result_of(task, agent, run) for run in run_all(plan)):
        values = (
            name,
            task.half,
            variant,
            task.name,
            result.seed,
            round(result.score, 4),
            result.solved,
        )
        rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=("search", "ablation", "invaders"))
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    out = arguments.out
    rows = list(csv.DictReader(out.open(encoding="utf-8"))) if out.exists() else []
    study = study_of(arguments.study, rows)
    minatar = arguments.study == "invaders"
    tasks = [t for t in TASKS if t.half == study.half and t.name.startswith("minatar") == minatar]
    for variant in study.variants:
        for task in tasks:
            done = (arguments.study, variant, task.name)
            if any((row["study"], row["variant"], row["task"]) == done for row in rows):
                continue
            rows += rows_of(arguments.study, study, variant, task)
            with out.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        solved, score = summary([r for r in rows if r["study"] == arguments.study], variant)
        print(
            f"| {variant} | {solved * len(tasks):.2f} of {len(tasks)} | {score:.3f} |", flush=True
        )


if __name__ == "__main__":
    main()
