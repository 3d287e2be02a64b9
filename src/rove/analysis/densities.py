"""Return distributions as curves that can be drawn, however narrow they are."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Num

TAIL = 0.01
"""Probability that is left out at either end of a distribution."""
SMOOTHING = (0.01, 0.03)
"""Limits of the standard deviation of the kernel, as fractions of the range that is drawn. Between
them it is the distance between positions. A narrower distribution is drawn as wide as the first, or
as the distance between the points of the curve."""
Distribution = tuple[Num[np.ndarray, " n"], Num[np.ndarray, " n"]]
"""Ascending positions, and their probabilities or densities."""


def drawn_range(distributions: Sequence[Distribution]) -> tuple[float, float]:
    """Return a range that contains some distributions, except for their tails, with a margin. Those
    of a network that diverged are left out."""
    ends = []
    for x, weights in map(_normalised, distributions):
        ends += [x[i] for i in _central(x, weights) if np.isfinite(x[i])]
    low, high = float(min(ends, default=0.0)), float(max(ends, default=0.0))
    room = max(0.08 * (high - low), 0.01 * max(abs(low), abs(high)), 1e-6)
    return low - room, high + room


def smoothed(
    distribution: Distribution, low: float, high: float, points: int
) -> Float[np.ndarray, " points"]:
    """Return the heights of a distribution at evenly spaced points from `low` to `high`, smoothed
    by a Gaussian kernel and scaled to a maximum of 1; zeros if a network diverged."""
    grid, (x, weights) = np.linspace(low, high, points), _normalised(distribution)
    first, last = _central(x, weights)
    apart = (x[last] - x[first]) / max(last - first, 1)
    narrow, wide = max(SMOOTHING[0], 1 / (points - 1)), SMOOTHING[1]
    width = (high - low) * np.clip(apart / (high - low), narrow, wide)
    heights = np.exp(-0.5 * np.square(np.subtract.outer(grid, x) / width)) @ weights
    return np.nan_to_num(heights / max(float(heights.max()), 1e-300))


def mean(distribution: Distribution) -> float:
    """Return the mean of a distribution."""
    x, weights = _normalised(distribution)
    return float(x @ weights)


def _normalised(distribution: Distribution) -> Distribution:
    """Return positions and weights that sum to 1."""
    x, heights = (np.asarray(part, float) for part in distribution)
    return x, heights / max(float(heights.sum()), 1e-300)


def _central(x: np.ndarray, weights: np.ndarray) -> tuple[int, int]:
    """Return the indices of the first and the last position between the tails."""
    first, last = np.searchsorted(np.cumsum(weights), [TAIL, 1 - TAIL])
    return min(int(first), len(x) - 1), min(int(last), len(x) - 1)
