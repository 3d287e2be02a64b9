"""TensorBoard event files in tensorboard/ of the run folder, without TensorFlow or threads."""

import hashlib
import importlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rove.errors import ConfigError, RunFolderError
from rove.runs.tracking.points import CurvePoint, SeedRun, Tracker


class TensorBoard(Tracker):
    """Writes one folder of event files per seed.

    A resumed run writes to a new file, since the last record of the old one may be incomplete. The
    file is created with its first point.
    """

    command = "tensorboard --logdir {root}"

    def __init__(self, root: Path) -> None:
        self._files: dict[Path, Path] = {}
        self._openings: dict[Path, list[Any]] = {}
        """The first records of files that have not been created yet."""
        try:
            self._events = importlib.import_module("tensorboard.compat.proto.event_pb2")
            self._summaries = importlib.import_module("tensorboard.compat.proto.summary_pb2")
            self._records = importlib.import_module("tensorboard.summary.writer.record_writer")
            self._hparams = importlib.import_module("tensorboard.plugins.hparams.summary_v2")
            self._reader = importlib.import_module(
                "tensorboard.backend.event_processing.event_file_loader"
            )
        except ImportError as error:
            reason = f"needs TensorBoard: pip install tensorboard ({error})"
            raise ConfigError("log", "tensorboard", reason) from None

    def begin(self, lane: SeedRun) -> dict[str, int]:
        folder = _folder(lane)
        existing = sorted(folder.glob("events.out.tfevents.*"))
        # TensorBoard reads a folder's files in the order of their names.
        numbers = [int(n) for p in existing for n in re.findall(r"tfevents\.(\d+)\.", p.name)]
        number = max(numbers, default=-1) + 1
        self._files[folder] = folder / f"events.out.tfevents.{number:06d}.rove"
        last: dict[str, int] = {}
        has_settings = False
        for path in existing:
            for event in self._reader.LegacyEventFileLoader(str(path)).Load():
                for value in event.summary.value:
                    has_settings |= value.metadata.plugin_data.plugin_name == "hparams"
                    last[value.tag] = event.step
        opening = [self._events.Event(wall_time=time.time(), file_version="brain.Event:2")]
        if not has_settings:
            plain = {key: _plain(value) for key, value in lane.settings.items()}
            settings = self._hparams.hparams_pb(plain, trial_id=_trial(plain))
            opening.append(self._events.Event(wall_time=time.time(), summary=settings))
        self._openings[folder] = opening
        return last

    def write(self, lane: SeedRun, points: Sequence[CurvePoint]) -> None:
        folder = _folder(lane)
        opening = self._openings.pop(folder, [])
        self._append(folder, [*opening, *(self._event(point) for point in points)])

    def _event(self, point: CurvePoint) -> Any:
        """Return a point as one record, so that it is written completely or not at all."""
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


def _folder(lane: SeedRun) -> Path:
    return lane.folder / "tensorboard" / lane.name


def _trial(settings: dict[str, Any]) -> str:
    """Return an identifier shared by all seeds of a run, which make up one row of hparams."""
    shared = {key: value for key, value in settings.items() if key != "seed"}
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Convert a value to a type that the table of hyperparameters can show."""
    return value if isinstance(value, bool | int | float | str) else str(value)
