"""Lanes shared out among workers that may die: processes of this machine, or of a cluster."""

import abc
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax

from rove import platform
from rove.environments import HostEnvironment
from rove.errors import LaneError, RoveError
from rove.training import host, lanes, outcomes
from rove.training.outcomes import Job, Outcome

ATTEMPTS = 3
"""How often a lane is given to a worker, should workers die."""
PATIENCE = 10.0
"""Seconds a worker has to save its lane when it is told to stop."""


class Worker(abc.ABC):
    """Trains one lane at a time. What it says goes to the mail: first that it is ready, last its
    end, as the reason."""

    def __init__(self) -> None:
        self.ready = False
        self.job: Job | None = None
        self.programs: set[Any] = set()
        """What it has compiled."""

    @abc.abstractmethod
    def tell(self, **message: Any) -> None:
        """Give it a lane (folder, seed, name, checkpoint_seconds, code), or tell it to stop."""

    @abc.abstractmethod
    def end(self, seconds: float) -> None:
        """Wait, so long at the most, until it has stopped as it was told; then end it."""


Mail: TypeAlias = "queue.Queue[tuple[Worker, dict[str, Any]]]"


def share_out(
    jobs: Sequence[Job],
    hire: Callable[[Mail], Worker],
    workers: int,
    report: lanes.Report,
    saved: lanes.Saved,
    checkpoint_seconds: float,
) -> list[Outcome | LaneError]:
    """Run all lanes to their end. A worker gets its first lane once it is ready: one that a cluster
    has no room for keeps no lane waiting. A worker that dies is replaced, and its lane goes on from
    its last checkpoint."""
    left = {i: jax.tree.structure((job.agent, job.environment)) for i, job in enumerate(jobs)}
    number = {id(job): i for i, job in enumerate(jobs)}
    attempts = dict.fromkeys(left, 0)
    results: dict[int, Outcome | LaneError] = {}
    mail: Mail = queue.Queue()

    def give(worker: Worker) -> None:
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
        worker.tell(**job, checkpoint_seconds=every, code=platform.CODE)

    def hear(worker: Worker, message: dict[str, Any]) -> None:
        if not worker.ready:  # should it have ended, that counts against the lane it would have had
            worker.ready = True
            give(worker)
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
            results[i] = LaneError(told)
            give(worker)
        elif "ended" in message:
            if attempts[i] < ATTEMPTS:
                left[i] = jax.tree.structure((job.agent, job.environment))
            else:
                results[i] = LaneError(f"{job.name}: {message['ended']}, {ATTEMPTS} times")
            crew[crew.index(worker)] = hire(mail)

    crew = [hire(mail) for _ in range(min(workers, len(jobs)))]
    try:
        while len(results) < len(jobs):
            hear(*mail.get())
    finally:
        for worker in crew:
            worker.tell(stop=True)
        for worker in crew:
            worker.end(PATIENCE if worker.ready else 0.0)
    return [results[i] for i in range(len(jobs))]


def work(order: dict[str, Any], answer: Callable[..., None], stop: threading.Event) -> None:
    """What a worker does with an order: train the lane of a run folder, and say how it goes."""
    from rove.runs import RunFolder  # runs knows of lanes, and not the other way

    try:
        if order.get("code") != platform.CODE:
            raise LaneError("its worker has another rove than this command: install the same one")
        platform.clear_programs()
        folder = Path(order["folder"])
        jobs = RunFolder(folder).config().jobs(folder)
        job = next(job for job in jobs if job.seed == order["seed"])
        loop = host if isinstance(job.environment, HostEnvironment) else lanes
        result = loop.drive(
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
        answer(error=str(result))
    elif result.finished:
        answer(done=True)
