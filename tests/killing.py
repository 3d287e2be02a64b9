"""Processes to be killed. They are forked from one that has imported rove, not started each."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pytest", "rove.cli.main"])


def start(function: Callable[..., None], *arguments: Any) -> ForkServerProcess:
    """A process of its own that calls a function of a test's module."""
    process = _CONTEXT.Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


def finish(function: Callable[..., None], *arguments: Any) -> None:
    process = start(function, *arguments)
    process.join(200)
    assert process.exitcode == 0, "what it said is above"
