"""Figures. A curve is a mean over seeds with its 95% interval or, of at most five, the seeds."""

import io
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from rove.agents import label_of
from rove.analysis.colours import PALETTE, line_of
from rove.analysis.curves import moving_average
from rove.analysis.intervals import DRAWN, Support, mean_band
from rove.analysis.seed_scores import POINTS as POINTS
from rove.errors import RunFolderError
from rove.parts.files import publish

matplotlib.rcParams.update(
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.6,
        "axes.titlesize": 10,
        "axes.titlepad": 14,
        "legend.frameon": False,
        "figure.dpi": 150,
        "svg.hashsalt": "rove",
        "svg.fonttype": "none",
        "axes.prop_cycle": cycler(color=[light for light, _ in PALETTE]),
    }
)

WIDEST = 0.68
"""Assumed mean width of a letter, as a fraction of its size; bold text is no wider."""
KEY = 6
"""Width of the line beside a label in a legend, in letters."""
BESIDE = 8
"""Width of the labels beside the axes of a panel, in letters."""
QUIET = "#7a828c"
"""The colour of explanatory lines and words."""
SMALL: dict[str, Any] = {"fontsize": 7.5, "color": QUIET, "annotation_clip": False}
WINDOW = 20
BAND_POINTS = 500
"""Maximum number of points of a curve at which an interval is computed."""
MOST_SEEDS = 10
"""Maximum number of seeds that are drawn one by one."""


def figure(rows: int = 1, columns: int = 1, width: float = 6.0, height: float = 3.6) -> Figure:
    """Return an empty figure that needs no screen and no global state."""
    empty = Figure(figsize=(width, height), layout="constrained")
    empty.subplots(rows, columns)
    return empty


def learning_curves(
    axes: Any,
    curves: Mapping[str, np.ndarray],
    optimum: float | None = None,
    window: int = WINDOW,
    label: str = "return",
    names: Mapping[str, str] | None = None,
    every: int = 1,
    support: Support | None = None,
    seeds: bool = False,
) -> None:
    """Draw the smoothed mean of scores of shape [seeds, episodes], for each name, with its 95%
    interval; of at most five seeds, or with `seeds`, with every seed. `label` names the
    scores, `names` overrides the labels of curves, `every` is the spacing of the scores, and
    `support` is their range; an interval never leaves it or, if it is not known, the range of all
    scores of the curves."""
    seen = [float(limit([limit(x) for x in curves.values()])) for limit in (np.nanmin, np.nanmax)]
    for name, scores in curves.items():
        smooth = moving_average(scores, window)
        episodes = every * np.arange(1, scores.shape[1] + 1)
        (line,) = axes.plot(
            episodes,
            smooth.mean(axis=0),
            lw=1.8,
            marker=marker(episodes),
            **line_of(name),
            label=(names or {}).get(name) or label_of(name),
        )
        points = np.unique(np.linspace(0, len(episodes) - 1, BAND_POINTS).astype(int))
        alpha = 0.2 if len(curves) <= 3 else 0.1
        if seeds:
            draw_seeds(axes, episodes, smooth, line.get_color())
        if not seeds or len(scores) > DRAWN:
            limits = (support, (seen[0], seen[1]))
            seeds_or_band(axes, episodes, smooth, line.get_color(), points, *limits, alpha=alpha)
    if optimum is not None:
        mark_optimum(axes, optimum)
    axes.set_ylabel(label)
    over_episodes(axes)


def marker(xs: np.ndarray) -> str | None:
    """Return the marker of a curve: a dot for a single point, of which no line can be drawn."""
    return "o" if len(xs) == 1 else None


def seeds_or_band(
    axes: Any,
    xs: np.ndarray,
    values: np.ndarray,
    colour: str,
    points: np.ndarray | slice = slice(None),
    support: Support | None = None,
    seen: Support | None = None,
    alpha: float = 0.2,
) -> None:
    """Draw the 95% interval of the mean of values, [seeds, n], at some points of a curve; of at
    most five seeds, thin lines for the seeds. For `support` and `seen` see `mean_band`."""
    if len(values) > DRAWN:
        low, high = mean_band(values[:, points], support, seen)
        axes.fill_between(xs[points], low, high, color=colour, alpha=alpha, lw=0)
    else:
        draw_seeds(axes, xs, values, colour)


def seeds_or_range(axes: Any, xs: np.ndarray, values: np.ndarray, colour: str) -> None:
    """Draw thin lines for seeds, [seeds, n]; of more than ten, their range."""
    if len(values) > MOST_SEEDS:
        low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        axes.fill_between(xs, low, high, color=colour, alpha=0.2, lw=0)
    else:
        draw_seeds(axes, xs, values, colour)


def draw_seeds(axes: Any, xs: np.ndarray, values: np.ndarray, colour: str) -> None:
    """Draw thin lines for seeds, [seeds, n]; none for a single one, which is its own mean."""
    if len(values) > 1:
        axes.plot(xs, values.T, color=colour, lw=0.7, alpha=0.55, marker=marker(xs))


def seeds_text(n: int, thin: bool = False) -> str:
    """Say what a curve is: '5 seeds, mean and 95% interval', or '3 seeds (thin) and their mean'.
    `thin`: whether seeds are drawn beside the interval."""
    if n == 1:
        return "1 seed"
    if n <= DRAWN:
        return f"{n} seeds (thin) and their mean"
    return f"{n} seeds{' (thin)' * thin}, mean and 95% interval"


