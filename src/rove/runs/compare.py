"""`rove.compare`: the learning curves of several runs in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from rove.analysis.intervals import Comparison, counts_test, difference_test
from rove.errors import ConfigError, check_choice
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


def difference(run: Run, other: Run, of: Literal["score", "solved"] = "score") -> Comparison:
    """Return by how much one run exceeds another: the estimate, its 95% interval and the two-sided
    p-value.

    **Arguments**
    - `run`, `other`: two runs on the same environment.
    - `of`: "score" compares mean scores, where the score of a seed is the mean over its episodes.
      The interval relies on the range of scores, which has to be known; see
      `rove.analysis.intervals.difference_test`. "solved" compares the fractions of seeds that
      solved the task (see `Run.solved_at`); the p-value is that of Fisher's exact test.

    **Example**
    >>> ige, dqn = (rove.train(agent, "chain-20", seeds=5, episodes=60) for agent in ("ige", "dqn"))
    >>> rove.difference(ige, dqn).value > 0
    True
    >>> rove.difference(ige, dqn, of="solved").value  # all seeds of ige, none of dqn
    1.0
    """
    for field, value in (("run", run), ("other", other)):
        if not isinstance(value, Run):
            raise ConfigError.must_be(field, value, "a run, from rove.train or rove.load")
    check_choice("of", of, ("score", "solved"))
    environment, second = run.config.environment, other.config.environment
    if environment.name != second.name:
        raise ConfigError.must_be("other", other.config.label, f"a run on {environment.name}")
    if of == "solved":
        return _difference_of_solved(run, other)
    if environment.score_range is None:
        reason = (
            "on an environment whose range of scores is known: give score_range to rove.adopt, "
        )
        reason += "or --env.score-range"
        raise ConfigError.must_be("run", run.config.label, reason)
    mine, theirs = (np.nanmean(x.scores, axis=1) for x in (run, other))
    return difference_test(mine, theirs, environment.score_range)


def _difference_of_solved(run: Run, other: Run) -> Comparison:
    """Return by how much the fraction of seeds that solved the task exceeds that of another run."""
    for each in (run, other):
        if each.config.environment.optimum is None:
            reason = "on an environment whose best possible score is known: give optimum to "
            reason += "rove.adopt or rove.make, or --env.optimum"
            raise ConfigError.must_be("run", each.config.label, reason)
    mine, theirs = (np.array([at is not None for at in x.solved_at], float) for x in (run, other))
    test = difference_test(mine, theirs, (0.0, 1.0))
    p = counts_test(int(mine.sum()), len(mine), int(theirs.sum()), len(theirs))
    return test._replace(p=p)
