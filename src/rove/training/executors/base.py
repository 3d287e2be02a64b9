"""The protocol of executors, and the check that jobs fit into memory."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from rove.core.learner import Memory
from rove.errors import ConfigError, LaneError, check_integer
from rove.training.outcomes import Job, Outcome, structures
from rove.training.progress import Report, Saved, ignore

Custom: TypeAlias = Callable[[], Sequence[str]]
"""Returns the labels of the runs that use custom code, which only this process has."""


class Executor(Protocol):
    """Runs jobs to their end: in threads, in processes, or on a Ray cluster.

    On CPUs, a job's result does not depend on the executor or on the other jobs, to the bit; on
    accelerators, where jobs are stepped together, up to rounding. A job that fails becomes a
    `LaneError`, and the others continue.
    """

    def check(self, jobs: Sequence[Job], workers: int | None) -> None:
        """Raise `ConfigError` if the jobs cannot run, for example for lack of memory."""
        ...

    def remote(self, custom: Custom, unfinished: int, workers: int | None) -> bool:
        """Whether jobs are run outside of this process, from the configurations in their folders.

        Raises `ConfigError` if that is the only way and some runs use custom code.
        """
        ...

    def execute(
        self,
        jobs: Sequence[Job],
        report: Report = ignore,
        saved: Saved = ignore,
        workers: int | None = None,
    ) -> list[Outcome | LaneError]:
        """Run all jobs. `report` is called with the progress of each, and `saved` after each
        checkpoint."""
        ...


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_needed: dict[Any, Memory] = {}
"""The memory that jobs need, by their structure. It is kept because a dry run takes a quarter of a
second, and a command needs its result several times."""


def fitting_workers(jobs: Sequence[Job], workers: int | None, at_once: int | None = None) -> int:
    """Return the number of workers, by default one per core. Raise `ConfigError` if there is not
    enough memory for that many jobs or, if it is given, for `at_once` jobs."""
    workers = cores() if workers is None else workers
    check_integer("workers", workers, at_least=1)
    at_once = at_once or workers
    kinds = structures(jobs)
    for kind, job in zip(kinds, jobs, strict=True):
        if kind not in _needed:
            task = job.environment
            _needed[kind] = job.agent.dry_run(task.observation_size, task.num_actions, task.form)
    sizes = [_needed[kind] for kind in kinds]
    needed, free = sum(sorted(size.nbytes for size in sizes)[-at_once:]), _free_memory()
    copies = 3 if any(job.path for job in jobs) else 1  # a checkpoint is assembled in memory
    if free is not None and copies * needed > 0.8 * free:
        largest, count = max(sizes, key=lambda size: size.nbytes), min(at_once, len(jobs))
        seeds = "1 seed" if count == 1 else f"{count} seeds at once"
        reason = (
            f"{seeds} would take {copies * needed / 1e9:,.1f} GB, mostly for {largest.what}, but "
            f"only {free / 1e9:,.1f} GB of memory are free; use {largest.remedy} or fewer workers"
        )
        message = f"not enough memory with {largest.field}={largest.value!r}: {reason}"
        raise ConfigError(largest.field, largest.value, reason, message)
    return workers


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
