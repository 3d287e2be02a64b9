"""Environments by name: `make("chain-100")`, `make("cartpole")`."""

import dataclasses
import re
from typing import Any, NamedTuple

from rove.environments.acrobot import Acrobot
from rove.environments.adopting import ALIASES, adopt, from_name, host_settings
from rove.environments.bandit import Bandit, BernoulliBandit
from rove.environments.base import Coordinate, Environment, Step, Task
from rove.environments.cartpole import CartPole
from rove.environments.chain import Chain
from rove.environments.cliff import Cliff
from rove.environments.deep_sea import DeepSea
from rove.environments.frames import FrameStack, stacked, unstacked
from rove.environments.gymnax import PREFIX as GYMNAX
from rove.environments.gymnax import (
    GymnaxEnvironment,
    adopt_gymnax,
    from_gymnax_name,
    gymnax_settings,
    is_gymnax,
    reconfigured,
)
from rove.environments.host import HostEnvironment
from rove.environments.linear_bandit import LinearBandit
from rove.environments.linear_quadratic import LinearQuadratic
from rove.environments.minigrid import (
    MiniGridDoorKey,
    MiniGridEmpty,
    MiniGridFourRooms,
    MiniGridMultiRoom,
    MiniGridUnlock,
)
from rove.environments.mountain_car import MountainCar
from rove.environments.point_rooms import PointRooms
from rove.environments.registered import PREFIX
from rove.environments.sparse import Sparse
from rove.environments.swing_up import SwingUp
from rove.errors import ConfigError, unknown_name, unknown_option

__all__ = [
    "ALIASES",
    "ENVIRONMENTS",
    "Acrobot",
    "Bandit",
    "BernoulliBandit",
    "CartPole",
    "Chain",
    "Cliff",
    "Coordinate",
    "DeepSea",
    "Environment",
    "Family",
    "FrameStack",
    "GymnaxEnvironment",
    "HostEnvironment",
    "LinearBandit",
    "LinearQuadratic",
    "MiniGridDoorKey",
    "MiniGridEmpty",
    "MiniGridFourRooms",
    "MiniGridMultiRoom",
    "MiniGridUnlock",
    "MountainCar",
    "PointRooms",
    "Sparse",
    "Step",
    "SwingUp",
    "Task",
    "adopt",
    "adopt_gymnax",
    "is_gymnax",
    "make",
    "names",
    "options",
]


class Family(NamedTuple):
    """Environments that share a name, except for a size: chain-100 belongs to the family chain."""

    kind: type[Environment]
    """The class. If it has a field `n`, that is the size, and names end in it."""
    named: dict[str, Any]
    """Other fields that the name sets."""
    doc: str | None
    """A description, whose first line is shown by `rove list`."""
    gymnasium: str | None = None
    """Gymnasium's id of the same task or, for a sparse task, of the original one."""

    @property
    def sized(self) -> bool:
        """Whether names of this family end in a size."""
        return "n" in _fields(self.kind)


ENVIRONMENTS: dict[str, Family] = {
    "chain": Family(Chain, {}, Chain.__doc__),
    "permuted-chain": Family(
        Chain,
        {"permuted": True},
        "The chain with left and right swapped in about half of the states.",
    ),
    "deep-sea": Family(DeepSea, {}, DeepSea.__doc__),
    "bandit": Family(Bandit, {}, Bandit.__doc__),
    "bernoulli-bandit": Family(BernoulliBandit, {}, BernoulliBandit.__doc__),
    "linear-bandit": Family(LinearBandit, {}, LinearBandit.__doc__),
    "cliff": Family(Cliff, {}, Cliff.__doc__),
    "cartpole": Family(CartPole, {}, CartPole.__doc__, "CartPole-v1"),
    "mountain-car": Family(MountainCar, {}, MountainCar.__doc__, "MountainCar-v0"),
    "acrobot": Family(Acrobot, {}, Acrobot.__doc__, "Acrobot-v1"),
    "sparse-cartpole": Family(
        Sparse,
        {"environment": CartPole(), "reward": -1.0},
        "CartPole with a single reward: −1 when the pole falls.",
        "CartPole-v1",
    ),
    "sparse-mountain-car": Family(
        Sparse,
        {"environment": MountainCar(), "reward": 1.0},
        "Mountain Car with a single reward: 1 at the goal.",
        "MountainCar-v0",
    ),
    "sparse-acrobot": Family(
        Sparse,
        {"environment": Acrobot(), "reward": 1.0},
        "Acrobot with a single reward: 1 at the goal.",
        "Acrobot-v1",
    ),
    "linear-quadratic": Family(LinearQuadratic, {}, LinearQuadratic.__doc__),
    "point-rooms": Family(PointRooms, {}, PointRooms.__doc__),
    "swing-up": Family(SwingUp, {}, SwingUp.__doc__),
    "minigrid-empty": Family(MiniGridEmpty, {}, MiniGridEmpty.__doc__),
    "minigrid-doorkey": Family(MiniGridDoorKey, {}, MiniGridDoorKey.__doc__),
    "minigrid-fourrooms": Family(MiniGridFourRooms, {}, MiniGridFourRooms.__doc__),
    "minigrid-multiroom": Family(MiniGridMultiRoom, {}, MiniGridMultiRoom.__doc__),
    "minigrid-unlock": Family(MiniGridUnlock, {}, MiniGridUnlock.__doc__),
}
"""Families by name. If a family has sizes, a size is appended: chain-100 is Chain(100)."""


NO_COPIES = (
    "only Gymnasium environments have copies. Those of other environments would not save time, "
    "because all of their steps are compiled: train several seeds instead"
)
"""Why compiled environments have no copies."""
_VERSIONED = re.compile(r"-v\d+$")
"""Matches the end of Gymnasium's ids."""


