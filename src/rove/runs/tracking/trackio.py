"""Trackio's database, in trackio/ of the folder of a run or a sweep.

Trackio decides where to write when it is imported, once per process. It therefore runs in a
separate process (`trackio_process`), which answers each line of JSON with another.
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
from rove.runs.tracking.points import CurvePoint, SeedRun, Tracker

STOP_SECONDS = 10.0
"""Seconds that Trackio's process has to end before it is killed."""


class Trackio(Tracker):
    """Writes one project per agent and environment, with one run per seed."""

    command = "TRACKIO_DIR={root}/trackio trackio show"

    def __init__(self, root: Path) -> None:
        spec = importlib.util.find_spec("trackio")
        if spec is None or spec.origin is None:
            reason = 'needs Trackio: pip install "trackio>=0.43,<0.44"'
            raise ConfigError("log", "trackio", reason)
        self._root, self._lock = root, threading.Lock()
        self._process = _start(root / "trackio")
        ready = self._answer()  # after it has imported Trackio
        if "done" not in ready:
            self.close()
            install = 'pip install "trackio>=0.43,<0.44"'
            reason = f"needs another version of Trackio ({_reason(ready)}): {install}"
            raise ConfigError("log", "trackio", reason)

    def begin(self, lane: SeedRun) -> dict[str, int]:
        return self._request(lane)

    def write(self, lane: SeedRun, points: Sequence[CurvePoint]) -> None:
        self._request(lane, points=points)

    def close(self) -> None:
        with self._process as process:
            try:
                process.communicate(timeout=STOP_SECONDS)  # closes its input, so that it ends
            except subprocess.TimeoutExpired:
                process.kill()

    def _request(self, lane: SeedRun, **request: Any) -> Any:
        """Send a request about a seed to the process, and return its answer."""
        relative = lane.folder.relative_to(self._root)  # in a sweep, for example points/0003
        request |= {
            "project": f"{lane.settings['agent']}-{lane.settings['environment']}".replace("/", "-"),
            "run": "/".join([*relative.parts, lane.name]),
            "group": "/".join(relative.parts) or None,
            "settings": lane.settings,
        }
        with self._lock:
            answer = self._answer(json.dumps(request))
        if "done" not in answer:
            folder = self._root / "trackio"
            raise RunFolderError(f"Trackio cannot write to {folder}: {_reason(answer)}")
        return answer["done"]

    def _answer(self, request: str | None = None) -> dict[str, Any]:
        """Send a request, if there is one, and return the next answer; empty if it has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            if request is not None:
                print(request, file=stdin, flush=True)
            return json.loads(stdout.readline())
        except (OSError, ValueError):
            return {}


def _reason(answer: dict[str, Any]) -> str:
    return answer.get("error", "its process ended")


def _start(folder: Path) -> "subprocess.Popen[str]":
    """Start Trackio's process, which writes to the given folder."""
    # The user's own Trackio settings, such as a Space to upload to, do not apply here.
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
