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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from campaign import Hangs, Tally, at_most

import rove
from rove.cli.main import main
from rove.environments import ENVIRONMENTS
from rove.errors import RoveError

WRONG: list[Any] = [math.nan, math.inf, -math.inf, -7, "nonsense", [], {}, object(), b"x", 10**30]
"""Values that no field takes. (Fields that do take one of them are listed in `FITTING`.)"""
FITTING = {"hidden": ([],), "report": (), "environment": (), "agent": ()}
COMMANDS = ("train", "sweep", "eval", "watch", "report", "list", "demo", "reproduce", "completion")


def calls() -> Iterator[tuple[str, Any]]:
    """Yield every call with one bad value, and its description."""
    for name, kind in rove.AGENTS.items():
        for field in dataclasses.fields(kind):
            for value in WRONG:
                if _fits(kind, field, value):
                    continue
                yield f"{name}({field.name}={value!r})", lambda k=kind, f=field, v=value: k(
                    **{f.name: v}
                )
    for name, family in ENVIRONMENTS.items():
        for field in dataclasses.fields(family.kind):
            for value in ("nonsense", math.nan, -7, object()):
                if field.name in ("n", "environment") or _plausible(family.kind, field, value):
                    continue
                text = f"{name}-5" if family.sized else name
                yield f"make({text!r}, {field.name}={value!r})", lambda t=text, f=field, v=value: (
                    rove.environments.make(t, **{f.name: v})
                )
    good = {"agent": "dqn", "environment": "chain-5", "episodes": 2}
    for parameter in list(inspect.signature(rove.train).parameters):
        if parameter in ("settings", "options", "report"):
            continue
        for value in WRONG:
            if parameter in ("until_solved", "progress") and value in ([], {}):
                pass
            yield f"train({parameter}={value!r})", lambda p=parameter, v=value: rove.train(
                **good | {p: v}
            )
    for parameter in ("path", "agent", "environment", "trust"):
        for value in (math.nan, -7, [], {}, "", "a\0b", object()):
            known = {"path": "nowhere"} | {parameter: value}
            yield f"load({parameter}={value!r})", lambda k=known: rove.load(**k)


def _fits(kind: type, field: dataclasses.Field, value: Any) -> bool:
    """Whether a field takes a value after all, such as a negative ρ."""
    if value in FITTING.get(field.name, ()):
        return True
    if isinstance(value, int | float) and math.isfinite(value) and value == -7:
        return field.name in ("rho", "mu", "v_min", "log_std", "prior_mean") or "int" not in str(
            field.type
        ) and field.name.startswith("rho")
    return False


def _plausible(kind: type, field: dataclasses.Field, value: Any) -> bool:
    return value == -7 and field.name in ("reward", "map_seed", "left", "right")


def run(tally: Tally, folder: Path, count: int) -> None:
    """Make at most `count` bad calls in Python, and all those of the command line."""
    os.chdir(folder)
    chosen = list(calls())
    step = max(1, len(chosen) // count)
    for text, call in chosen[::step]:
        _attempt(tally, folder, text, call, (RoveError, TypeError))
    for command in COMMANDS:
        for words in (["--no-such-option"], ["--out"], ["--seeds", "x"], ["\0"], [""], ["--=1"]):
            text = f"rove {command} {' '.join(words)}"
            _attempt(tally, folder, text, lambda c=[command, *words]: _quietly(c), SystemExit)
    fields = [f"--agent.{field.name}" for field in dataclasses.fields(rove.GE)]
    for option in [*fields, "--episodes", "--steps", "--workers", "--on", "--log", "--seeds"]:
        for value in ("nonsense!", "-1e", "1e400", "NaN", ""):
            words = ["train", "ge", "chain-5", f"{option.replace('_', '-')}={value}"]
            _attempt(tally, folder, " ".join(words), lambda w=words: _quietly(w), SystemExit)


def _quietly(words: list[str]) -> None:
    """Run a command; the exit code must be 2, and no traceback may be printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main(words)
        except SystemExit as exit:
            assert exit.code == 2, f"exit code {exit.code}"
            assert "Traceback" not in printed.getvalue()
            raise
    if "usage" not in printed.getvalue():
        raise AssertionError(f"it was accepted: {printed.getvalue()[-200:]}")
    raise SystemExit(2)


def _attempt(tally: Tally, folder: Path, text: str, call: Any, expected: Any) -> None:
    tally.attempts += 1
    compiled = jax.monitoring  # compiling takes far longer than the limit
    del compiled
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
    if left := os.listdir(folder):
        tally.failed(f"{text}: left {left}")
        for name in left:
            os.rename(folder / name, folder.parent / f"left-{tally.attempts}-{name}")
