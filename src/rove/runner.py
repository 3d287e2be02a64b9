"""`rove.train`: an agent, an environment and seeds, to a `Run`."""

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
    """Train an agent on an environment, one lane a seed.

    **Arguments**
    - `agent`: a name ("ge"), its settings (`rove.GE(rho=-4)`), or a composed `rove.Agent`. A name
      takes the tuned settings of the environment, and `settings` on top of them.
    - `environment`: a name ("chain-100", "gym/CartPole-v1"), an `Environment`, a Gymnasium
      environment, of which every seed gets a copy, or a function that makes one (see `adopt`).
    - `seeds`: how many (0, 1, …), or which.
    - `episodes`, `steps`: when to stop; one of the two.
    - `until_solved`: whether a lane also stops at ten optimal episodes in a row.
    - `out`: a run folder; a run that was killed goes on from it.
    - `on`: "threads" of this process, "processes" of their own, which take seconds to start and
      are faster then, or a Ray cluster: "ray", "ray://HOST:PORT". The results are the same, to the
      bit.
    - `log`: "tensorboard" or "trackio", to follow it there; what it writes is in `out`.

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
    """What `train` was asked for, checked before anything compiles."""
    environment = as_environment(environment)
    if isinstance(agent, str):
        agent = default_settings(agent, environment)
    if isinstance(agent, Settings):
        agent = with_settings(agent, settings)
    elif not isinstance(agent, Learner):
        raise ConfigError("agent", agent, "a name, settings such as rove.GE(), or a rove.Agent")
    elif settings:
        raise ConfigError(*next(iter(settings.items())), "set on the Agent itself")
    learner = agent.compose() if isinstance(agent, Settings) else agent
    if learner.continuous != environment.continuous:
        kind = "continuous" if environment.continuous else "discrete"
        fit = ", ".join(fitting(environment.continuous))
        what = f"{environment.name} has {kind} actions, for which there are {fit}"
        raise ConfigError("agent", agent.name, what)
    check_observations(agent.name, learner, environment)
    if (episodes is None) == (steps is None):
        raise ConfigError("episodes", episodes, f"give episodes or steps (steps is {steps!r})")
    for field, value in (("episodes", episodes), ("steps", steps)):
        if value is not None:
            check_integer(field, value, at_least=1, at_most=UNLIMITED - 1)
    if hasattr(seeds, "tolist"):  # NumPy's and JAX's
        seeds = seeds.tolist()
    if not isinstance(seeds, Iterable):
        check_integer("seeds", seeds, at_least=1, at_most=100_000)
        seeds = range(seeds)
    seeds = tuple(seeds)
    for seed in seeds:
        check_integer("seeds", seed, at_least=0)
    if len(set(seeds)) != len(seeds) or not len(seeds):
        raise ConfigError("seeds", list(seeds), "at least one seed, each different")
    check_flag("until_solved", until_solved)
    if until_solved and environment.optimum is None:
        raise ConfigError("until_solved", True, f"{environment.name} has no known optimum")
    episodes, steps = (None if value is None else int(value) for value in (episodes, steps))
    return Config(agent, environment, tuple(int(s) for s in seeds), episodes, steps, until_solved)


def as_environment(environment: Any) -> Task:
    """The environment a person means: by name, composed, or one of Gymnasium's."""
    if isinstance(environment, str):
        environment = environments.make(environment)
    elif not isinstance(environment, Task):
        environment = adopt(environment)
    if isinstance(environment, Environment):
        check_environment(environment)
    return environment


def check_environment(environment: Environment) -> None:
    """Refuse an environment whose shapes are not what it says, before anything compiles."""

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
        what = f"reset and step that compile; they raised {type(error).__name__}: {error}"
        raise ConfigError("environment", environment.name, what) from error
    for field, (found, needed) in shapes.items():
        if found != needed:
            what = f"{field} has shape {found}, where {needed} is needed"
            raise ConfigError("environment", environment.name, what)


def check_observations(name: str, learner: Learner, environment: Task) -> None:
    """Refuse an environment whose first observations the agent cannot use."""
    for observation in environment.probes().values():
        try:
            learner.validate(np.asarray(observation))
        except ConfigError as error:
            what = f"for {name}: {error.allowed}"
            raise ConfigError("environment", environment.name, what) from None


def default_settings(agent: str, environment: Task) -> Settings:
    """A named agent with the settings tuned for an environment."""
    return with_settings(settings_of(agent)(), tuned(agent, environment.name))


