"""A pool of workers that train seeds and may die: processes of this machine or of a cluster."""

import abc
import contextlib
import pkgutil
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rove.environments import HostEnvironment
from rove.errors import LaneError, RoveError
from rove.parts import interrupts, platform
from rove.training import chunks, host, progress, storage
from rove.training.outcomes import Job, Outcome, structures
from rove.training.progress import Progress, Report, Saved

ATTEMPTS = 3
"""Maximum number of workers that a job is assigned to, if workers die."""
STOP_SECONDS = 10.0
"""Seconds that a worker has to save its run when it is asked to stop."""


class Worker(abc.ABC):
    """Trains one seed at a time.

    It puts its messages into an `Inbox`: the first says that it is ready, the last why it ended.
    """

    def __init__(self) -> None:
        self.ready = False
        self.job: Job | None = None
        self.programs: set[Any] = set()
        """The programs it has compiled."""

    @abc.abstractmethod
    def send(self, **message: Any) -> None:
        """Assign a job (folder, seed, name, …), or ask to stop (stop)."""

    @abc.abstractmethod
    def end(self, seconds: float) -> None:
        """Wait until it has stopped, and kill it if that takes longer than this."""


Inbox: TypeAlias = "queue.Queue[tuple[Worker, dict[str, Any]]]"
"""Messages from workers, with their senders."""


def run_jobs(
    jobs: Sequence[Job],
    start_worker: Callable[[Inbox], Worker],
    at_once: int,
    report: Report,
    saved: Saved,
    jobs_in: str,
) -> list[Outcome | LaneError]:
    """Run all jobs to their end, at most `at_once` at a time.

    A worker gets its first job once it is ready, so that no job waits for a worker that a cluster
    cannot start. A worker that dies is replaced, and its job resumes from its last checkpoint.
    `jobs_in` names a function, as "module:function", with which workers read the jobs of a folder.
    """
    programs = structures(jobs)
    waiting = dict(enumerate(programs))
    number = {id(job): i for i, job in enumerate(jobs)}
    attempts = dict.fromkeys(waiting, 0)
    results: dict[int, Outcome | LaneError] = {}
    inbox: Inbox = queue.Queue()

    def assign(worker: Worker) -> None:
        """Assign a job whose program it has compiled, else one that no other has, else any."""
        others = set().union(*(w.programs for w in workers if w is not worker))
        order = sorted(
            waiting, key=lambda i: (waiting[i] not in worker.programs, waiting[i] in others, i)
        )
        worker.job = jobs[order[0]] if order else None
        if worker.job is None:
            worker.send(stop=True)
            return
        worker.programs.add(waiting.pop(order[0]))
        assert worker.job.path is not None
        attempts[order[0]] += 1
        worker.send(
            folder=str(worker.job.folder),
            seed=worker.job.seed,
            name=worker.job.name,
            checkpoint_seconds=progress.CHECKPOINT_SECONDS,
            code=platform.CODE,
            jobs_in=jobs_in,
        )

    def handle(worker: Worker, message: dict[str, Any]) -> None:
        if not worker.ready:  # if it died while starting, that is an attempt of its first job
            worker.ready = True
            assign(worker)
        job = worker.job
        if job is None:
            return
        i = number[id(job)]
        if "progress" in message:
            report(Progress(job, *message["progress"]))
        elif "saved" in message:
            saved(job, storage.load_tables(job)[0])
        elif "done" in message:
            try:
                results[i] = storage.load(job)
            except RoveError as error:
                results[i] = LaneError(f"{job.name}: {error}")
            assign(worker)
        elif error := message.get("error"):
            results[i] = LaneError(error)
            assign(worker)
        elif "ended" in message:
            if attempts[i] < ATTEMPTS:
                waiting[i] = programs[i]
            else:
                results[i] = LaneError(f"{job.name}: {message['ended']}, {ATTEMPTS} times")
            workers[workers.index(worker)] = start_worker(inbox)

    workers = [start_worker(inbox) for _ in range(min(at_once, len(jobs)))]
    try:
        while len(results) < len(jobs):
            interrupts.check()
            with contextlib.suppress(queue.Empty):
                handle(*inbox.get(timeout=1.0))
    finally:
        for worker in workers:
            worker.send(stop=True)
        for worker in workers:
            worker.end(STOP_SECONDS if worker.ready else 0.0)
    return [results[i] for i in range(len(jobs))]


def work(order: dict[str, Any], answer: Callable[..., None], stop: threading.Event) -> None:
    """Train the job of an order, inside a worker, and answer with its progress and its end."""
    try:
        if order.get("code") != platform.CODE:
            raise LaneError(
                "the worker has a different version of rove: install the same version on all nodes"
            )
        platform.clear_programs()
        progress.CHECKPOINT_SECONDS = order["checkpoint_seconds"]
        jobs = pkgutil.resolve_name(order["jobs_in"])(Path(order["folder"]))
        job = next(job for job in jobs if job.seed == order["seed"])
        drive = host.drive if isinstance(job.environment, HostEnvironment) else chunks.drive
        result = drive(
            [job],
            lambda progress: answer(progress=progress[1:]),
            lambda job, tables: answer(saved=True),
            stop,
        )[0]
    except Exception as error:
        reason = str(error) if isinstance(error, RoveError) else repr(error)
        result = LaneError(f"{order['name']}: {reason}")
    if isinstance(result, LaneError):
        answer(error=str(result))
    elif result.finished:
        answer(done=True)
