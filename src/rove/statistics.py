"""Statistics that remain valid with few seeds."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Num

TOLERANCE = 1e-4
"""Maximum distance below the optimum at which a score still counts as optimal."""
IN_A_ROW = 10
"""Number of consecutive optimal episodes after which a task counts as solved."""


class Estimate(NamedTuple):
    """An estimate with its 95% interval and the number of values it is based on."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        text = f"{self.value:.3g}, 95% interval {self.low:.3g} to {self.high:.3g}, n = {self.n}"
        return text.replace("inf", "not reached")


def mean_over_steps(scores: Num[np.ndarray, " n"], lengths: Num[np.ndarray, " n"]) -> float:
    """Return the mean score of episodes weighted by their length; 0 if no episode has ended."""
    return float(np.average(scores, weights=lengths)) if np.size(scores) else 0.0


def score_at(scores: np.ndarray, ends: np.ndarray, at: np.ndarray) -> Float[np.ndarray, " points"]:
    """Return, for each step in `at`, the score of the episode it belongs to. Episodes end at the
    steps `ends`; for an episode that has not ended the score is NaN."""
    episode = np.searchsorted(ends, at)
    return np.append(np.asarray(scores, float), np.nan)[np.minimum(episode, len(scores))]


def recent_at(
    scores: np.ndarray, ends: np.ndarray, at: np.ndarray, last: int
) -> Float[np.ndarray, " points"]:
    """Return, for each step in `at`, the mean score of the `last` most recent episodes. Episodes
    end at the steps `ends`; before the end of the first, the score is NaN."""
    done = np.searchsorted(ends, at, side="right")
    return np.array([np.mean(scores[max(n - last, 0) : n]) if n else np.nan for n in done])


def moving_average(values: Float[np.ndarray, "... n"], window: int) -> Float[np.ndarray, "... n"]:
    """Return the mean of the last `window` values up to each one (of fewer at the start)."""
    values = np.asarray(values, float)
    window = max(1, min(window, values.shape[-1] or 1))
    if window == 1:
        return values
    total = np.cumsum(values, axis=-1)
    total[..., window:] -= total[..., :-window].copy()
    counts = np.minimum(np.arange(1, values.shape[-1] + 1), window)
    return total / counts


Support: TypeAlias = tuple[float | int, float | int]
"""The smallest and the largest possible value of a quantity."""
DRAWS, BAND_DRAWS = 100_000, 2000
"""Number of Monte Carlo draws for the intervals of numbers, and for the bands of curves."""
BLOCK = 256
"""Number of points of a curve whose intervals are computed at a time."""


class Comparison(NamedTuple):
    """An estimate compared with a limit."""

    value: float
    low: float
    high: float
    """The limits of the 95% interval."""
    p: float
    """Two-sided p-value; it is below 0.05 if and only if the interval excludes the limit."""


def within(values: np.ndarray, support: Support) -> bool:
    """Whether all values lie in the support, up to rounding in single precision."""
    slack = 1e-6 * (support[1] - support[0])
    return not np.any((values < support[0] - slack) | (values > support[1] + slack))


