"""Curves of scores over episodes or steps, one seed at a time."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Num

from rove.analysis.estimates import mean


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


def learning_start(ends: Sequence[Num[np.ndarray, " _"]], learning_starts: int) -> int | None:
    """Return the episode, counted from 1, in which learning starts: the median over seeds whose
    episodes end at the steps `ends`. None if it starts at once, or was not reached."""
    if learning_starts <= 1:
        return None
    episodes = [1 + np.searchsorted(x, learning_starts) for x in ends]
    reached = [int(e) for e, x in zip(episodes, ends, strict=True) if e <= len(x)]
    return int(np.median(reached)) if reached else None


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


def aligned(
    rows: Sequence[Float[np.ndarray, " _"]], ended: Sequence[bool]
) -> Float[np.ndarray, "rows points"]:
    """Return rows of different lengths at the points that all have; a row that has ended keeps its
    last value. There are no points if a row is empty."""
    going_on = [len(row) for row, over in zip(rows, ended, strict=True) if not over]
    count = min(going_on, default=max(map(len, rows))) if all(map(len, rows)) else 0
    return np.stack([np.pad(row, (0, max(count - len(row), 0)), "edge")[:count] for row in rows])


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