def run_all(
    plan: Sequence[tuple[Config, Path | None]],
    report: lanes.Report = lambda progress: None,
    workers: int | None = None,
    on: str = "threads",
    tracker: live.Tracker | None = None,
) -> list[Run]:
    """Train several configurations at once: all their lanes share the cores. A lane that fails
    is in its run's `errors`, with what it had saved. A tracker is given the curves of those that
    have a folder."""
    jobs_of = [config.jobs(path) for config, path in plan]
    all_jobs = [job for jobs in jobs_of for job in jobs]
    place = checked_place(all_jobs, workers, on)
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
        apart = _apart(on, plan, all_jobs, workers)
        for i, (config, path) in enumerate(plan):
            if path is None and apart:  # a worker's results are in a folder
                temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rove-")))
                stack.enter_context(RunFolder(temporary).open(config))
                jobs_of[i] = config.jobs(temporary)

        def saved(job: Job, episodes: Episodes) -> None:
            if job.folder in writers:
                writers[job.folder].saved(job, episodes)
            if job.folder in loggers:
                loggers[job.folder].saved(job, episodes)

        def hear(told: lanes.Progress) -> None:
            if told.job.path is not None and told.job.folder in loggers:
                loggers[told.job.folder].hear(told)
            report(told)

        found = {}
        everything = [job for jobs in jobs_of for job in jobs]
        for loop, mine in _loops(everything, place if apart else lanes, apart):
            done = loop.execute(mine, hear, saved, workers)
            found.update({id(job): result for job, result in zip(mine, done, strict=True)})
        runs = []
        for (config, path), jobs in zip(plan, jobs_of, strict=True):
            runs.append(_run(config, [found[id(job)] for job in jobs], path))
            if path is not None:
                writers[path].write()
        return runs


def _run(config: Config, results: Sequence[Outcome | LaneError], path: Path | None) -> Run:
    """What became of lanes: those that had to stop are told apart."""
    told = [Diverged(r.diverged) if isinstance(r, Outcome) and r.diverged else r for r in results]
    done = [r for r in told if isinstance(r, Outcome)]
    return Run(config, done, path, [r for r in told if isinstance(r, LaneError)])


def checked_place(jobs: Sequence[Job], workers: int | None, on: str) -> Any:
    """Where compiled lanes run. What cannot be is refused before a folder is claimed."""
    place = _place(on)
    for loop, mine in _loops(jobs, place, on != "threads"):
        loop.checked_workers(mine, workers)
    return place


def _place(on: str) -> Any:
    """Where compiled lanes run, by its name."""
    places = {"threads": lanes, "processes": processes}
    if isinstance(on, str):
        if on in places:
            return places[on]
        if on == "ray" or on.startswith("ray://"):
            return cluster.Ray(on)
    raise ConfigError("on", on, "threads or processes, or ray or ray://HOST:PORT")


def _apart(
    on: str, plan: Sequence[tuple[Config, Path | None]], jobs: Sequence[Job], workers: int | None
) -> bool:
    """Whether lanes run outside of this process: some are left, and a worker can know what each is
    to do. Processes need several, and no accelerator that they had to share."""
    if on == "threads":
        return False
    ahead = sum(not outcomes.over(job) for job in jobs)
    if on != "processes":
        if own := [config for config, _ in plan if not config.portable]:
            what = f"threads for {own[0].label}, which a cluster cannot know"
            raise ConfigError("on", on, what)
        return ahead > 0
    several = min(ahead, workers or lanes.cores()) > 1
    return several and all(c.portable for c, _ in plan) and jax.default_backend() == "cpu"


def _loops(jobs: Sequence[Job], place: Any, apart: bool) -> list[tuple[Any, list[Job]]]:
    """What runs lanes, and which. Workers know both loops; here compiled lanes have one of their
    own, and those of Gymnasium another."""
    if apart:
        return [(place, list(jobs))]
    hosted = [isinstance(job.environment, HostEnvironment) for job in jobs]
    split = [[j for j, h in zip(jobs, hosted, strict=True) if h == kind] for kind in (False, True)]
    return [(loop, mine) for loop, mine in zip((place, host), split, strict=True) if mine]


class _EpisodesWriter:
    """Keeps episodes.csv in step with the checkpoints of a run's lanes."""

    def __init__(self, folder: RunFolder, config: Config, jobs: list[Job]):
        self._folder, self._config, self._jobs = folder, config, jobs
        self._lock = threading.Lock()
        self._latest = {j.seed: outcomes.glance(j)[0] for j in jobs if outcomes.exists(j)}

    def saved(self, job: Job, episodes: Episodes) -> None:
        with self._lock:
            self._latest[job.seed] = episodes
        self.write()

    def write(self) -> None:
        with self._lock:
            seeds = [job.seed for job in self._jobs if job.seed in self._latest]
            self._folder.write_episodes(self._config, {s: self._latest[s] for s in seeds})


def load(path: str | Path, agent: Learner | None = None, environment: Any = None) -> Run:
    """A run from its folder: finished, or as far as its checkpoints go; lanes that diverged are in
    its `errors`. An agent or environment that is not rove's own has to be given."""
    folder = RunFolder(as_path("path", path))
    given = None if environment is None else as_environment(environment)
    config = folder.config(agent, given)
    found = [job for job in config.jobs(folder.path) if outcomes.exists(job)]
    return _run(config, [outcomes.load(job) for job in found], folder.path)
