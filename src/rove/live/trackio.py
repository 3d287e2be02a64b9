"""Trackio's database, in trackio/ of the folder that was asked for (a run's or a sweep's).

Trackio learns where to write when it is imported, once a process, so it has a process of its own
(`trackio_process`). To each line of JSON that it is told, it answers with another.
"""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rove.errors import ConfigError, RunFolderError
from rove.live.points import Lane, Point, Tracker

PATIENCE = 10.0
"""Seconds that Trackio's process has to end."""


class Trackio(Tracker):
    """A project for the folder, a run of it a lane."""

    command = "TRACKIO_DIR={root}/trackio trackio show"

    def __init__(self, root: Path) -> None:
        spec = importlib.util.find_spec("trackio")
        if spec is None or spec.origin is None:
            what = 'Trackio is not installed: pip install "rove[trackio]"'
            raise ConfigError("log", "trackio", what)
        self._root, self._lock = root, threading.Lock()
        self._process = _started(root / "trackio")
        ready = self._answer()  # it has imported Trackio
        if "done" not in ready:
            self.close()
            what = f'Trackio does not work ({_why(ready)}): pip install "rove[trackio]"'
            raise ConfigError("log", "trackio", what)

    def begin(self, lane: Lane) -> dict[str, int]:
        return self._ask(lane)

    def write(self, lane: Lane, points: Sequence[Point]) -> None:
        self._ask(lane, points=points)

    def close(self) -> None:
        with self._process as process:
            try:
                process.communicate(timeout=PATIENCE)  # which closes its input: it ends
            except subprocess.TimeoutExpired:
                process.kill()

    def _ask(self, lane: Lane, **order: Any) -> Any:
        place = lane.folder.relative_to(self._root)  # of a sweep's run: points/0003
        order |= {
            "project": f"{lane.settings['agent']}-{lane.settings['environment']}".replace("/", "-"),
            "run": "/".join([*place.parts, lane.name]),
            "group": "/".join(place.parts) or None,
            "settings": lane.settings,
        }
        with self._lock:
            answer = self._answer(json.dumps(order))
        if "done" not in answer:
            folder = self._root / "trackio"
            raise RunFolderError(f"Trackio cannot write to {folder}: {_why(answer)}")
        return answer["done"]

    def _answer(self, order: str | None = None) -> dict[str, Any]:
        """What its process says next, to an order if there is one; nothing, if it is gone."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            if order is not None:
                print(order, file=stdin, flush=True)
            return json.loads(stdout.readline())
        except (OSError, ValueError):
            return {}


def _why(answer: dict[str, Any]) -> str:
    return answer.get("error", "its process ended")


def _started(folder: Path) -> "subprocess.Popen[str]":
    # Nothing that a person has set for Trackio elsewhere, such as a Space to send to, holds here.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRACKIO_")}
    environment |= {"TRACKIO_DIR": str(folder.resolve()), "HF_HUB_OFFLINE": "1"}
    script = Path(__file__).with_name("trackio_process.py")
    return subprocess.Popen(
        [sys.executable, "-P", str(script)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
