"""The runs of stable-baselines3 in the suite, in processes with a separate virtual environment."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rove.errors import LaneError
from rove.paper import peers
from rove.paper.suite import sb3_worker
from rove.paper.suite.results import SeedResult, seed_result
from rove.paper.suite.tasks import BY_NAME, SuiteTask

Say = Callable[[str], None]
_WORKER = f"from {sb3_worker.__name__} import main; main()"


class PeerRun(NamedTuple):
    """A run of stable-baselines3: what is trained, and the file of its result."""

    file: Path
    task: SuiteTask
    agent: str
    seed: int
    steps: int

    @property
    def record(self) -> dict[str, Any] | None:
        """The contents of its file; None if the run has not finished."""
        with contextlib.suppress(OSError, ValueError):
            record = json.loads(self.file.read_text("utf-8"))
            if isinstance(record, dict) and record.get("steps") == self.steps:
                return record
        return None

    def result(self) -> SeedResult:
        """Return its result."""
        record, environment = self.record, self.task.make()
        assert record is not None
        scores = sb3_worker.scores_of(environment, record)
        greedy = sb3_worker.scores_of(environment, record["greedy"])
        ends = np.cumsum(record["lengths"])
        identity = self.task, self.agent, self.seed, self.steps
        return seed_result(*identity, scores, ends, "greedy", greedy.tolist())


def run(runs: Sequence[PeerRun], workers: int, say: Say) -> None:
    """Train the runs that have no result yet, divided among a few processes, and report progress
    and the time left."""
    waiting = [peer for peer in runs if peer.record is None]
    if not waiting:
        return
    python = peers.python_of(peers.folder() / "sb3", peers.SB3)
    say(f"stable-baselines3: {len(runs) - len(waiting)} of {len(runs)} runs are done")
    began, steps, total = time.monotonic(), 0, sum(peer.steps for peer in waiting)
    by_file = {str(peer.file): peer for peer in waiting}
    lines: queue.Queue[str | int] = queue.Queue()
    count = min(workers, len(waiting))
    processes = [_start(python, waiting[i::count], lines) for i in range(count)]
    try:
        running = count
        while running:
            line = lines.get()
            if isinstance(line, int):
                running -= 1
                if line:
                    raise LaneError(f"stable-baselines3: its process ended with code {line}")
                continue
            done = by_file.pop(line)
            steps += done.steps
            left = (time.monotonic() - began) * (total - steps) / steps
            score = done.result().score
            say(
                f"{done.agent} on {done.task.name}, seed {done.seed}: score {score:.2f}; "
                f"{len(runs) - len(by_file)} of {len(runs)} runs, {left / 60:.0f} minutes left"
            )
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _start(python: str, runs: Sequence[PeerRun], lines: Any) -> subprocess.Popen[str]:
    """Start a process for some runs, and a thread that forwards its output and its exit code.

    The process imports rove and its dependencies from the same folders as this one.
    """
    orders = [(str(r.file), r.task.name, r.agent, r.seed, r.steps) for r in runs]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "OMP_NUM_THREADS": "1",
        "NPROC": "1",
        "JAX_PLATFORMS": "cpu",
    }
    process = subprocess.Popen(
        [python, "-c", _WORKER, json.dumps(orders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line.strip())
        lines.put(process.wait())

    threading.Thread(target=read, daemon=True).start()
    return process


def read_results(folder: Path) -> list[SeedResult]:
    """Return the results of all files in a folder."""
    results = []
    for file in sorted(folder.glob("*.json")):
        record = json.loads(file.read_text("utf-8"))
        task = BY_NAME[record["task"]]
        peer = PeerRun(file, task, record["agent"], record["seed"], record["steps"])
        results.append(peer.result())
    return results