def mean_interval(
    values: Float[np.ndarray, "seeds *rest"],
    support: Support | None,
    confidence: float = 0.95,
    draws: int = DRAWS,
) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """Return a confidence interval for the mean over seeds (the first axis).

    If all values lie in a known support, this is Gaffke's interval (2005; Learned-Miller and
    Thomas 2019): with weights D ~ Dirichlet(1, …, 1) over the n values and one extra point, the
    lower limit is a quantile of Σ Dᵢxᵢ with the extra point at the lower end of the support, and
    the upper limit is one with the extra point at the upper end. It makes no other assumption
    about the values. If they only take the two ends of the support, it equals the interval of
    Clopper and Pearson for a proportion.

    Otherwise it is Student's interval, which assumes normal values. If seeds either succeed or
    fail, its coverage is far below the nominal one, and equal values give an interval of width 0.
    """
    x = np.asarray(values, float)
    if support is None or not within(x, support):
        return _student(x, confidence)
    columns = x.reshape(len(x), -1)
    low, high = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    for start in range(0, len(low), BLOCK):  # to bound the memory
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
    """Test whether the means of two independent groups differ: mean(a) − mean(b) against 0.

    The intervals of the two means are melded (Fay, Proschan and Brittain 2015): the lower limit
    is a quantile of the lower draws of `a` minus the upper draws of `b`, and the upper limit is
    one of the upper draws of `a` minus the lower draws of `b`. If values only take the two ends
    of the support, each one-sided p-value equals that of Fisher's exact test.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    if not np.all(np.isfinite(np.append(a, b))) or not min(len(a), len(b)):
        raise ValueError("both groups need at least one seed, and all values must be finite")
    lower_a, upper_a = _limits(a, support, draws)
    lower_b, upper_b = _limits(b, support_of_b or support, draws, group=1)
    lower, upper = lower_a - upper_b, upper_a - lower_b
    low, high = map(float, _quantiles(lower, upper, 0.95))
    side = max(min(np.mean(lower <= 0.0), np.mean(upper >= 0.0)), 1 / draws)
    return Comparison(float(a.mean() - b.mean()), low, high, float(min(1.0, 2 * side)))


def proportion_interval(count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's exact interval for the probability of `count` events in n."""
    from scipy.special import betaincinv  # imported here because SciPy is slow to import

    if not 0 <= count <= n or n == 0:
        raise ValueError(f"the count must be between 0 and n > 0, got {count} of {n}")
    tail = (1 - confidence) / 2
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
    return low, high


