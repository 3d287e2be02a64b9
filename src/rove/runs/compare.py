"""`rove.compare` and `rove.difference`: several runs in one figure, and a test of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from rove.agents import label_of
from rove.analysis.comparing import adjusted, compare_means, compare_training
from rove.analysis.intervals import Comparison, p_text
from rove.analysis.ranks import rank_test
from rove.analysis.seed_scores import TRAINING, Trained, known_range
from rove.errors import ConfigError, check_choice
from rove.runs.result import Run
from rove.training.solving import episodes_to_solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compare(runs: Sequence[Run], path: str | Path | None = None) -> Figure:
    """Draw the learning curves of several runs in one figure, and save it to `path` if given.

    There is one panel per environment, with the mean of each run and its 95% interval or, of at
    most five seeds, every seed. Below the panels is the difference between the first run of each
    panel and the others in their mean score in training, with its 95% interval and p-value, as
    `difference` returns them for two runs. Of more than two runs, only p-values are given, which
    are adjusted for the number of comparisons (Holm).

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
    return plots.saved(run_plots.compare(runs, _tests), path)


def _tests(runs: Sequence[Run], labels: Sequence[str]) -> str:
    """Say how the first of several runs on a task differs from the others; empty for one run."""
    first, *others = runs
    if not others:
        return ""
    task = first.config.environment.name
    if any(_differing(first, other) for other in others):
        return f"not tested on {task}: the runs differ in the options of the environment"
    tests = compare_training([trained(run) for run in runs])
    if len(others) == 1 and tests[1] is not None:
        what = f"{tests[1].what}, {labels[0]} − {labels[1]} on {task}"
        return str(tests[1]._replace(what=what))
    pairs = zip(labels, tests, adjusted(tests), strict=True)
    each = [f"{label} {test.value:+.3g}, {p_text(p)}" for label, test, p in pairs if test and p]
    what = f"{labels[0]} on {task}, difference in the mean score in training from"
    return f"{what} {'; '.join(each).replace('-', '−')} (Holm, {len(each)} comparisons)"


Quantity = Literal["score", "solved", "episodes", "evaluated"]
"""What `difference` compares."""


def difference(run: Run, other: Run, of: Quantity = "score") -> Comparison:
    """Return by how much one run exceeds another: the estimate, its 95% interval and the two-sided
    p-value.

    **Arguments**
    - `run`, `other`: two runs on the same environment.
    - `of`: what is compared.
        - "score": the mean score in training, over the part of the budget that both runs have. If a
          budget is in steps, the mean is over steps. This is the comparison that `compare`, the
          report and the suite show.
        - "evaluated": the mean score of the trained policies (see `Run.evaluated`).
        - "solved": the fraction of seeds that solved the task (see `Run.solved_at`).
        - "episodes": the number of episodes to solve the task, which is negative if `run` is
          sooner. A seed that did not solve it within the episodes that both runs have counts as
          later than any that did. The estimate is the median of the differences between a seed of
          `run` and one of `other`, where two that did not solve it differ by 0.

    The first three are tested by `rove.analysis.comparing.compare_means`: by the melded test if the
    range of scores is known, which for "solved" gives the p-value of Fisher's exact test, and else
    by a studentised permutation test. "episodes" is tested by the exact rank test,
    `rove.analysis.ranks.rank_test`. A seed that diverged counts with the lowest score it had from
    there on. The p-value is that of this one comparison, without an adjustment for others.

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
        _check_episodes(field, value, allow_diverged=of != "evaluated")
    check_choice("of", of, get_args(Quantity))
    here, there = (x.config.identity()["environment"] for x in (run, other))
    task = here["name"]
    if there["name"] != task:
        raise ConfigError.must_be("other", other.config.label, f"a run on {task}")
    if differing := _differing(run, other):
        reason = f"a run on {task} with the same {', '.join(differing)}"
        raise ConfigError.must_be("other", other.config.label, reason)
    what, test = _TESTS[of]
    names = " − ".join(label_of(x.config.agent_name) for x in (run, other))
    return test(run, other)._replace(what=f"{what}, {names} on {task}")


def _check_episodes(field: str, run: Run, allow_diverged: bool = False) -> None:
    """Raise `ConfigError` if a run has no seeds, or a seed without an episode. Seeds that diverged
    count if `allow_diverged`."""
    seeds = run.observed if allow_diverged else run.outcomes
    if not seeds or not all(len(outcome.scores) for outcome in run.outcomes):
        allowed = "a run in which every seed has finished an episode"
        raise ConfigError.must_be(field, run.config.label, allowed)


def _differing(run: Run, other: Run) -> list[str]:
    """Return the options of the environment in which two runs differ."""
    a, b = (x.config.identity()["environment"]["options"] for x in (run, other))
    return [name for name in sorted(a.keys() | b.keys()) if a.get(name) != b.get(name)]


def trained(run: Run) -> Trained:
    """Return the training of all seeds of a run that finished an episode, diverged ones included,
    as far as scores of seeds depend on it."""
    seeds, config = run.observed, run.config
    return Trained(
        scores=[np.asarray(seed.scores, float) for seed in seeds],
        ends=[seed.episodes.step for seed in seeds],
        lengths=[seed.episodes.length for seed in seeds],
        episodes=config.episodes,
        steps=config.steps,
        stops_early=config.until_solved or config.stop_at is not None,
        finished=[seed.finished for seed in seeds],
        stopped=[seed.stopped for seed in seeds],
        diverged=[bool(seed.diverged) for seed in seeds],
        score_range=config.environment.score_range,
    )


def _score(run: Run, other: Run) -> Comparison:
    _, test = compare_training([trained(run), trained(other)])
    assert test is not None
    return test


def _evaluated(run: Run, other: Run) -> Comparison:
    a, b = (np.array([np.mean(row) for row in x.evaluated]) for x in (run, other))
    return compare_means(a, b, known_range([trained(run), trained(other)]))


def _solved(run: Run, other: Run) -> Comparison:
    a, b = (np.isfinite(_times(x, np.inf)).astype(float) for x in (run, other))
    return compare_means(a, b, (0.0, 1.0))


def _episodes(run: Run, other: Run) -> Comparison:
    """Compare the episodes to solve the task, within the episodes that both runs have."""
    common = min(_observed_episodes(run), _observed_episodes(other))
    return rank_test(_times(run, common), _times(other, common))


def _times(run: Run, until: float) -> np.ndarray:
    """Return the episode at which each seed solved the task; infinite if it did not by then."""
    optimum = run.config.environment.optimum
    if optimum is None:
        allowed = "on an environment whose best possible score is known"
        hint = ". State it with rove.adopt(…, optimum=…), rove.make or --env.optimum"
        raise ConfigError.must_be("run", run.config.label, allowed, hint)
    solved_at = (episodes_to_solve(x.scores, optimum) for x in run.observed)
    times = np.array([np.inf if at is None else at for at in solved_at], float)
    return np.where(times <= until, times, np.inf)


def _observed_episodes(run: Run) -> float:
    """Return the number of episodes in which every seed was observed, unless it had solved the task
    before: those of the shortest unsolved seed. A seed that diverged counts as unsolved for
    ever."""
    pairs = zip(run.outcomes, run.solved_at, strict=True)
    return min((len(o.scores) for o, at in pairs if at is None), default=np.inf)


_TESTS = {
    "score": (TRAINING, _score),
    "evaluated": ("score of the trained policy", _evaluated),
    "solved": ("fraction of solved seeds", _solved),
    "episodes": ("episodes to solve", _episodes),
}
"""The name of each quantity, and its test."""
