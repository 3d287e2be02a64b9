"""Statistics that are honest with few seeds."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Num

TOLERANCE = 1e-4
"""How far below the optimum a score may be that counts as optimal."""
IN_A_ROW = 10
"""So many optimal episodes in a row, and a task is solved."""


class Estimate(NamedTuple):
    """A number as a person should see it."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        told = f"{self.value:.3g}, 95% interval {self.low:.3g} to {self.high:.3g}, n = {self.n}"
        return told.replace("inf", "not reached")


def mean_over_steps(scores: Num[np.ndarray, " n"], lengths: Num[np.ndarray, " n"]) -> float:
    """Of every step, the score of its episode; 0 where no episode has ended."""
    return float(np.average(scores, weights=lengths)) if np.size(scores) else 0.0


def score_at(scores: np.ndarray, ends: np.ndarray, at: np.ndarray) -> Float[np.ndarray, " points"]:
    """Of each of some steps the score of its episode, where episodes end at the steps `ends`; of
    one that has not ended, not a number."""
    episode = np.searchsorted(ends, at)
    return np.append(np.asarray(scores, float), np.nan)[np.minimum(episode, len(scores))]


def recent_at(
    scores: np.ndarray, ends: np.ndarray, at: np.ndarray, last: int
) -> Float[np.ndarray, " points"]:
    """At each of some steps the mean score of the last so many episodes that have ended, at the
    steps `ends`; before the first, not a number."""
    done = np.searchsorted(ends, at, side="right")
    return np.array([np.mean(scores[max(n - last, 0) : n]) if n else np.nan for n in done])


def moving_average(values: Float[np.ndarray, "... n"], window: int) -> Float[np.ndarray, "... n"]:
    """Mean of the last `window` values up to each one (of fewer, at the start)."""
    values = np.asarray(values, float)
    window = max(1, min(window, values.shape[-1] or 1))
    if window == 1:
        return values
    total = np.cumsum(values, axis=-1)
    total[..., window:] -= total[..., :-window].copy()
    counts = np.minimum(np.arange(1, values.shape[-1] + 1), window)
    return total / counts


Support: TypeAlias = tuple[float | int, float | int]
"""The least and the greatest value that a quantity can have."""
DRAWS, BAND_DRAWS = 100_000, 2000
"""Monte Carlo draws of an interval: for numbers and verdicts, and for the bands of curves."""
BLOCK = 256
"""Points of a curve whose intervals are computed at a time."""


class Comparison(NamedTuple):
    """An estimate compared with a limit."""

    value: float
    low: float
    high: float
    """The ends of its 95% interval."""
    p: float
    """Two-sided: below 0.05 exactly where the interval lies on one side of the limit."""


def within(values: np.ndarray, support: Support) -> bool:
    """Whether all values are in a support, up to what single precision rounds."""
    slack = 1e-6 * (support[1] - support[0])
    return not np.any((values < support[0] - slack) | (values > support[1] + slack))


def mean_interval(
    values: Float[np.ndarray, "seeds *rest"],
    support: Support | None,
    confidence: float = 0.95,
    draws: int = DRAWS,
) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """Interval of the mean over seeds (the first axis).

    With a support that each value lies in, it is Gaffke's (2005; Learned-Miller and Thomas
    2019): with weights D ~ Dirichlet(1, …, 1) over the n values and one more point, the lower
    limit is a quantile of Σ Dᵢxᵢ where that point is the lower end of the support, the upper
    limit one where it is the upper end. Of values at the two ends alone this is Clopper and
    Pearson's interval of a proportion. It assumes nothing else of the values.

    Otherwise it is Student's, which assumes that values are normal. Of seeds that succeed or
    fail it covers far less than it says, and equal values make it a point.
    """
    x = np.asarray(values, float)
    if support is None or not within(x, support):
        return _student(x, confidence)
    columns = x.reshape(len(x), -1)
    low, high = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    for start in range(0, len(low), BLOCK):  # so that memory does not grow with the curve
        part = slice(start, start + BLOCK)
        low[part], high[part] = _quantiles(*_limits(columns[:, part], support, draws), confidence)
    return low.reshape(x.shape[1:]), high.reshape(x.shape[1:])


