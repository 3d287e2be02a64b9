"""Environments by name: `make("chain-100")`."""

import dataclasses
from typing import Any, NamedTuple

from rove.environments.bandit import Bandit
from rove.environments.base import Environment, Step
from rove.environments.chain import Chain
from rove.environments.deep_sea import DeepSea
from rove.errors import ConfigError, did_you_mean

__all__ = [
    "ENVIRONMENTS",
    "Bandit",
    "Chain",
    "DeepSea",
    "Environment",
    "Family",
    "Step",
    "make",
    "options",
]


class Family(NamedTuple):
    """What the part of a name before its size stands for."""

    kind: type[Environment]
    """The class, whose field `n` is the size."""
    named: dict[str, Any]
    """Other fields that the name sets."""
    doc: str | None
    """Its first line tells a person what it is."""


ENVIRONMENTS: dict[str, Family] = {
    "chain": Family(Chain, {}, Chain.__doc__),
    "permuted-chain": Family(
        Chain, {"permuted": True}, "The chain with left and right swapped in half of the states."
    ),
    "deep-sea": Family(DeepSea, {}, DeepSea.__doc__),
    "bandit": Family(Bandit, {}, Bandit.__doc__),
}
"""Families by name; an environment's name ends in a size: chain-100 is Chain(100)."""


def make(name: str, **settings: Any) -> Environment:
    """The environment a person means by a name such as chain-100."""
    family, _, size = name.rpartition("-")
    sized = size.isascii() and size.isdigit()
    if family not in ENVIRONMENTS or not sized:
        families = [f"{known}-N" for known in ENVIRONMENTS]
        near = [f"{known}-{size}" for known in ENVIRONMENTS if sized] + families
        allowed = "one of " + ", ".join(families) + ", for example chain-100"
        raise ConfigError("environment", name, allowed + did_you_mean(name, near))
    kind, named, _ = ENVIRONMENTS[family]
    fields = [f.name for f in dataclasses.fields(kind)]
    for field, value in settings.items():
        if field not in fields:
            hint = ", ".join(fields) + did_you_mean(field, fields)
            raise ConfigError(field, value, f"an unknown option; {family} has {hint}")
    chosen: dict[str, Any] = {"n": int(size), **named, **settings}
    try:
        return kind(**chosen)
    except ConfigError as error:
        if error.field == "n":
            raise ConfigError("environment", name, f"for N {error.allowed}") from None
        raise


def options(environment: Environment) -> dict[str, Any]:
    """An environment's fields, as `make` takes them."""
    return {f.name: getattr(environment, f.name) for f in dataclasses.fields(environment)}
