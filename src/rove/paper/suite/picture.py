"""The picture of the suite: performance profiles of both halves, legible on a narrow screen."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rove.analysis import plots
from rove.analysis.colours import line_of
from rove.paper.suite import statistics
from rove.paper.suite.results import ResultTable, label
from rove.paper.suite.tasks import HALVES

WIDTH, HEIGHT = 4.2, 3.1
"""Width and height of a panel in inches. Panels are below each other: at 390 pixels, the width of a
phone, text of 9 points has about 12 pixels."""


def draw(table: ResultTable) -> Figure:
    """Draw, for each half, the fraction of runs with a score above τ, with its 95% band."""
    halves = [(half, part) for half in HALVES if (part := table.half(half)).tasks]
    figure = plots.figure(len(halves), 1, width=WIDTH, height=HEIGHT * len(halves) + 1.1)
    for axes, (half, part) in zip(figure.axes, halves, strict=True):
        for agent in part.agents:
            if part.complete(agent):
                _curve(axes, part, agent)
        seeds = {len(part.cell(t.name, a)) for t in part.tasks for a in part.agents} - {0}
        axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="fraction of runs above τ")
        counts = f"tasks: {len(part.tasks)}, seeds: {max(seeds)}"
        axes.set_title(f"{half} ({counts})", loc="left", fontsize=9)
    figure.axes[-1].set_xlabel("score τ")
    handles, labels = _legend(figure)
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8.5)
    return figure


def _curve(axes: Any, part: ResultTable, agent: str) -> None:
    curve, band = statistics.profile(part.scores(agent))
    style = line_of(agent)
    axes.plot(statistics.TAUS, curve, lw=1.8, label=label(agent), **style)
    axes.fill_between(statistics.TAUS, *band, color=style["color"], alpha=0.12, lw=0)


def _legend(figure: Figure) -> tuple[list[Any], list[str]]:
    """Return one entry for each agent of any panel."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    return list(entries.values()), list(entries)


def write(table: ResultTable, out: Path) -> None:
    """Write suite.png and suite.svg."""
    figure = draw(table)
    plots.save(figure, out / "suite.png")
    plots.save(figure, out / "suite.svg")