def difference_test(
    a: Num[np.ndarray, " n"],
    b: Num[np.ndarray, " m"],
    support: Support,
    support_of_b: Support | None = None,
    draws: int = DRAWS,
) -> Comparison:
    """mean(a) − mean(b) of two independent groups, its interval, and the p-value of 0.

    The intervals of the two means are melded (Fay, Proschan and Brittain 2015): the lower limit
    is a quantile of lower draws of `a` less upper draws of `b`, the upper limit one of upper less
    lower draws. On values at the two ends of the support each one-sided p-value is that of
    Fisher's exact test.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    if not np.all(np.isfinite(np.append(a, b))) or not min(len(a), len(b)):
        raise ValueError("a group without seeds, or a value that is not a number, has no mean")
    lower_a, upper_a = _limits(a, support, draws)
    lower_b, upper_b = _limits(b, support_of_b or support, draws, group=1)
    lower, upper = lower_a - upper_b, upper_a - lower_b
    low, high = map(float, _quantiles(lower, upper, 0.95))
    side = max(min(np.mean(lower <= 0.0), np.mean(upper >= 0.0)), 1 / draws)
    return Comparison(float(a.mean() - b.mean()), low, high, float(min(1.0, 2 * side)))


def proportion_interval(count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's exact interval of a probability, where `count` of n had it."""
    from scipy.special import betaincinv  # here, because it takes long to import

    if not 0 <= count <= n or n == 0:
        raise ValueError(f"{count} of {n} is not a proportion")
    tail = (1 - confidence) / 2
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
    return low, high


