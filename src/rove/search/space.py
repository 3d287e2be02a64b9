"""Values of a swept field, written as `-10:-1:10`, `1e-8:1e-1:log8` or `1e-5,1e-4,1e-3`. A single
value is written with a comma, `1e-3,`."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, get_origin

import numpy as np

from rove.agents.settings import Settings, with_settings
from rove.errors import ConfigError, did_you_mean

MOST = 10_000
"""Maximum number of points of a sweep, and of values of a field."""
SPELLING = "a:b:n for n values from a to b, a:b:logn for geometric spacing, or a list such as 1,2,3"
_WORDS = {"None": None, "True": True, "False": False}


def is_span(text: str) -> bool:
    """Whether a command-line value stands for several values."""
    return ":" in text or "," in text


def values(settings: Settings, field: str, given: str | Iterable[Any]) -> tuple[Any, ...]:
    """Return the distinct values of a field, converted as the settings convert them."""
    kinds = {f.name: f.type for f in dataclasses.fields(settings)}
    if field not in kinds:
        hint = f"{settings.name} has " + ", ".join(kinds) + did_you_mean(field, kinds)
        raise ConfigError(field, given, f"unknown setting; {hint}")
    if isinstance(given, str):
        if get_origin(kinds[field]) is tuple:
            what = "a single value without commas; use rove.sweep in Python to sweep it"
            raise ConfigError(field, given, what)
        swept = _read(field, given, whole=kinds[field] is int)
    elif isinstance(given, Iterable) and getattr(given, "ndim", 1):
        swept = tuple(given)
    else:
        raise ConfigError(field, given, "a list of values, or " + SPELLING)
    if not swept or len(swept) > MOST:
        raise ConfigError(field, given, f"at least one value and at most {MOST:,}")
    swept = tuple(getattr(with_settings(settings, {field: value}), field) for value in swept)
    if len(set(map(repr, swept))) < len(swept):
        raise ConfigError(field, given, f"the values must be distinct, got {_listed(swept)}")
    return swept


def _read(field: str, text: str, whole: bool) -> tuple[Any, ...]:
    """Parse a range or a list of values. `whole` rounds the values of a range to integers."""
    if ":" not in text:
        words = text.removesuffix(",").split(",")
        return tuple(_value(field, text, word.strip()) for word in words)
    parts = text.split(":")
    geometric = parts[-1].startswith("log")
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2].removeprefix("log"))
    except (ValueError, IndexError):
        raise ConfigError(field, text, SPELLING) from None
    if len(parts) != 3 or not math.isfinite(high - low):
        raise ConfigError(field, text, SPELLING)
    if not 2 <= count <= MOST or low == high:
        allowed = f"two different ends and between 2 and {MOST:,} values"
        raise ConfigError(field, text, f"{allowed}: {SPELLING}")
    if geometric and min(low, high) <= 0:
        raise ConfigError(field, text, "both ends must be above 0 for geometric spacing")
    spaced = (np.geomspace if geometric else np.linspace)(low, high, count)
    # Twelve digits hide rounding errors, so that 1e-7 stays 1e-7.
    return tuple(round(v) if whole else float(f"{v:.12g}") for v in spaced.tolist())


def _value(field: str, text: str, word: str) -> Any:
    """Parse one value of a list: None, a truth value, a number or a word."""
    if word in _WORDS:
        return _WORDS[word]
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        if math.isfinite(float(word)):
            return number
        raise ConfigError(field, text, "finite numbers")
    if not word:
        raise ConfigError(field, text, "a value before and after every comma")
    return word


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values[:8])) + ", …" * (len(values) > 8)


def split_arguments(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split command-line arguments into the swept fields of the agent and all others."""
    fields: dict[str, str] = {}
    others, remaining = [], list(arguments)
    while remaining:
        argument = remaining.pop(0)
        option, equals, text = argument.partition("=")
        if not option.startswith(("--agent.", "--env.")):
            others.append(argument)
            continue
        if not equals and remaining and not remaining[0].startswith("--"):
            text = remaining[0]
        if not is_span(text):
            others.append(argument)
            continue
        remaining = remaining if equals else remaining[1:]
        field = option.partition(".")[2].replace("-", "_")
        if option.startswith("--env."):
            raise ConfigError(field, text, "a single value: only --agent options can be swept")
        if field in fields:
            raise ConfigError(field, text, f"given twice; it is also {fields[field]!r}")
        fields[field] = text
    return fields, others
