"""The base class of the settings of named agents."""

import dataclasses
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from rove.core.learner import Learner
from rove.errors import ConfigError, check_number, did_you_mean
from rove.returns import Gaussian
from rove.returns.gaussian import LEAST_SIGMA


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a named agent; `compose` builds the agent from them."""

    name: ClassVar[str]
    """The name on the command line."""
    label: ClassVar[str]
    """The name in figures and reports."""

    def __post_init__(self) -> None:
        """Normalise values to what JSON round-trips to. An int in a float field becomes a float:
        otherwise equal settings would differ in config.json and be compiled twice."""
        kinds = get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value, kind = _plain(getattr(self, field.name)), kinds[field.name]
            if type(value) is int and float in (kind, *get_args(kind)):
                check_number(field.name, value)
                value = float(value)
            object.__setattr__(self, field.name, value)

    def compose(self) -> Learner:
        """Build the agent."""
        raise NotImplementedError


def with_settings(settings: Settings, changes: dict[str, Any]) -> Settings:
    """Return a copy of the settings with some changes; unknown names raise `ConfigError`."""
    fields = [f.name for f in dataclasses.fields(settings)]
    for field, value in changes.items():
        if field not in fields:
            hint = f"{settings.name} has " + ", ".join(fields) + did_you_mean(field, fields)
            raise ConfigError(field, value, f"unknown setting; {hint}")
    return dataclasses.replace(settings, **changes)


def noisy(sigma: float, draw: Literal["sample", "mean"] = "sample") -> Gaussian:
    """Return a Gaussian return with σ > 0; at σ = 0 the entropy of q_φ would have no weight."""
    check_number("sigma", sigma, at_least=LEAST_SIGMA)
    return Gaussian(sigma, draw)


def _plain(value: Any) -> Any:
    """Convert NumPy and JAX values to Python numbers, and lists to tuples."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(_plain(x) for x in value) if isinstance(value, list | tuple) else value
