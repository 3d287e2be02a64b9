"""What every named agent has in common."""

import dataclasses
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from rove.core.learner import Learner
from rove.errors import ConfigError, check_number, did_you_mean
from rove.returns import Gaussian
from rove.returns.gaussian import LEAST_SIGMA


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a named agent can be told. `compose` makes the agent."""

    name: ClassVar[str]
    """What a person types."""
    label: ClassVar[str]
    """What a picture says."""

    def __post_init__(self) -> None:
        """Values as JSON gives them back. A whole number where a fraction belongs would be another
        run's, and compile a second program."""
        kinds = get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value, kind = _plain(getattr(self, field.name)), kinds[field.name]
            if type(value) is int and float in (kind, *get_args(kind)):
                check_number(field.name, value)
                value = float(value)
            object.__setattr__(self, field.name, value)

    def compose(self) -> Learner:
        raise NotImplementedError


def with_settings(settings: Settings, changes: dict[str, Any]) -> Settings:
    """The same agent with some settings changed; an unknown one is refused."""
    fields = [f.name for f in dataclasses.fields(settings)]
    for field, value in changes.items():
        if field not in fields:
            hint = f"{settings.name} has " + ", ".join(fields) + did_you_mean(field, fields)
            raise ConfigError(field, value, f"an unknown setting; {hint}")
    return dataclasses.replace(settings, **changes)


def noisy(sigma: float, draw: Literal["sample", "mean"] = "sample") -> Gaussian:
    """A Gaussian return with σ > 0: at 0 the entropy of q_φ would have no weight."""
    check_number("sigma", sigma, at_least=LEAST_SIGMA)
    return Gaussian(sigma, draw)


def _plain(value: Any) -> Any:
    """Python's own numbers and tuples, whatever library or file the value is from."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(_plain(x) for x in value) if isinstance(value, list | tuple) else value
