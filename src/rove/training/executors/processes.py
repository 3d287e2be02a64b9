"""Training in separate processes, one seed per process and one process per core.

XLA has one thread pool per process, so seeds that share a process slow each other down; processes
with one thread each do not. Parent and worker exchange lines of JSON, and the result of a seed is
its checkpoint. Results are bit-identical to those of threads.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import jax

from rove.errors import LaneError
from rove.parts import platform
from rove.training.executors import pool
from rove.training.executors.base import Custom, cores, fitting_workers
from rove.training.outcomes import Job, Outcome
from rove.training.progress import Report, Saved, ignore

# Orders and answers get separate pipes, since any module may read stdin or print to stdout, even
# while it is imported: it finds stdin empty, and prints to stderr.
# Isolated (-I), a worker does not import from the current folder unless its parent does.
_WORKER = """
import sys
sys.path[:] = sys.argv[1:]
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
orders, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
from rove.training.executors.processes import main
main(orders, answers)
"""


_early: list[subprocess.Popen] = []
"""Processes that were started by `started_early` and have not been used yet."""


def _start() -> subprocess.Popen:
    env = os.environ | {"NPROC": "1"}
    command = [sys.executable, "-I", "-c", _WORKER, *sys.path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=env, **pipes)


@contextlib.contextmanager
def started_early(count: int) -> Iterator[None]:
    """Start worker processes now, so that they import rove while this one prepares a run.

    Those that are still unused at the end of the context are ended.
    """
    _early.extend(_start() for _ in range(count))
    try:
        yield
    finally:
        while _early:
            process = _early.pop()
            process.kill()
            process.communicate()


class _Process(pool.Worker):
    """A worker process, and a thread that reads its messages."""

    def __init__(self, inbox: pool.Inbox) -> None:
        super().__init__()
        self.process = _early.pop(0) if _early else _start()
        threading.Thread(target=self._read, args=(inbox,), daemon=True).start()

    def _read(self, inbox: pool.Inbox) -> None:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                inbox.put((self, json.loads(line)))
        finally:
            reason = f"its worker process ended with code {self.process.wait()}"
            inbox.put((self, {"ended": reason}))

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `_read` reports that it has ended
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def end(self, seconds: float) -> None:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Processes:
    """Runs jobs in processes of this machine, which read their configurations from run folders."""

    def __init__(self, jobs_in: str) -> None:
        self._jobs_in = jobs_in

    def check(self, jobs: Sequence[Job], workers: int | None) -> None:
        fitting_workers(jobs, workers)

    def remote(self, custom: Custom, unfinished: int, workers: int | None) -> bool:
        """Only several jobs use processes, and not if these would share an accelerator."""
        several = min(unfinished, workers or cores()) > 1
        return several and jax.default_backend() == "cpu" and not custom()

    def execute(
        self,
        jobs: Sequence[Job],
        report: Report = ignore,
        saved: Saved = ignore,
        workers: int | None = None,
    ) -> list[Outcome | LaneError]:
        at_once = fitting_workers(jobs, workers)
        return pool.run_jobs(jobs, _Process, at_once, report, saved, self._jobs_in)


def main(orders: TextIO, answers: TextIO) -> None:
    """Run a worker, which reads its orders and exits as soon as its parent is gone."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # like SIGINT
    stop, received = threading.Event(), queue.Queue()

    def listen() -> None:
        for line in orders:
            order = json.loads(line)
            if "stop" in order:
                stop.set()
            received.put(order)
        os._exit(1)

    def answer(**message: Any) -> None:
        print(json.dumps(message), file=answers, flush=True)

    platform.prepare(lanes=1)
    threading.Thread(target=listen, daemon=True).start()
    answer(ready=True)
    while "stop" not in (order := received.get()):
        pool.work(order, answer, stop)
    os._exit(0)  # the listening thread cannot be stopped in any other way
