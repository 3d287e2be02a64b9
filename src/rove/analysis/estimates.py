"""Estimates over tasks and seeds, with bootstrap intervals."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Num

from rove.analysis.intervals import count_and_interval
from rove.training.solving import episodes_to_solve


class Estimate(NamedTuple):
    """An estimate with its 95% interval and the number of values it is based on."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        text = f"{self.value:.3g}, 95% interval {self.low:.3g} to {self.high:.3g}, n = {self.n}"
        return text.replace("inf", "not reached")


@lru_cache(maxsize=64)
def _picks(n: int, resamples: int, seed: int) -> np.ndarray:
    """Return the seeds in each bootstrap resample, [resamples, n]."""
    return np.random.default_rng(seed).integers(0, n, (resamples, n))


@lru_cache(maxsize=64)
def _counts(n: int, resamples: int, seed: int) -> np.ndarray:
    """Return how often each seed occurs in each bootstrap resample, [resamples, n]."""
    return np.stack([np.bincount(p, minlength=n) for p in _picks(n, resamples, seed)])


def _percentiles(means: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return np.asarray(low), np.asarray(high)


Interval = tuple[np.ndarray, np.ndarray]
Statistic = Callable[[np.ndarray], np.ndarray]
"""A statistic of the last axis. (The dimension `_` may differ between tasks.)"""


def mean(values: Float[np.ndarray, "*rest n"]) -> Float[np.ndarray, "*rest"]:
    """Return the mean over the last axis."""
    return np.asarray(np.mean(values, axis=-1))


def median(values: Float[np.ndarray, "*rest n"]) -> Float[np.ndarray, "*rest"]:
    """Return the median over the last axis."""
    return np.asarray(np.median(values, axis=-1))


def interquartile_mean(values: Float[np.ndarray, "*rest n"]) -> Float[np.ndarray, "*rest"]:
    """Return the mean over the last axis without its ⌊n/4⌋ lowest and ⌊n/4⌋ highest values."""
    cut = values.shape[-1] // 4
    return mean(np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut])


def estimate(
    tasks: Sequence[Float[np.ndarray, " _"]],
    statistic: Statistic = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Estimate:
    """Return a statistic of all scores with its stratified bootstrap interval, which resamples
    seeds within each task."""
    groups = [np.asarray(scores, float) for scores in tasks]
    drawn = [g[_picks(len(g), resamples, i)] for i, g in enumerate(groups)]
    low, high = _percentiles(statistic(np.concatenate(drawn, axis=1)), confidence)
    whole = np.concatenate(groups)
    return Estimate(float(statistic(whole)), float(low), float(high), len(whole))


def probability_of_improvement(
    a: Sequence[Float[np.ndarray, " _"]],
    b: Sequence[Float[np.ndarray, " _"]],
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Estimate:
    """Return P(X > Y) + ½P(X = Y), averaged over tasks, with its stratified bootstrap interval. X
    is a seed of `a` and Y a seed of `b` on the same task (Mann and Whitney's U divided by the
    number of pairs)."""
    values, drawn = [], np.zeros(resamples)
    for task, (x, y) in enumerate(zip(a, b, strict=True)):
        wins = 0.5 * (np.sign(np.subtract.outer(x, y)) + 1.0)
        of_x = _counts(len(x), resamples, 2 * task) / len(x)
        of_y = _counts(len(y), resamples, 2 * task + 1) / len(y)
        values.append(wins.mean())
        drawn += np.sum((of_x @ wins) * of_y, axis=1) / len(a)
    low, high = _percentiles(drawn, confidence)
    return Estimate(float(np.mean(values)), float(low), float(high), sum(map(len, a)))


def performance_profile(
    tasks: Sequence[Float[np.ndarray, " _"]],
    thresholds: Float[np.ndarray, " k"],
    confidence: float = 0.95,
    resamples: int = 2000,
) -> tuple[Float[np.ndarray, " k"], Interval]:
    """Return the fraction of all scores above each threshold and its stratified bootstrap
    interval."""
    total = sum(map(len, tasks))
    share, drawn = np.zeros(len(thresholds)), np.zeros((resamples, len(thresholds)))
    for task, scores in enumerate(tasks):
        above = np.greater.outer(scores, thresholds)
        share += above.sum(axis=0) / total
        drawn += _counts(len(scores), resamples, task) @ above / total
    return share, _percentiles(drawn, confidence)


def kaplan_meier(
    times: Float[np.ndarray, " n"],
    solved: Bool[np.ndarray, " n"],
    confidence: float = 0.95,
    resamples: int = 2000,
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Interval]:
    """Return the times at which seeds solved their task, and after each the Kaplan–Meier estimate
    of the fraction still unsolved, with its bootstrap interval. A seed that is not `solved` is
    censored at its time."""
    when, survival = _survival(times, solved, np.ones((1, len(times))))
    drawn = _survival(times, solved, _counts(len(times), resamples, 0))[1]
    return when, survival[0], _percentiles(drawn, confidence)


def median_episodes_to_solve(
    times: Float[np.ndarray, " n"],
    solved: Bool[np.ndarray, " n"],
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Estimate:
    """Return the Kaplan–Meier median of the time to solve; infinite if it was not reached.
    The interval is Efron's bootstrap, which resamples seeds together with their censoring."""
    median_time = _median_time(*_survival(times, solved, np.ones((1, len(times)))))[0]
    drawn = np.sort(_median_time(*_survival(times, solved, _counts(len(times), resamples, 0))))
    tail = (1 - confidence) / 2  # no interpolation, since times may be infinite
    low, high = (drawn[round(q * (resamples - 1))] for q in (tail, 1 - tail))
    return Estimate(float(median_time), float(low), float(high), len(times))


def _survival(
    times: np.ndarray, solved: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the times at which seeds solved their task and, for each row of `counts` of shape
    [rows, seeds], the fraction still unsolved after each time."""
    when = np.unique(times[solved])
    at_risk = counts @ np.greater_equal.outer(times, when)
    events = counts @ (np.equal.outer(times, when) & solved[:, None])
    return when, np.cumprod(1.0 - events / np.maximum(at_risk, 1.0), axis=1)


def _median_time(when: np.ndarray, survival: np.ndarray) -> np.ndarray:
    """Return the time at which each row falls below ½; if it equals ½ between two times, their
    midpoint."""
    when = np.append(when, np.inf)
    reaches = np.sum(survival > 0.5 + 1e-9, axis=1)
    falls = np.sum(survival > 0.5 - 1e-9, axis=1)
    return 0.5 * (when[reaches] + when[falls])


def solve_summary(scores: Sequence[Num[np.ndarray, " _"]], optimum: float, lost: int = 0) -> str:
    """Summarise how many seeds solved their task, with the exact interval of a count, and how soon:
    '5 of 5 (95% interval 48% to 100%), median 84 episodes'. `lost` is how many lost it again."""
    solved_at = [episodes_to_solve(row, optimum) for row in scores]
    solved = np.array([at is not None for at in solved_at])
    text = count_and_interval(int(solved.sum()), len(solved_at))
    if not solved.any():
        return text
    times = [len(row) if at is None else at for at, row in zip(solved_at, scores, strict=True)]
    median = median_episodes_to_solve(np.array(times, float), solved)
    text = f"{text}, median {median.value:g} episodes".replace("inf episodes", "not reached")
    return f"{text}; {lost} of them lost it again" if lost else text
