"""Training in this process: compiled environments in threads, Gymnasium environments in turns."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import jax

from rove.environments import HostEnvironment
from rove.errors import LaneError, RoveError
from rove.parts import interrupts, platform
from rove.training import chunks, host, storage
from rove.training.executors.base import Custom, fitting_workers
from rove.training.outcomes import Job, Outcome, structures
from rove.training.progress import Report, Saved, ignore


@dataclass(frozen=True)
class Threads:
    """Runs jobs in this process.

    On CPUs, jobs of compiled environments run in parallel in one thread each; then those of
    Gymnasium environments take turns, one step each, at most `workers` of them at a time and by
    default all.
    """

    together: bool | None = None
    """Whether to stack jobs that share a program and step them as one; by default on accelerators
    only."""

    def check(self, jobs: Sequence[Job], workers: int | None) -> None:
        compiled, hosted = _split(jobs)
        if compiled:
            fitting_workers(compiled, workers, len(compiled) if self._together else None)
        if hosted:
            fitting_workers(hosted, len(hosted) if workers is None else workers)

    def remote(self, custom: Custom, unfinished: int, workers: int | None) -> bool:
        return False

    def execute(
        self,
        jobs: Sequence[Job],
        report: Report = ignore,
        saved: Saved = ignore,
        workers: int | None = None,
    ) -> list[Outcome | LaneError]:
        platform.prepare()
        compiled, hosted = _split(jobs)
        results: dict[int, Outcome | LaneError] = {}
        if compiled:
            results |= self._in_threads(compiled, report, saved, workers)
        if hosted:
            finished = host.drive(hosted, report, saved, threading.Event(), workers)
            results |= {id(job): result for job, result in zip(hosted, finished, strict=True)}
        return [results[id(job)] for job in jobs]

    @property
    def _together(self) -> bool:
        return jax.default_backend() != "cpu" if self.together is None else self.together

    def _in_threads(
        self, jobs: Sequence[Job], report: Report, saved: Saved, workers: int | None
    ) -> dict[int, Outcome | LaneError]:
        together = self._together
        workers = fitting_workers(jobs, workers, len(jobs) if together else None)
        programs: dict[Any, list[Job]] = {}
        for job, structure in zip(jobs, structures(jobs), strict=True):
            programs.setdefault(structure, []).append(job)
        groups = list(programs.values()) if together else [[job] for job in jobs]
        stop = threading.Event()
        results: dict[int, Outcome | LaneError] = {}

        def drive_group(group: list[Job]) -> None:
            try:
                finished = chunks.drive(group, report, saved, stop)
            except Exception as error:  # any error ends this group only
                reason = str(error) if isinstance(error, RoveError) else repr(error)
                finished = [LaneError(f"{job.name}: {reason}") for job in group]
            results.update({id(job): result for job, result in zip(group, finished, strict=True)})

        with ThreadPoolExecutor(workers, thread_name_prefix="seed") as pool:
            try:
                # Compile each program once, before several threads compile the same one.
                if not together:
                    unfinished = [
                        [job for job in group if not storage.is_finished(job)]
                        for group in programs.values()
                    ]
                    first = [group[0] for group in unfinished if group]
                    list(pool.map(chunks.compile_program, first))
                futures = [pool.submit(drive_group, group) for group in groups]
                while wait(futures, timeout=1.0).not_done:
                    interrupts.check()
                for future in futures:
                    future.result()
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return results


def _split(jobs: Sequence[Job]) -> tuple[list[Job], list[Job]]:
    """Split jobs into those of compiled environments and those of Gymnasium environments."""
    hosted = [job for job in jobs if isinstance(job.environment, HostEnvironment)]
    return [job for job in jobs if not isinstance(job.environment, HostEnvironment)], hosted
