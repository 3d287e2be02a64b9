"""The run folder: config.json, episodes.csv and one checkpoint a lane."""

import csv
import dataclasses
import fcntl
import hashlib
import io
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import equinox as eqx
import jax
import numpy as np

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
    """Everything needed to run again."""

    agent: Settings | Learner
    environment: Task
    seeds: tuple[int, ...]
    episodes: int | None = None
    steps: int | None = None
    until_solved: bool = False
    """Whether a lane stops when it has solved its task."""

    @property
    def agent_name(self) -> str:
        return self.agent.name

    @property
    def label(self) -> str:
        return f"{self.agent_name} on {self.environment.name}"

    @property
    def default_folder(self) -> Path:
        """Where a run is written if nobody says."""
        return Path("runs") / f"{self.agent_name}-{self.environment.name.replace('/', '-')}"

    def compose(self) -> Learner:
        return self.agent.compose() if isinstance(self.agent, Settings) else self.agent

    def jobs(self, folder: Path | None) -> list[Job]:
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
        """Whether its identity says all there is to know: nothing in it is of a user's own."""
        told = self.identity()
        try:
            agent, environment = _agent(told["agent"]), _environment(told["environment"])
        except (RoveError, KeyError, TypeError, AttributeError):
            return False
        return same(Config(agent, environment, self.seeds).compose(), self.compose()) and same(
            environment, self.environment
        )

    def identity(self) -> dict[str, Any]:
        """What makes it this run and no other, as JSON."""
        if isinstance(self.agent, Settings):
            agent = {"name": self.agent.name, "settings": dataclasses.asdict(self.agent)}
        else:
            agent = {"composition": _describe(self.agent)}
        told = {
            "agent": agent,
            "environment": {
                "name": self.environment.name,
                "options": environments.options(self.environment),
            }
            | _given(self.environment),
            "seeds": list(self.seeds),
            "episodes": self.episodes,
            "steps": self.steps,
            "until_solved": self.until_solved,
        }
        return json.loads(json.dumps(told, default=_plain))


def same(a: Any, b: Any) -> bool:
    """Whether two pytrees are alike: the same kinds, and the same numbers."""
    (xs, kind), (ys, other) = jax.tree.flatten(a), jax.tree.flatten(b)
    return kind == other and all(map(np.array_equal, xs, ys))


def _agent(told: dict[str, Any]) -> Settings | Learner:
    if "composition" in told:
        return _rebuild(told["composition"])
    return with_settings(AGENTS[told["name"]](), told["settings"])


def _given(environment: Task) -> dict[str, Any]:
    """A mark on an environment that a person gave, and has to give again."""
    given = isinstance(environment, HostEnvironment) and environment.source.given
    return {"given": True} if given else {}


def _environment(told: dict[str, Any]) -> Task:
    if told.get("given"):
        raise RunFolderError(
            f"the run was made with an environment of one's own, {told['name']}: "
            "pass it to rove.load(folder, environment=...)"
        )
    return environments.make(told["name"], **told["options"])


def _describe(module: eqx.Module) -> dict[str, Any]:
    """A composed agent as JSON: the name of each part and its fields."""
    fields = {f.name: getattr(module, f.name) for f in dataclasses.fields(module)}
    told = {k: _describe(v) if isinstance(v, eqx.Module) else v for k, v in fields.items()}
    return {"type": type(module).__name__, **{k: _plain(v) for k, v in told.items()}}


def _plain(value: Any) -> Any:
    """A number as JSON has it, whatever library it is from."""
    return value.tolist() if hasattr(value, "tolist") else value


def _rebuild(told: dict[str, Any]) -> Any:
    """A composed agent from `_describe`. Only rove's own families can be named."""
    kinds: dict[str, Any] = {"Agent": Agent, "ActorCritic": ActorCritic}
    for module in (rove.returns, rove.posteriors, rove.tabular):
        kinds |= {name: getattr(module, name) for name in module.__all__}
    name = told["type"]
    if name not in kinds:
        raise RunFolderError(
            f"the run was made with {name}, which is not one of rove's families: "
            "pass the agent to rove.load(folder, agent=...)"
        )
    fields = {k: v for k, v in told.items() if k != "type"}
    return kinds[name](
        **{
            k: _rebuild(v) if isinstance(v, dict) else tuple(v) if isinstance(v, list) else v
            for k, v in fields.items()
        }
    )


class Identified(Protocol):
    """What a folder can hold: it knows what makes it this and no other."""

    def identity(self) -> dict[str, Any]: ...


