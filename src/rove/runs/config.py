"""The configuration of a run, and its conversion to and from JSON."""

import dataclasses
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np

from rove import bonuses, environments, posteriors, returns
from rove.agents import AGENTS, tabular
from rove.agents.settings import Settings, with_settings
from rove.core import reward_scale
from rove.core.actor_critic import ActorCritic
from rove.core.algorithm import Agent
from rove.core.learner import Learner
from rove.environments import HostEnvironment, Task
from rove.environments.registered import PREFIX
from rove.errors import ConfigError, RoveError, RunFolderError, check_integer, check_number
from rove.parts.architectures import ConvNet, default_for
from rove.parts.functions import name_of
from rove.runs.recorded import RESTATABLE, RecordedTask
from rove.training.outcomes import UNLIMITED, Job
from rove.training.solving import IN_A_ROW

EXTENDABLE = ("seeds", "episodes", "steps")
"""The parts of `Config.identity` that may grow when a run is extended."""
OPTIONAL = ("eval_every", "eval_episodes", "stop_at")
"""The parts of `Config.identity` that are None by default."""


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
    eval_every: int | None = None
    """Number of episodes, or of steps if they are the budget, between evaluations of the greedy
    policy; None: it is not evaluated during training."""
    eval_episodes: int | None = None
    """Number of episodes of each evaluation; None without evaluations."""
    stop_at: float | None = None
    """Score at which a seed stops: the mean of its last evaluation or, without evaluations, of its
    last 20 episodes."""
    extendable: bool = False
    """Whether checkpoints of finished seeds contain all that is needed to extend the run."""
    delivers: bool = False
    """Whether seeds end with the choice of a policy and a look inside the network (see
    `rove.training.delivering`): for runs that are handed to a user, not for those of a sweep."""

    @property
    def agent_name(self) -> str:
        return self.agent.name

    @property
    def label(self) -> str:
        """A short description for messages and plots, such as "ge on chain-10"."""
        return f"{self.agent_name} on {self.environment.name}"

    @property
    def slug(self) -> str:
        """The agent and the environment as a file name, such as "ge-chain-10"."""
        return f"{self.agent_name}-{re.sub(r'[/:]', '-', self.environment.name)}"

    def compose(self) -> Learner:
        """Return the agent, built from its settings if it is a named one."""
        return self.agent.compose() if isinstance(self.agent, Settings) else self.agent

    def jobs(self, folder: Path | None) -> list[Job]:
        """Return one training job per seed, with checkpoints in the run folder if one is given."""
        agent = self.compose()
        changeable = (*EXTENDABLE, *(() if self.until_solved else RESTATABLE))
        unused = [name for name in OPTIONAL if getattr(self, name) is None]
        changeable += tuple(unused)  # runs of earlier versions, without them, keep their identity
        identity = {k: v for k, v in self.identity().items() if k not in changeable}
        run = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
        checkpoints, label = folder / "lanes" if folder else None, self.label
        return [
            Job(
                agent=agent,
                environment=self.environment,
                seed=seed,
                episodes=self.episodes or UNLIMITED,
                steps=self.steps or UNLIMITED,
                in_a_row=IN_A_ROW if self.until_solved else UNLIMITED,
                path=checkpoints / f"seed-{seed}.safetensors" if checkpoints else None,
                name=f"{label}, seed {seed}",
                run=run,
                extendable=self.extendable,
                eval_every=self.eval_every,
                eval_episodes=self.eval_episodes or 0,
                stop_at=self.stop_at,
                delivers=self.delivers,
            )
            for seed in self.seeds
        ]

    @property
    def portable(self) -> bool:
        """Whether `identity` suffices to rebuild the run: it uses no custom classes or objects."""
        identity = self.identity()
        try:
            agent = agent_from(identity["agent"])
            environment = environment_from(identity, trust=True)
        except (RoveError, KeyError, TypeError, AttributeError):
            return False
        return same(Config(agent, environment, self.seeds).compose(), self.compose()) and same(
            environment, self.environment
        )

    def identity(self) -> dict[str, Any]:
        """Return all that distinguishes this run from others, as JSON values."""
        if isinstance(self.agent, Settings):
            agent = {"name": self.agent.name, "settings": settings_identity(self.agent)}
        else:
            agent = {"composition": _describe(self.agent)}
        identity = {
            "agent": agent,
            **_environment_identity(self.environment),
            "seeds": list(self.seeds),
            "episodes": self.episodes,
            "steps": self.steps,
            "until_solved": self.until_solved,
            "eval_every": self.eval_every,
            "eval_episodes": self.eval_episodes,
            "stop_at": self.stop_at,
        }
        return json.loads(json.dumps(identity, default=_plain))


def check_optional(every: Any, episodes: Any, stop_at: Any) -> None:
    """Raise `ConfigError` unless evaluations during training, and the score at which to stop, are
    valid or None."""
    if every is None and episodes is not None:
        reason = "needs eval_every (--eval-every), the number of episodes or steps between "
        raise ConfigError("eval_episodes", episodes, f"{reason}evaluations")
    if every is not None:
        check_integer("eval_every", every, at_least=1)
        check_integer("eval_episodes", episodes, at_least=1, at_most=10_000)
    if stop_at is not None:
        check_number("stop_at", stop_at)


def same(a: Any, b: Any) -> bool:
    """Whether two pytrees have the same structure and equal leaves."""
    (xs, structure), (ys, other) = jax.tree.flatten(a), jax.tree.flatten(b)
    return structure == other and all(map(np.array_equal, xs, ys))


