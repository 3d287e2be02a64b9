"""`rove.train` and `rove.load`: train an agent on an environment, and load the result."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove import environments, live, noise
from rove.agents import fitting, settings_of
from rove.core.learner import Learner
from rove.environments import Environment, HostEnvironment, Task, adopt
from rove.errors import (
    ConfigError,
    Diverged,
    LaneError,
    RoveError,
    as_path,
    check_flag,
    check_integer,
)
from rove.run import Run
from rove.runs import Config, RunFolder
from rove.settings import Settings, with_settings
from rove.training import cluster, host, lanes, outcomes, processes
from rove.training.outcomes import UNLIMITED, Episodes, Job, Outcome
from rove.tuned import tuned


def train(
    agent: str | Settings | Learner,
    environment: Any,
    *,
    seeds: int | Iterable[int] = 1,
    episodes: int | None = None,
    steps: int | None = None,
    until_solved: bool = False,
    out: str | Path | None = None,
    report: lanes.Report = lambda progress: None,
    workers: int | None = None,
    on: str = "threads",
    log: str | None = None,
    **settings: Any,
) -> Run:
    """Train an agent on an environment with one or more seeds.

    **Arguments**
    - `agent`: a name ("ge"), its settings (`rove.GE(rho=-4)`), or a composed `rove.Agent`. A name
      uses the settings tuned for the environment, if there are any.
    - `environment`: a name ("chain-100", "gym/CartPole-v1"), an `Environment`, a Gymnasium
      environment, of which every seed gets a copy, or a function that returns one (see `adopt`).
    - `seeds`: the number of seeds (0, 1, …), or the seeds themselves.
    - `episodes`, `steps`: how long to train each seed. Pass one of the two.
    - `until_solved`: whether a seed also stops after ten optimal episodes in a row.
    - `out`: the run folder. Interrupted runs resume from their last checkpoint in it.
    - `report`: a function that is called with the progress of each seed.
    - `workers`: the maximum number of seeds to run at once; by default one per core (all seeds of a
      Gymnasium environment with "threads").
    - `on`: where seeds run: "threads" of this process, "processes", which take seconds to start and
      are faster afterwards, or a Ray cluster ("ray", "ray://HOST:PORT"). Results are bit-identical.
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
        **settings,
    )
    path = None if out is None else as_path("out", out)
    with live.opened(log, path) as tracker:
        run = run_all([(config, path)], report, workers, on, tracker)[0]
    if run.errors:
        raise LaneError("\n".join(map(str, run.errors)))
    return run


def configure(
    agent: str | Settings | Learner,
    environment: Any,
    *,
    seeds: int | Iterable[int] = 1,
    episodes: int | None = None,
    steps: int | None = None,
    until_solved: bool = False,
    **settings: Any,
) -> Config:
    """Return the validated configuration of a run; the arguments are those of `train`."""
    environment = as_environment(environment)
    if isinstance(agent, str):
        agent = default_settings(agent, environment)
    if isinstance(agent, Settings):
        agent = with_settings(agent, settings)
    elif not isinstance(agent, Learner):
        allowed = "a name, settings such as rove.GE(), or a rove.Agent"
        raise ConfigError.must_be("agent", agent, allowed)
    elif settings:
        field, value = next(iter(settings.items()))
        raise ConfigError(
            field,
            value,
            "set it on the Agent itself",
            f"{field} = {value!r} has no effect on a composed agent: set it on the Agent itself",
        )
    learner = agent.compose() if isinstance(agent, Settings) else agent
    if learner.continuous != environment.continuous:
        kind = "continuous" if environment.continuous else "discrete"
        agents = ", ".join(fitting(environment.continuous))
        reason = f"{environment.name} has {kind} actions; use one of {agents}"
        message = f"{agent.name} cannot be trained on {environment.name}: "
        message += f"it has {kind} actions; use one of {agents}"
        raise ConfigError("agent", agent.name, reason, message)
    check_observations(agent.name, learner, environment)
    if (episodes is None) == (steps is None):
        raise ConfigError(
            "episodes",
            episodes,
            "give either episodes or steps",
            f"give either episodes or steps, got episodes={episodes!r} and steps={steps!r}",
        )
    for field, value in (("episodes", episodes), ("steps", steps)):
        if value is not None:
            check_integer(field, value, at_least=1, at_most=UNLIMITED - 1)
    if hasattr(seeds, "tolist"):  # NumPy and JAX arrays
        seeds = seeds.tolist()
    if not isinstance(seeds, Iterable):
        check_integer("seeds", seeds, at_least=1, at_most=100_000)
        seeds = range(seeds)
    seeds = tuple(seeds)
    for seed in seeds:
        check_integer("seeds", seed, at_least=0)
    if len(set(seeds)) != len(seeds) or not len(seeds):
        raise ConfigError.must_be("seeds", list(seeds), "one or more different integers")
    check_flag("until_solved", until_solved)
    if until_solved and environment.optimum is None:
        reason = f"{environment.name} has no known optimum"
        message = f"until_solved requires a known optimum, which {environment.name} does not have"
        raise ConfigError("until_solved", True, reason, message)
    episodes, steps = (None if value is None else int(value) for value in (episodes, steps))
    return Config(agent, environment, tuple(int(s) for s in seeds), episodes, steps, until_solved)