def proportion_test(count: int, n: int, limit: float = 0.5) -> Comparison:
    """Test whether a proportion differs from `limit`, with its exact interval."""
    from scipy.special import bdtr, bdtrc  # imported here because SciPy is slow to import

    interval = proportion_interval(count, n)
    at_least = float(bdtrc(count - 1, n, limit)) if count else 1.0
    p = min(1.0, 2 * min(at_least, float(bdtr(count, n, limit))))
    return Comparison(count / n, *interval, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values. Rejecting all hypotheses whose adjusted p-value is below
    0.05 keeps the probability of any false rejection below 5%."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


@lru_cache(maxsize=4)
def _weights(n: int, draws: int, group: int) -> np.ndarray:
    """Draw Dirichlet(1, …, 1) weights over n + 1 points; return the first n of them, [draws, n]."""
    gaps = np.random.default_rng([n, group]).standard_exponential((draws, n + 1))
    return gaps[:, :-1] / gaps.sum(axis=1, keepdims=True)


def _limits(
    x: np.ndarray, support: Support, draws: int, group: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper draws of a mean, [draws, *rest] each. Each group has its own draws."""
    low, high = support
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"the support needs two finite ends in order, got {support}")
    if not len(x):
        raise ValueError("at least one seed is needed to estimate a mean")
    if not within(x, support):
        bounds = f"{np.nanmin(x):g} to {np.nanmax(x):g}"
        raise ValueError(f"values must lie in the support {support}, got {bounds}")
    x, weights = np.clip(x, low, high), _weights(len(x), draws, group)
    lower = low + np.tensordot(weights, x - low, axes=1)
    return lower, high - np.tensordot(weights, high - x, axes=1)


def _quantiles(
    lower: np.ndarray, upper: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of an interval: the (1 − confidence)/2 quantile of the lower draws, and the
    matching upper quantile of the upper draws, both rounded outwards."""
    last = len(lower) - 1
    rank = max(math.ceil(round((1 - confidence) / 2 * len(lower), 6)) - 1, 0)
    low = np.partition(lower, rank, axis=0)[rank]
    high = np.partition(upper, last - rank, axis=0)[last - rank]
    return np.asarray(low), np.asarray(high)


def _student(x: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Student's interval; for a single value it is infinite."""
    from scipy.special import stdtrit  # imported here because SciPy is slow to import

    mean, n = np.asarray(x.mean(axis=0)), len(x)
    if n < 2:
        return np.full_like(mean, -np.inf), np.full_like(mean, np.inf)
    half = stdtrit(n - 1, (1 + confidence) / 2) * x.std(axis=0, ddof=1) / n**0.5
    return np.asarray(mean - half), np.asarray(mean + half)


def mean_and_interval(
    values: Num[np.ndarray, " seeds"], support: Support | None = None, digits: int = 2
) -> str:
    """Format a mean as '5.47, 95% interval 5.10 to 5.80, n = 5'."""
    mean, n = f"{np.mean(values):.{digits}f}", f"n = {len(values)}"
    if len(values) < 2 or not np.all(np.isfinite(values)):
        return f"{mean}, {n}"
    low, high = mean_interval(np.asarray(values, float), support)
    return f"{mean}, 95% interval {low:.{digits}f} to {high:.{digits}f}, {n}"


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


def area_under_curve(
    scores: Float[np.ndarray, "seeds episodes"],
) -> Float[np.ndarray, " seeds"]:
    """Return the mean score over the episodes of each seed. A seed that stopped early (NaN) keeps
    its last score."""
    return mean(fill_forward(scores))


def fill_forward(
    scores: Float[np.ndarray, "seeds episodes"],
) -> Float[np.ndarray, "seeds episodes"]:
    """Replace NaN after the end of a seed by its last score."""
    played = np.where(np.isnan(scores), 0, np.arange(scores.shape[-1]))
    return np.take_along_axis(scores, np.maximum.accumulate(played, axis=-1), axis=-1)


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


def pair_variances(curves: Num[np.ndarray, "seeds n"]) -> Float[np.ndarray, " pairs"]:
    """Return half the mean squared distance between the curves of disjoint pairs of seeds. Each is
    an independent unbiased estimate of the variance between seeds, so that a test of means becomes
    one of variances. With an odd number of seeds the last is ignored."""
    even = len(curves) // 2 * 2
    return 0.5 * np.square(np.asarray(curves[1:even:2] - curves[:even:2], float)).mean(axis=1)


def steadiness(curves: Num[np.ndarray, "seeds n"]) -> Float[np.ndarray, " seeds"]:
    """Return the net rise of each curve as a fraction of its total variation: 1 if it only rises, 0
    if it is constant."""
    moved = np.abs(np.diff(curves)).sum(axis=1)
    return (curves[:, -1] - curves[:, 0]) / np.where(moved > 0, moved, 1.0)


def collapsed_at(
    scores: Num[np.ndarray, " episodes"], spread: Num[np.ndarray, " episodes"], optimum: float
) -> int | None:
    """Return the episode by which the posterior had collapsed, or None. It has collapsed if its
    spread stays below 1% of its maximum so far for 20 episodes before any episode scores half of
    the optimum."""
    successes = np.flatnonzero(scores >= 0.5 * optimum)
    before = spread[: successes[0]] if len(successes) else spread
    low = before < 0.01 * np.maximum.accumulate(before) if len(before) else before
    runs = np.convolve(low, np.ones(20), "valid") if len(low) >= 20 else np.zeros(0)
    return int(np.flatnonzero(runs >= 20)[0]) + 20 if np.any(runs >= 20) else None


def episodes_to_solve(
    scores: Num[np.ndarray, " episodes"], optimum: float, in_a_row: int = IN_A_ROW
) -> int | None:
    """Return the episode, counted from 1, that completes the first `in_a_row` consecutive optimal
    ones, or None."""
    run = 0
    for episode, value in enumerate(scores, start=1):
        run = run + 1 if value >= optimum - TOLERANCE else 0
        if run == in_a_row:
            return episode
    return None


def solve_summary(scores: Sequence[Num[np.ndarray, " _"]], optimum: float) -> str:
    """Summarise how soon seeds solved their task: '5 of 5, median 84, 95% interval 70 to 101'."""
    solved_at = [episodes_to_solve(row, optimum) for row in scores]
    solved = np.array([at is not None for at in solved_at])
    text = f"{solved.sum()} of {len(solved_at)}"
    if not solved.any():
        return text
    times = [len(row) if at is None else at for at, row in zip(solved_at, scores, strict=True)]
    median = median_episodes_to_solve(np.array(times, float), solved)
    text += f", median {median.value:g}"
    if len(solved_at) > 1:
        text += f", 95% interval {median.low:g} to {median.high:g}"
    return text.replace("inf", "not reached")
