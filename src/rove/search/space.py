"""Parsing the values of a swept field: `-10:-1:10`, `1e-8:1e-1:log8` or `1e-5,1e-4,1e-3`.

A list of one value ends in a comma: `1e-3,`.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, get_origin

import numpy as np

from rove.agents.settings import Settings, unknown_setting, with_settings
from rove.errors import ConfigError

MOST = 10_000
"""Maximum number of points of a sweep, and of values of a field."""
SPELLING = (
    "a:b:n for n evenly spaced values from a to b (-6:-2:5), a:b:logn for geometric spacing "
    "(1e-4:1e-1:log4), or a list (1,2,3)"
)
_WORDS = {"None": None, "True": True, "False": False}


def is_span(text: str) -> bool:
    """Whether a command-line value is a range or a list."""
    return ":" in text or "," in text


def values(settings: Settings, field: str, given: str | Iterable[Any]) -> tuple[Any, ...]:
    """Return the distinct values of a field, converted as the settings convert them."""
    kinds = {f.name: f.type for f in dataclasses.fields(settings)}
    if field not in kinds:
        raise unknown_setting(settings, field, given)
    if isinstance(given, str):
        if get_origin(kinds[field]) is tuple:
            reason = "can be swept only in Python, by rove.sweep with a list of tuples. To set it, "
            reason += f"separate its values by spaces: --agent.{field} 64 64"
            raise ConfigError(field, given, reason)
        swept = _read(field, given, whole=kinds[field] is int)
    elif isinstance(given, Iterable) and getattr(given, "ndim", 1):
        swept = tuple(given)
    else:
        raise ConfigError.must_be(field, given, "a list of values, or a range such as '-6:-2:5'")
    if not swept or len(swept) > MOST:
        allowed = f"at least one value and at most {MOST:,}"
        raise ConfigError(field, allowed, allowed, f"{field} needs {allowed}, got {len(swept):,}")
    swept = tuple(getattr(with_settings(settings, {field: value}), field) for value in swept)
    if len(set(map(repr, swept))) < len(swept):
        raise ConfigError(field, given, f"must have distinct values, got {_listed(swept)}")
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
        raise ConfigError.must_be(field, text, SPELLING) from None
    if len(parts) != 3 or not math.isfinite(high - low):
        raise ConfigError.must_be(field, text, SPELLING)
    if low == high:
        raise ConfigError(field, text, "must be a range whose ends differ")
    if not 2 <= count <= MOST:
        raise ConfigError(field, text, f"must be a range of 2 to {MOST:,} values")
    if geometric and min(low, high) <= 0:
        raise ConfigError(field, text, "must have both ends above 0 for geometric spacing")
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
        raise ConfigError.must_be(field, text, "a list of finite numbers")
    if not word:
        raise ConfigError(field, text, "lacks a value before or after a comma")
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
            reason = "cannot be swept: only --agent options can. Give a single value"
            raise ConfigError(field, text, reason)
        if field in fields:
            raise ConfigError(field, text, f"is also given as {fields[field]!r}: give it once")
        fields[field] = text
    return fields, others
