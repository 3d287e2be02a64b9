"""Colours of the drawn pictures: mid-tones that are legible on light and on dark pages."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

TEXT, LINE, FAINT = "#737b86", "#737b86", "#9aa2ad"
BLUE, ORANGE, GREEN, PURPLE, RED = "#4c7fc4", "#d97b3f", "#2f9e62", "#9170c4", "#cf5459"
FOLDER = Path(__file__).parent

matplotlib.rcParams.update(
    {
        "font.size": 10,
        "text.color": TEXT,
        "axes.edgecolor": LINE,
        "axes.labelcolor": TEXT,
        "axes.titlecolor": TEXT,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": TEXT,
        "ytick.color": TEXT,
        "legend.frameon": False,
        "svg.hashsalt": "rove",
        "svg.fonttype": "none",
    }
)


def save(figure: Figure, name: str) -> None:
    """Write a figure as an SVG with a transparent background, the same bytes each time."""
    path = FOLDER / f"{name}.svg"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, transparent=True, metadata={"Date": None})
