"""Exceptions whose messages tell users what is wrong and how to fix it, and argument checks."""

import difflib
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np


class RoveError(Exception):
    """Base class of errors that users can fix. The command line prints them without a traceback."""


class ConfigError(RoveError, ValueError):
    """An invalid value of an argument or setting.

    **Arguments**
    - `field`, `value`: the name of the argument and the value it was given.
    - `allowed`: the values that are allowed, or why this one is not.
    - `message`: the whole message; by default "field=value", followed by `allowed`.
    """

    def __init__(self, field: str, value: Any, allowed: str, message: str | None = None):
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(message or f"{field}={value!r} {allowed}")

    @classmethod
    def must_be(cls, field: str, value: Any, allowed: str, hint: str = "") -> "ConfigError":
        """An error that reads "field must be allowed, got value", followed by a hint."""
        return cls(field, value, allowed, f"{field} must be {allowed}, got {value!r}{hint}")


class LaneError(RoveError):
    """A run of one seed failed. The message names the environment, the step and the cause."""


class Diverged(LaneError):
    """A run of one seed diverged: the agent computed a number that was not finite."""

    outcome: Any = None
    """The results of the seed until then, an `Outcome`; None if they are not known."""


class RoveWarning(UserWarning):
    """A sign that training went wrong (see `Run.alarms`), or a fault that rove worked around."""


class RunFolderError(RoveError):
    """A run folder cannot be read or written, or does not contain the expected run."""


_LARGEST = 3.4028234e38
"""The largest finite float32."""


