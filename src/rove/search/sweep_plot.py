"""The figure of a sweep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from rove.agents import label_of
from rove.analysis.intervals import DRAWS, MIN_SEEDS, Support, mean_band
from rove.analysis.plots import figure, legend, titled
from rove.analysis.sentences import sweep_headline
from rove.analysis.setting_plots import heat_map, interval_curve

if TYPE_CHECKING:
    from rove.search.sweep_result import Point, Sweep

TUNING, FRESH = "#555555", "#c44e52"
"""The colours of scores on tuning seeds, and of the best point and its score on fresh seeds."""
MEAN, BEST, CONFIRMED = "mean on tuning seeds", "best point", "best point, mean on fresh seeds"
"""Labels of the legend."""
FRESH_OFFSET = 0.12
"""Distance on the x-axis from the best point to its score on fresh seeds; points are 1 apart."""
MOST_POINTS = 20
"""Maximum number of points that are drawn for a sweep of three fields or more."""


def draw(result: "Sweep") -> Figure:
    """Draw a curve for one field, a heat map for two, or the best points for more.

    The best point is marked, with its score on fresh seeds beside it.
    """
    fields, base = result.plan.fields, result.plan.base
    support, best = base.environment.score_range, result.best
    label = f"mean {base.environment.score_label} of a seed"
    if len(fields) == 2:
        drawing = _map(result, label, support)
    elif len(fields) == 1:
        drawing = figure()
        ((name, values),) = fields.items()
        axes, scores = drawing.axes[0], [point.scores for point in result.points]
        interval_curve(axes, values, scores, name, TUNING, MEAN, support)
        position = result.points.index(best)
        _mark(axes, best, position, position + FRESH_OFFSET, support)
        axes.set_ylabel(label)
    else:
        points = [p for p in result.ranked if np.all(np.isfinite(p.scores))][:MOST_POINTS]
        drawing = figure(width=8.0, height=1.8 + 0.25 * len(points))
        _best_points(drawing.axes[0], points, support)
        drawing.axes[0].set_xlabel(label)
    agent, task = label_of(base.agent_name), base.environment.name
    title = sweep_headline(agent, task, len(result.points), best.label, best.confirmed)
    titled(drawing, title, _seeds_text(result))
    legend(drawing, loc="outside lower left")
    return drawing


def _seeds_text(result: "Sweep") -> str:
    """Return how many tuning seeds points have, and whether intervals are drawn, as a subtitle."""
    counts = [len(point.scores) for point in result.points if point.scores]
    fewest, most = min(counts), max(counts)
    seeds = f"{fewest} to {most}" if fewest < most else f"{most}"
    return f"{seeds} tuning seed{'s' * (most > 1)}{', 95% intervals' * (most >= MIN_SEEDS)}"


def _best_points(axes: Any, points: Sequence["Point"], support: Support | None) -> None:
    """Draw points from top to bottom, each with its seeds, their mean and, from five seeds, its
    interval.

    The second row is the score of the first point on fresh seeds, if there is one.
    """
    rows = [0, *range(1 + bool(_fresh(points[0])), len(points) + bool(_fresh(points[0])))]
    for i, point in zip(rows, points, strict=True):
        scores = np.asarray(point.scores, float)
        if len(scores) >= MIN_SEEDS:
            axes.hlines(i, *mean_band(scores, support, draws=DRAWS), color=TUNING, lw=1.6)
        axes.plot(scores, [i] * len(scores), ".", ms=3, alpha=0.5, color=TUNING)
        axes.plot([scores.mean()], [i], "o", ms=4, color=TUNING, label=MEAN)
    _mark(axes, points[0], 0, 1, support, upright=False)
    axes.set_yticks(rows, [point.label for point in points])
    axes.invert_yaxis()


def _fresh(point: "Point") -> list[float]:
    """Return the scores of a point on fresh seeds; none if it was not confirmed or diverged."""
    scores = point.confirmed or []
    return scores if np.all(np.isfinite(scores)) else []


def _mark(
    axes: Any,
    best: "Point",
    position: float,
    fresh_position: float,
    support: Support | None,
    upright: bool = True,
) -> None:
    """Draw a ring around the best point, and its score on fresh seeds.

    The two are at `position` and `fresh_position`. Fresh seeds are drawn with their mean and, from
    five seeds, its interval. Scores are on the y-axis if `upright`, else on the x-axis.
    """

    def plot(position: float, scores: Sequence[float], marker: str, **style: Any) -> None:
        xy = ([position] * len(scores), scores)
        axes.plot(*(xy if upright else xy[::-1]), marker, color=FRESH, **style)

    ring: dict[str, Any] = {"ms": 10, "mfc": "none", "mew": 1.6, "label": BEST}
    plot(position, [float(np.mean(best.scores))], "o", **ring)
    fresh = _fresh(best)
    if not fresh:
        return
    mean = float(np.mean(fresh))
    if len(fresh) >= MIN_SEEDS:
        interval = mean_band(np.array(fresh), support, draws=DRAWS)
        plot(fresh_position, list(map(float, interval)), "-", lw=1.6)
    plot(fresh_position, fresh, ".", ms=3, alpha=0.5)
    plot(fresh_position, [mean], "D", ms=5.5, label=CONFIRMED)
    axes.annotate(
        f"{mean:.3g}",
        (fresh_position, mean) if upright else (mean, fresh_position),
        (8, -3) if upright else (0, 6),
        ha="left" if upright else "center",
        textcoords="offset points",
        fontsize=8,
        color=FRESH,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def _map(result: "Sweep", label: str, support: Support | None) -> Figure:
    """Draw a heat map of two fields, with a box around the best point.

    Its mean score on fresh seeds, if there is one, is written in the box.
    """
    rows, columns = result.plan.fields.items()
    size = {"width": max(5.0, 1.8 + 0.62 * len(columns[1])), "height": 1.8 + 0.46 * len(rows[1])}
    drawing = figure(**size)
    axes, best = drawing.axes[0], result.best
    scores = {tuple(point.settings.values()): point.scores for point in result.points}
    heat_map(axes, rows, columns, scores, label, support=support)
    i, j = (list(f[1]).index(best.settings[f[0]]) for f in (rows, columns))
    corner = (j - 0.5, i - 0.5)
    name = f"{BEST}, with its mean on fresh seeds" if _fresh(best) else BEST
    box: dict[str, Any] = {"fill": False, "ec": FRESH, "lw": 2.4, "clip_on": False, "zorder": 3}
    axes.add_patch(Rectangle(corner, 1, 1, label=name, **box))
    if _fresh(best):
        outline = [withStroke(linewidth=2, foreground="white")]
        text = f"fresh {np.mean(_fresh(best)):.3g}"
        style = {"fontsize": 6, "color": FRESH, "path_effects": outline, "weight": "bold"}
        axes.text(j, i - 0.46, text, ha="center", va="bottom", **style)
    return drawing