def agent_from(description: dict[str, Any]) -> Settings | Learner:
    """Rebuild an agent from its part of `Config.identity`."""
    if "composition" in description:
        return _rebuild(description["composition"])
    name, settings = description["name"], description["settings"]
    if name not in AGENTS:
        raise ConfigError.must_be("agent", name, "the name of an agent")
    _check_fields(name, settings, AGENTS[name])
    rebuilt = {k: _rebuild(v) if isinstance(v, dict) else v for k, v in settings.items()}
    return with_settings(AGENTS[name](), rebuilt)


def settings_identity(settings: Settings) -> dict[str, Any]:
    """Return the settings of a named agent as JSON."""
    fields = dataclasses.fields(settings)
    described = {field.name: _described(getattr(settings, field.name)) for field in fields}
    return json.loads(json.dumps(described, default=_plain))


Trainable = TypeVar("Trainable", bound=Settings | Learner)


def with_network(agent: Trainable, environment: Task) -> Trainable:
    """Return an agent with the default network for the environment's images, if it has hidden
    layers and its `network` is not set."""
    any_agent: Any = agent
    image, unset = environment.image, getattr(agent, "network", False) is None
    if image is None or not unset or isinstance(agent, ActorCritic) or not any_agent.hidden:
        return agent
    return dataclasses.replace(any_agent, network=default_for(image))


def _environment_identity(environment: Task) -> dict[str, Any]:
    """Return what distinguishes an environment from others.

    A Gymnasium object without a registered name is marked, since it cannot be rebuilt from JSON.
    """
    if isinstance(environment, RecordedTask):
        return environment.identity
    options = environments.options(environment)
    stated = {name: options.pop(name, None) for name in RESTATABLE}
    custom = isinstance(environment, HostEnvironment) and not environment.source.registered
    mark = {"given": True} if custom else {}
    return {"environment": {"name": environment.name, "options": options} | mark, **stated}


def environment_from(contents: dict[str, Any], trust: bool = False) -> Task:
    """Rebuild the environment of a config.json, or of `Config.identity`.

    An environment from a package is rebuilt by importing the package, which runs its code. This
    requires `trust`, unless the package has already been imported.
    """
    description, facts = contents["environment"], contents.get("task") or {}
    name, options = description["name"], description["options"]
    stated = {k: contents[k] for k in RESTATABLE if contents.get(k) is not None}
    package = facts.get("package") or _package_in(description)
    if package and package not in sys.modules and not trust:
        raise RunFolderError(
            f"the run's environment is from the package {package}, which has to be imported; if "
            "you trust the folder, use --trust, or rove.load(folder, trust=True)"
        )
    if description.get("given") or facts.get("given"):
        registered = name.startswith(PREFIX)
        hint = f", for example {name!r}" if registered else ""
        raise RunFolderError(
            f"the run's environment, {name}, was given as an object, which cannot be rebuilt; "
            f"pass it to rove.load(folder, environment=...){hint}"
        )
    if facts.get("package"):
        name = f"{PREFIX}{package}:{name.removeprefix(PREFIX)}"
    try:
        return environments.make(name, **options | stated)
    except ConfigError as error:
        raise RunFolderError(
            f"the run's environment cannot be created: {error}. If it is a custom one, pass it to "
            "rove.load(folder, environment=...), or first import the module that registers it"
        ) from None


def _package_in(description: Any) -> str:
    """Return the package that an environment, or one inside it, is imported from, or ""."""
    if not isinstance(description, dict):
        return ""
    package = str(description.get("name")).removeprefix(PREFIX).rpartition(":")[0]
    return package or next(filter(None, map(_package_in, description.values())), "")


def _describe(module: eqx.Module) -> dict[str, Any]:
    """Describe a composed agent as JSON: the name of each part and its fields."""
    fields = {f.name: getattr(module, f.name) for f in dataclasses.fields(module)}
    return {"type": type(module).__name__, **{k: _described(v) for k, v in fields.items()}}


def _described(value: Any) -> Any:
    """Describe a part of an agent as JSON; of a user's function, only its name is known."""
    if isinstance(value, eqx.Module):
        return _describe(value)
    return {"type": name_of(value)} if callable(value) else _plain(value)


def _plain(value: Any) -> Any:
    """Convert NumPy and JAX numbers to Python's, which JSON can represent."""
    return value.tolist() if hasattr(value, "tolist") else value


def _rebuild(description: dict[str, Any]) -> Any:
    """Rebuild a composed agent from `_describe`. Only rove's own classes can be rebuilt."""
    kinds: dict[str, Any] = {"Agent": Agent, "ActorCritic": ActorCritic, "ConvNet": ConvNet}
    for module in (returns, posteriors, bonuses, reward_scale, tabular):
        kinds |= {name: getattr(module, name) for name in module.__all__}
    name = description["type"]
    if name not in kinds:
        raise RunFolderError(
            f"the run used {name}, which is not one of rove's own classes or networks; "
            "pass the agent to rove.load(folder, agent=...)"
        )
    fields = {k: v for k, v in description.items() if k != "type"}
    _check_fields(name, fields, kinds[name])
    return kinds[name](
        **{
            k: _rebuild(v) if isinstance(v, dict) else tuple(v) if isinstance(v, list) else v
            for k, v in fields.items()
        }
    )


def _check_fields(name: str, fields: dict[str, Any], kind: type) -> None:
    """Raise `RunFolderError` if the fields of a class have changed since the run was written.

    A missing field would silently take its default value.
    """
    current = {f.name for f in dataclasses.fields(kind)}
    if changed := sorted(current ^ set(fields)):
        verb = "has no" if changed[0] in current else "has the"
        raise RunFolderError(
            f"the run was written by another version of rove, in which {name} {verb} setting "
            f"{changed[0]!r}. Use that version, or train again in another folder"
        )
