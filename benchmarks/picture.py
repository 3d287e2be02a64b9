"""The picture of growth: one panel per curve, medians with quartiles, for light and dark pages."""

import sys
from pathlib import Path
from typing import Any

import page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "figures"))
import style
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, NullLocator

PANELS = {
    "seeds": ("seeds at once", "steps per second, all seeds"),
    "width": ("units in each hidden layer", "µs per step"),
    "batch": ("transitions in a batch", "µs per step"),
    "size": ("N of Deep Sea, N × N cells", "µs per step"),
}
COLOURS = {
    "rove `dqn`": style.BLUE,
    "rove `ge`": style.ORANGE,
    "stable-baselines3": style.RED,
    "sbx": style.PURPLE,
    "rejax": style.GREEN,
    "jaxnasium": style.FAINT,
}


def draw(data: dict[str, Any], path: Path) -> None:
    """Draw the curves whose data exist."""
    shown = [name for name in PANELS if name in data]
    if not shown:
        return
    figure, axes = plt.subplots(2, 2, figsize=(8.5, 6.5), layout="constrained")
    handles: dict[str, Any] = {}
    for axis, name in zip(axes.flat, shown, strict=False):
        values = set()
        for contestant, rows in page.curves(data[name]["rows"], name).items():
            values |= set(rows)
            handles[contestant] = _curve(axis, contestant, rows, name == "seeds")
        _label(axis, sorted(values), *PANELS[name])
    for axis in axes.flat[len(shown) :]:
        axis.remove()
    labels = [name.replace("`", "") for name in handles]
    figure.legend(handles.values(), labels, loc="outside lower center", ncols=6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)


def _curve(axis: Any, contestant: str, rows: dict[int, dict[str, Any]], rates: bool) -> Any:
    """Draw medians, and quartiles as bars."""
    xs = sorted(rows)
    points = []
    for x in xs:
        low, high = rows[x]["quartiles"]
        three = low, rows[x]["median"], high
        points.append(sorted(1e6 / y for y in three) if rates else three)
    low, middle, high = zip(*points, strict=True)
    down = [m - a for m, a in zip(middle, low, strict=True)]
    up = [b - m for m, b in zip(middle, high, strict=True)]
    colour = COLOURS[contestant]
    marker = "o" if contestant.startswith("rove") else "s"
    return axis.errorbar(
        xs, middle, [down, up], color=colour, marker=marker, markersize=4, lw=1.5, capsize=2
    )


def _label(axis: Any, values: list[int], across: str, up: str) -> None:
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(values, map(str, values))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    axis.set_xlabel(across)
    axis.set_ylabel(up)
    axis.grid(axis="y", color=style.LINE, alpha=0.25, lw=0.5)
