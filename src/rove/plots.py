"""Pictures. Every curve is a mean over seeds with its interval."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from rove.agents import label_of
from rove.errors import RunFolderError
from rove.statistics import bootstrap_interval, moving_average

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

COLOURS = {"dqn": "#4c72b0", "noisynet": "#dd8452", "ge": "#2a9d5c"}
WINDOW = 20


def figure(rows: int = 1, columns: int = 1, width: float = 6.0, height: float = 3.6) -> Figure:
    """An empty figure that needs no screen and no global state."""
    made = Figure(figsize=(width, height), layout="constrained")
    made.subplots(rows, columns)
    return made


def learning_curves(
    axes: Any,
    curves: Mapping[str, np.ndarray],
    optimum: float | None = None,
    per_seed: bool = False,
    window: int = WINDOW,
) -> None:
    """For each name, returns of shape [seeds, episodes]: smoothed mean and 95% interval."""
    for name, returns in curves.items():
        smooth = moving_average(returns, window)
        episodes = np.arange(1, returns.shape[1] + 1)
        colour = COLOURS.get(name, "#555555" if len(curves) == 1 else None)
        mean = smooth.mean(axis=0)
        (line,) = axes.plot(episodes, mean, color=colour, lw=1.6, label=label_of(name))
        if len(returns) > 1:
            low, high = bootstrap_interval(smooth)
            axes.fill_between(episodes, low, high, color=line.get_color(), alpha=0.2, lw=0)
        if per_seed:
            axes.plot(episodes, smooth.T, color=line.get_color(), lw=0.5, alpha=0.5)
    if optimum is not None:
        axes.axhline(optimum, color="black", lw=0.8, ls=":", zorder=0)
    axes.set_xlabel("episode")
    axes.set_ylabel("return")
    axes.margins(x=0)


def save(made: Figure, path: Path) -> None:
    """Write a figure, without the date, so that the same data give the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    blank = {".svg": {"Date": None}, ".png": {"Software": None}}.get(path.suffix)
    try:
        made.savefig(path, metadata=blank)
    except (OSError, ValueError) as error:
        raise RunFolderError(f"cannot write {path}: {error}") from None
