"""The rank test of times, some of which were not reached."""

import math

import numpy as np
from jaxtyping import Num

from rove.analysis.intervals import Comparison

EXACT = 100
"""Maximum number of seeds in both groups together for which assignments are counted; the rank sum
of more is approximated by a normal distribution."""
TAIL = 0.025


def rank_test(a: Num[np.ndarray, " n"], b: Num[np.ndarray, " m"]) -> Comparison:
    """Test whether the times of two independent groups differ. A time that was not reached is
    infinite; all of these are tied as the largest.

    The p-value is that of the test of Wilcoxon, Mann and Whitney: twice the smaller one-sided one,
    counted over all assignments of the ranks to the groups, where ties have their mean rank. If all
    finite times are equal, it is that of Fisher's exact test. The estimate is that of Hodges and
    Lehmann: the median of the differences between a time of `a` and one of `b`, where two that were
    not reached differ by 0. The interval contains the shifts that the test does not reject. All of
    them are infinite if too few times were reached.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    if not min(len(a), len(b)) or np.any(np.isnan(np.append(a, b))):
        raise ValueError("both groups need at least one seed, and no time may be NaN")
    p = min(1.0, 2 * min(_p_less(a, b), _p_less(b, a)))
    return Comparison(_median_difference(a, b), -_upper_limit(b, a), _upper_limit(a, b), p)


def _median_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the median of all differences; if it lies between two of which one is infinite, the
    other."""
    with np.errstate(invalid="ignore"):
        differences = np.subtract.outer(a, b).ravel()
    ordered = np.sort(np.where(np.isnan(differences), 0.0, differences))
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    finite = middle[np.isfinite(middle)]
    return float(finite.mean() if len(finite) else middle[0])


def _upper_limit(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest shift for which a − shift is not significantly smaller than b."""
    steps = np.unique(np.subtract.outer(a[np.isfinite(a)], b[np.isfinite(b)]))
    if not len(steps):
        return math.inf if _p_less(a, b) > TAIL else -math.inf
    between = [steps[0] - 1.0, *(0.5 * (steps[1:] + steps[:-1])), steps[-1] + 1.0]
    low, high = 0, len(between)  # the first shift that is rejected, by bisection
    while low < high:
        middle = (low + high) // 2
        rejected = _p_less(a - between[middle], b) <= TAIL
        low, high = (low, middle) if rejected else (middle + 1, high)
    return float([-math.inf, *steps, math.inf][low])


def _p_less(a: np.ndarray, b: np.ndarray) -> float:
    """Return the probability that ranks assigned at random give `a` a rank sum as small as its
    own."""
    _, group, counts = np.unique(np.append(a, b), return_inverse=True, return_counts=True)
    ranks = (2 * np.cumsum(counts) - counts + 1)[group]  # twice the mean rank, an integer
    n, total, rank_sum = len(a), len(ranks), int(ranks[: len(a)].sum())
    if total > EXACT:
        variance = n * len(b) * float(np.var(ranks)) / (total - 1)
        z = (rank_sum + 1 - n * (total + 1)) / math.sqrt(variance) if variance else math.inf
        return 0.5 * math.erfc(-z / math.sqrt(2))
    ways = np.zeros((n + 1, rank_sum + 1))  # [seeds of a, rank sum], up to its own
    ways[0, 0] = 1.0
    for rank in ranks[ranks <= rank_sum]:
        ways[1:, rank:] += ways[:-1, : rank_sum + 1 - rank]
    return float(ways[n].sum() / math.comb(total, n))