def names(size: str = "N") -> list[str]:
    """Return the names of all environments, with `size` where a name needs one."""
    return [f"{name}-{size}" if family.sized else name for name, family in ENVIRONMENTS.items()]


def make(name: str, **settings: Any) -> Task:
    """Create an environment from a name such as chain-100, gym/CartPole-v1 or gymnax/Pong-misc.

    Settings are the options that `--env.X` sets on the command line. The prefix gym/ may be left
    out of an id that ends in a version, as in CartPole-v1. The result is for `rove.train`; to step
    one of rove's environments yourself, use `gymnasium.make("rove/Chain-v0", n=100)`.

    **Example**
    >>> rove.make("gym/FrozenLake-v1", is_slippery=False, optimum=1.0).name
    'gym/FrozenLake-v1'
    """
    if not isinstance(name, str):
        raise ConfigError.must_be("environment", name, "a name", "; for an object, use rove.adopt")
    if name.startswith(PREFIX) or name in ALIASES:
        return from_name(name, **settings)
    if _VERSIONED.search(name) and not name.startswith(GYMNAX):
        return from_name(PREFIX + name, **settings)
    if settings.pop("copies", 1) != 1:
        raise ConfigError("copies", name, NO_COPIES, f"{name} cannot have copies: {NO_COPIES}")
    frames = settings.pop("frame_stack", 1)
    compiled = from_gymnax_name if name.startswith(GYMNAX) else _compiled
    return stacked(compiled(name, **settings), frames)


def _compiled(name: str, **settings: Any) -> Environment:
    """Create one of rove's environments from its name."""
    family, _, size = name.rpartition("-")
    sized = size.isascii() and size.isdigit()
    if not sized:
        family = name
    for known in (name, name.rpartition("-")[0]):
        if known in ENVIRONMENTS and ENVIRONMENTS[known].sized and not sized:
            message = f"environment {name!r} needs a size, as in {known}-10"
            raise ConfigError("environment", name, f"{known}-N", message)
    if family not in ENVIRONMENTS or ENVIRONMENTS[family].sized != sized:
        size = size if sized else name[len(name.rstrip("0123456789")) :]
        similar = (names(size) if size else []) + names() + list(ALIASES)
        known = (*names(), *ALIASES)
        message = unknown_name("environment", name, known, similar, "rove list")
        raise ConfigError("environment", name, "one of " + ", ".join(known), message)
    kind, named, *_ = ENVIRONMENTS[family]
    fields = _fields(kind)
    for field, value in settings.items():
        if field not in fields:
            raise unknown_option(name, field, value, fields)
    chosen = {"n": int(size)} if sized else {}
    chosen |= named | {field: _rebuilt(value) for field, value in settings.items()}
    try:
        return kind(**chosen)
    except ConfigError as error:
        if error.field == "n":
            message = f"environment {name!r}: the size must be {error.allowed}, got {size}"
            raise ConfigError("environment", name, error.allowed, message) from None
        raise


def settings(environment: Task) -> Any:
    """Return the options of an environment as a dataclass, for the command line.

    That is the environment itself, without its stacks of frames (see `frames_of`), or the options
    of a Gymnasium or gymnax environment.
    """
    environment, _ = unstacked(environment)
    if isinstance(environment, GymnaxEnvironment):
        return gymnax_settings(environment)
    if isinstance(environment, HostEnvironment):
        return host_settings(environment)
    return environment


def frames_of(environment: Task) -> int | None:
    """Return the number of stacked frames of a compiled environment; None if its observations
    cannot be stacked, or if that is one of its `settings`."""
    stackable = isinstance(environment, Environment) and not environment.coded
    return unstacked(environment)[1] if stackable else None


def configured(environment: Any, values: dict[str, Any]) -> Task:
    """Return the environment with other values of the options that `settings` returns.

    The options of an inner environment, as in `Sparse`, are given as a dictionary. `frame_stack`
    may be one of the values.
    """
    if isinstance(environment, Environment) and "frame_stack" in values:
        inner, _ = unstacked(environment)
        rest = {field: value for field, value in values.items() if field != "frame_stack"}
        return stacked(configured(inner, rest), values["frame_stack"])
    if isinstance(environment, GymnaxEnvironment):
        return reconfigured(environment, values)
    if isinstance(environment, HostEnvironment):
        return from_name(environment.alias or environment.source.full_name, **values)
    inner = {
        field: configured(getattr(environment, field), value)
        for field, value in values.items()
        if isinstance(value, dict)
    }
    return dataclasses.replace(environment, **values | inner)


def options(environment: Task) -> dict[str, Any]:
    """Return an environment's fields as `make` takes them.

    An environment inside it, as in `Sparse`, becomes a dictionary of its name and options.
    """
    inner, frames = unstacked(environment)
    if frames > 1:
        return options(inner) | {"frame_stack": frames}
    if isinstance(environment, HostEnvironment | GymnaxEnvironment):
        return environment.options()
    values = {field: getattr(environment, field) for field in _fields(type(environment))}
    return {
        field: {"name": value.name, "options": options(value)}
        if isinstance(value, Environment)
        else value
        for field, value in values.items()
    }


def _rebuilt(value: Any) -> Any:
    """Rebuild an inner environment from its dictionary (see `options`); return others as is."""
    return make(value["name"], **value["options"]) if isinstance(value, dict) else value


def _fields(kind: type[Task]) -> list[str]:
    """Return the names of the fields of a class of environments."""
    return [f.name for f in dataclasses.fields(kind)]
