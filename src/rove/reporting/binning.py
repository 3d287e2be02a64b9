"""Curves with few enough points for a page."""

from collections.abc import Sequence

import numpy as np

from rove.analysis import curves
from rove.reporting.run_data import RunData
from rove.training import solving
from rove.training.outcomes import UNLIMITED

POINTS, FEW_POINTS = 250, 60
"""Maximum number of points of a curve of scores, and of other curves."""
SIZES = (1, 2, 4, 5, 10, 20, 50, 100, 250, 500, 1250, 2500, 5000, 10_000)
"""Numbers of episodes that may be averaged to one point; windows are multiples of them."""


def unit_of(runs: Sequence[RunData]) -> str:
    """Return the unit in which runs are compared: steps if the budget of any of them is in
    steps."""
    return "episode" if all(run.raw.get("episodes") for run in runs) else "step"


def budget_of(run: RunData, unit: str) -> int:
    """Return the budget of a run; of one that has a budget of episodes, also in steps."""
    budget = run.raw.get(f"{unit}s")
    return budget or int(max(columns["step"][-1] for columns in run.columns.values()))


def score_table(run: RunData, every: int) -> np.ndarray:
    """Return scores by episode, [seeds, episodes], or every `every` steps, [seeds, points]. A seed
    that stopped because it solved its task keeps its last score to the end, one that stopped at a
    score the mean of its last 20 episodes; a diverged seed gets its lowest score."""
    if every:
        at = np.arange(every, budget_of(run, "step") + 1, every)
        lanes = run.columns.values()
        table = np.stack([curves.score_at(x["score"], x["step"], at) for x in lanes])
        budget = len(at)
    else:
        table, budget = run.table("score"), run.raw.get("episodes") or 0
    if run.stops_early or np.any(run.diverged):
        more = np.full((len(table), max(budget - table.shape[1], 0)), np.nan)
        table = np.concatenate([table, more], axis=1)
    for row, seed, diverged in zip(table, run.seeds, run.diverged, strict=True):
        if diverged:
            row[np.isnan(row)] = np.nanmin(row)
        elif run.stopped.get(seed):
            row[np.isnan(row)] = np.mean(run.columns[seed]["score"][-solving.LAST :])
        elif run.stops_early and run.finished.get(seed):
            row[:] = curves.fill_forward(row[None])[0]
    return table


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
    at = np.arange(-(-first // every) * every, budget_of(run, "step") + 1, every)
    at = at if len(at) else np.array([first])
    rows = []
    for (seed, columns), diverged in zip(run.columns.items(), run.diverged, strict=True):
        row = curves.recent_at(columns["score"], columns["step"], at, window)
        if diverged or not run.finished.get(seed):
            row[at > columns["step"][-1]] = np.min(columns["score"]) if diverged else np.nan
        rows.append(row)
    return int(at[0]), np.stack(rows)


def common_episodes(table: np.ndarray) -> np.ndarray:
    """Return the episodes that all seeds have finished."""
    return table[:, : int(np.sum(np.all(~np.isnan(table), axis=0)))]


def bin_size(episodes: int) -> int:
    """Return the number of episodes per point that keeps the number of points below POINTS."""
    fitting = (size for size in SIZES if episodes / size <= POINTS)
    return next(fitting, -(-episodes // POINTS))


def binned(table: np.ndarray, size: int) -> np.ndarray:
    """Return the means of blocks of `size` episodes; an incomplete last block is dropped."""
    count = max(table.shape[1] // size, 1)
    return table[:, : count * size].reshape(len(table), count, -1).mean(axis=2)