def proportion_test(count: int, n: int, limit: float = 0.5) -> Comparison:
    """A proportion, its exact interval, and the p-value of a limit."""
    from scipy.special import bdtr, bdtrc  # here, because it takes long to import

    interval = proportion_interval(count, n)
    at_least = float(bdtrc(count - 1, n, limit)) if count else 1.0
    p = min(1.0, 2 * min(at_least, float(bdtr(count, n, limit))))
    return Comparison(count / n, *interval, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: those below 0.05 stand together with at most 5% risk that any of
    them errs."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


@lru_cache(maxsize=4)
def _weights(n: int, draws: int, group: int) -> np.ndarray:
    """[draws, n]: of Dirichlet(1, …, 1) over n + 1 points, the weights of the first n."""
    gaps = np.random.default_rng([n, group]).standard_exponential((draws, n + 1))
    return gaps[:, :-1] / gaps.sum(axis=1, keepdims=True)


def _limits(
    x: np.ndarray, support: Support, draws: int, group: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper draws of a mean, [draws, *rest] each. Groups have draws of their own."""
    low, high = support
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"a support has two finite ends, and {support} has not")
    if not len(x):
        raise ValueError("a group without seeds has no mean")
    if not within(x, support):
        raise ValueError(f"values from {np.nanmin(x):g} to {np.nanmax(x):g} are not in {support}")
    x, weights = np.clip(x, low, high), _weights(len(x), draws, group)
    lower = low + np.tensordot(weights, x - low, axes=1)
    return lower, high - np.tensordot(weights, high - x, axes=1)


def _quantiles(
    lower: np.ndarray, upper: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """A limit is beyond a number exactly where fewer than a part (1 − confidence)/2 of its draws
    are not."""
    last = len(lower) - 1
    place = max(math.ceil(round((1 - confidence) / 2 * len(lower), 6)) - 1, 0)
    low = np.partition(lower, place, axis=0)[place]
    high = np.partition(upper, last - place, axis=0)[last - place]
    return np.asarray(low), np.asarray(high)


def _student(x: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Student's interval; of one value, without limits."""
    from scipy.special import stdtrit  # here, because it takes long to import

    mean, n = np.asarray(x.mean(axis=0)), len(x)
    if n < 2:
        return np.full_like(mean, -np.inf), np.full_like(mean, np.inf)
    half = stdtrit(n - 1, (1 + confidence) / 2) * x.std(axis=0, ddof=1) / n**0.5
    return np.asarray(mean - half), np.asarray(mean + half)


def mean_and_interval(
    values: Num[np.ndarray, " seeds"], support: Support | None = None, digits: int = 2
) -> str:
    """Such as '5.47, 95% interval 5.10 to 5.80, n = 5'."""
    mean, n = f"{np.mean(values):.{digits}f}", f"n = {len(values)}"
    if len(values) < 2 or not np.all(np.isfinite(values)):
        return f"{mean}, {n}"
    low, high = mean_interval(np.asarray(values, float), support)
    return f"{mean}, 95% interval {low:.{digits}f} to {high:.{digits}f}, {n}"


@lru_cache(maxsize=64)
def _picks(n: int, resamples: int, seed: int) -> np.ndarray:
    """[resamples, n]: which of n seeds each resample holds."""
    return np.random.default_rng(seed).integers(0, n, (resamples, n))


@lru_cache(maxsize=64)
def _counts(n: int, resamples: int, seed: int) -> np.ndarray:
    """[resamples, n]: how often each of n seeds is in each resample."""
    return np.stack([np.bincount(p, minlength=n) for p in _picks(n, resamples, seed)])


def _percentiles(means: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return np.asarray(low), np.asarray(high)


Interval = tuple[np.ndarray, np.ndarray]
Statistic = Callable[[np.ndarray], np.ndarray]
"""Of the last axis. (A task has seeds of its own number: `_`.)"""


def mean(values: Float[np.ndarray, "*rest n"]) -> Float[np.ndarray, "*rest"]:
    """Mean of the last axis."""
    return np.asarray(np.mean(values, axis=-1))


def median(values: Float[np.ndarray, "*rest n"]) -> Float[np.ndarray, "*rest"]:
    """Median of the last axis."""
    return np.asarray(np.median(values, axis=-1))


def interquartile_mean(values: Float[np.ndarray, "*rest n"]) -> Float[np.ndarray, "*rest"]:
    """Mean of the last axis without the lowest and the highest ⌊n/4⌋."""
    cut = values.shape[-1] // 4
    return mean(np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut])


def estimate(
    tasks: Sequence[Float[np.ndarray, " _"]],
    statistic: Statistic = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Estimate:
    """A statistic of all scores, and its stratified bootstrap interval: the seeds of each task
    are resampled among themselves."""
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
    """P(X > Y) + ½P(X = Y) for a seed X of `a` and Y of `b` on the same task, mean over tasks
    (Mann and Whitney's U by the number of pairs), and its stratified bootstrap interval."""
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
    """The share of all scores above each threshold, with its stratified bootstrap interval."""
    total = sum(map(len, tasks))
    share, drawn = np.zeros(len(thresholds)), np.zeros((resamples, len(thresholds)))
    for task, scores in enumerate(tasks):
        above = np.greater.outer(scores, thresholds)
        share += above.sum(axis=0) / total
        drawn += _counts(len(scores), resamples, task) @ above / total
    return share, _percentiles(drawn, confidence)


def area_under_curve(
    scores: Float[np.ndarray, "seeds episodes"],
) -> Float[np.ndarray, " seeds"]:
    """Mean score of all episodes of each seed; NaN, where a lane ended early, as its last."""
    return mean(held(scores))


def held(scores: Float[np.ndarray, "seeds episodes"]) -> Float[np.ndarray, "seeds episodes"]:
    """Scores whose NaN, where a lane ended early, are filled with its last score."""
    played = np.where(np.isnan(scores), 0, np.arange(scores.shape[-1]))
    return np.take_along_axis(scores, np.maximum.accumulate(played, axis=-1), axis=-1)


def kaplan_meier(
    times: Float[np.ndarray, " n"],
    solved: Bool[np.ndarray, " n"],
    confidence: float = 0.95,
    resamples: int = 2000,
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Interval]:
    """The times at which a lane was solved, and Kaplan and Meier's share of lanes that are not
    solved after each, with its bootstrap interval. A lane that is not `solved` was watched until
    its time, and counts until then."""
    when, survival = _survival(times, solved, np.ones((1, len(times))))
    drawn = _survival(times, solved, _counts(len(times), resamples, 0))[1]
    return when, survival[0], _percentiles(drawn, confidence)


def median_episodes_to_solve(
    times: Float[np.ndarray, " n"],
    solved: Bool[np.ndarray, " n"],
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Estimate:
    """When half of the lanes are solved, by Kaplan and Meier; infinite if that was not reached.
    The interval is Efron's: seeds are resampled, each with whether it was solved."""
    found = _median_time(*_survival(times, solved, np.ones((1, len(times)))))[0]
    drawn = np.sort(_median_time(*_survival(times, solved, _counts(len(times), resamples, 0))))
    tail = (1 - confidence) / 2  # no interpolation: some may be infinite
    low, high = (drawn[round(q * (resamples - 1))] for q in (tail, 1 - tail))
    return Estimate(float(found), float(low), float(high), len(times))


def _survival(
    times: np.ndarray, solved: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The times at which a lane was solved, and for each row of `counts`, of shape [rows, lanes],
    the share unsolved after each."""
    when = np.unique(times[solved])
    at_risk = counts @ np.greater_equal.outer(times, when)
    events = counts @ (np.equal.outer(times, when) & solved[:, None])
    return when, np.cumprod(1.0 - events / np.maximum(at_risk, 1.0), axis=1)


def _median_time(when: np.ndarray, survival: np.ndarray) -> np.ndarray:
    """Where each row falls below a half; midway between two times, if it is a half in between."""
    when = np.append(when, np.inf)
    reaches = np.sum(survival > 0.5 + 1e-9, axis=1)
    falls = np.sum(survival > 0.5 - 1e-9, axis=1)
    return 0.5 * (when[reaches] + when[falls])


def pair_variances(curves: Num[np.ndarray, "seeds n"]) -> Float[np.ndarray, " pairs"]:
    """Of disjoint pairs of seeds, half the squared distance of their curves, mean over points. Each
    has the variance between seeds as its expectation, and pairs are independent: what holds for a
    mean holds for this variance. Of an odd number of seeds the last is left out."""
    even = len(curves) // 2 * 2
    return 0.5 * np.square(np.asarray(curves[1:even:2] - curves[:even:2], float)).mean(axis=1)


def steadiness(curves: Num[np.ndarray, "seeds n"]) -> Float[np.ndarray, " seeds"]:
    """What each curve has risen by at its end, as a part of all that it moved up and down: 1 if it
    only rises, and 0 if it does not move."""
    moved = np.abs(np.diff(curves)).sum(axis=1)
    return (curves[:, -1] - curves[:, 0]) / np.where(moved > 0, moved, 1.0)


def collapsed_at(
    scores: Num[np.ndarray, " episodes"], spread: Num[np.ndarray, " episodes"], optimum: float
) -> int | None:
    """The episode by which beliefs had collapsed, if any: their spread was below a hundredth of
    its highest, for 20 episodes, before any scored half of the optimum."""
    found = np.flatnonzero(scores >= 0.5 * optimum)
    before = spread[: found[0]] if len(found) else spread
    low = before < 0.01 * np.maximum.accumulate(before) if len(before) else before
    runs = np.convolve(low, np.ones(20), "valid") if len(low) >= 20 else np.zeros(0)
    return int(np.flatnonzero(runs >= 20)[0]) + 20 if np.any(runs >= 20) else None


def episodes_to_solve(
    scores: Num[np.ndarray, " episodes"], optimum: float, in_a_row: int = IN_A_ROW
) -> int | None:
    """The episode (counted from 1) that ends the first `in_a_row` optimal ones, if any."""
    run = 0
    for episode, value in enumerate(scores, start=1):
        run = run + 1 if value >= optimum - TOLERANCE else 0
        if run == in_a_row:
            return episode
    return None


def solve_summary(scores: Sequence[Num[np.ndarray, " _"]], optimum: float) -> str:
    """Such as '5 of 5, median 84, 95% interval 70 to 101', of the scores of each lane."""
    found = [episodes_to_solve(lane, optimum) for lane in scores]
    solved = np.array([at is not None for at in found])
    told = f"{solved.sum()} of {len(found)}"
    if not solved.any():
        return told
    times = [len(lane) if at is None else at for at, lane in zip(found, scores, strict=True)]
    median = median_episodes_to_solve(np.array(times, float), solved)
    told += f", median {median.value:g}"
    if len(found) > 1:
        told += f", 95% interval {median.low:g} to {median.high:g}"
    return told.replace("inf", "not reached")
