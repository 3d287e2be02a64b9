"""Bad values for every field: refused within three seconds, before anything is compiled or left.

Fields come from the signatures, so that a new one is covered.
"""

import contextlib
import dataclasses
import inspect
import io
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from campaign import Hangs, Tally, at_most

import rove
from rove.cli.main import main
from rove.environments import ENVIRONMENTS
from rove.errors import RoveError

WRONG: list[Any] = [math.nan, math.inf, -math.inf, -7, "nonsense", [], {}, object(), b"x", 10**40]
"""Values that no field takes, except those in `FITTING`."""
FITTING = {"hidden": [[]], "rho": [-7], "mu": [-7], "low": [-7], "out": ["nonsense"]}
"""Values of these that some fields do take."""
COMMANDS = ("train", "sweep", "eval", "watch", "report", "list", "demo", "reproduce", "completion")


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield every call with one bad value, with its description."""
    for name, kind in rove.AGENTS.items():
        for field in dataclasses.fields(kind):
            for value in wrong(field.name):
                yield f"{name}({field.name}={value!r})", partial(kind, **{field.name: value})
    for name, family in ENVIRONMENTS.items():
        task = f"{name}-5" if family.sized else name
        for field in dataclasses.fields(family.kind):
            if field.name not in ("n", "environment", *family.named):
                for value in ("nonsense", math.nan, object()):
                    call = partial(rove.environments.make, task, **{field.name: value})
                    yield f"make({task!r}, {field.name}={value!r})", call
    good = {"agent": "dqn", "environment": "chain-5", "episodes": 2}
    for parameter, about in inspect.signature(rove.train).parameters.items():
        if about.kind is not about.VAR_KEYWORD:
            for value in wrong(parameter):
                call = partial(rove.train, **good | {parameter: value})
                yield f"train({parameter}={value!r})", call
    for parameter in inspect.signature(rove.load).parameters:
        for value in (math.nan, -7, [], {}, "", "a\0b", object()):
            call = partial(rove.load, **{"path": "nowhere"} | {parameter: value})
            yield f"load({parameter}={value!r})", call


def wrong(field: str) -> list[Any]:
    """Return the values that a field does not take."""
    return [value for value in WRONG if value not in FITTING.get(field, [])]


def run(tally: Tally, folder: Path, count: int) -> None:
    """Make at most `count` bad calls in Python, and all those of the command line."""
    with contextlib.chdir(folder):
        _run(tally, folder, count)


def _run(tally: Tally, folder: Path, count: int) -> None:
    chosen = list(calls())
    step = max(1, len(chosen) // count)
    for text, call in chosen[::step]:
        _attempt(tally, folder, text, call, (RoveError, TypeError))
    for command in COMMANDS:
        for words in (["--no-such-option"], ["--out"], ["--seeds", "x"], ["\0"], [""], ["--=1"]):
            text = f"rove {command} {' '.join(words)}"
            _attempt(tally, folder, text, partial(_quietly, [command, *words]), SystemExit)
    fields = [f"--agent.{field.name}" for field in dataclasses.fields(rove.GE)]
    for option in [*fields, "--episodes", "--steps", "--workers", "--on", "--log", "--seeds"]:
        for value in ("nonsense!", "-1e", "1e400", "NaN", ""):
            words = ["train", "ge", "chain-5", f"{option.replace('_', '-')}={value}"]
            _attempt(tally, folder, " ".join(words), partial(_quietly, words), SystemExit)


def _quietly(words: list[str]) -> None:
    """Run a command; the exit code must be 2, and no traceback may be printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = 0
        try:
            main(words)
        except SystemExit as error:
            code = error.code
    text = printed.getvalue()
    if "Traceback" in text or (code != 2 and "usage" not in text):
        raise AssertionError(f"exit code {code}: {text[-200:]}")
    raise SystemExit(2)


def _attempt(tally: Tally, folder: Path, text: str, call: Callable, expected: Any) -> None:
    """Make a call, which has to raise one of the expected errors, soon, and leave nothing."""
    tally.attempts += 1
    began = time.monotonic()
    try:
        with at_most(20):
            call()
        tally.failed(f"{text} was accepted")
    except expected:
        pass
    except (Exception, Hangs) as error:
        tally.failed(f"{text}: {error!r}"[:300])
    if time.monotonic() - began > 3.0:
        tally.failed(f"{text}: took {time.monotonic() - began:.1f} s")
    for name in os.listdir(folder):
        tally.failed(f"{text}: left {name}")
        os.rename(folder / name, folder.parent / f"left-{tally.attempts}-{name}")
