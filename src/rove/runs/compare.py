"""`rove.compare`: the learning curves of several runs in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rove.analysis.intervals import Comparison, difference_test
from rove.errors import ConfigError
from rove.runs.result import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compare(runs: Sequence[Run], path: str | Path | None = None) -> Figure:
    """Draw the learning curves of several runs in one figure, and save it to `path` if given.

    There is one panel per environment, with the mean of each run and its 95% interval or, of at
    most five seeds, every seed.

    **Example**
    >>> runs = [rove.train(agent, "chain-10", episodes=30) for agent in ("ge", "dqn")]
    >>> figure = rove.compare(runs, "compare.png")
    """
    from rove.analysis import plots, run_plots  # lazily, because importing Matplotlib is slow

    if isinstance(runs, Run) or not runs or not all(isinstance(run, Run) for run in runs):
        raise ConfigError.must_be("runs", runs, "a list of runs, from rove.train or rove.load")
    return plots.saved(run_plots.compare(runs), path)


def difference(run: Run, other: Run) -> Comparison:
    """Return by how much the mean score of one run exceeds that of another: the estimate, its 95%
    interval and the two-sided p-value.

    The score of a seed is the mean over its episodes. The interval relies on the range of scores,
    which has to be known; see `rove.analysis.intervals.difference_test`.

    **Example**
    >>> ge, dqn = (rove.train(agent, "chain-10", seeds=5, episodes=40) for agent in ("ge", "dqn"))
    >>> rove.difference(ge, dqn).value > 0
    True
    """
    environment, second = run.config.environment, other.config.environment
    if environment.name != second.name:
        raise ConfigError.must_be("other", other.config.label, f"a run on {environment.name}")
    if environment.score_range is None:
        reason = (
            "on an environment whose range of scores is known: give score_range to rove.adopt, "
        )
        reason += "or --env.score-range"
        raise ConfigError.must_be("run", run.config.label, reason)
    mine, theirs = (np.nanmean(x.scores, axis=1) for x in (run, other))
    return difference_test(mine, theirs, environment.score_range)
