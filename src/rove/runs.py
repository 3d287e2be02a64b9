"""The run folder: config.json, episodes.csv and one checkpoint per seed."""

import csv
import dataclasses
import hashlib
import io
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax
import numpy as np
from filelock import FileLock, Timeout

import rove.posteriors
import rove.returns
import rove.tabular
from rove import environments
from rove.agents import AGENTS
from rove.core.actor_critic import ActorCritic
from rove.core.algorithm import Agent
from rove.core.learner import Learner
from rove.environments import HostEnvironment, Task
from rove.errors import RoveError, RunFolderError
from rove.settings import Settings, with_settings
from rove.statistics import IN_A_ROW
from rove.training.checkpoint import publish
from rove.training.outcomes import UNLIMITED, Episodes, Job

SCHEMA = 1
COLUMNS = (
    "agent", "environment", "seed", "episode", "step", "return", "length", "terminated",
    "score", "spread", "return_spread", "coverage",
)  # fmt: skip
_PACKAGES = ("rove", "jax", "jaxlib", "equinox", "optax", "numpy")


@dataclasses.dataclass(frozen=True)
class Config:
    """The configuration of a run: everything needed to repeat it."""

    agent: Settings | Learner
    environment: Task
    seeds: tuple[int, ...]
    episodes: int | None = None
    steps: int | None = None
    until_solved: bool = False
    """Whether each seed stops as soon as it has solved its task."""

    @property
    def agent_name(self) -> str:
        return self.agent.name

    @property
    def label(self) -> str:
        """A short description for messages and plots, such as "ge on chain-10"."""
        return f"{self.agent_name} on {self.environment.name}"

    @property
    def default_folder(self) -> Path:
        """The run folder of the command line if the user gives none."""
        return Path("runs") / f"{self.agent_name}-{self.environment.name.replace('/', '-')}"

    def compose(self) -> Learner:
        """Return the agent, built from its settings if it is a named one."""
        return self.agent.compose() if isinstance(self.agent, Settings) else self.agent

    def jobs(self, folder: Path | None) -> list[Job]:
        """Return one training job per seed, with checkpoints in the run folder if one is given."""
        agent = self.compose()
        run = hashlib.sha256(json.dumps(self.identity()).encode()).hexdigest()[:16]
        return [
            Job(
                agent=agent,
                environment=self.environment,
                seed=seed,
                episodes=self.episodes or UNLIMITED,
                steps=self.steps or UNLIMITED,
                in_a_row=IN_A_ROW if self.until_solved else UNLIMITED,
                path=folder / "lanes" / f"seed-{seed}.safetensors" if folder else None,
                name=f"{self.label}, seed {seed}",
                run=run,
            )
            for seed in self.seeds
        ]

    @property
    def portable(self) -> bool:
        """Whether `identity` suffices to rebuild the run: it uses no custom classes or objects."""
        identity = self.identity()
        try:
            agent = _agent(identity["agent"])
            environment = _environment(identity["environment"])
        except (RoveError, KeyError, TypeError, AttributeError):
            return False
        return same(Config(agent, environment, self.seeds).compose(), self.compose()) and same(
            environment, self.environment
        )

    def identity(self) -> dict[str, Any]:
        """Return, as JSON, all that distinguishes this run from others."""
        if isinstance(self.agent, Settings):
            agent = {"name": self.agent.name, "settings": dataclasses.asdict(self.agent)}
        else:
            agent = {"composition": _describe(self.agent)}
        identity = {
            "agent": agent,
            "environment": {
                "name": self.environment.name,
                "options": environments.options(self.environment),
            }
            | _custom_mark(self.environment),
            "seeds": list(self.seeds),
            "episodes": self.episodes,
            "steps": self.steps,
            "until_solved": self.until_solved,
        }
        return json.loads(json.dumps(identity, default=_plain))


def same(a: Any, b: Any) -> bool:
    """Whether two pytrees have the same structure and equal leaves."""
    (xs, structure), (ys, other) = jax.tree.flatten(a), jax.tree.flatten(b)
    return structure == other and all(map(np.array_equal, xs, ys))


