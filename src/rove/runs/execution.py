"""Training several configurations at once."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from rove.errors import Diverged, LaneError
from rove.runs import tracking
from rove.runs.config import Config
from rove.runs.folder import RunFolder
from rove.runs.result import Run
from rove.training import host, storage
from rove.training.executors import Executor, Threads, executor_for
from rove.training.outcomes import Job, Outcome, Tables
from rove.training.progress import Progress, Report, ignore


def run_all(
    plan: Sequence[tuple[Config, Path | None]],
    report: Report = ignore,
    workers: int | None = None,
    on: str = "threads",
    tracker: tracking.Tracker | None = None,
) -> list[Run]:
    """Train several configurations at once, sharing the cores among all their seeds.

    A seed that fails is listed in its run's `errors`. A tracker receives the curves of the
    configurations that have a run folder.
    """
    jobs_of = [config.jobs(path) for config, path in plan]
    all_jobs = [job for jobs in jobs_of for job in jobs]
    executor = check_jobs(all_jobs, workers, on)
    for config, path in plan:
        if path is not None:
            RunFolder(path).check(config)
    for job in all_jobs:  # before anything is written
        if storage.stopped_mid_episode(job) and not storage.is_finished(job):
            host.check_resumable(job)
    with contextlib.ExitStack() as stack:
        writers: dict[Path, _TablesWriter] = {}
        loggers: dict[Path, tracking.Logger] = {}
        for (config, path), jobs in zip(plan, jobs_of, strict=True):
            if path is not None:
                folder = RunFolder(path)
                stack.enter_context(
                    folder.open(config, config.extendable, config.environment, config.delivers)
                )
                writers[path] = _TablesWriter(folder, config, jobs)
                if tracker is not None:
                    loggers[path] = tracking.Logger(tracker, config)
        custom = lambda: [config.label for config, _ in plan if not config.portable]  # noqa: E731
        unfinished = sum(not storage.is_finished(job) for job in all_jobs)
        remote = executor.remote(custom, unfinished, workers)
        for i, (config, path) in enumerate(plan):
            if path is None and remote:  # workers return their results in a folder
                temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rove-")))
                stack.enter_context(
                    RunFolder(temporary).open(
                        config, task=config.environment, delivers=config.delivers
                    )
                )
                jobs_of[i] = config.jobs(temporary)

        def saved(job: Job, tables: Tables) -> None:
            if job.folder in writers:
                writers[job.folder].saved(job, tables)
            if job.folder in loggers:
                loggers[job.folder].saved(job, tables)

        def on_progress(progress: Progress) -> None:
            if progress.job.path is not None and progress.job.folder in loggers:
                loggers[progress.job.folder].on_progress(progress)
            report(progress)

        all_jobs = [job for jobs in jobs_of for job in jobs]
        executor = executor if remote else Threads()
        finished = executor.execute(all_jobs, on_progress, saved, workers)
        results = {id(job): result for job, result in zip(all_jobs, finished, strict=True)}
        for job in all_jobs:
            if isinstance(results[id(job)], Outcome) and job.path and not job.path.exists():
                results[id(job)] = LaneError(
                    f"{job.name}: {job.path} was deleted while the run trained; run the same "
                    "command again"
                )
        runs = []
        for (config, path), jobs in zip(plan, jobs_of, strict=True):
            runs.append(as_run(config, [results[id(job)] for job in jobs], path))
            if path is not None:
                writers[path].write()
                ended = [(job.seed, results[id(job)]) for job in jobs]
                errors = {seed: str(e) for seed, e in ended if isinstance(e, LaneError)}
                RunFolder(path).write_errors(errors)
        return runs


def check(config: Config, path: Path | None, workers: int | None, on: str) -> None:
    """Raise an error if a run cannot begin: before anything is shown, compiled or written."""
    check_jobs(config.jobs(path), workers, on)
    if path is not None:
        RunFolder(path).check(config)


def as_run(config: Config, results: Sequence[Outcome | LaneError], path: Path | None) -> Run:
    """Build a run from the result of each seed; failed and diverged ones become its errors."""
    results = [_diverged(r) if isinstance(r, Outcome) and r.diverged else r for r in results]
    trained = [r for r in results if isinstance(r, Outcome)]
    return Run(config, trained, path, [r for r in results if isinstance(r, LaneError)])


def _diverged(outcome: Outcome) -> Diverged:
    error = Diverged(outcome.diverged)
    error.outcome = outcome
    return error


def check_jobs(jobs: Sequence[Job], workers: int | None, on: str) -> Executor:
    """Return the executor for `on`; raise `ConfigError` if it cannot run the jobs."""
    executor = executor_for(on, jobs_in="rove.runs.folder:jobs_in")
    executor.check(jobs, workers)
    return executor


class _TablesWriter:
    """Updates episodes.csv and evaluations.csv whenever a seed of the run writes a checkpoint."""

    def __init__(self, folder: RunFolder, config: Config, jobs: list[Job]):
        self._folder, self._config, self._jobs = folder, config, jobs
        self._lock = threading.Lock()
        self._latest = {j.seed: storage.load_tables(j)[0] for j in jobs if storage.exists(j)}

    def saved(self, job: Job, tables: Tables) -> None:
        with self._lock:
            self._latest[job.seed] = tables
        self.write()

    def write(self) -> None:
        with self._lock:
            seeds = [job.seed for job in self._jobs if job.seed in self._latest]
            self._folder.write_tables(self._config, {s: self._latest[s] for s in seeds})