def as_environment(environment: Any) -> Task:
    """Return the environment for a name, an `Environment`, or a Gymnasium environment."""
    if isinstance(environment, str):
        environment = environments.make(environment)
    elif not isinstance(environment, Task):
        environment = adopt(environment)
    if isinstance(environment, Environment):
        check_environment(environment)
    return environment


def check_environment(environment: Environment) -> None:
    """Raise `ConfigError` if the results of `reset` and `step` do not have the declared shapes."""

    def first_steps() -> tuple:
        key, k = noise.root(0), environment.num_actions
        action = jnp.zeros(k) if environment.continuous else jnp.zeros((), jnp.int32)
        state, first = environment.reset(key)
        return first, environment.step(state, action, key)

    try:
        first, after = jax.eval_shape(first_steps)
        shapes = {
            "reset's observation": (first.shape, (environment.observation_size,)),
            "step's observation": (after.observation.shape, (environment.observation_size,)),
            "step's reward": (after.reward.shape, ()),
            "step's terminated": (after.terminated.shape, ()),
            "step's truncated": (after.truncated.shape, ()),
        }
    except RoveError:
        raise
    except Exception as error:
        reason = f"reset or step cannot be compiled: {type(error).__name__}: {error}"
        message = f"environment {environment.name}: {reason}"
        raise ConfigError("environment", environment.name, reason, message) from error
    for field, (actual, expected) in shapes.items():
        if actual != expected:
            reason = f"{field} must have shape {expected}, got {actual}"
            message = f"environment {environment.name}: {reason}"
            raise ConfigError("environment", environment.name, reason, message)


def check_observations(name: str, learner: Learner, environment: Task) -> None:
    """Raise `ConfigError` if the agent cannot use the environment's observations."""
    for observation in environment.probes().values():
        try:
            learner.validate(np.asarray(observation))
        except ConfigError as error:
            needed = error.allowed
            message = f"{name} cannot be trained on {environment.name}: it needs {needed}"
            raise ConfigError(
                "environment", environment.name, f"{name} needs {needed}", message
            ) from None


def default_settings(agent: str, environment: Task) -> Settings:
    """Return a named agent's settings, tuned for the environment if possible."""
    return with_settings(settings_of(agent)(), tuned(agent, environment.name))


def run_all(
    plan: Sequence[tuple[Config, Path | None]],
    report: lanes.Report = lambda progress: None,
    workers: int | None = None,
    on: str = "threads",
    tracker: live.Tracker | None = None,
) -> list[Run]:
    """Train several configurations at once, sharing the cores among all their seeds.

    A seed that fails is listed in its run's `errors`. A tracker receives the curves of the
    configurations that have a run folder.
    """
    jobs_of = [config.jobs(path) for config, path in plan]
    all_jobs = [job for jobs in jobs_of for job in jobs]
    executor = checked_executor(all_jobs, workers, on)
    with contextlib.ExitStack() as stack:
        writers: dict[Path, _EpisodesWriter] = {}
        loggers: dict[Path, live.Logger] = {}
        for (config, path), jobs in zip(plan, jobs_of, strict=True):
            if path is not None:
                folder = RunFolder(path)
                stack.enter_context(folder.open(config))
                writers[path] = _EpisodesWriter(folder, config, jobs)
                if tracker is not None:
                    loggers[path] = live.Logger(tracker, config)
        remote = _uses_workers(on, plan, all_jobs, workers)
        for i, (config, path) in enumerate(plan):
            if path is None and remote:  # workers return their results in a folder
                temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rove-")))
                stack.enter_context(RunFolder(temporary).open(config))
                jobs_of[i] = config.jobs(temporary)

        def saved(job: Job, episodes: Episodes) -> None:
            if job.folder in writers:
                writers[job.folder].saved(job, episodes)
            if job.folder in loggers:
                loggers[job.folder].saved(job, episodes)

        def on_progress(progress: lanes.Progress) -> None:
            if progress.job.path is not None and progress.job.folder in loggers:
                loggers[progress.job.folder].on_progress(progress)
            report(progress)

        results = {}
        all_jobs = [job for jobs in jobs_of for job in jobs]
        for loop, group in _by_executor(all_jobs, executor if remote else lanes, remote):
            finished = loop.execute(group, on_progress, saved, workers)
            results |= {id(job): result for job, result in zip(group, finished, strict=True)}
        runs = []
        for (config, path), jobs in zip(plan, jobs_of, strict=True):
            runs.append(_run(config, [results[id(job)] for job in jobs], path))
            if path is not None:
                writers[path].write()
        return runs


