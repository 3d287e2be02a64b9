"""`rove.compare`: the learning curves of several runs in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rove.errors import ConfigError
from rove.runs.result import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compare(runs: Sequence[Run], path: str | Path | None = None) -> Figure:
    """Draw the learning curves of several runs in one figure, and save it to `path` if given.

    There is one panel per environment, with the mean of each run and its 95% interval or, of fewer
    than five seeds, every seed.

    **Example**
    >>> runs = [rove.train(agent, "chain-10", episodes=30) for agent in ("ge", "dqn")]
    >>> figure = rove.compare(runs, "compare.png")
    """
    from rove.analysis import plots, run_plots  # lazily, because importing Matplotlib is slow

    if not runs or not all(isinstance(run, Run) for run in runs):
        raise ConfigError.must_be("runs", runs, "a list of runs, from rove.train or rove.load")
    return plots.saved(run_plots.compare(runs), path)
