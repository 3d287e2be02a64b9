"""Scores over the values of settings: a curve for one setting, a heat map for two."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rove.analysis.intervals import DRAWS, MIN_SEEDS, Support, mean_band

TICKS = 12
"""Maximum number of tick labels."""
MANY_CELLS = 100
"""Maximum number of cells of a heat map that shows numbers."""


def _values_on(axis: Any, values: Sequence[Any], name: str) -> None:
    """Label an axis with evenly spaced values of any type."""
    step = -(-len(values) // TICKS)
    labels = [f"{v:g}" if isinstance(v, float) else str(v) for v in values[::step]]
    axis.set_ticks(range(0, len(values), step), labels)
    axis.set_label_text(name)


def _range(scores: Sequence[ArrayLike]) -> Support | None:
    """Return the lowest and the highest of all finite scores; None if there are none."""
    values = np.concatenate([np.zeros(0), *(np.asarray(x, float).ravel() for x in scores)])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else None


def heat_map(
    axes: Any,
    rows: tuple[str, Sequence[Any]],
    columns: tuple[str, Sequence[Any]],
    scores: Mapping[tuple[Any, Any], ArrayLike],
    label: str = "score",
    limits: tuple[float | None, float | None] = (None, None),
    support: Support | None = None,
) -> None:
    """Draw the mean score over seeds of each pair of values, with its 95% interval if there are
    five seeds and room for it. `rows` and `columns` are a name and its values; a pair without
    scores is blank. `support` is the range of the scores."""
    seen = _range(list(scores.values()))
    means, texts = np.full((len(rows[1]), len(columns[1])), np.nan), {}
    for (i, row), (j, column) in itertools.product(enumerate(rows[1]), enumerate(columns[1])):
        seeds = np.asarray(scores.get((row, column), ()), float)
        means[i, j] = seeds.mean() if len(seeds) and np.all(np.isfinite(seeds)) else np.nan
        if means.size <= MANY_CELLS and np.isfinite(means[i, j]):
            text = f"{means[i, j]:.3g}"
            if len(seeds) >= MIN_SEEDS:
                low, high = mean_band(seeds, support, seen, DRAWS)
                text += f"\n{low:.3g}–{high:.3g}"
            texts[i, j] = axes.text(j, i, text, ha="center", va="center", fontsize=6)
    image = axes.imshow(means, origin="lower", aspect="auto", vmin=limits[0], vmax=limits[1])
    for at, text in texts.items():
        text.set_color("black" if image.norm(means[at]) > 0.6 else "white")
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label=label)
    _values_on(axes.xaxis, columns[1], columns[0])
    _values_on(axes.yaxis, rows[1], rows[0])
    axes.grid(False)


def interval_curve(
    axes: Any,
    values: Sequence[Any],
    scores: Sequence[ArrayLike],
    name: str,
    colour: str | None = None,
    label: str | None = None,
    support: Support | None = None,
) -> None:
    """Draw the mean score at each value of a field, every seed, and from five seeds on its 95%
    interval. If some values have fewer seeds, and so no interval, the others get bars instead of a
    band. `support` is the range of the scores."""
    drawn = [(i, np.asarray(s, float)) for i, s in enumerate(scores)]
    drawn = [(i, s) for i, s in drawn if len(s) and np.all(np.isfinite(s))]
    at = [i for i, _ in drawn]
    (line,) = axes.plot(at, [s.mean() for _, s in drawn], "o-", ms=4, color=colour, label=label)
    several = [i for i, s in drawn if len(s) >= MIN_SEEDS]
    kept = [s for _, s in drawn if len(s) >= MIN_SEEDS]
    seen = _range(scores)
    ends = np.array([mean_band(s, support, seen, DRAWS) for s in kept]).reshape(-1, 2)
    if several == at:
        axes.fill_between(at, ends[:, 0], ends[:, 1], color=line.get_color(), alpha=0.2, lw=0)
    else:
        axes.vlines(several, ends[:, 0], ends[:, 1], color=line.get_color(), lw=1.6)
    for i, s in drawn:
        axes.plot([i] * len(s), s, ".", ms=3, alpha=0.5, color=line.get_color())
    _values_on(axes.xaxis, values, name)
