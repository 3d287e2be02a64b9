"""Experiment trackers that show runs while they train: `log="tensorboard"` or `"trackio"`."""

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rove.errors import ConfigError, check_choice
from rove.runs.tracking.points import CurvePoint, Logger, SeedRun, Tracker
from rove.runs.tracking.tensorboard import TensorBoard
from rove.runs.tracking.trackio import Trackio

__all__ = ["TRACKERS", "CurvePoint", "Logger", "SeedRun", "Tracker", "how_to_watch", "opened"]

TRACKERS: dict[str, Any] = {"tensorboard": TensorBoard, "trackio": Trackio}


@contextlib.contextmanager
def opened(log: str | None, root: Path | None) -> Iterator[Tracker | None]:
    """Open a tracker by name for the runs in a folder; yields None if `log` is None.

    Raises `ConfigError` if the tracker is unknown or not installed, or if there is no folder.
    """
    if log is None:
        yield None
        return
    check_choice("log", log, TRACKERS)
    if root is None:
        raise ConfigError("log", log, "needs a run folder: pass out=FOLDER")
    tracker = TRACKERS[log](root)
    try:
        yield tracker
    finally:
        tracker.close()


def how_to_watch(log: str, root: Path) -> str:
    """Return the shell command that shows a folder's runs in the tracker."""
    return TRACKERS[log].command.format(root=shlex.quote(str(root)))
