"""Environments by name: `make("chain-100")`, `make("cartpole")`."""

import dataclasses
from typing import Any, NamedTuple

from rove.environments.acrobot import Acrobot
from rove.environments.adopting import ALIASES, adopt, from_name, host_settings
from rove.environments.bandit import Bandit
from rove.environments.base import Coordinate, Environment, Step, Task
from rove.environments.cartpole import CartPole
from rove.environments.chain import Chain
from rove.environments.deep_sea import DeepSea
from rove.environments.host import HostEnvironment
from rove.environments.linear_quadratic import LinearQuadratic
from rove.environments.mountain_car import MountainCar
from rove.environments.registered import PREFIX
from rove.environments.sparse import Sparse
from rove.errors import ConfigError, did_you_mean

__all__ = [
    "ALIASES",
    "ENVIRONMENTS",
    "Acrobot",
    "Bandit",
    "CartPole",
    "Chain",
    "Coordinate",
    "DeepSea",
    "Environment",
    "Family",
    "HostEnvironment",
    "LinearQuadratic",
    "MountainCar",
    "Sparse",
    "Step",
    "Task",
    "adopt",
    "make",
    "names",
    "options",
]


class Family(NamedTuple):
    """What a name, or the part of it before a size, stands for."""

    kind: type[Environment]
    """The class. If it has a field `n`, that is the size, and the name ends in it."""
    named: dict[str, Any]
    """Other fields that the name sets."""
    doc: str | None
    """Its first line tells a person what it is."""
    gymnasium: str | None = None
    """Gymnasium's own name for the task, or for the one that this makes sparse."""

    @property
    def sized(self) -> bool:
        return "n" in _fields(self.kind)


ENVIRONMENTS: dict[str, Family] = {
    "chain": Family(Chain, {}, Chain.__doc__),
    "permuted-chain": Family(
        Chain, {"permuted": True}, "The chain with left and right swapped in half of the states."
    ),
    "deep-sea": Family(DeepSea, {}, DeepSea.__doc__),
    "bandit": Family(Bandit, {}, Bandit.__doc__),
    "cartpole": Family(CartPole, {}, CartPole.__doc__, "CartPole-v1"),
    "mountain-car": Family(MountainCar, {}, MountainCar.__doc__, "MountainCar-v0"),
    "acrobot": Family(Acrobot, {}, Acrobot.__doc__, "Acrobot-v1"),
    "sparse-cartpole": Family(
        Sparse,
        {"environment": CartPole(), "reward": -1.0},
        "CartPole with a single reward: −1 for the fall.",
        "CartPole-v1",
    ),
    "sparse-mountain-car": Family(
        Sparse,
        {"environment": MountainCar(), "reward": 1.0},
        "Mountain Car with a single reward: 1 for the goal.",
        "MountainCar-v0",
    ),
    "sparse-acrobot": Family(
        Sparse,
        {"environment": Acrobot(), "reward": 1.0},
        "Acrobot with a single reward: 1 for the goal.",
        "Acrobot-v1",
    ),
    "linear-quadratic": Family(LinearQuadratic, {}, LinearQuadratic.__doc__),
}
"""Families by name. The name of one that has sizes ends in one: chain-100 is Chain(100)."""


def names(size: str = "N") -> list[str]:
    """What a person can type, with a size where one belongs."""
    return [f"{name}-{size}" if family.sized else name for name, family in ENVIRONMENTS.items()]


def make(name: str, **settings: Any) -> Task:
    """The environment a person means by a name such as chain-100, cartpole or gym/CartPole-v1."""
    if name.startswith(PREFIX) or name in ALIASES:
        return from_name(name, **settings)
    known, _, size = name.rpartition("-")
    sized = size.isascii() and size.isdigit()
    if not sized:
        known = name
    if known not in ENVIRONMENTS or ENVIRONMENTS[known].sized != sized:
        near = (names(size) if sized else []) + names() + list(ALIASES)
        allowed = "one of " + ", ".join((*names(), *ALIASES)) + ", for example chain-100; or gym/ID"
        raise ConfigError("environment", name, allowed + did_you_mean(name, near))
    kind, named, *_ = ENVIRONMENTS[known]
    fields = _fields(kind)
    for field, value in settings.items():
        if field not in fields:
            hint = ", ".join(fields) + did_you_mean(field, fields)
            raise ConfigError(field, value, f"an unknown option; {known} has {hint}")
    chosen = {"n": int(size)} if sized else {}
    chosen |= named | {field: _made(value) for field, value in settings.items()}
    try:
        return kind(**chosen)
    except ConfigError as error:
        if error.field == "n":
            raise ConfigError("environment", name, f"for N {error.allowed}") from None
        raise


def settings(environment: Task) -> Any:
    """What a person can set of an environment by name, as a dataclass with its values: the
    environment itself, or Gymnasium's options."""
    if isinstance(environment, HostEnvironment):
        return host_settings(environment)
    return environment


def configured(environment: Task, told: Any) -> Task:
    """The environment, with what a person has set."""
    if isinstance(environment, HostEnvironment):
        return from_name(environment.name, **dataclasses.asdict(told))
    return told


def options(environment: Task) -> dict[str, Any]:
    """An environment's fields, as `make` takes them; one inside it as its name and options."""
    if isinstance(environment, HostEnvironment):
        return environment.options()
    values = {field: getattr(environment, field) for field in _fields(type(environment))}
    return {
        field: {"name": value.name, "options": options(value)}
        if isinstance(value, Environment)
        else value
        for field, value in values.items()
    }


def _made(value: Any) -> Any:
    """An environment that `options` told of; anything else as it is."""
    return make(value["name"], **value["options"]) if isinstance(value, dict) else value


def _fields(kind: type[Task]) -> list[str]:
    return [f.name for f in dataclasses.fields(kind)]
