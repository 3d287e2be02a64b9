"""Runs in a tracker while they train: `log="tensorboard"` or `"trackio"`."""

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rove.errors import ConfigError, check_choice
from rove.live.points import Lane, Logger, Point, Tracker
from rove.live.tensorboard import TensorBoard
from rove.live.trackio import Trackio

__all__ = ["TRACKERS", "Lane", "Logger", "Point", "Tracker", "how_to_watch", "opened"]

TRACKERS: dict[str, Any] = {"tensorboard": TensorBoard, "trackio": Trackio}


@contextlib.contextmanager
def opened(log: str | None, root: Path | None) -> Iterator[Tracker | None]:
    """The tracker of that name for the runs in a folder. Refused before anything is trained: one
    that is not known or not installed, or for runs that are not kept."""
    if log is None:
        yield None
        return
    check_choice("log", log, TRACKERS)
    if root is None:
        raise ConfigError("log", log, "it is kept in the run folder: give out")
    tracker = TRACKERS[log](root)
    try:
        yield tracker
    finally:
        tracker.close()


def how_to_watch(log: str, root: Path) -> str:
    """The command that shows a folder's runs."""
    return TRACKERS[log].command.format(root=shlex.quote(str(root)))
