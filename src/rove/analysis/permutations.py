"""The studentised permutation test of a difference of means, which needs no range of values."""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float

from rove.analysis.intervals import Comparison

EXACT = 200_000
"""Maximum number of assignments of values to the groups that are all counted; of more, as many are
drawn at random."""
LEVEL = 0.05
ROUNDING = 1e-9
"""Statistics that differ by this fraction count as equal."""
HALVINGS = 30
SNAP = 1e-5
"""Distance from the estimate, as a fraction of the largest deviation, below which a limit is only
rounding."""


def permutation_test(
    a: Sequence[Float[np.ndarray, " _"]], b: Sequence[Float[np.ndarray, " _"]]
) -> Comparison:
    """Test whether the means of two groups differ, averaged over tasks: the mean over tasks of
    mean(a) − mean(b) against 0. `a` and `b` have an array of values for each task.

    The statistic is the difference divided by its standard error, from the variances of both
    groups: the two-sided test is exact if a value is as likely in one group as in the other, and
    asymptotically right if only the means are equal (Janssen 1997; Chung and Romano 2013). Values
    change groups within their task. All assignments are counted if there are at most 200,000, and
    otherwise that many random ones, together with the observed one. Where all values of both groups
    are equal to their mean, 0/0 counts as 0, and another difference as infinite. The interval has
    the shifts of `a` that the test does not reject; it is unbounded if there are too few values.
    """
    value = float(np.mean([np.mean(x) - np.mean(y) for x, y in zip(a, b, strict=True)]))
    centre = [float(np.mean(np.append(x, y))) for x, y in zip(a, b, strict=True)]
    tasks = zip(a, b, centre, strict=True)
    scale = max(float(np.max(np.abs(np.append(x, y) - c))) for x, y, c in tasks) or 1.0
    rows = [
        ((np.asarray(x, float) - c) / scale, (np.asarray(y, float) - c) / scale)
        for x, y, c in zip(a, b, centre, strict=True)
    ]
    p_of = _p_of_shift(rows)
    ends = [scale * _limit(p_of, value / scale, side) for side in (-1.0, 1.0)]
    return Comparison(value, ends[0], ends[1], p_of(0.0))


def _p_of_shift(rows: Sequence[tuple[np.ndarray, np.ndarray]]) -> Callable[[float], float]:
    """Return the function from a shift δ to the p-value of the test of `a` − δ against `b`.

    The sums over a group are polynomials in δ, whose coefficients are computed once for all
    assignments.
    """
    means = np.zeros((2, 1))  # coefficients of the numerator, summed over tasks
    variances = np.zeros((3, 1))  # coefficients of the square of the denominator
    assigned = _assignments(tuple((len(x), len(y)) for x, y in rows))
    for (x, y), groups in zip(rows, assigned, strict=True):
        n, m = len(x), len(y)
        values, shifted = np.append(x, y), np.append(np.ones(n), np.zeros(m))
        columns = np.stack([values, -shifted, values**2, -2.0 * values * shifted, shifted], axis=1)
        # Sums of z, of its slope, and of the coefficients of z².
        of_a = groups.astype(float) @ columns
        of_b = columns.sum(axis=0) - of_a
        means = means + of_a[:, :2].T / n - of_b[:, :2].T / m
        for sums, count in ((of_a.T, n), (of_b.T, m)):
            if count > 1:
                total, slope = sums[0], sums[1]
                squares = np.stack([total**2, 2.0 * total * slope, slope**2]) / count
                variances = variances + (sums[2:] - squares) / (count * (count - 1))

    def p_of(shift: float) -> float:
        numerator = np.abs(means[0] + shift * means[1])
        square = variances[0] + shift * (variances[1] + shift * variances[2])
        # Rounding leaves up to about 1e-16 of the squared values where a variance is 0.
        zero = square <= 1e-13 * (1.0 + shift**2)
        none = numerator <= ROUNDING * (1.0 + abs(shift))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(zero, np.where(none, 0.0, np.inf), numerator / np.sqrt(square))
        return float(np.mean(t >= t[0] * (1.0 - ROUNDING)))

    return p_of


def _limit(p_of: Callable[[float], float], value: float, side: float) -> float:
    """Return the end of the interval on one side of the estimate, by bisection: the last shift that
    is not rejected."""
    inside, step = 0.0, 0.25
    while p_of(value + side * step) > LEVEL:
        inside, step = step, 2.0 * step
        if step > 1e6:
            return side * math.inf
    outside = step
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        kept = p_of(value + side * middle) > LEVEL
        inside, outside = (middle, outside) if kept else (inside, middle)
    return value if outside < SNAP else value + side * outside


@lru_cache(maxsize=2)
def _assignments(sizes: tuple[tuple[int, int], ...]) -> list[Bool[np.ndarray, "assignments _"]]:
    """Return, for each task with n and m values, which values each assignment gives to the first
    group, [assignments, n + m]. The first assignment is the observed one."""
    if len(sizes) == 1 and math.comb(sum(sizes[0]), sizes[0][0]) <= EXACT:
        n, m = sizes[0]
        chosen = np.array(list(itertools.combinations(range(n + m), n)))
        groups = np.zeros((len(chosen), n + m), bool)
        np.put_along_axis(groups, chosen, True, axis=1)
        return [groups]
    random, drawn = np.random.default_rng(0), []
    for n, m in sizes:
        groups = np.zeros((EXACT, n + m), bool)
        groups[:, :n] = True
        groups[1:] = random.permuted(groups[1:], axis=1)
        drawn.append(groups)
    return drawn
