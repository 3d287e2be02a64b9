"""Environments by name: `make("chain-100")`."""

import dataclasses
from typing import Any

from rove.environments.base import Environment, Step
from rove.environments.chain import Chain
from rove.errors import ConfigError, did_you_mean

__all__ = ["ENVIRONMENTS", "Chain", "Environment", "Step", "make", "options"]

ENVIRONMENTS: dict[str, tuple[type[Chain], dict[str, Any]]] = {
    "chain": (Chain, {}),
    "permuted-chain": (Chain, {"permuted": True}),
}
"""Families, and what their name sets; a name ends in a size: chain-100 is Chain(100)."""


def make(name: str, **settings: Any) -> Environment:
    """The environment a person means by a name such as chain-100."""
    family, _, size = name.rpartition("-")
    if family not in ENVIRONMENTS or not size.isascii() or not size.isdigit():
        families = [f"{known}-N" for known in ENVIRONMENTS]
        near = [f"{known}-{s}" for known in ENVIRONMENTS for s in (size, "N") if s]
        allowed = " or ".join(families) + ", for example chain-100" + did_you_mean(name, near)
        raise ConfigError("environment", name, allowed)
    kind, named = ENVIRONMENTS[family]
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