class RunFolder:
    """A folder that holds one run, and refuses to hold another."""

    def __init__(self, path: Path | str):
        self.path = Path(path)

    @contextmanager
    def open(self, config: Identified) -> Iterator[None]:
        """Claim the folder for a run: new, or the same one to go on with. One that is refused is
        left as it was."""
        told = config.identity()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._holds(told)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = os.open(self.path / ".lock", flags, 0o666)
        except OSError as error:
            raise RunFolderError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunFolderError(f"{self.path} is in use by another process") from None
            except OSError as error:
                raise RunFolderError(f"cannot lock {self.path}: {error.strerror}") from None
            if not self._holds(told):  # which may have changed before the lock was held
                self._claim(told)
            yield
        finally:
            os.close(lock)

    def _holds(self, told: dict[str, Any]) -> bool:
        """Whether the run is there already; an error, if anything else is."""
        if (self.path / "config.json").exists():
            held = self.read()
            differing = [key for key in told if held.get(key) != told[key]]
            if differing:
                raise RunFolderError(
                    f"{self.path} holds a different run ({_differences(held, told)}). "
                    "Choose another folder, or remove this one"
                )
            return True
        # A run killed before its first file was published has left at most these.
        mine = {".lock", "config.json.partial"}
        others = [p.name for p in self.path.iterdir() if p.name not in mine]
        if others:
            raise RunFolderError(
                f"{self.path} is not empty and holds no run of rove (it has {others[0]}). "
                "Choose another folder"
            )
        return False

    def _claim(self, told: dict[str, Any]) -> None:
        about = {
            "schema": SCHEMA,
            **told,
            "versions": {name: metadata.version(name) for name in _PACKAGES}
            | {"python": platform.python_version()},
        }
        publish(self.path / "config.json", (json.dumps(about, indent=2) + "\n").encode())

    def read(self) -> dict[str, Any]:
        """config.json, as it is."""
        path = self.path / "config.json"
        try:
            told = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise RunFolderError(f"{self.path} holds no run: it has no config.json") from None
        except (OSError, ValueError, RecursionError) as error:
            raise RunFolderError(f"{path} cannot be read: {error}") from None
        if not isinstance(told, dict) or told.get("schema") != SCHEMA:
            raise RunFolderError(f"{path} is not a run of this version of rove")
        return told

    def config(self, agent: Learner | None = None, environment: Task | None = None) -> Config:
        """The run's configuration; an agent or environment that is not rove's own, and so cannot
        be rebuilt from JSON, is given."""
        told = self.read()
        if "sweep" in told:
            where = f"{self.path} holds a sweep; its runs are in points and confirmed"
            raise RunFolderError(where)
        try:
            return Config(
                agent=agent or _agent(told["agent"]),
                environment=environment or _environment(told["environment"]),
                seeds=tuple(told["seeds"]),
                episodes=told["episodes"],
                steps=told["steps"],
                until_solved=told["until_solved"],
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RunFolderError(f"{self.path / 'config.json'} cannot be used: {error}") from None

    def write_episodes(self, config: Config, episodes: Mapping[int, Episodes]) -> None:
        """episodes.csv, whole, from the lanes (by seed) as they stand."""
        lanes = [(config, seed, lane) for seed, lane in episodes.items()]
        publish(self.path / "episodes.csv", episodes_csv(lanes).encode())


def _differences(held: dict[str, Any], told: dict[str, Any]) -> str:
    """The first field in which two runs differ, for a person."""
    for key in told:
        a, b = held.get(key), told[key]
        if a == b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            return _differences(a, b)
        return f"{key} is {json.dumps(a)} there and {json.dumps(b)} here"
    return "it has other fields"


def episodes_csv(
    lanes: Sequence[tuple[Config, int, Episodes]], agents: Sequence[str] | None = None
) -> str:
    """One line an episode, from each lane's configuration, seed and episodes; `agents` tells other
    names for the agents of the lanes. Settings in which the configurations differ have columns of
    their own, empty where an agent has none such."""
    agents = agents or [config.agent_name for config, _, _ in lanes]
    told = [_settings(config) for config, _, _ in lanes]
    names = dict.fromkeys(name for settings in told for name in settings)
    varying = [n for n in names if len({json.dumps(s.get(n)) for s in told}) > 1]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*COLUMNS, *varying))
    for agent, (config, seed, lane), settings in zip(agents, lanes, told, strict=True):
        who = (agent, config.environment.name, seed)
        rest = [settings.get(name, "") for name in varying]
        scores = config.environment.score(lane.returns, lane.length, lane.terminated)
        for i in range(len(lane.returns)):
            ended, score = int(lane.terminated[i]), _decimals(scores[i])
            looks = (f"{lane.spread[i]:.4g}", f"{lane.return_spread[i]:.4g}", lane.coverage[i])
            played = (i + 1, lane.step[i], _decimals(lane.returns[i]), lane.length[i], ended, score)
            writer.writerow((*who, *played, *looks, *rest))
    return text.getvalue()


def _decimals(value: Any) -> str:
    """The shortest that read back as the same float32."""
    return np.format_float_positional(np.float32(value), trim="0")


def _settings(config: Config) -> dict[str, Any]:
    """A named agent's settings; a composed agent's fields, and those of its parts."""
    if isinstance(config.agent, Settings):
        return dataclasses.asdict(config.agent)
    return flat(config.identity()["agent"]["composition"])


def flat(told: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    """JSON without levels: posterior.rho, …"""
    found: dict[str, Any] = {}
    for name, value in told.items():
        key = f"{under}.{name}" if under else name
        found |= flat(value, key) if isinstance(value, Mapping) else {key: value}
    return found
