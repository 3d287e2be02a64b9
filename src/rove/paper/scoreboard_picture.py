"""The picture of the scoreboard: a card that is legible on light and on dark pages."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from rove.agents import label_of
from rove.analysis import plots
from rove.paper.base import Key

WIDTH, DPI = 8.3, 200
"""Width in inches and dots per inch: the text has its size in points at 830 pixels, about the width
of a README."""
NAMES, ROW, TOP, BOTTOM, EDGE = 1.45, 0.36, 1.18, 0.78, 0.14
"""In inches: the width of the agents' names, the height of a row, and the space above, below and
beside the cells."""
CARD, BORDER, TEXT, MUTED, NONE = "#ffffff", "#d0d7de", "#1b1e23", "#57606a", "#f0f1f3"
SUCCESS = LinearSegmentedColormap.from_list(
    "success", [(0.0, "#dcf0e3"), (0.9, "#7cc79a"), (1.0, "#136f41")]
)
"""From one solved seed to all of them; a cell without any is grey."""
REGRET = LinearSegmentedColormap.from_list("regret", ["#3f68b0", "#b9cbea", "#e6ecf7"])
"""From no regret to the largest one."""
DARK = 0.179
"""Luminance of a colour below which white text on it has more contrast than black text."""


def draw(cells: Mapping[Key, Any], environments: Sequence[str], agents: Sequence[str]) -> Figure:
    """Draw a table with one row per agent, coloured by the number of seeds that solved a task; the
    text of a cell is that number and, below it, the mean number of episodes. Rows are sorted by the
    number of solved seeds, then by the number of episodes."""
    ranked = sorted(agents, key=lambda agent: _rank(cells, agent))
    height = TOP + ROW * len(ranked) + BOTTOM
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="none")
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    card = FancyBboxPatch(
        (0.05, 0.05), WIDTH - 0.1, height - 0.1, boxstyle="round,pad=0,rounding_size=0.1",
        fc=CARD, ec=BORDER, lw=0.8,
    )  # fmt: skip
    axes.add_patch(card)
    width = (WIDTH - NAMES - 2 * EDGE) / len(environments)
    lefts = {name: EDGE + NAMES + i * width for i, name in enumerate(environments)}
    _header(axes, cells, lefts, width)
    worst = {
        name: max(cell.values.mean() for (task, _), cell in cells.items() if task == name)
        for name in environments
    }
    for row, agent in enumerate(ranked):
        y = TOP + ROW * row
        axes.text(EDGE + NAMES - 0.1, y + ROW / 2, label_of(agent), size=8.5, **_at("right"))
        for environment, x in lefts.items():
            cell = cells.get((environment, agent))
            if cell is not None and (len(cell.delivered) or not len(cell.solved)):
                _cell(axes, cell, x, y, width, worst[environment])
    seeds = max(len(cell.values) for cell in cells.values())
    _footer(axes, height, seeds)
    return figure


def _rank(cells: Mapping[Key, Any], agent: str) -> tuple[float, float]:
    """Return a sort key: most solved seeds first, then fewest episodes."""
    cells_of_agent = [cell for (_, name), cell in cells.items() if name == agent]
    used = [x.delivered_values.mean() / x.episodes for x in cells_of_agent if len(x.delivered)]
    return -sum(int(x.delivered.sum()) for x in cells_of_agent), float(np.mean(used or [1.0]))


def _at(side: str = "center", colour: str = TEXT) -> dict[str, str]:
    return {"ha": side, "va": "center", "color": colour}


def _header(axes: Any, cells: Mapping[Key, Any], lefts: Mapping[str, float], width: float) -> None:
    """Draw the title, the colour key, and the tasks: family, size and budget."""
    axes.text(
        EDGE + 0.06, 0.3, "Who solves what, and how soon", size=12, weight="bold", **_at("left")
    )
    right, part = WIDTH - EDGE - 0.05, 0.24
    shades = [NONE, *(SUCCESS(share) for share in (0.2, 0.4, 0.6, 0.8, 0.9, 1.0))]
    start = right - part * len(shades) - 0.26
    axes.text(start - 0.08, 0.3, "seeds solved:  none", size=7.5, **_at("right", MUTED))
    for i, shade in enumerate(shades):
        axes.add_patch(Rectangle((start + part * i, 0.22), part, 0.16, fc=shade, lw=0))
    axes.text(start + part * len(shades) + 0.08, 0.3, "all", size=7.5, **_at("left", MUTED))
    budgets = {environment: cell.episodes for (environment, _), cell in cells.items()}
    for title, group in itertools.groupby(lefts, lambda name: _title(name)[0]):
        names = list(group)
        left, end = lefts[names[0]] + 0.05, lefts[names[-1]] + width - 0.05
        axes.text((left + end) / 2, 0.64, title, size=8.5, weight="bold", **_at())
        axes.plot([left, end], [0.755, 0.755], color=BORDER, lw=0.8)
    for name, x in lefts.items():
        axes.text(x + width / 2, 0.87, _title(name)[1], size=8.5, **_at())
        axes.text(x + width / 2, 1.04, f"of {budgets[name]:,}", size=6.5, **_at(colour=MUTED))


def _title(environment: str) -> tuple[str, str]:
    """Return the heading of an environment's group of columns, and of its column."""
    family, _, size = environment.rpartition("-")
    if family.endswith("bandit"):
        return "bandits", {"bandit": "Gaussian", "bernoulli-bandit": "Bernoulli"}.get(
            family, family.removesuffix("-bandit")
        )
    return family.replace("-", " "), size


