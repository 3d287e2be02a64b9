"""Event files for TensorBoard, in tensorboard/ of the run folder: no TensorFlow, no thread."""

import hashlib
import importlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rove.errors import ConfigError, RunFolderError
from rove.live.points import Lane, Point, Tracker


class TensorBoard(Tracker):
    """A folder a lane. A process that goes on with a lane writes to a file of its own, since the
    last record of a file may have been cut off; and to none, if no point is to come."""

    command = "tensorboard --logdir {root}"

    def __init__(self, root: Path) -> None:
        self._files: dict[Path, Path] = {}
        self._openings: dict[Path, list[Any]] = {}
        """What a lane's file begins with, until it is there."""
        try:
            self._events = importlib.import_module("tensorboard.compat.proto.event_pb2")
            self._summaries = importlib.import_module("tensorboard.compat.proto.summary_pb2")
            self._records = importlib.import_module("tensorboard.summary.writer.record_writer")
            self._hparams = importlib.import_module("tensorboard.plugins.hparams.summary_v2")
            self._reader = importlib.import_module(
                "tensorboard.backend.event_processing.event_file_loader"
            )
        except ImportError as error:
            what = f'TensorBoard is not installed ({error}): pip install "rove[tensorboard]"'
            raise ConfigError("log", "tensorboard", what) from None

    def begin(self, lane: Lane) -> dict[str, int]:
        folder = _folder(lane)
        before = sorted(folder.glob("events.out.tfevents.*"))
        # TensorBoard reads a folder's files in the order of their names.
        numbers = [int(n) for p in before for n in re.findall(r"tfevents\.(\d+)\.", p.name)]
        number = max(numbers, default=-1) + 1
        self._files[folder] = folder / f"events.out.tfevents.{number:06d}.rove"
        last: dict[str, int] = {}
        noted = False
        for path in before:
            for event in self._reader.LegacyEventFileLoader(str(path)).Load():
                for value in event.summary.value:
                    noted |= value.metadata.plugin_data.plugin_name == "hparams"
                    last[value.tag] = event.step
        opening = [self._events.Event(wall_time=time.time(), file_version="brain.Event:2")]
        if not noted:
            plain = {key: _plain(value) for key, value in lane.settings.items()}
            settings = self._hparams.hparams_pb(plain, trial_id=_trial(plain))
            opening.append(self._events.Event(wall_time=time.time(), summary=settings))
        self._openings[folder] = opening
        return last

    def write(self, lane: Lane, points: Sequence[Point]) -> None:
        folder = _folder(lane)
        opening = self._openings.pop(folder, [])
        self._append(folder, [*opening, *(self._event(point) for point in points)])

    def _event(self, point: Point) -> Any:
        """One record: a point is there or it is not."""
        summary = self._summaries.Summary()
        for key, value in point.values.items():
            summary.value.add(tag=key, simple_value=value)
        return self._events.Event(wall_time=time.time(), step=point.step, summary=summary)

    def _append(self, folder: Path, events: Sequence[Any]) -> None:
        path = self._files[folder]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                writer = self._records.RecordWriter(file)
                for event in events:
                    writer.write(event.SerializeToString())
        except OSError as error:
            raise RunFolderError(f"cannot write {path}: {error.strerror}") from None


def _folder(lane: Lane) -> Path:
    return lane.folder / "tensorboard" / lane.name


def _trial(settings: dict[str, Any]) -> str:
    """What lanes that differ in their seed alone have in common: they are one row of hparams."""
    told = {key: value for key, value in settings.items() if key != "seed"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """A value as the table of settings can have it."""
    return value if isinstance(value, bool | int | float | str) else str(value)
