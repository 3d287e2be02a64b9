"""The picture of a sweep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from rove.analysis.intervals import FEWEST, Support, mean_interval

if TYPE_CHECKING:
    from rove.search.sweep_result import Sweep
from rove.analysis.plots import figure, heat_map, interval_curve


def _best_points(axes: Any, points: Sequence[Any], support: Support | None) -> None:
    """Draw points from top to bottom, each with its seeds, its mean and, from five seeds on, its
    interval."""
    for i, point in enumerate(points):
        scores = np.asarray(point.scores, float)
        if len(scores) >= FEWEST:
            axes.hlines(i, *mean_interval(scores, support), color="#555555", lw=1.6)
        axes.plot(scores, [i] * len(scores), ".", ms=3, alpha=0.5, color="#555555")
        axes.plot([scores.mean()], [i], "o", ms=4, color="#555555")
    axes.set_yticks(range(len(points)), [point.label for point in points])
    axes.invert_yaxis()


def draw(result: "Sweep") -> Figure:
    """Draw a curve for one field, a heat map for two, or else the best points with intervals."""
    fields, base = result.plan.fields, result.plan.base
    support = base.environment.score_range
    label = f"mean {base.environment.score_label} of a seed"
    if len(fields) == 2:
        rows, columns = fields.items()
        drawn = figure(
            width=max(5.0, 1.8 + 0.62 * len(columns[1])), height=1.6 + 0.36 * len(rows[1])
        )
        scores = {tuple(point.settings.values()): point.scores for point in result.points}
        heat_map(drawn.axes[0], rows, columns, scores, label, support=support)
    elif len(fields) == 1:
        drawn = figure()
        ((name, values),) = fields.items()
        scores = [point.scores for point in result.points]
        interval_curve(drawn.axes[0], values, scores, name, "#555555", support=support)
        drawn.axes[0].set_ylabel(label)
    else:
        best = [point for point in result.ranked if np.all(np.isfinite(point.scores))][:20]
        drawn = figure(width=8.0, height=1.2 + 0.25 * len(best))
        _best_points(drawn.axes[0], best, support)
        drawn.axes[0].set_xlabel(label)
    counts = [len(point.scores) for point in result.points if point.scores]
    fewest, most = min(counts), max(counts)
    seeds = f"{fewest} to {most}" if fewest < most else f"{most}"
    about = f"tuning seed{'s' * (most > 1)}{', 95% intervals' * (most >= FEWEST)}"
    drawn.suptitle(f"{base.label}: {seeds} {about}", fontsize=10)
    return drawn
