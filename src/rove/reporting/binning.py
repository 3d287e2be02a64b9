"""Curves with few enough points for a page."""

import numpy as np

from rove.analysis import curves
from rove.analysis.seed_scores import POINTS, budget_of
from rove.reporting.run_data import RunData
from rove.training.outcomes import UNLIMITED

FEW_POINTS = 60
"""Maximum number of points of a curve, other than of scores (`POINTS`)."""
SIZES = (1, 2, 4, 5, 10, 20, 50, 100, 250, 500, 1250, 2500, 5000, 10_000)
"""Numbers of episodes that may be averaged to one point; windows are multiples of them."""


def stopped_early(run: RunData) -> bool:
    """Whether a seed stopped before the end of its budget: it had solved its task, or reached the
    score to stop at."""
    episodes, steps = (run.raw.get(unit) or UNLIMITED for unit in ("episodes", "steps"))
    return run.stops_early and any(
        run.finished.get(seed) and len(x["step"]) < episodes and x["step"][-1] < steps
        for seed, x in run.columns.items()
    )


def recent_table(run: RunData, every: int, window: int) -> tuple[int, np.ndarray]:
    """Return the mean score of the `window` most recent episodes every `every` steps, [seeds,
    points], as in learning-curve.png, from the step on at which all seeds have finished an episode.
    A seed that is not finished has no score after its last episode, and a diverged one its lowest
    score."""
    first = max(int(columns["step"][0]) for columns in run.columns.values())
    at = np.arange(-(-first // every) * every, budget_of(run.trained, "step") + 1, every)
    at = at if len(at) else np.array([first])
    rows = []
    for (seed, columns), diverged in zip(run.columns.items(), run.diverged, strict=True):
        row = curves.recent_at(columns["score"], columns["step"], at, window)
        if diverged or not run.finished.get(seed):
            row[at > columns["step"][-1]] = np.min(columns["score"]) if diverged else np.nan
        rows.append(row)
    return int(at[0]), np.stack(rows)


def bin_size(episodes: int) -> int:
    """Return the number of episodes per point that keeps the number of points below POINTS."""
    fitting = (size for size in SIZES if episodes / size <= POINTS)
    return next(fitting, -(-episodes // POINTS))


def binned(table: np.ndarray, size: int) -> np.ndarray:
    """Return the means of blocks of `size` episodes; an incomplete last block is dropped."""
    count = max(table.shape[1] // size, 1)
    return table[:, : count * size].reshape(len(table), count, -1).mean(axis=2)