def _agent(description: dict[str, Any]) -> Settings | Learner:
    """Rebuild an agent from its part of `Config.identity`."""
    if "composition" in description:
        return _rebuild(description["composition"])
    return with_settings(AGENTS[description["name"]](), description["settings"])


def _custom_mark(environment: Task) -> dict[str, Any]:
    """Mark an environment object that the user passed in, since JSON cannot rebuild it."""
    custom = isinstance(environment, HostEnvironment) and environment.source.given
    return {"given": True} if custom else {}


def _environment(description: dict[str, Any]) -> Task:
    """Rebuild an environment from its part of `Config.identity`."""
    if description.get("given"):
        raise RunFolderError(
            f"the run used a custom environment, {description['name']}: "
            "pass it to rove.load(folder, environment=...)"
        )
    return environments.make(description["name"], **description["options"])


def _describe(module: eqx.Module) -> dict[str, Any]:
    """Describe a composed agent as JSON: the name of each part and its fields."""
    fields = {f.name: getattr(module, f.name) for f in dataclasses.fields(module)}
    parts = {k: _describe(v) if isinstance(v, eqx.Module) else v for k, v in fields.items()}
    return {"type": type(module).__name__, **{k: _plain(v) for k, v in parts.items()}}


def _plain(value: Any) -> Any:
    """Convert NumPy and JAX numbers to Python's, which JSON can represent."""
    return value.tolist() if hasattr(value, "tolist") else value


def _rebuild(description: dict[str, Any]) -> Any:
    """Rebuild a composed agent from `_describe`. Only rove's own classes can be rebuilt."""
    kinds: dict[str, Any] = {"Agent": Agent, "ActorCritic": ActorCritic}
    for module in (rove.returns, rove.posteriors, rove.tabular):
        kinds |= {name: getattr(module, name) for name in module.__all__}
    name = description["type"]
    if name not in kinds:
        raise RunFolderError(
            f"the run used {name}, which is not one of rove's own classes: "
            "pass the agent to rove.load(folder, agent=...)"
        )
    fields = {k: v for k, v in description.items() if k != "type"}
    return kinds[name](
        **{
            k: _rebuild(v) if isinstance(v, dict) else tuple(v) if isinstance(v, list) else v
            for k, v in fields.items()
        }
    )


class Identified(Protocol):
    """Anything that a run folder can be claimed for, such as a `Config` or a sweep."""

    def identity(self) -> dict[str, Any]:
        """Return, as JSON, all that distinguishes it from others."""
        ...


