"""Statistics that are honest with few seeds."""

import numpy as np
from jaxtyping import Float, Num

TOLERANCE = 1e-4
"""How far below the optimum a score may be that counts as optimal."""
IN_A_ROW = 10
"""So many optimal episodes in a row, and a task is solved."""


def moving_average(values: Float[np.ndarray, "... n"], window: int) -> Float[np.ndarray, "... n"]:
    """Mean of the last `window` values up to each one (of fewer, at the start)."""
    values = np.asarray(values, float)
    window = max(1, min(window, values.shape[-1] or 1))
    total = np.cumsum(values, axis=-1)
    total[..., window:] -= total[..., :-window].copy()
    counts = np.minimum(np.arange(1, values.shape[-1] + 1), window)
    return total / counts


def bootstrap_interval(
    values: Float[np.ndarray, "seeds *rest"], confidence: float = 0.95, resamples: int = 2000
) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """Percentile bootstrap interval of the mean over seeds (the first axis)."""
    means = _bootstrap_means(np.asarray(values, float), resamples, seed=0)
    return _percentiles(means, confidence)


def difference_interval(
    a: Float[np.ndarray, " n"],
    b: Float[np.ndarray, " m"],
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> tuple[float, tuple[float, float]]:
    """mean(a) − mean(b) of two independent groups of seeds, and its bootstrap interval."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    gains = _bootstrap_means(a, resamples, seed=0) - _bootstrap_means(b, resamples, seed=1)
    low, high = _percentiles(gains, confidence)
    return float(a.mean() - b.mean()), (float(low), float(high))


def _bootstrap_means(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    picks = np.random.default_rng(seed).integers(0, len(values), (resamples, len(values)))
    weights = np.stack([np.bincount(p, minlength=len(values)) for p in picks]) / len(values)
    return np.tensordot(weights, values, axes=1)


def _percentiles(means: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return np.asarray(low), np.asarray(high)


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


def solve_summary(solved: list[int | None]) -> str:
    """Such as '5 of 5, median 84'. The median counts the unsolved as later than all others."""
    times = sorted(float("inf") if s is None else s for s in solved)
    done = sum(np.isfinite(times))
    if not done:
        return f"0 of {len(times)}"
    median = np.median(times)
    shown = f"{median:g}" if np.isfinite(median) else "not reached"
    return f"{done} of {len(times)}, median {shown}"
