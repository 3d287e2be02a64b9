"""Start-up times: imports, and a short `rove train` until its first progress."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from contestants import spread

REPEATS = {"full": (5, 10), "quick": (1, 3), "trial": (1, 1)}
"""Starts with an empty cache of compiled programs, and with a full one."""
COMMAND = ("train", "ge", "chain-10", "--episodes", "50")
_PROGRESS = re.compile(r"(\d+) of 50 episodes")


def measure(scale: str) -> dict[str, Any]:
    """Return the seconds of imports and of cold and warm starts."""
    cold, warm = REPEATS[scale]
    starts: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(cold):
        with tempfile.TemporaryDirectory() as folder:
            starts["cold"].append(start(Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        start(Path(folder))
        starts["warm"] = [start(Path(folder)) for _ in range(warm)]
    result: dict[str, Any] = {"command": " ".join(("rove", *COMMAND))}
    result["imports"] = {
        module: spread([_seconds("-c", f"import {module}") for _ in range(warm)])
        for module in ("jax", "rove")
    }
    for name, times in starts.items():
        result[name] = {event: spread([each[event] for each in times]) for event in times[0]}
        result[name]["starts"] = len(times)
    return result


def start(folder: Path) -> dict[str, float]:
    """Return the seconds until progress is first reported, until episodes are, and to the end."""
    env = os.environ | {"ROVE_CACHE": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "rove", *COMMAND, "--out", f"{out}/run"]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        seconds: dict[str, float] = {}
        for line in process.stdout or ():
            if progress := _PROGRESS.search(line):
                now = time.perf_counter() - began
                seconds.setdefault("progress", now)
                if int(progress[1]):
                    seconds.setdefault("episodes", now)
        if process.wait():
            raise RuntimeError(f"{' '.join(command)} failed")
    return seconds | {"end": time.perf_counter() - began}


def _seconds(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True)
    return time.perf_counter() - began