def check_number(
    field: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> None:
    """Raise `ConfigError` unless the value is a finite number within the given bounds."""
    bounds = [
        f"above {above:g}" if above is not None else "",
        f"at least {at_least:g}" if at_least is not None else "",
        f"at most {at_most:g}" if at_most is not None else "",
        f"below {below:g}" if below is not None else "",
    ]
    within = " and ".join(b for b in bounds if b)
    allowed = f"a finite number {'of ' * within.startswith('at')}{within}".strip()
    if at_least is not None and at_most is not None:
        allowed = f"a number between {at_least:g} and {at_most:g}"
    numeric = isinstance(value, int | float) or hasattr(value, "tolist")  # NumPy and JAX
    try:
        number = float(value) if numeric and not isinstance(value, str | bytes | bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        raise ConfigError.must_be(field, value, allowed) from None
    if math.isfinite(number) and abs(number) > _LARGEST:
        allowed += f" and of magnitude at most {_LARGEST:g}"
    invalid = (
        not abs(number) <= _LARGEST
        or (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (below is not None and number >= below)
        or (at_most is not None and number > at_most)
    )
    if invalid:
        raise ConfigError.must_be(field, value, allowed)


def check_integer(
    field: str, value: Any, *, at_least: int, at_most: int = 2**31 - 1, part: str = ""
) -> None:
    """Raise `ConfigError` unless the value is an integer within the given bounds.

    `part` precedes the field in the message if the value is one of its entries: "every width in ".
    """
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not integer or not at_least <= value <= at_most:
        too_large = integer and value > at_most
        bounded = too_large or at_most != 2**31 - 1
        within = f"between {at_least:,} and {at_most:,}" if bounded else f"of at least {at_least:,}"
        allowed = f"an integer {within}"
        message = f"{part}{field} must be {allowed}, got {value!r}"
        raise ConfigError(field, value, allowed, message)


def check_choice(field: str, value: Any, choices: Iterable[str]) -> None:
    """Raise `ConfigError` unless the value is one of the choices."""
    names = tuple(choices)
    if value not in names:
        hint = did_you_mean(value, names)
        raise ConfigError.must_be(field, value, "one of " + ", ".join(names), hint)


def check_type(field: str, value: Any, kind: Any) -> None:
    """Raise `ConfigError` unless the value is of a type such as float, int | None or Literal."""
    if not _is_a(value, kind):
        raise ConfigError.must_be(field, value, expected(kind))


def _is_a(value: Any, kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(_is_a(value, option) for option in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, tuple)
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return not isinstance(kind, type) or isinstance(value, kind)


def expected(kind: Any) -> str:
    """Describe the values of a type in words."""
    names = {int: "an integer", float: "a number", bool: "True or False", Path: "a path"}
    if kind in names:
        return names[kind]
    if kind is NoneType:
        return "None"
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(map(expected, get_args(kind)))
    if entries := members(kind):
        if get_origin(entries[0]) is Literal:
            return "one or more of " + ", ".join(map(str, get_args(entries[0])))
        plural = {int: "integers", float: "numbers"}.get(entries[0], "words")
        return f"a list of {plural}" if ... in entries else f"{len(entries)} {plural}"
    return "a word"


def members(kind: Any) -> tuple[Any, ...]:
    """Return the types of the entries of a tuple, or of an optional one; empty for other types."""
    for option in (kind, *get_args(kind)):
        if get_origin(option) is tuple:
            return get_args(option)
    return ()


def as_path(field: str, value: Any) -> Path:
    """Return the value as a `Path`; raise `ConfigError` if it is not a path."""
    if not isinstance(value, str | os.PathLike):
        raise ConfigError.must_be(field, value, "the path of a folder")
    if not os.fspath(value) or "\0" in os.fsdecode(value):
        raise ConfigError.must_be(field, value, "the path of a folder")
    return Path(value)


def check_flag(field: str, value: Any) -> None:
    """Raise `ConfigError` unless the value is True or False."""
    if not isinstance(value, bool):
        raise ConfigError.must_be(field, value, "True or False")


def check_callable(field: str, value: Any) -> None:
    """Raise `ConfigError` unless the value is a function."""
    if not callable(value):
        raise ConfigError.must_be(field, value, "a function")


def check_hidden(field: str, value: Any) -> None:
    """Raise `ConfigError` unless the value is a tuple of positive layer widths."""
    if not isinstance(value, tuple):
        raise ConfigError.must_be(field, value, "a tuple of layer widths")
    for width in value:
        check_integer(field, width, at_least=1, at_most=2**16, part="every width in ")


def no_attribute(owner: Any, name: str, advice: Mapping[str, str]) -> AttributeError:
    """Return the error for a missing attribute of an object or module, with advice.

    If there is no advice for this name, raise Python's own error.
    """
    if name not in advice:
        object.__getattribute__(owner, name)
    kind = getattr(owner, "__name__", type(owner).__name__)
    return AttributeError(f"{kind} has no attribute {name!r}: {advice[name]}", name=name, obj=owner)


SYNONYMS = {
    "alpha": "lr",
    "callback": "report",
    "callbacks": "report",
    "batch": "batch-size",
    "buffer": "buffer-size",
    "discount": "gamma",
    "eps": "epsilon",
    "hidden-sizes": "hidden",
    "layers": "hidden",
    "learning-rate": "lr",
    "n-seeds": "seeds",
    "net-arch": "hidden",
    "num-seeds": "seeds",
    "output": "out",
    "seed": "seeds",
    "timesteps": "steps",
    "total-timesteps": "steps",
    "verbose": "progress",
}
"""The names of options and settings in other libraries, and rove's names for them."""


def nearest(name: Any, names: Iterable[str]) -> str | None:
    """Return the most similar of the names, or None if none is similar.

    Names that differ only in a number, such as figure-9 and figure-5, do not count as similar.
    """
    letters = _letters(str(name))
    others = {
        known.lower(): known
        for known in names
        if letters != _letters(known) or known == letters != str(name)
    }
    near = difflib.get_close_matches(str(name).lower(), others, n=1, cutoff=0.6)
    return others[near[0]] if near else None


def _letters(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def did_you_mean(name: Any, names: Iterable[str]) -> str:
    """Return a hint that suggests the most similar name, or an empty string."""
    near = nearest(name, names)
    return f". Did you mean {near!r}?" if near else ""


def unknown_option(environment: str, field: str, value: Any, options: Iterable[str]) -> ConfigError:
    """Return the error for an option that an environment does not have."""
    options = tuple(options)
    hint = did_you_mean(field, options) or "."
    message = f"{environment} has no option {field!r}{hint} It has " + ", ".join(options)
    return ConfigError(field, value, "one of " + ", ".join(options), message)


def unknown_name(
    what: str,
    name: Any,
    names: Iterable[str],
    similar: Iterable[str] | None = None,
    listed_by: str = "",
) -> str:
    """Return the message for an unknown name, with the most similar name or all names.

    `what` says what it is the name of. `similar` are the names to suggest, by default all, and
    `listed_by` is a command that lists all names.
    """
    names = tuple(names)
    hint = did_you_mean(name, names if similar is None else similar)
    if hint and listed_by:
        return f"unknown {what} {name!r}{hint} ({listed_by} shows all.)"
    return f"unknown {what} {name!r}{hint or '.'} Use one of " + ", ".join(names)
