"""Errors for people: what was given, where, and what is allowed instead."""

import difflib
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np


class RoveError(Exception):
    """A mistake a person can mend. The command prints it without a traceback."""


class ConfigError(RoveError, ValueError):
    """A value that cannot be used: names the field, the value and what is allowed."""

    def __init__(self, field: str, value: Any, allowed: str):
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} = {value!r} is not allowed: {allowed}")


class LaneError(RoveError):
    """A lane that had to stop: names the environment, the step and the field at fault."""


class Diverged(LaneError):
    """A lane whose agent's numbers were no longer finite."""


class RunFolderError(RoveError):
    """A run folder that cannot be read, or that holds something else."""


_LARGEST = 3.4028234e38
"""What is more is infinite as a float32."""


def check_number(
    field: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> None:
    """Refuse anything but a finite number within the given bounds."""
    bounds = [
        f"above {above:g}" if above is not None else "",
        f"at least {at_least:g}" if at_least is not None else "",
        f"at most {at_most:g}" if at_most is not None else "",
        f"below {below:g}" if below is not None else "",
    ]
    allowed = " ".join(["a finite number", " and ".join(b for b in bounds if b)]).strip()
    known = isinstance(value, int | float) or hasattr(value, "tolist")  # NumPy's and JAX's
    try:
        number = float(value) if known and not isinstance(value, str | bytes | bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(field, value, allowed) from None
    wrong = (
        not abs(number) <= _LARGEST
        or (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (below is not None and number >= below)
        or (at_most is not None and number > at_most)
    )
    if wrong:
        raise ConfigError(field, value, allowed)


def check_integer(field: str, value: Any, *, at_least: int, at_most: int = 2**31 - 1) -> None:
    """Refuse anything but a whole number within the given bounds."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not at_least <= value <= at_most:
        huge = whole and value > at_most
        limit = f" and at most {at_most}" if huge or at_most != 2**31 - 1 else ""
        raise ConfigError(field, value, f"a whole number of at least {at_least}{limit}")


def check_choice(field: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse anything but one of the choices."""
    names = tuple(choices)
    if value not in names:
        raise ConfigError(field, value, "one of " + ", ".join(names) + did_you_mean(value, names))


def as_path(field: str, value: Any) -> Path:
    """Refuse anything but a path."""
    if not isinstance(value, str | os.PathLike):
        raise ConfigError(field, value, "the path of a folder")
    return Path(value)


def check_flag(field: str, value: Any) -> None:
    """Refuse anything but true or false."""
    if not isinstance(value, bool):
        raise ConfigError(field, value, "True or False")


def check_hidden(field: str, value: Any) -> None:
    """Refuse anything but a tuple of positive layer widths."""
    if not isinstance(value, tuple):
        raise ConfigError(field, value, "a tuple of layer widths")
    for width in value:
        check_integer(field, width, at_least=1, at_most=2**16)


def nearest(name: Any, names: Iterable[str]) -> str | None:
    """Of some names, the one spelt most like this, if any is."""
    others = [known for known in names if known != name]
    return next(iter(difflib.get_close_matches(str(name), others, n=1, cutoff=0.5)), None)


def did_you_mean(name: Any, names: Iterable[str]) -> str:
    """A hint that names the nearest right spelling, or nothing."""
    near = nearest(name, names)
    return f". Did you mean {near!r}?" if near else ""