def _cell(axes: Any, cell: Any, x: float, y: float, width: float, worst: float) -> None:
    """Draw a cell: seeds whose delivered policy is optimal in bold above the mean number of
    episodes, or the regret. A ring marks cells in which the network of such a seed says the same in
    every state."""
    count, constant = int(cell.delivered.sum()), 0
    if len(cell.solved):
        fill = to_rgb(SUCCESS(count / len(cell.solved)) if count else NONE)
        mean = f"{cell.delivered_values.mean():.0f}" if count else ""
        strong, weak = f"{count}/{len(cell.solved)}", mean
        constant = int(np.sum(cell.delivered & (cell.values_vary == 0.0)))
    else:
        fill = to_rgb(REGRET(cell.values.mean() / worst))
        strong, weak = "", f"{cell.values.mean():.0f}"
    axes.add_patch(
        FancyBboxPatch(
            (x + 0.02, y + 0.02), width - 0.04, ROW - 0.04,
            boxstyle="round,pad=0,rounding_size=0.03", fc=fill, lw=0,
        )
    )  # fmt: skip
    colour = "white" if _luminance(fill) < DARK else TEXT if weak else MUTED
    if constant:
        axes.add_patch(
            Circle((x + width - 0.09, y + ROW - 0.09), 0.03, fill=False, ec=colour, lw=0.8)
        )
    both = bool(strong and weak)
    if strong:
        weight = "bold" if count else "normal"
        middle = y + ROW * (0.35 if both else 0.5)
        axes.text(x + width / 2, middle, strong, size=8.5, weight=weight, **_at(colour=colour))
    if weak:
        middle, size = y + ROW * (0.74 if both else 0.5), 7 if both else 8
        axes.text(x + width / 2, middle, weak, size=size, **_at(colour=colour))


def _luminance(colour: tuple[float, float, float]) -> float:
    """Return the relative luminance of a colour (WCAG 2)."""
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in colour]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def _footer(axes: Any, height: float, seeds: int) -> None:
    lines = (
        f"Bold: of {seeds} seeds, those whose delivered policy is optimal in the end. Below: mean"
        " episodes until the greedy policy is,",
        "evaluated every ten episodes; a seed that fails counts its whole budget. ○: the network of"
        " such a seed says the same in every state,",
        "which is enough on the plain chain. Bandits: mean regret, darker is lower. Rows are sorted"
        " by solved seeds.",
    )
    for i, line in enumerate(lines):
        y = height - BOTTOM + 0.22 + 0.16 * i
        axes.text(EDGE + 0.06, y, line, size=7, **_at("left", MUTED))


def write(figure: Figure, out: Path) -> None:
    """Write scoreboard.png and scoreboard.svg."""
    plots.save(figure, out / "scoreboard.png")
    plots.save(figure, out / "scoreboard.svg")