class RunFolder:
    """A folder that contains one run, and refuses any other."""

    def __init__(self, path: Path | str):
        self.path = Path(path)

    @contextmanager
    def open(self, config: Identified) -> Iterator[None]:
        """Claim and lock the folder for a run, which is either new or resumed from it.

        A folder that contains anything else is refused, and left unchanged.
        """
        identity = config.identity()
        lock = FileLock(self.path / ".lock", blocking=False)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._contains(identity)
            lock.acquire()
        except Timeout:
            raise RunFolderError(f"{self.path} is in use by another process") from None
        except OSError as error:
            raise RunFolderError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            if not self._contains(identity):  # checked again, now that the lock is acquired
                self._claim(identity)
            yield
        finally:
            lock.release()

    def _contains(self, identity: dict[str, Any]) -> bool:
        """Whether the folder contains this run already; raises if it contains anything else."""
        if (self.path / "config.json").exists():
            existing = self.read()
            differing = [key for key in identity if existing.get(key) != identity[key]]
            if differing:
                raise RunFolderError(
                    f"{self.path} contains a different run ({_difference(existing, identity)}). "
                    "Choose another folder, or remove this one"
                )
            return True
        # A run that was killed before it wrote config.json leaves at most these files.
        leftovers = {".lock", "config.json.partial"}
        others = [p.name for p in self.path.iterdir() if p.name not in leftovers]
        if others:
            raise RunFolderError(
                f"{self.path} is not empty and contains no rove run (it contains {others[0]}). "
                "Choose another folder"
            )
        return False

    def _claim(self, identity: dict[str, Any]) -> None:
        """Write config.json."""
        about = {
            "schema": SCHEMA,
            **identity,
            "versions": {name: metadata.version(name) for name in _PACKAGES}
            | {"python": platform.python_version()},
        }
        publish(self.path / "config.json", (json.dumps(about, indent=2) + "\n").encode())

    def read(self) -> dict[str, Any]:
        """Return the contents of config.json."""
        path = self.path / "config.json"
        try:
            contents = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise RunFolderError(f"{self.path} contains no run: config.json is missing") from None
        except (OSError, ValueError, RecursionError) as error:
            raise RunFolderError(f"{path} cannot be read: {error}") from None
        if not isinstance(contents, dict) or contents.get("schema") != SCHEMA:
            raise RunFolderError(f"{path} was not written by a compatible version of rove")
        return contents

    def config(self, agent: Learner | None = None, environment: Task | None = None) -> Config:
        """Return the run's configuration.

        A custom agent or environment cannot be rebuilt from JSON and has to be passed in.
        """
        contents = self.read()
        if "sweep" in contents:
            raise RunFolderError(
                f"{self.path} contains a sweep; its runs are in the folders points and confirmed"
            )
        try:
            return Config(
                agent=agent or _agent(contents["agent"]),
                environment=environment or _environment(contents["environment"]),
                seeds=tuple(contents["seeds"]),
                episodes=contents["episodes"],
                steps=contents["steps"],
                until_solved=contents["until_solved"],
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RunFolderError(f"{self.path / 'config.json'} is invalid: {error}") from None

    def write_episodes(self, config: Config, episodes: Mapping[int, Episodes]) -> None:
        """Write episodes.csv anew from the current episodes of each seed."""
        runs = [(config, seed, played) for seed, played in episodes.items()]
        publish(self.path / "episodes.csv", episodes_csv(runs).encode())


def _difference(existing: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the first field in which an existing run and a new one differ."""
    for key in new:
        a, b = existing.get(key), new[key]
        if a == b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            return _difference(a, b)
        return f"{key} is {json.dumps(a)} there and {json.dumps(b)} here"
    return "its fields differ"


def episodes_csv(
    runs: Sequence[tuple[Config, int, Episodes]], agents: Sequence[str] | None = None
) -> str:
    """Return a CSV table with one line per episode.

    Each run is a configuration, a seed and its episodes. `agents` replaces the names of the runs'
    agents. Settings in which the configurations differ get a column each, which is empty for agents
    that do not have the setting.
    """
    agents = agents or [config.agent_name for config, _, _ in runs]
    settings_of_runs = [_settings(config) for config, _, _ in runs]
    names = dict.fromkeys(name for settings in settings_of_runs for name in settings)
    varying = [n for n in names if len({json.dumps(s.get(n)) for s in settings_of_runs}) > 1]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*COLUMNS, *varying))
    for agent, (config, seed, x), settings in zip(agents, runs, settings_of_runs, strict=True):
        who = (agent, config.environment.name, seed)
        extra = [settings.get(name, "") for name in varying]
        scores = config.environment.score(x.returns, x.length, x.terminated)
        for i in range(len(x.returns)):
            ended, score = int(x.terminated[i]), _decimals(scores[i])
            played = (i + 1, x.step[i], _decimals(x.returns[i]), x.length[i], ended, score)
            diagnostics = (f"{x.spread[i]:.4g}", f"{x.return_spread[i]:.4g}", x.coverage[i])
            writer.writerow((*who, *played, *diagnostics, *extra))
    return text.getvalue()


def _decimals(value: Any) -> str:
    """Return the shortest decimal that reads back as the same float32."""
    return np.format_float_positional(np.float32(value), trim="0")


def _settings(config: Config) -> dict[str, Any]:
    """Return a named agent's settings, or all fields of a composed agent and its parts."""
    if isinstance(config.agent, Settings):
        return dataclasses.asdict(config.agent)
    return flat(config.identity()["agent"]["composition"])


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten a nested mapping, joining its keys by dots: posterior.rho, …"""
    items: dict[str, Any] = {}
    for name, value in nested.items():
        key = f"{prefix}.{name}" if prefix else name
        items |= flat(value, key) if isinstance(value, Mapping) else {key: value}
    return items
