"""Trying points (settings of an agent) on seeds, for `rove reproduce tuning` and `rove sweep`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rove.analysis.curves import mean_over_steps
from rove.environments.bandit import BanditTask
from rove.errors import Diverged, LaneError
from rove.runs import tracking
from rove.runs.config import Config
from rove.runs.execution import run_all
from rove.training.outcomes import UNLIMITED, Outcome
from rove.training.progress import Report, ignore

AT_ONCE = 200
"""Maximum number of run folders open at the same time; open files per process are limited."""


@dataclass(frozen=True)
class Rung:
    """A round of a search: the best `points` points so far are tried on `seeds`."""

    points: int
    seeds: tuple[int, ...]


def halving(points: int, seeds: Sequence[int]) -> list[Rung]:
    """Return the rungs of successive halving: all points on one seed, the better half on two seeds
    in total, the better half of those on four, and so on."""
    rungs, used = [], 0
    while used < len(seeds):
        end = max(1, 2 * used)
        rungs.append(Rung(points, tuple(seeds[used:end])))
        points, used = max(1, -(-points // 2)), end
    return rungs


def ranking(scores: Sequence[Sequence[float]]) -> list[int]:
    """Return point numbers, best first: by number of seeds tried, then by mean score."""
    means = [float(np.mean(row)) if len(row) else -math.inf for row in scores]
    return sorted(range(len(scores)), key=lambda i: (-len(scores[i]), -means[i], i))


def race(
    points: int,
    rungs: Sequence[Rung],
    try_points: Callable[[Sequence[int], Sequence[int]], Sequence[Sequence[float]]],
) -> list[list[float]]:
    """Run all rungs and return the scores of every point. `try_points(points, seeds)` trains the
    points with these numbers and returns one score per seed for each."""
    scores: list[list[float]] = [[] for _ in range(points)]
    for rung in rungs:
        chosen = sorted(ranking(scores)[: rung.points])
        for i, new_scores in zip(chosen, try_points(chosen, rung.seeds), strict=True):
            scores[i] += new_scores
    return scores


def train(
    plan: Sequence[tuple[Config, Path | None]],
    report: Report = ignore,
    workers: int | None = None,
    on: str = "processes",
    tracker: tracking.Tracker | None = None,
) -> list[list[float]]:
    """Train each configuration and return the scores of its seeds; −∞ for a seed that diverged."""
    table = []
    for start in range(0, len(plan), AT_ONCE):
        runs = run_all(plan[start : start + AT_ONCE], report, workers, on, tracker)
        if failed := [e for run in runs for e in run.errors if not isinstance(e, Diverged)]:
            raise LaneError("\n".join(map(str, failed)))
        for run in runs:
            scores = {outcome.job.seed: score(outcome) for outcome in run.outcomes}
            table.append([scores.get(seed, -math.inf) for seed in run.config.seeds])
    return table


def score(outcome: Outcome) -> float:
    """Return the mean score over a run's episodes; −∞ if it diverged.

    If the budget is in steps, episodes are weighted by their length. If the run stopped because it
    solved its task, the rest of its budget counts as optimal. On a bandit, the score is minus the
    mean regret of the arms that were pulled.
    """
    environment, scores, limit = outcome.job.environment, outcome.scores, outcome.job.episodes
    if outcome.diverged:
        return -math.inf
    if not len(scores):
        job = outcome.job
        raise LaneError(f"{job.name}: no episode ended within {job.steps:,} steps; increase steps")
    if limit == UNLIMITED and not isinstance(environment, BanditTask):
        lengths = outcome.episodes.length
        if outcome.job.in_a_row < UNLIMITED:  # the steps after the task was solved
            scores = np.append(scores, environment.optimum or 0.0)
            left = outcome.job.steps - int(outcome.lane.step)
            lengths = np.append(lengths, max(left, 0))
        return mean_over_steps(scores, lengths)
    episodes = len(scores) if limit == UNLIMITED else limit
    if isinstance(environment, BanditTask):
        return -float(environment.regret(outcome.visits)) / episodes
    rest = (episodes - len(scores)) * (environment.optimum or 0.0)
    return float(np.sum(scores) + rest) / episodes
