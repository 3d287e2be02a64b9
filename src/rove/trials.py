"""One way to try points on seeds, for `rove tune` and `rove sweep`: rungs, lanes, scores."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rove import live, runner
from rove.environments import Bandit
from rove.errors import Diverged, LaneError
from rove.runs import Config
from rove.statistics import mean_over_steps
from rove.training import lanes
from rove.training.outcomes import UNLIMITED, Outcome

AT_ONCE = 200
"""Run folders that are open at a time: a process may hold only so many files."""


@dataclass(frozen=True)
class Rung:
    """So many of the points, the best so far, are tried on these seeds."""

    points: int
    seeds: tuple[int, ...]


def halving(points: int, seeds: Sequence[int]) -> list[Rung]:
    """All points on one seed; the better half on one more; then on twice as many in all, …"""
    rungs, used = [], 0
    while used < len(seeds):
        upto = max(1, 2 * used)
        rungs.append(Rung(points, tuple(seeds[used:upto])))
        points, used = max(1, -(-points // 2)), upto
    return rungs


def ranking(scores: Sequence[Sequence[float]]) -> list[int]:
    """Points, the best first: those tried on more seeds, then those with the higher mean."""
    means = [float(np.mean(each)) if len(each) else -math.inf for each in scores]
    return sorted(range(len(scores)), key=lambda i: (-len(scores[i]), -means[i], i))


def race(
    points: int,
    rungs: Sequence[Rung],
    attempt: Callable[[Sequence[int], Sequence[int]], Sequence[Sequence[float]]],
) -> list[list[float]]:
    """The scores of every point. `attempt` tries points, by number, on seeds, and tells a score
    for each seed."""
    scores: list[list[float]] = [[] for _ in range(points)]
    for rung in rungs:
        chosen = sorted(ranking(scores)[: rung.points])
        for i, found in zip(chosen, attempt(chosen, rung.seeds), strict=True):
            scores[i] += found
    return scores


def train(
    plan: Sequence[tuple[Config, Path | None]],
    report: lanes.Report = lambda progress: None,
    workers: int | None = None,
    on: str = "processes",
    tracker: live.Tracker | None = None,
) -> list[list[float]]:
    """For each configuration, the scores of its seeds; −∞ for a lane that diverged."""
    found = []
    for start in range(0, len(plan), AT_ONCE):
        runs = runner.run_all(plan[start : start + AT_ONCE], report, workers, on, tracker)
        if failed := [e for run in runs for e in run.errors if not isinstance(e, Diverged)]:
            raise LaneError("\n".join(map(str, failed)))
        for run in runs:
            scores = {outcome.job.seed: score(outcome) for outcome in run.outcomes}
            found.append([scores.get(seed, -math.inf) for seed in run.config.seeds])
    return found


def score(outcome: Outcome) -> float:
    """The mean score of a lane's episodes, those after it was solved, if it stopped there, counted
    as optimal; where its budget is in steps, the mean over steps of the score of their episode; on
    a bandit, less what the arms that were pulled lose. −∞ if it diverged."""
    environment, scores, limit = outcome.job.environment, outcome.scores, outcome.job.episodes
    if outcome.diverged:
        return -math.inf
    if not len(scores):
        job = outcome.job
        raise LaneError(f"{job.name}: no episode ended within {job.steps:,} steps: give it more")
    if limit == UNLIMITED and not isinstance(environment, Bandit):
        lengths = outcome.episodes.length
        if outcome.job.in_a_row < UNLIMITED:  # the steps after it was solved
            scores = np.append(scores, environment.optimum or 0.0)
            left = outcome.job.steps - int(outcome.lane.step)
            lengths = np.append(lengths, max(left, 0))
        return mean_over_steps(scores, lengths)
    episodes = len(scores) if limit == UNLIMITED else limit
    if isinstance(environment, Bandit):
        return -float(environment.regret(outcome.visits)) / episodes
    rest = (episodes - len(scores)) * (environment.optimum or 0.0)
    return float(np.sum(scores) + rest) / episodes
