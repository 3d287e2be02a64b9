"""The values of a field that is swept: `-10:-1:10`, `1e-8:1e-1:log8`, `1e-5,1e-4,1e-3`; `1e-3,` is
one."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, get_origin

import numpy as np

from rove.errors import ConfigError, did_you_mean
from rove.settings import Settings, with_settings

MOST = 10_000
"""Points, or values of a field."""
SPELLING = (
    "a:b:n for n values from a to b, a:b:logn for n spaced geometrically, or a list such as 1,2,3"
)
_WORDS = {"None": None, "True": True, "False": False}


def is_span(text: str) -> bool:
    """Whether an argument of the command tells several values."""
    return ":" in text or "," in text


def values(settings: Settings, field: str, told: str | Iterable[Any]) -> tuple[Any, ...]:
    """The values of an agent's field, from how a person tells them, as its settings have them;
    each is different."""
    kinds = {f.name: f.type for f in dataclasses.fields(settings)}
    if field not in kinds:
        hint = f"{settings.name} has " + ", ".join(kinds) + did_you_mean(field, kinds)
        raise ConfigError(field, told, f"an unknown setting; {hint}")
    if isinstance(told, str):
        if get_origin(kinds[field]) is tuple:
            raise ConfigError(field, told, "not swept by the command; give one value, without ,")
        found = _read(field, told, whole=kinds[field] is int)
    elif isinstance(told, Iterable) and getattr(told, "ndim", 1):
        found = tuple(told)
    else:
        raise ConfigError(field, told, "a list of values, or " + SPELLING)
    if not found or len(found) > MOST:
        raise ConfigError(field, told, f"at least one value and at most {MOST:,}")
    found = tuple(getattr(with_settings(settings, {field: value}), field) for value in found)
    if len(set(map(repr, found))) < len(found):
        raise ConfigError(field, told, f"each value once, and these are {_shown(found)}")
    return found


def _read(field: str, told: str, whole: bool) -> tuple[Any, ...]:
    if ":" not in told:
        words = told.removesuffix(",").split(",")
        return tuple(_value(field, told, word.strip()) for word in words)
    parts = told.split(":")
    geometric = parts[-1].startswith("log")
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2].removeprefix("log"))
    except (ValueError, IndexError):
        raise ConfigError(field, told, SPELLING) from None
    if len(parts) != 3 or not math.isfinite(high - low):
        raise ConfigError(field, told, SPELLING)
    if not 2 <= count <= MOST or low == high:
        allowed = f"two different ends and at least 2 values, at most {MOST:,}"
        raise ConfigError(field, told, f"{allowed}: {SPELLING}")
    if geometric and min(low, high) <= 0:
        raise ConfigError(field, told, "both ends above 0, where values are spaced geometrically")
    spaced = (np.geomspace if geometric else np.linspace)(low, high, count)
    # Twelve digits, so that 1e-7 is 1e-7.
    return tuple(round(v) if whole else float(f"{v:.12g}") for v in spaced.tolist())


def _value(field: str, told: str, word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        if math.isfinite(float(word)):
            return number
        raise ConfigError(field, told, "finite numbers")
    if not word:
        raise ConfigError(field, told, "a value after every comma")
    return word


def _shown(found: Sequence[Any]) -> str:
    return ", ".join(map(str, found[:8])) + ", …" * (len(found) > 8)


def taken_out(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The fields of the agent that a command sweeps, and its other arguments."""
    fields: dict[str, str] = {}
    others, left = [], list(arguments)
    while left:
        argument = left.pop(0)
        option, equals, told = argument.partition("=")
        if not option.startswith(("--agent.", "--env.")):
            others.append(argument)
            continue
        if not equals and left and not left[0].startswith("--"):
            told = left[0]
        if not is_span(told):
            others.append(argument)
            continue
        left = left if equals else left[1:]
        field = option.partition(".")[2].replace("-", "_")
        if option.startswith("--env."):
            raise ConfigError(field, told, "one value: only the fields of --agent are swept")
        if field in fields:
            raise ConfigError(field, told, f"told once, and it is {fields[field]!r} too")
        fields[field] = told
    return fields, others
