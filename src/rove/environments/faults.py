"""Errors of Gymnasium environments: the problem in one line."""

import traceback
from pathlib import Path
from typing import Any

from rove.errors import RoveError


class BadEnvironment(RoveError):
    """An environment that violates Gymnasium's interface: the field, and what is wrong with it."""

    def __init__(self, field: str, problem: str):
        self.field, self.problem = field, problem
        super().__init__(f"{field} {problem}")


def environment_error(field: str, error: BaseException) -> BadEnvironment:
    """Convert any exception raised by an environment, except Ctrl-C, to a `BadEnvironment`."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    frames = traceback.extract_tb(error.__traceback__)
    location = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if len(frames) > 1 else ""
    text, hint = _one_line(error), ""
    if field == "step" and "expected 5, got 4" in text:
        hint = "; step must return (observation, reward, terminated, truncated, info)"
    return BadEnvironment(field, f"raised {text}{location}{hint}")


def _one_line(error: BaseException) -> str:
    """Describe an exception in one line."""
    try:
        message = str(error)
    except Exception:
        message = ""
    return f"{type(error).__name__}: {message}".splitlines()[0][:300].rstrip(": ")


def brief(value: Any) -> str:
    """Return the repr of a value in one line of at most 80 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
