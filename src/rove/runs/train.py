"""`rove.train` and `rove.load`: train an agent on an environment, and load the result."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rove.agents.settings import Settings
from rove.analysis.alarms import for_python
from rove.analysis.findings import grouped
from rove.core.learner import Learner
from rove.errors import ConfigError, LaneError, RoveWarning, as_path, check_callable, check_flag
from rove.runs import tracking
from rove.runs.config import Config
from rove.runs.configure import as_environment, configure
from rove.runs.execution import as_run, run_all
from rove.runs.folder import RunFolder
from rove.runs.result import Run
from rove.training import storage
from rove.training.progress import Progress, Report, ignore


def train(
    agent: str | Settings | Learner,
    environment: Any,
    *,
    seeds: int | Iterable[int] = 1,
    episodes: int | None = None,
    steps: int | None = None,
    until_solved: bool = False,
    eval_every: int | None = None,
    eval_episodes: int | None = None,
    stop_at: float | None = None,
    out: str | Path | None = None,
    progress: bool | None = None,
    report: Report = ignore,
    workers: int | None = None,
    on: str = "threads",
    log: str | None = None,
    **settings: Any,
) -> Run:
    """Train an agent on an environment with one or more seeds.

    Signs that training went wrong (`Run.alarms`) are reported as a `RoveWarning` at the end.

    **Arguments**
    - `agent`: a name ("ge"), its settings (`rove.GE(rho=-4)`), or a composed `rove.Agent`. A name
      uses the settings tuned for the environment, if there are any.
    - `environment`: a name ("chain-100", "gym/CartPole-v1"), an `Environment`, a Gymnasium
      environment, of which every seed gets a copy, or a function that returns one (see `adopt`).
    - `seeds`: the number of seeds (0, 1, …), or the seeds themselves.
    - `episodes`, `steps`: how long to train each seed; one of the two. By default 250 episodes or,
      if actions are continuous, 50,000 steps.
    - `until_solved`: whether a seed also stops after ten optimal episodes in a row.
    - `eval_every`: the number of episodes, or of steps if `steps` is given, between evaluations of
      the greedy policy (see `Run.evaluations`), which do not change the results of training. By
      default, there are none.
    - `eval_episodes`: the number of episodes of each evaluation; 10 by default.
    - `stop_at`: a score at which a seed also stops: when the mean of an evaluation reaches it or,
      without `eval_every`, the mean of the last 20 episodes.
    - `out`: the run folder, which has the same files as that of `rove train`. Interrupted runs
      resume from their last checkpoint in it, and a run with more episodes, steps or seeds than
      before extends it, with the same results as if it had been trained at once.
    - `progress`: whether to show the progress of training. By default, it is shown in a terminal
      and in a notebook.
    - `report`: a function that is called with the progress of each seed.
    - `workers`: the maximum number of seeds to run at once; by default one per core (all seeds of a
      Gymnasium environment with "threads").
    - `on`: where seeds run: "threads" of this process, "processes", which take seconds to start and
      are faster afterwards, or a Ray cluster ("ray", "ray://HOST:PORT"). On CPUs, results are
      bit-identical.
    - `log`: "tensorboard" or "trackio", to follow training live. Requires `out`.
    - `settings`: settings of a named agent that replace its defaults.

    **Example**
    >>> run = rove.train("ge", "chain-10", seeds=2, episodes=100, rho=-4.0)
    >>> run.returns.shape
    (2, 100)
    """
    config = configure(
        agent,
        environment,
        seeds=seeds,
        episodes=episodes,
        steps=steps,
        until_solved=until_solved,
        eval_every=eval_every,
        eval_episodes=eval_episodes,
        stop_at=stop_at,
        **settings,
    )
    path = None if out is None else as_path("out", out)
    config = replace(config, extendable=path is not None, delivers=True)
    check_callable("report", report)
    with tracking.opened(log, path) as tracker, _shown(progress, config, report) as both:
        run = run_all([(config, path)], both, workers, on, tracker)[0]
    if path is not None and run.outcomes:
        run.draw(path)
    if run.errors:
        raise LaneError("\n".join(map(str, run.errors)))
    if alarms := run.alarms:
        advice = map(for_python, run.advice)
        warnings.warn("\n".join([f"{config.label}:", *grouped(alarms), *advice]), RoveWarning, 2)
    return run


@contextlib.contextmanager
def _shown(progress: bool | None, config: Config, report: Report) -> Iterator[Report]:
    """Open the live display if it is wanted; yield a report that goes to it and to `report`."""
    if progress is not None:
        check_flag("progress", progress)
    from rich.console import Console  # lazily, because importing rich is slow

    from rove.runs import live

    if not (live.shown_by_default() if progress is None else progress):
        yield report
        return
    with live.Live(Console(stderr=True), config.jobs(None)) as display:

        def both(progress: Progress) -> None:
            display.report(progress)
            report(progress)

        yield both


def load(
    path: str | Path,
    agent: Settings | Learner | None = None,
    environment: Any = None,
    *,
    trust: bool = False,
) -> Run:
    """Load a run from its folder, whether it is finished or not.

    Seeds that diverged are listed in its `errors`. An agent that uses custom classes or a custom
    network has to be passed in, since it cannot be rebuilt from the folder. A custom environment
    has to be passed in only to play it, with `Run.evaluate`, `Run.policy` or `rove.watch`.

    Nothing in the folder is executed. If its environment is from a package (gym/PACKAGE:ID), that
    package is imported only with `trust=True`; without it, the environment cannot be played.

    **Example**
    >>> run = rove.train("ge", "chain-10", episodes=20, out="runs/a")
    >>> rove.load("runs/a")
    <Run: ge on chain-10, seeds [0], 20 episodes>
    """
    folder = RunFolder(as_path("path", path))
    if agent is not None and not isinstance(agent, Settings | Learner):
        allowed = "a rove.Agent, or settings such as rove.GE()"
        raise ConfigError.must_be("agent", agent, allowed)
    custom = None if environment is None else as_environment(environment)
    check_flag("trust", trust)
    config = folder.config(agent, custom, trust, recorded=True)
    if agent is not None or custom is not None:
        folder.check_same(config)
    jobs = config.jobs(folder.path)
    saved = [job for job in jobs if storage.exists(job)]
    if missing := [str(job.seed) for job in jobs if not storage.exists(job)]:
        seeds = f"seed{'s' * (len(missing) > 1)} {', '.join(missing)}"
        warnings.warn(f"{folder.path} has no checkpoint of {seeds}", RoveWarning, stacklevel=2)
    return as_run(config, [storage.load(job) for job in saved], folder.path)