def _run(config: Config, results: Sequence[Outcome | LaneError], path: Path | None) -> Run:
    """Build a run from the result of each seed; failed and diverged ones become its errors."""
    results = [
        Diverged(r.diverged) if isinstance(r, Outcome) and r.diverged else r for r in results
    ]
    trained = [r for r in results if isinstance(r, Outcome)]
    return Run(config, trained, path, [r for r in results if isinstance(r, LaneError)])


def checked_executor(jobs: Sequence[Job], workers: int | None, on: str) -> Any:
    """Return the executor for `on`; raise `ConfigError` if it cannot run the jobs."""
    executor = _executor(on)
    for loop, group in _by_executor(jobs, executor, on != "threads"):
        loop.checked_workers(group, workers)
    return executor


def _executor(on: str) -> Any:
    """Return what runs compiled environments: threads, processes or a Ray cluster."""
    local = {"threads": lanes, "processes": processes}
    if isinstance(on, str):
        if on in local:
            return local[on]
        if on == "ray" or on.startswith("ray://"):
            return cluster.Ray(on)
    raise ConfigError.must_be("on", on, "threads, processes, ray or ray://HOST:PORT")


def _uses_workers(
    on: str, plan: Sequence[tuple[Config, Path | None]], jobs: Sequence[Job], workers: int | None
) -> bool:
    """Whether jobs run outside of this process.

    They do if some are unfinished and workers can rebuild all of them from their configurations.
    Processes are used only for several jobs, and not if they would share an accelerator.
    """
    if on == "threads":
        return False
    unfinished = sum(not outcomes.is_finished(job) for job in jobs)
    if on != "processes":
        if custom := [config for config, _ in plan if not config.portable]:
            reason = f"{custom[0].label} is custom code, which a cluster does not have"
            message = f"on={on!r} cannot train {custom[0].label}: it uses custom code, which the "
            raise ConfigError("on", on, reason, message + "cluster does not have; use on='threads'")
        return unfinished > 0
    several = min(unfinished, workers or lanes.cores()) > 1
    return several and all(c.portable for c, _ in plan) and jax.default_backend() == "cpu"


def _by_executor(jobs: Sequence[Job], executor: Any, remote: bool) -> list[tuple[Any, list[Job]]]:
    """Group jobs by what runs them.

    Workers can run all jobs. In this process, Gymnasium environments need the loop on the host.
    """
    if remote:
        return [(executor, list(jobs))]
    hosted = [isinstance(job.environment, HostEnvironment) for job in jobs]
    groups = [[j for j, h in zip(jobs, hosted, strict=True) if h == kind] for kind in (False, True)]
    return [(loop, group) for loop, group in zip((executor, host), groups, strict=True) if group]


class _EpisodesWriter:
    """Updates episodes.csv whenever a seed of the run writes a checkpoint."""

    def __init__(self, folder: RunFolder, config: Config, jobs: list[Job]):
        self._folder, self._config, self._jobs = folder, config, jobs
        self._lock = threading.Lock()
        self._latest = {j.seed: outcomes.load_episodes(j)[0] for j in jobs if outcomes.exists(j)}

    def saved(self, job: Job, episodes: Episodes) -> None:
        with self._lock:
            self._latest[job.seed] = episodes
        self.write()

    def write(self) -> None:
        with self._lock:
            seeds = [job.seed for job in self._jobs if job.seed in self._latest]
            self._folder.write_episodes(self._config, {s: self._latest[s] for s in seeds})


def load(path: str | Path, agent: Learner | None = None, environment: Any = None) -> Run:
    """Load a run from its folder, whether it is finished or not.

    Seeds that diverged are listed in its `errors`. A custom agent or environment has to be passed
    in, since it cannot be rebuilt from the folder.
    """
    folder = RunFolder(as_path("path", path))
    custom = None if environment is None else as_environment(environment)
    config = folder.config(agent, custom)
    saved = [job for job in config.jobs(folder.path) if outcomes.exists(job)]
    return _run(config, [outcomes.load(job) for job in saved], folder.path)
