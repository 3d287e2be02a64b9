"""Lanes in processes of their own, one a core.

XLA's pool of threads belongs to a process, so lanes that share a process get in each other's way;
two processes of one thread each do not. Parent and worker talk in lines of JSON, and a lane's
result is its checkpoint: the bits are those of a lane in a thread.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any, TextIO

from rove import platform
from rove.errors import LaneError
from rove.training import crew, lanes
from rove.training.lanes import checked_workers
from rove.training.outcomes import Job, Outcome

# What it says goes to a pipe of its own: anything may print to stdout, even while it is imported.
_WORKER = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from rove.training.processes import main
main(answers)
"""


class _Process(crew.Worker):
    """A process, and a thread that reads what it says."""

    def __init__(self, mail: crew.Mail) -> None:
        super().__init__()
        env = os.environ | {"NPROC": "1"}
        command = [sys.executable, "-c", _WORKER]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, env=env, **pipes)
        threading.Thread(target=self._read, args=(mail,), daemon=True).start()

    def _read(self, mail: crew.Mail) -> None:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                mail.put((self, json.loads(line)))
        finally:
            how = f"its worker process ended with code {self.process.wait()}"
            mail.put((self, {"ended": how}))

    def tell(self, **message: Any) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is in the mail
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def end(self, seconds: float) -> None:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()


def execute(
    jobs: Sequence[Job],
    report: lanes.Report = lambda progress: None,
    saved: lanes.Saved = lambda job, episodes: None,
    workers: int | None = None,
    checkpoint_seconds: float = 10.0,
) -> list[Outcome | LaneError]:
    """As `lanes.execute`, for lanes whose run folders hold all that a worker needs to know."""
    at_once = checked_workers(jobs, workers)
    return crew.share_out(jobs, _Process, at_once, report, saved, checkpoint_seconds)


def main(answers: TextIO) -> None:
    """A worker: lanes come on stdin; a parent that is gone ends it at once."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as SIGINT
    stop, orders = threading.Event(), queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            order = json.loads(line)
            if "stop" in order:
                stop.set()
            orders.put(order)
        os._exit(1)

    def answer(**message: Any) -> None:
        print(json.dumps(message), file=answers, flush=True)

    platform.prepare(lanes=1)
    threading.Thread(target=listen, daemon=True).start()
    answer(ready=True)
    while "stop" not in (order := orders.get()):
        crew.work(order, answer, stop)
    os._exit(0)  # the thread that listens cannot be ended otherwise