def agreement_text(curves: Sequence[np.ndarray], window: int, support: Support | None) -> str:
    """Say that the seeds of a curve cannot be told apart, or its interval cannot be seen, where all
    seeds agree; empty if that is nowhere so. `curves` are scores, [seeds, n], before smoothing, and
    `support` is their range, if it is known: an interval then has a width everywhere."""
    several = [moving_average(x, window) for x in curves if len(x) > 1]
    sizes = [len(x) for x in several if np.any(np.ptp(x, axis=0) == 0.0)]
    if support is None and any(n > DRAWN for n in sizes):
        return "where all seeds agree, the interval has no width"
    return "where all seeds agree, their lines coincide" if min(sizes, default=99) <= DRAWN else ""


def described_text(n: int) -> str:
    """Say what a curve with `seeds_or_range` is: '3 seeds (thin) and their mean', or '20 seeds:
    mean and range (minimum to maximum)'."""
    if n > MOST_SEEDS:
        return f"{n} seeds: mean and range (minimum to maximum)"
    return "1 seed" if n == 1 else f"{n} seeds (thin) and their mean"


def over_episodes(axes: Any, name: str = "episode") -> None:
    """Label the x-axis, with ticks at whole numbers only."""
    axes.set_xlabel(name)
    axes.xaxis.set_major_locator(whole_numbers())
    axes.margins(x=0)


def whole_numbers() -> MaxNLocator:
    """Return a locator of ticks at round whole numbers."""
    return MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1)


def logarithmic_axis(axis: Any) -> None:
    """Make an axis logarithmic, with ticks such as 0.01, 0.1 and 1: at powers of ten if there are
    several, otherwise at round numbers."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    several = np.floor(np.log10(high)) > np.ceil(np.log10(low))
    round_numbers = MaxNLocator(5, steps=[1, 2, 5, 10])
    axis.set_major_locator(LogLocator(numticks=6) if several else round_numbers)
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def mark_optimum(axes: Any, optimum: float) -> None:
    """Draw the optimum as a dotted line with its name beside it."""
    axes.axhline(optimum, color=QUIET, lw=1.0, ls=":", zorder=0)
    beside = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    axes.annotate("optimum", (1.0, optimum), (4, 0), va="center", **beside, **SMALL)


def mark_learning(axes: Any, at: float | None) -> None:
    """Draw a vertical line where learning starts, with its name above it; nothing for None."""
    if at is None:
        return
    axes.axvline(at, color=QUIET, lw=1.0, ls="--", zorder=0)
    across = axes.transAxes.inverted().transform(axes.transData.transform((at, 0)))[0]
    side = "right" if across > 0.5 else "left"
    above = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
    axes.annotate("learning starts", (at, 1.0), (0, 2), ha=side, va="bottom", **above, **SMALL)


def wrapped(text: str, figure: Figure, size: float) -> str:
    """Break text of some size, in points, into lines that fit the width of a figure."""
    return _filled(text, _letters(figure, size))


def _filled(text: str, letters: int) -> str:
    """Break text into lines of some letters, at spaces except non-breaking ones."""
    return textwrap.fill(text, letters, break_on_hyphens=False).replace("\u00a0", " ")


def _letters(figure: Figure, size: float) -> int:
    """Return the number of letters of some size, in points, that fit the width of a figure."""
    return int(72 * figure.get_figwidth() / (WIDEST * size))


def heading(axes: Any, text: str) -> None:
    """Write the title of a panel above it, broken into lines that fit its width."""
    columns = axes.get_subplotspec().get_gridspec().ncols
    size = 0.8 * matplotlib.rcParams["axes.titlesize"]  # it is not bold
    letters = _letters(axes.figure, size) // columns - BESIDE
    axes.set_title(_filled(text, letters), loc="left")


def titled(figure: Figure, title: str, about: str) -> None:
    """Write a title above a figure, in bold, and below that a description, in grey."""
    title, about = wrapped(title, figure, 11), wrapped(about, figure, 8.5)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, weight="bold")
    figure.axes[0].set_title(about, loc="left", fontsize=8.5, color=QUIET)


def blank(axes: Any) -> None:
    """Leave axes empty."""
    axes.set_axis_off()


def legend(figure: Figure, **options: Any) -> None:
    """Name everything that the axes label, once, above them, in as many columns as fit."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    layout: dict[str, Any] = {"loc": "outside upper left", "alignment": "left", "ncols": 8}
    layout |= options
    widest = max(map(len, handles), default=0) + KEY
    layout["ncols"] = max(1, min(layout["ncols"], _letters(figure, 8) // widest))
    figure.legend(list(handles.values()), list(handles), fontsize=8, **layout)


def save(figure: Figure, path: Path) -> None:
    """Write a figure without a date, so that the same data give the same file."""
    blank = {".svg": {"Date": None}, ".png": {"Software": None}}.get(path.suffix)
    file = io.BytesIO()
    try:
        figure.savefig(file, format=path.suffix.lstrip(".") or "png", metadata=blank)
    except (OSError, ValueError) as error:
        raise RunFolderError(f"cannot write {path}: {error}") from None
    publish(path, file.getvalue())


def saved(figure: Figure, path: str | Path | None) -> Figure:
    """Write a figure if a path is given, and return it."""
    if path is not None:
        save(figure, Path(path))
    return figure
