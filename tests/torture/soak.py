"""Memory and descriptors of training that goes on for long."""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
from campaign import PYTHON, Tally

KINDS = {
    "compiled": [
        "train",
        "ge",
        "mountain-car",
        "--steps",
        "2000000000",
        "--agent.buffer-size",
        "5000",
    ],
    "Gymnasium": [
        *["train", "dqn", "CartPole-v1", "--steps", "2000000000", "--agent.buffer-size", "5000"],
    ],
}
LIMIT = 5.0
"""Megabytes that memory may grow by in an hour, after a warm-up of a third of the time. The
episodes themselves, 26 bytes each, are kept, and are not counted."""
LEAST = 1.0
"""Megabytes of growth that are not told from noise."""


def run(tally: Tally, folder: Path, seconds: float) -> None:
    """Train each kind for so long, and fit a line through its memory."""
    processes = {}
    for kind, words in KINDS.items():
        command = [
            "nice",
            "-n",
            "19",
            PYTHON,
            "-m",
            "rove",
            *words,
            "--quiet",
            "--out",
            str(folder / kind),
        ]
        processes[kind] = subprocess.Popen(command, start_new_session=True)
    samples: dict[str, list[tuple[float, float, int]]] = {kind: [] for kind in KINDS}
    began = time.monotonic()
    while (now := time.monotonic() - began) < seconds:
        time.sleep(5)
        for kind, process in processes.items():
            if process.poll() is not None:
                tally.failed(f"{kind}: it ended with code {process.returncode}")
                return
            samples[kind].append((now, *_state(process.pid)))
    for kind, process in processes.items():
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
        tally.attempts += 1
        late = np.array([s for s in samples[kind] if s[0] > seconds / 3])
        growth = np.polyfit(late[:, 0] / 3600, late[:, 1], 1)[0] - _episodes(folder / kind, now)
        tally.notes.append(
            f"{kind}, {seconds / 60:.0f} minutes: memory grows by {growth:.1f} MB/h from "
            f"{late[0, 1]:.0f} MB, descriptors from {late[0, 2]:g} to {late[-1, 2]:g}"
        )
        if growth > LIMIT and growth * (late[-1, 0] - late[0, 0]) / 3600 > LEAST:
            tally.failed(f"{kind}: memory grows by {growth:.1f} MB/h")
        if late[-1, 2] > late[0, 2] + 2:
            tally.failed(f"{kind}: descriptors rise from {late[0, 2]:g} to {late[-1, 2]:g}")


def _state(process: int) -> tuple[float, int]:
    """Return the resident memory of a process in MB, and its number of descriptors."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            memory = int(line.split()[1]) / 1024
    return memory, len(os.listdir(f"/proc/{process}/fd"))


def _episodes(folder: Path, seconds: float) -> float:
    """Return the megabytes of episodes that are kept in an hour, three copies of each."""
    lines = (folder / "episodes.csv").read_text("utf-8").count("\n")
    return 3 * 26 * lines / seconds * 3600 / 1e6
