"""`rove.compare` and `rove.difference`: several runs in one figure, and a test of two runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from rove.agents import label_of
from rove.analysis.intervals import Comparison, counts_test, difference_test, within
from rove.analysis.ranks import rank_test
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

    listed = isinstance(runs, Sequence) and len(runs) > 0
    if not listed or not all(isinstance(run, Run) for run in runs):
        raise ConfigError.must_be("runs", runs, "a list of runs, from rove.train or rove.load")
    for run in runs:
        _check_episodes("runs", run)
    return plots.saved(run_plots.compare(runs), path)


Quantity = Literal["score", "solved", "episodes", "evaluated"]
"""What `difference` compares."""


def difference(run: Run, other: Run, of: Quantity = "score") -> Comparison:
    """Return by how much one run exceeds another: the estimate, its 95% interval and the two-sided
    p-value.

    **Arguments**
    - `run`, `other`: two runs on the same environment.
    - `of`: what is compared.
        - "score": the mean score, where the score of a seed is the mean over its episodes.
        - "evaluated": the mean score of the trained policies (see `Run.evaluated`).
        - "solved": the fraction of seeds that solved the task (see `Run.solved_at`).
        - "episodes": the number of episodes to solve the task, which is negative if `run` is
          sooner. A seed that did not solve it within the episodes that both runs have counts as
          later than any that did. The estimate is the median of the differences between a seed of
          `run` and one of `other`, where two that did not solve it differ by 0.

    The intervals of scores rely on their range, which has to be known; see
    `rove.analysis.intervals.difference_test`. The p-value of "solved" is that of Fisher's exact
    test, and that of "episodes" of the exact rank test, `rove.analysis.ranks.rank_test`.

    **Example**
    >>> ige, dqn = (rove.train(agent, "chain-20", seeds=5, episodes=60) for agent in ("ige", "dqn"))
    >>> rove.difference(ige, dqn).value > 0
    True
    >>> rove.difference(ige, dqn, of="solved").value  # all seeds of ige, none of dqn
    1.0
    >>> print(rove.difference(ige, dqn, of="episodes"))
    episodes to solve, Index GE − DQN on chain-20: −inf, 95% interval −inf to −inf, p = 0.0079
    """
    for field, value in (("run", run), ("other", other)):
        if not isinstance(value, Run):
            raise ConfigError.must_be(field, value, "a run, from rove.train or rove.load")
        _check_episodes(field, value)
    check_choice("of", of, get_args(Quantity))
    here, there = (x.config.identity()["environment"] for x in (run, other))
    task = here["name"]
    if there["name"] != task:
        raise ConfigError.must_be("other", other.config.label, f"a run on {task}")
    a, b = here["options"], there["options"]
    differing = [name for name in sorted(a.keys() | b.keys()) if a.get(name) != b.get(name)]
    if differing:
        reason = f"a run on {task} with the same {', '.join(differing)}"
        raise ConfigError.must_be("other", other.config.label, reason)
    what, test = _TESTS[of]
    names = " − ".join(label_of(x.config.agent_name) for x in (run, other))
    return test(run, other)._replace(what=f"{what}, {names} on {task}")


def _check_episodes(field: str, run: Run) -> None:
    """Raise `ConfigError` if a run has no seeds, or a seed without an episode."""
    if not run.outcomes or not all(len(outcome.scores) for outcome in run.outcomes):
        allowed = "a run in which every seed has finished an episode"
        raise ConfigError.must_be(field, run.config.label, allowed)


def _score(run: Run, other: Run) -> Comparison:
    return _scores_test(run, other, lambda x: np.nanmean(x.scores, axis=1))


def _evaluated(run: Run, other: Run) -> Comparison:
    return _scores_test(run, other, lambda x: np.array([np.mean(row) for row in x.evaluated]))


def _scores_test(run: Run, other: Run, values: Callable[[Run], np.ndarray]) -> Comparison:
    """Compare the means of one score per seed, within the range of scores."""
    support = run.config.environment.score_range
    if support is None:
        allowed = "on an environment whose range of scores is known"
        hint = ". State it with rove.adopt(…, score_range=…) or --env.score-range"
        raise ConfigError.must_be("run", run.config.label, allowed, hint)
    both = values(run), values(other)
    if not within(np.concatenate(both), support):
        allowed = f"on an environment whose score_range contains all scores, not {support}"
        raise ConfigError.must_be("run", run.config.label, allowed)
    return difference_test(*both, support)


def _solved(run: Run, other: Run) -> Comparison:
    """Compare the fractions of seeds that solved the task."""
    mine, theirs = (np.isfinite(_times(x, np.inf)).astype(float) for x in (run, other))
    test = difference_test(mine, theirs, (0.0, 1.0))
    p = counts_test(int(mine.sum()), len(mine), int(theirs.sum()), len(theirs))
    return test._replace(p=p)


def _episodes(run: Run, other: Run) -> Comparison:
    """Compare the episodes to solve the task, within the episodes that both runs have."""
    common = min(_observed_episodes(run), _observed_episodes(other))
    return rank_test(_times(run, common), _times(other, common))


def _times(run: Run, until: float) -> np.ndarray:
    """Return the episode at which each seed solved the task; infinite if it did not by then."""
    if run.config.environment.optimum is None:
        allowed = "on an environment whose best possible score is known"
        hint = ". State it with rove.adopt(…, optimum=…), rove.make or --env.optimum"
        raise ConfigError.must_be("run", run.config.label, allowed, hint)
    times = np.array([np.inf if at is None else at for at in run.solved_at], float)
    return np.where(times <= until, times, np.inf)


def _observed_episodes(run: Run) -> float:
    """Return the number of episodes in which every seed was observed, unless it had solved the task
    before: those of the shortest unsolved seed."""
    pairs = zip(run.outcomes, run.solved_at, strict=True)
    return min((len(o.scores) for o, at in pairs if at is None), default=np.inf)


_TESTS = {
    "score": ("mean score", _score),
    "evaluated": ("score of the trained policy", _evaluated),
    "solved": ("fraction of solved seeds", _solved),
    "episodes": ("episodes to solve", _episodes),
}
"""The name of each quantity, and its test."""
