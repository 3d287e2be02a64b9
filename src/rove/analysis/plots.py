"""Figures. Every curve is a mean over seeds with its 95% interval."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from rove.agents import label_of
from rove.analysis.curves import moving_average
from rove.analysis.intervals import BAND_DRAWS, Support, mean_interval
from rove.environments import Coordinate
from rove.errors import RunFolderError

matplotlib.rcParams.update(
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.6,
        "axes.titlesize": 10,
        "legend.frameon": False,
        "figure.dpi": 150,
        "svg.hashsalt": "rove",
        "svg.fonttype": "none",
    }
)

COLOURS = {
    "dqn": "#4c72b0", "dqn-paper": "#8fb3e8", "noisynet": "#dd8452", "ge": "#2a9d5c",
    "ge-step": "#2a9d5c", "ge-episode": "#8e6bbf", "ige": "#c44e52", "bootstrapped_dqn": "#937860",
}  # fmt: skip
WINDOW = 20
BAND_POINTS = 500
"""Maximum number of points of a curve at which an interval is computed."""
POINTS = 250
"""Maximum number of points of a curve over steps."""


def figure(rows: int = 1, columns: int = 1, width: float = 6.0, height: float = 3.6) -> Figure:
    """Return an empty figure that needs no screen and no global state."""
    empty = Figure(figsize=(width, height), layout="constrained")
    empty.subplots(rows, columns)
    return empty


def learning_curves(
    axes: Any,
    curves: Mapping[str, np.ndarray],
    optimum: float | None = None,
    per_seed: bool = False,
    window: int = WINDOW,
    label: str = "return",
    names: Mapping[str, str] | None = None,
    every: int = 1,
    support: Support | None = None,
) -> None:
    """Draw the smoothed mean and 95% interval of scores of shape [seeds, episodes], for each name.
    `label` is the label of the scores, `names` overrides the labels of curves, `every` is the
    spacing of the scores, and `support` is their range."""
    for name, scores in curves.items():
        smooth = moving_average(scores, window)
        episodes = every * np.arange(1, scores.shape[1] + 1)
        colour = COLOURS.get(name, "#555555" if len(curves) == 1 else None)
        mean = smooth.mean(axis=0)
        (line,) = axes.plot(
            episodes, mean, color=colour, lw=1.6, label=(names or {}).get(name) or label_of(name)
        )
        if len(scores) > 1:
            points = np.unique(np.linspace(0, len(episodes) - 1, BAND_POINTS).astype(int))
            low, high = mean_interval(smooth[:, points], support, draws=BAND_DRAWS)
            alpha = 0.2 if len(curves) <= 3 else 0.1
            colour = line.get_color()
            axes.fill_between(episodes[points], low, high, color=colour, alpha=alpha, lw=0)
        if per_seed:
            axes.plot(episodes, smooth.T, color=line.get_color(), lw=0.5, alpha=0.5)
    if optimum is not None:
        axes.axhline(optimum, color="black", lw=0.8, ls=":", zorder=0)
    axes.set_xlabel("episode")
    axes.set_ylabel(label)
    axes.margins(x=0)


def visits(axes: Any, frequency: np.ndarray, coordinates: Sequence[Coordinate] = ()) -> None:
    """Draw the fraction of episodes in which each cell was visited, of shape [seeds, cells], or
    [seeds, rows, columns] for a board, whose axes may be coordinates."""
    mean = frequency.mean(axis=0)
    if mean.ndim == 2:
        _board(axes, mean, coordinates)
        return
    cells = np.arange(1, len(mean) + 1)
    axes.plot(cells, frequency.T, color="#555555", lw=0.5, alpha=0.5)
    axes.plot(cells, mean, color="#555555", lw=1.6)
    axes.set_xlabel("cell")
    axes.set_ylim(0.0, 1.05)
    axes.margins(x=0)


def _board(axes: Any, mean: np.ndarray, coordinates: Sequence[Coordinate]) -> None:
    """Draw a board of cells. If its axes are coordinates, most cells are visited rarely: colours
    are on a square-root scale, and cells that were never visited are blank."""
    if coordinates:
        up, across = coordinates
        image = axes.imshow(
            np.where(mean > 0, mean, np.nan),
            norm=PowerNorm(0.5, vmin=0.0, vmax=1.0),
            extent=(across.low, across.high, up.low, up.high),
            origin="lower",
            aspect="auto",
        )
        axes.set_xlabel(across.name)
        axes.set_ylabel(up.name)
    else:
        image = axes.imshow(mean, vmin=0.0, vmax=1.0)
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    axes.grid(False)


def visit_history(axes: Any, history: np.ndarray, episodes: int) -> None:
    """Draw the fraction of episodes that visited each cell, from early in training (top) to late
    (bottom). `history` has the visits of episodes 1, 2 and 3, 4 to 7, …, [octaves, cells]."""
    rows = episodes.bit_length()
    starts = 2 ** np.arange(rows)
    ends = np.minimum(2 * starts - 1, episodes)
    shares = history[:rows] / (ends - starts + 1)[:, None]
    image = axes.imshow(
        shares, aspect="auto", vmin=0.0, vmax=1.0, extent=(0.5, history.shape[1] + 0.5, rows, 0)
    )
    labels = [f"{a}–{b}" if a < b else f"{a}" for a, b in zip(starts, ends, strict=True)]
    axes.set_yticks(np.arange(rows) + 0.5, labels)
    axes.set_xlabel("state")
    axes.set_ylabel("episodes")
    axes.grid(False)
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label="fraction of episodes")


def lines(
    axes: Any, values: Mapping[str, np.ndarray], logarithmic: bool = False, window: int = WINDOW
) -> None:
    """Draw the smoothed mean and every seed of values of shape [seeds, episodes], for each name."""
    for name, table in values.items():
        smooth = moving_average(table, window)
        episodes = np.arange(1, smooth.shape[1] + 1)
        if logarithmic and not np.any(smooth > 0):
            axes.plot([], [], label=f"{name}: 0")
            continue
        (line,) = axes.plot(episodes, smooth.mean(axis=0), lw=1.6, label=name)
        axes.plot(episodes, smooth.T, color=line.get_color(), lw=0.5, alpha=0.5)
        axes.set_yscale("log" if logarithmic else "linear")
    axes.set_xlabel("episode")
    axes.margins(x=0)


def beliefs(axes: Any, values: np.ndarray, episodes: np.ndarray, names: Sequence[str]) -> None:
    """Draw q(Q(s, a)) over training from values of shape [snapshots, draws, actions]: draws as dots
    and their mean as a line, with one colour per action."""
    for action, name in enumerate(names[:10]):
        draws = values[:, :, action]
        (line,) = axes.plot(episodes, draws.mean(axis=1), lw=1.4, label=name)
        at = np.repeat(episodes, draws.shape[1])
        axes.plot(at, draws.ravel(), ".", ms=2.5, alpha=0.5, color=line.get_color())
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("episode")


def returns(axes: Any, pictures: Mapping[int, Sequence[tuple[Any, Any]]], discrete: bool) -> None:
    """Draw Z(s, a) of every action after some episodes, from its points and heights. Each action
    has a colour, which is fainter for earlier episodes. Densities are scaled to the same height,
    since otherwise a narrow one would hide a wide one."""
    for count, (episode, actions) in enumerate(pictures.items(), start=1):
        opacity = count / len(pictures)
        for action, picture in enumerate(actions[:10]):
            points, heights = map(np.asarray, picture)
            style = {"color": f"C{action}", "label": "" if action else f"after episode {episode}"}
            if discrete:
                axes.vlines(points, 0, heights, color=f"C{action}", lw=1.5, alpha=0.7 * opacity)
                axes.plot(points, heights, ".", ms=3, alpha=opacity, **style)
            else:
                scaled = heights / max(heights.max(), 1e-30)
                axes.plot(points, scaled, lw=1.4, alpha=opacity, **style)
    axes.set_xlabel("return")
    axes.set_ylabel("probability" if discrete else "density (scaled to its maximum)")
    axes.set_ylim(bottom=0.0)


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


def heat_map(
    axes: Any,
    rows: tuple[str, Sequence[Any]],
    columns: tuple[str, Sequence[Any]],
    scores: Mapping[tuple[Any, Any], ArrayLike],
    label: str = "score",
    limits: tuple[float | None, float | None] = (None, None),
    support: Support | None = None,
) -> None:
    """Draw the mean score over seeds of each pair of values, with its 95% interval if there is
    room. `rows` and `columns` are a name and its values; a pair without scores is blank. `support`
    is the range of the scores."""
    means, texts = np.full((len(rows[1]), len(columns[1])), np.nan), {}
    for (i, row), (j, column) in itertools.product(enumerate(rows[1]), enumerate(columns[1])):
        seeds = np.asarray(scores.get((row, column), ()), float)
        means[i, j] = seeds.mean() if len(seeds) and np.all(np.isfinite(seeds)) else np.nan
        if means.size <= MANY_CELLS and np.isfinite(means[i, j]):
            text = f"{means[i, j]:.3g}"
            if len(seeds) > 1:
                low, high = mean_interval(seeds, support)
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
    """Draw the mean score at each value of a field, its 95% interval over seeds, and every seed. If
    some values have a single seed, and so no interval, the others get bars instead of a band.
    `support` is the range of the scores."""
    drawn = [(i, np.asarray(s, float)) for i, s in enumerate(scores)]
    drawn = [(i, s) for i, s in drawn if len(s) and np.all(np.isfinite(s))]
    at = [i for i, _ in drawn]
    (line,) = axes.plot(at, [s.mean() for _, s in drawn], "o-", ms=4, color=colour, label=label)
    several = [i for i, s in drawn if len(s) > 1]
    ends = np.array([mean_interval(s, support) for _, s in drawn if len(s) > 1]).reshape(-1, 2)
    if several == at:
        axes.fill_between(at, ends[:, 0], ends[:, 1], color=line.get_color(), alpha=0.2, lw=0)
    else:
        axes.vlines(several, ends[:, 0], ends[:, 1], color=line.get_color(), lw=1.6)
    for i, s in drawn:
        axes.plot([i] * len(s), s, ".", ms=3, alpha=0.5, color=line.get_color())
    _values_on(axes.xaxis, values, name)


def save(figure: Figure, path: Path) -> None:
    """Write a figure without a date, so that the same data give the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blank = {".svg": {"Date": None}, ".png": {"Software": None}}.get(path.suffix)
    try:
        figure.savefig(path, metadata=blank)
    except (OSError, ValueError) as error:
        raise RunFolderError(f"cannot write {path}: {error}") from None
