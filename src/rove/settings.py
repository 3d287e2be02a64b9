"""What every named agent has in common."""

import dataclasses
from typing import Any, ClassVar

from rove.errors import ConfigError, check_number, did_you_mean
from rove.learner import Learner


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a named agent can be told. `compose` makes the agent."""

    name: ClassVar[str]
    """What a person types."""
    label: ClassVar[str]
    """What a picture says."""

    def compose(self) -> Learner:
        raise NotImplementedError


def with_settings(settings: Settings, changes: dict[str, Any]) -> Settings:
    """The same agent with some settings changed; an unknown one is refused."""
    fields = [f.name for f in dataclasses.fields(settings)]
    for field, value in changes.items():
        if field not in fields:
            hint = f"{settings.name} has " + ", ".join(fields) + did_you_mean(field, fields)
            raise ConfigError(field, value, f"an unknown setting; {hint}")
    plain = {field: _plain(value) for field, value in changes.items()}
    # A whole number where a fraction belongs would compile a second program.
    kinds = {f.name: f.type for f in dataclasses.fields(settings)}
    for field, value in plain.items():
        if kinds[field] in (float, "float") and type(value) is int:
            check_number(field, value)
            plain[field] = float(value)
    return dataclasses.replace(settings, **plain)


def _plain(value: Any) -> Any:
    """Python's own numbers and tuples, whatever library or file the value is from."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(_plain(x) for x in value) if isinstance(value, list | tuple) else value
