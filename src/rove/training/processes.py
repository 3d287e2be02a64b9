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
from pathlib import Path
from typing import Any, TextIO

import jax

from rove import platform
from rove.errors import Diverged, LaneError, RoveError
from rove.training import lanes, outcomes
from rove.training.outcomes import Job, Outcome

ATTEMPTS = 3
"""How often a lane is given to a worker, should workers die."""
PATIENCE = 10.0
"""Seconds a worker has to save its lane when it is told to stop."""


# What it says goes to a pipe of its own: anything may print to stdout, even while it is imported.
_WORKER = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from rove.training.processes import main
main(answers)
"""


class _Worker:
    """A process that trains one lane at a time, and a thread that reads what it says."""

    def __init__(self, mail: queue.Queue) -> None:
        env = os.environ | {"NPROC": "1"}
        command = [sys.executable, "-c", _WORKER]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, env=env, **pipes)
        self.job: Job | None = None
        self.programs: set[Any] = set()
        """What it has compiled."""
        threading.Thread(target=self._read, args=(mail,), daemon=True).start()

    def _read(self, mail: queue.Queue) -> None:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                mail.put((self, json.loads(line)))
        finally:
            mail.put((self, {"ended": self.process.wait()}))

    def tell(self, **message: Any) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is in the mail
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()


def execute(
    jobs: Sequence[Job],
    report: lanes.Report = lambda progress: None,
    saved: lanes.Saved = lambda job, episodes: None,
    workers: int | None = None,
    checkpoint_seconds: float = 10.0,
) -> list[Outcome | LaneError]:
    """As `lanes.execute`, for lanes whose run folders hold all that a worker needs to know. A
    worker that dies is replaced, and its lane goes on from its last checkpoint."""
    workers = min(lanes.checked_workers(jobs, workers), len(jobs))
    left = {i: jax.tree.structure((job.agent, job.environment)) for i, job in enumerate(jobs)}
    number = {id(job): i for i, job in enumerate(jobs)}
    attempts = dict.fromkeys(left, 0)
    results: dict[int, Outcome | LaneError] = {}
    mail: queue.Queue[tuple[_Worker, dict[str, Any]]] = queue.Queue()

    def give(worker: _Worker) -> None:
        """The next lane: of a program it has, else of one that nobody has, else any."""
        others = set().union(*(w.programs for w in crew if w is not worker))
        order = sorted(left, key=lambda i: (left[i] not in worker.programs, left[i] in others, i))
        worker.job = jobs[order[0]] if order else None
        if worker.job is None:
            worker.tell(stop=True)
            return
        worker.programs.add(left.pop(order[0]))
        assert worker.job.path is not None
        attempts[order[0]] += 1
        every = checkpoint_seconds
        job = {"folder": str(worker.job.folder), "seed": worker.job.seed, "name": worker.job.name}
        worker.tell(**job, checkpoint_seconds=every)

    def hear(worker: _Worker, message: dict[str, Any]) -> None:
        job = worker.job
        if job is None:
            return
        i = number[id(job)]
        if told := message.get("progress"):
            report(lanes.Progress(job, *told))
        elif "saved" in message:
            saved(job, outcomes.glance(job)[0])
        elif "done" in message:
            try:
                results[i] = outcomes.load(job)
            except RoveError as error:
                results[i] = LaneError(f"{job.name}: {error}")
            give(worker)
        elif told := message.get("error"):
            results[i] = (Diverged if message["diverged"] else LaneError)(told)
            give(worker)
        elif "ended" in message:
            if attempts[i] < ATTEMPTS:
                left[i] = jax.tree.structure((job.agent, job.environment))
            else:
                how = f"its worker process ended with code {message['ended']}, {ATTEMPTS} times"
                results[i] = LaneError(f"{job.name}: {how}")
            crew[crew.index(worker)] = successor = _Worker(mail)
            give(successor)

    crew = [_Worker(mail) for _ in range(workers)]
    try:
        for worker in crew:
            give(worker)
        while len(results) < len(jobs):
            hear(*mail.get())
    finally:
        for worker in crew:
            worker.tell(stop=True)
        for worker in crew:
            try:
                worker.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                worker.process.kill()
    return [results[i] for i in range(len(jobs))]


def main(answers: TextIO) -> None:
    """A worker: lanes come on stdin; a parent that is gone ends it at once."""
    from rove.runs import RunFolder  # runs knows of lanes, and not the other way

    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as SIGINT
    stop, orders = threading.Event(), queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            order = json.loads(line)
            if "stop" in order:
                stop.set()
            orders.put(order)
            if stop.is_set():
                return
        os._exit(1)

    def answer(**message: Any) -> None:
        print(json.dumps(message), file=answers, flush=True)

    platform.prepare(lanes=1)
    threading.Thread(target=listen, daemon=True).start()
    while "stop" not in (order := orders.get()):
        try:
            platform.relieve()
            folder = Path(order["folder"])
            jobs = RunFolder(folder).config().jobs(folder)
            job = next(job for job in jobs if job.seed == order["seed"])
            result = lanes.drive(
                [job],
                lambda progress: answer(progress=progress[1:]),
                lambda job, episodes: answer(saved=True),
                order["checkpoint_seconds"],
                stop,
            )[0]
        except Exception as error:
            told = str(error) if isinstance(error, RoveError) else repr(error)
            result = LaneError(f"{order['name']}: {told}")
        if isinstance(result, LaneError):
            answer(error=str(result), diverged=isinstance(result, Diverged))
        elif result.finished:
            answer(done=True)
