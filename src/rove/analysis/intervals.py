"""Intervals and tests that remain valid with few seeds and all-or-nothing scores."""

import math
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Num

from rove.errors import RoveWarning

Support: TypeAlias = tuple[float | int, float | int]
"""The smallest and the largest possible value of a quantity."""
DRAWS, BAND_DRAWS = 100_000, 2000
"""Number of Monte Carlo draws for the intervals of numbers, and for the bands of curves."""
MIN_SEEDS = 5
"""Minimum number of seeds for the interval of a number; tables of fewer show the seeds."""
DRAWN = 5
"""Maximum number of seeds that a picture draws as curves instead of an interval, which would be
wide."""
BLOCK = 256
"""Number of points of a curve whose intervals are computed at a time."""


def p_text(p: float) -> str:
    """Format a p-value as "p = 0.012", or "p < 0.001"."""
    return f"p = {p:.2g}" if p >= 0.001 else "p < 0.001"


class Comparison(NamedTuple):
    """An estimate compared with a reference value: a half for a proportion, 0 for a difference."""

    value: float
    low: float
    high: float
    """The limits of the 95% interval."""
    p: float
    """Two-sided p-value: below 0.05 if and only if the interval excludes the reference value."""
    what: str = "difference"
    """What was compared."""

    def __str__(self) -> str:
        limits = f"{self.low:.3g} to {self.high:.3g}"
        if (self.low, self.high) == (-np.inf, np.inf):
            limits = "unbounded (too few seeds)"
        numbers = f"{self.value:.3g}, 95% interval {limits}".replace("-", "−")
        return f"{self.what}: {numbers}, {self.p_text}"

    @property
    def p_text(self) -> str:
        """The p-value in words, such as "p = 0.012"."""
        return p_text(self.p)

    def __repr__(self) -> str:
        return f"<Comparison: {self}>"


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

    Otherwise it is Student's interval, which assumes normal values; there is a warning if values
    lie outside the support. If seeds either succeed or fail, its coverage is far below the nominal
    one, and equal values give an interval of width 0.
    """
    x = np.asarray(values, float)
    if support is not None and not within(x, support):
        text = f"values lie outside {support}, so Student's interval is used instead of Gaffke's"
        warnings.warn(text, RoveWarning, 2)
        support = None
    if support is None:
        return _student(x, confidence)
    columns = x.reshape(len(x), -1)
    low, high = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    for start in range(0, len(low), BLOCK):  # to bound the memory
        part = slice(start, start + BLOCK)
        low[part], high[part] = _quantiles(
            *_limit_draws(columns[:, part], support, draws), confidence
        )
    return low.reshape(x.shape[1:]), high.reshape(x.shape[1:])


def mean_band(
    values: Float[np.ndarray, "seeds *rest"],
    support: Support | None,
    seen: Support | None = None,
    draws: int = BAND_DRAWS,
) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """Return the 95% interval of the mean over seeds, for a picture. Without a support, this is
    Student's interval, clipped to the range of the values `seen`, so that no impossible score is
    drawn."""
    low, high = mean_interval(values, support, draws=draws)
    if support is not None and within(np.asarray(values, float), support):
        return low, high
    limits = seen or (np.nanmin(values), np.nanmax(values))
    return np.clip(low, *limits), np.clip(high, *limits)


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
    lower_a, upper_a = _limit_draws(a, support, draws)
    lower_b, upper_b = _limit_draws(b, support_of_b or support, draws, group=1)
    lower, upper = lower_a - upper_b, upper_a - lower_b
    low, high = map(float, _quantiles(lower, upper, 0.95))
    one_sided = max(min(np.mean(lower <= 0.0), np.mean(upper >= 0.0)), 1 / draws)
    return Comparison(float(a.mean() - b.mean()), low, high, float(min(1.0, 2 * one_sided)))


def proportion_interval(count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Clopper and Pearson's exact interval for the probability of `count` events in n."""
    from scipy.special import betaincinv  # imported here because SciPy is slow to import

    if not 0 <= count <= n or n == 0:
        raise ValueError(f"the count must be between 0 and n > 0, got {count} of {n}")
    tail = (1 - confidence) / 2
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
    return low, high


def episodes_interval(
    scores: Num[np.ndarray, " episodes"], support: Support | None
) -> tuple[float, float]:
    """Return the 95% interval of the mean score of one policy over its episodes.

    If every score is 0 or 1, this is the exact interval of Clopper and Pearson for the fraction of
    successes. Otherwise it is `mean_interval`: Gaffke's if the range of the score is known, else
    Student's.
    """
    if np.isin(scores, (0.0, 1.0)).all() and support in (None, (0.0, 1.0)):
        return proportion_interval(int(np.sum(scores)), len(scores))
    known = support if support is not None and within(scores, support) else None
    low, high = mean_interval(np.asarray(scores, float), known)
    return float(low), float(high)


def proportion_test(count: int, n: int, limit: float = 0.5) -> Comparison:
    """Test whether a proportion differs from `limit`, with its exact interval."""
    from scipy.special import bdtr, bdtrc  # imported here because SciPy is slow to import

    interval = proportion_interval(count, n)
    at_least = float(bdtrc(count - 1, n, limit)) if count else 1.0
    p = min(1.0, 2 * min(at_least, float(bdtr(count, n, limit))))
    return Comparison(count / n, *interval, p)


def counts_test(count: int, n: int, other: int, m: int) -> float:
    """Return the two-sided p-value of Fisher's exact test of `count` events in n against `other` in
    m: twice the smaller one-sided one, as `difference_test` estimates it."""
    total, whole = count + other, math.comb(n + m, n)
    ways = [math.comb(total, k) * math.comb(n + m - total, n - k) for k in range(n + 1)]
    return min(1.0, 2 * min(sum(ways[: count + 1]), sum(ways[count:])) / whole)


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


def _limit_draws(
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


def mean_and_interval(values: Num[np.ndarray, " seeds"], support: Support | None = None) -> str:
    """Format a mean as '5.470, 95% interval 5.100 to 5.800, n = 5', or with the seeds themselves if
    they are few: '5.470 (seeds: 5.100, 5.500, 5.800), n = 3'. The largest has four digits."""
    digits = _decimals(np.asarray(values))
    mean, n = f"{np.mean(values):.{digits}f}", f"n = {len(values)}"
    if len(values) < 2 or not np.all(np.isfinite(values)):
        return f"{mean}, {n}"
    if len(values) < MIN_SEEDS:
        return f"{mean} (seeds: {', '.join(f'{x:.{digits}f}' for x in values)}), {n}"
    low, high = mean_interval(np.asarray(values, float), support)
    digits = _decimals(np.array([*values, low, high]))
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean}, 95% interval {low:.{digits}f} to {high:.{digits}f}, {n}"


def _decimals(values: Num[np.ndarray, " seeds"]) -> int:
    """Return the number of decimals that shows four digits of the largest number."""
    largest = np.max(np.abs(values), where=np.isfinite(values), initial=0.0)
    return int(np.clip(3 - np.floor(np.log10(largest)), 0, 6)) if largest > 0.0 else 3


def count_and_interval(count: int, n: int) -> str:
    """Format a count as '4 of 5 (95% interval 28% to 99%)', without the interval if n is small."""
    if n < MIN_SEEDS:
        return f"{count} of {n}"
    low, high = proportion_interval(count, n)
    return f"{count} of {n} (95% interval {low:.0%} to {high:.0%})"
