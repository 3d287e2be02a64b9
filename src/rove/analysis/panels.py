"""Panels of diagnostics: state visits, spreads, beliefs about Q and return distributions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.colors import PowerNorm
from matplotlib.ticker import MaxNLocator, NullLocator

from rove.analysis import densities
from rove.analysis.boards import merged
from rove.analysis.curves import moving_average
from rove.analysis.plots import (
    WINDOW,
    logarithmic_axis,
    marker,
    over_episodes,
    seeds_or_range,
    whole_numbers,
)
from rove.environments import Coordinate

MOST_ACTIONS = 10
"""Maximum number of actions that are drawn."""
BARS = 64
"""Maximum number of cells that are drawn as bars."""
POINTS = 400
"""Number of points of a return distribution."""


def visits(
    axes: Any,
    frequency: np.ndarray,
    coordinates: Sequence[Coordinate] = (),
    first_cell: int = 1,
) -> None:
    """Draw the fraction of episodes in which each cell was visited, of shape [seeds, cells], or
    [seeds, rows, columns] for a board, whose axes may be coordinates. A row of few cells is drawn
    as bars, with a dot for each seed; its cells are numbered from `first_cell` on."""
    mean = frequency.mean(axis=0)
    if mean.ndim == 2:
        _board(axes, mean, coordinates)
        return
    cells = first_cell + np.arange(len(mean))
    if len(cells) <= BARS:
        dots = len(frequency) > 1
        axes.bar(cells, mean, width=0.8, color="#555555", alpha=0.45)
        if dots:
            at = np.tile(cells, len(frequency))
            axes.plot(at, frequency.ravel(), ".", ms=3, alpha=0.6, color="#555555", clip_on=False)
        over_episodes(axes, f"cell{' (dots: seeds)' * dots}")
    else:
        axes.plot(cells, mean, color="#555555", lw=1.8)
        seeds_or_range(axes, cells, frequency, "#555555")
        over_episodes(axes, "cell")
    axes.set_xlim(cells[0] - 0.6, cells[-1] + 0.6)
    axes.set_ylim(0.0, 1.05)


def _board(axes: Any, mean: np.ndarray, coordinates: Sequence[Coordinate]) -> None:
    """Draw a board of cells. If its axes are coordinates, most cells are visited rarely: colours
    are on a square-root scale, and cells that were never visited are blank."""
    if coordinates:
        mean, (up, across) = merged(mean, coordinates)
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
        for axis, name in ((axes.xaxis, "column"), (axes.yaxis, "row")):
            axis.set_major_locator(whole_numbers())
            axis.set_label_text(name)
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    axes.grid(False)


def visit_history(axes: Any, histories: Sequence[np.ndarray], episodes: Sequence[int]) -> None:
    """Draw the fraction of episodes that visited each cell, from early in training (top) to late
    (bottom), over all seeds. `histories` has the visits of episodes 1, 2, 3 and 4, 5 to 8, … of
    every seed, [periods, cells], and `episodes` its number of episodes."""
    rows = max(map(len, histories))
    ends = 2 ** np.arange(rows)
    starts = ends // 2 + 1
    ends[-1] = max(episodes)
    played = np.sum([np.clip(n - starts + 1, 0, ends - starts + 1) for n in episodes], axis=0)
    visited = np.sum([np.pad(table, ((0, rows - len(table)), (0, 0))) for table in histories], 0)
    shares = visited / played[:, None]
    image = axes.imshow(
        shares, aspect="auto", vmin=0.0, vmax=1.0, extent=(0.5, shares.shape[1] + 0.5, rows, 0)
    )
    labels = [f"{a}–{b}" if a < b else f"{a}" for a, b in zip(starts, ends, strict=True)]
    axes.set_yticks(np.arange(rows) + 0.5, labels)
    axes.set_xlabel("state")
    axes.set_ylabel("episodes")
    axes.grid(False)
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label="fraction of episodes")


def units_off(axes: Any, shares: Sequence[Sequence[float]]) -> None:
    """Draw, for each hidden layer, the fraction of units whose output is the same in all states: a
    bar for the mean over seeds, and a dot for each seed."""
    table = np.array(shares)
    layers = 1 + np.arange(table.shape[1])
    axes.bar(layers, table.mean(axis=0), width=0.6, color="#555555", alpha=0.45)
    if len(table) > 1:
        at = np.tile(layers, len(table))
        axes.plot(at, table.ravel(), ".", ms=5, alpha=0.6, color="#555555", clip_on=False)
    axes.set_xticks(layers)
    axes.set_xlabel(f"hidden layer{' (dots: seeds)' * (len(table) > 1)}")
    axes.set_xlim(0.4, len(layers) + 0.6)
    axes.set_ylim(0.0, 1.05)


def learned_and_earned(axes: Any, seeds: Sequence[int], rows: Float[np.ndarray, "seeds 3"]) -> None:
    """Draw, for each seed, the range of the greedy value over states as a bar, the learned value of
    the first state as a dot, and what the greedy policy earns from there as a line."""
    at = np.arange(len(seeds))
    spread, learned, earned = rows.T
    axes.bar(at, spread, width=0.6, color="#555555", alpha=0.3, label="range of values")
    axes.plot(at, learned, "o", ms=5, color="#333333", label="learned value", clip_on=False)
    axes.plot(at, earned, "_", ms=14, mew=2, color="#2a9d5c", label="earned by the greedy policy")
    axes.axhline(0.0, color="#999999", lw=0.6)
    axes.margins(y=0.1)
    shown = at[:: -(-len(at) // MOST_ACTIONS)]
    axes.set_xticks(shown, [str(seeds[i]) for i in shown])
    axes.set_xlabel("seed")
    axes.set_xlim(-0.6, len(at) - 0.4)


def lines(
    axes: Any,
    values: Mapping[str, np.ndarray],
    colours: Sequence[str],
    logarithmic: bool = False,
    window: int = WINDOW,
) -> None:
    """Draw the smoothed mean of values of shape [seeds, episodes], for each name, with every seed
    or, of more than ten, their range. On a logarithmic axis, a constant is named in the legend
    only."""
    for (name, table), colour in zip(values.items(), colours, strict=True):
        smooth = moving_average(table, window)
        episodes = np.arange(1, smooth.shape[1] + 1)
        if logarithmic and (np.nanmax(table, initial=0.0) == np.nanmin(table, initial=np.inf)):
            axes.plot([], [], color=colour, label=f"{name}: {table.flat[0]:.2g} throughout")
            continue
        dot = marker(episodes)
        axes.plot(episodes, smooth.mean(axis=0), color=colour, lw=1.8, label=name, marker=dot)
        seeds_or_range(axes, episodes, smooth, colour)
    if logarithmic:
        logarithmic_axis(axes.yaxis)
    over_episodes(axes)


def beliefs(axes: Any, values: np.ndarray, episodes: np.ndarray, names: Sequence[str]) -> None:
    """Draw q(Q(s, a)) over training from values of shape [snapshots, draws, actions]: draws as dots
    and their mean as a line, with one colour per action."""
    for action, name in enumerate(names[:MOST_ACTIONS]):
        draws = values[:, :, action]
        (line,) = axes.plot(episodes, draws.mean(axis=1), lw=1.4, label=name)
        at = np.repeat(episodes, draws.shape[1])
        axes.plot(at, draws.ravel(), ".", ms=2.5, alpha=0.5, color=line.get_color())
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("episode")


def differences(axes: Any, values: np.ndarray, episodes: np.ndarray) -> None:
    """Draw a difference of values over training, of shape [snapshots, draws]: draws as dots, in the
    colour of the second action if positive, else of the first, and their mean as a line."""
    at = np.repeat(episodes, values.shape[1]).reshape(values.shape)
    for chosen, colour in ((values > 0, "C1"), (values <= 0, "C0")):
        axes.plot(at[chosen], values[chosen], ".", ms=4, alpha=0.6, color=colour)
    axes.plot(episodes, values.mean(axis=1), color="#555555", lw=1.4)
    axes.axhline(0.0, color="#888888", lw=0.8, ls=":")
    axes.set_xscale("log", base=2)
    axes.set_xticks(episodes, [str(episode) for episode in episodes])
    axes.set_xlabel("episode")


def returns(axes: Any, distributions: Sequence[tuple[Any, Any]], names: Sequence[str]) -> None:
    """Draw Z(s, a) of every action, with its mean as a dot on the axis. The limits are those of the
    distributions, which are scaled to the same height, and are drawn at least 1% of the axis wide:
    otherwise a narrow one would be invisible, or hide a wide one."""
    first = [(np.asarray(x), np.asarray(y)) for x, y in distributions[:MOST_ACTIONS]]
    low, high = densities.drawn_range(first)
    points = np.linspace(low, high, POINTS)
    for action, (distribution, name) in enumerate(zip(first, names, strict=False)):
        heights = densities.smoothed(distribution, low, high, POINTS)
        axes.fill_between(points, heights, color=f"C{action}", alpha=0.15, lw=0)
        axes.plot(points, heights, lw=1.4, color=f"C{action}", label=name)
        at = densities.mean(distribution)
        axes.plot([at], [0.0], "o", ms=5, color=f"C{action}", clip_on=False, zorder=3)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_xlabel("return (dots: means)")
    axes.set_ylabel("density (scaled)")
    axes.set_xlim(low, high)
    axes.set_ylim(0.0, 1.08)
    axes.set_yticks([])
