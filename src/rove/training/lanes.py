"""Training of compiled environments: independent seeds, in a pool of one thread per core."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rove import platform
from rove.errors import ConfigError, LaneError, RoveError, check_integer
from rove.training import compiled, outcomes
from rove.training.lane import Lane
from rove.training.outcomes import Episodes, Job, Outcome

SECONDS_A_CHUNK = 0.5

_run = jax.jit(compiled.run, donate_argnums=2)
_run_together = jax.jit(compiled.run_together, donate_argnums=2)


class Progress(NamedTuple):
    """The progress of one seed, reported after every chunk of steps."""

    job: Job
    step: int
    episode: int
    recent: float
    """Mean score of the last 20 episodes; NaN before the first has ended."""
    steps_per_second: float
    finished: bool
    loss: float
    """Loss of the last update; NaN before the first, and where it was not read."""


Report = Callable[[Progress], None]
Saved = Callable[[Job, Episodes], None]


def execute(
    jobs: Sequence[Job],
    report: Report = lambda progress: None,
    saved: Saved = lambda job, episodes: None,
    workers: int | None = None,
    checkpoint_seconds: float = 10.0,
    together: bool | None = None,
) -> list[Outcome | LaneError]:
    """Run all jobs to their end. A job that fails does not affect the others.

    On CPUs, jobs run in parallel in one thread each. `together` (the default on accelerators)
    stacks jobs that share a program and steps them as one. `report` is called after every chunk of
    a job and `saved` after every checkpoint, both from the job's thread.
    """
    platform.prepare()
    together = jax.default_backend() != "cpu" if together is None else together
    workers = checked_workers(jobs, workers, together)
    programs: dict[Any, list[Job]] = {}
    for job in jobs:
        programs.setdefault(jax.tree.structure((job.agent, job.environment)), []).append(job)
    groups = list(programs.values()) if together else [[job] for job in jobs]
    stop = threading.Event()
    results: dict[int, Outcome | LaneError] = {}

    def drive_group(group: list[Job]) -> None:
        try:
            finished = drive(group, report, saved, checkpoint_seconds, stop)
        except Exception as error:  # any error ends this group only
            reason = str(error) if isinstance(error, RoveError) else repr(error)
            finished = [LaneError(f"{job.name}: {reason}") for job in group]
        results.update({id(job): result for job, result in zip(group, finished, strict=True)})

    with ThreadPoolExecutor(workers, thread_name_prefix="lane") as pool:
        try:
            # Compile each program once, before several threads compile the same one.
            if not together:
                unfinished = [
                    [job for job in group if not outcomes.is_finished(job)]
                    for group in programs.values()
                ]
                list(pool.map(_compile, [group[0] for group in unfinished if group]))
            for future in [pool.submit(drive_group, group) for group in groups]:
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [results[id(job)] for job in jobs]


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked_workers(jobs: Sequence[Job], workers: int | None, together: bool = False) -> int:
    """Return the number of jobs to run at once; raise `ConfigError` if memory does not suffice."""
    if workers is None:
        workers = cores()
    check_integer("workers", workers, at_least=1)
    at_once = len(jobs) if together else workers
    kinds = [jax.tree.structure((job.agent, job.environment)) for job in jobs]
    of_kind = {
        kind: job.agent.memory(job.environment.observation_size, job.environment.num_actions)
        for kind, job in dict(zip(kinds, jobs, strict=True)).items()
    }
    sizes = [of_kind[kind] for kind in kinds]
    needed, free = sum(sorted(size.nbytes for size in sizes)[-at_once:]), _free_memory()
    copies = 2 if any(job.path for job in jobs) else 1  # a checkpoint is assembled in memory
    if free is not None and copies * needed > 0.8 * free:
        largest, count = max(sizes, key=lambda size: size.nbytes), min(at_once, len(jobs))
        seeds = "1 seed" if count == 1 else f"{count} seeds at once"
        reason = (
            f"{seeds} would take {copies * needed:,} bytes, mostly for {largest.what}, but "
            f"only {free:,} bytes of memory are free; use {largest.remedy} or fewer workers"
        )
        message = f"not enough memory with {largest.field} = {largest.value!r}: {reason}"
        raise ConfigError(largest.field, largest.value, reason, message)
    return workers


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None


def _compile(job: Job) -> None:
    """Compile a job's program by running it for no steps."""
    platform.clear_programs()
    zero = jnp.zeros((), jnp.int32)
    _run(job.agent, job.environment, outcomes.fresh(job).lane, zero, zero, zero)


def drive(
    jobs: Sequence[Job],
    report: Report,
    saved: Saved,
    checkpoint_seconds: float,
    stop: threading.Event,
) -> list[Outcome | LaneError]:
    """Run one job, or several in lockstep, from their checkpoints to their end."""
    results: list[Outcome | LaneError] = [outcomes.resumed(job) for job in jobs]
    for result in results:
        if isinstance(result, Outcome) and result.finished:
            report(_progress(result, 0.0))
    last_save, chunk = time.monotonic(), 200
    while not stop.is_set():
        running = [
            (i, r) for i, r in enumerate(results) if isinstance(r, Outcome) and not r.finished
        ]
        if not running:
            break
        steps = [int(before.lane.step) for _, before in running]
        began = time.monotonic()
        lanes = _advance([before for _, before in running], steps, chunk)
        done = [int(lane.step) - step for lane, step in zip(lanes, steps, strict=True)]
        took = max(time.monotonic() - began, 1e-6)
        due = time.monotonic() - last_save > checkpoint_seconds
        for (i, before), lane, count in zip(running, lanes, done, strict=True):
            try:
                results[i] = outcome = outcomes.extended(before, lane)
            except LaneError as error:
                results[i] = error
                continue
            if outcome.job.path is not None and (due or outcome.finished):
                outcomes.save(outcome)
                saved(outcome.job, outcome.episodes)
                last_save = time.monotonic()
            report(_progress(outcome, count / took))
        if not 0.8 * SECONDS_A_CHUNK < took < 1.5 * SECONDS_A_CHUNK:
            chunk = int(min(max(max(done) / took * SECONDS_A_CHUNK, 50), 4 * chunk))
    for result in results:  # save those that were stopped
        if isinstance(result, Outcome) and result.job.path is not None and not result.finished:
            outcomes.save(result)
            saved(result.job, result.episodes)
    return results


def _advance(running: Sequence[Outcome], steps: Sequence[int], chunk: int) -> list[Lane]:
    """Run one chunk of a lane, or of several that share a program."""
    last_step = [min(step + chunk, o.job.steps) for step, o in zip(steps, running, strict=True)]
    last_episode = [outcome.job.episodes for outcome in running]
    in_a_row = [outcome.job.in_a_row for outcome in running]
    limits = [jnp.asarray(limit, jnp.int32) for limit in (last_step, last_episode, in_a_row)]
    job = running[0].job
    if len(running) == 1:
        return [_run(job.agent, job.environment, running[0].lane, *(limit[0] for limit in limits))]
    agents = _stack([outcome.job.agent for outcome in running])
    environments = _stack([outcome.job.environment for outcome in running])
    lanes = _stack([outcome.lane for outcome in running])
    lanes = _run_together(agents, environments, lanes, *limits)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], lanes) for i in range(len(running))]


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *trees)


def _progress(outcome: Outcome, steps_per_second: float) -> Progress:
    scores, lane = outcome.scores, outcome.lane
    return Progress(
        job=outcome.job,
        step=int(lane.step),
        episode=int(lane.episode),
        recent=float(np.mean(scores[-20:])) if len(scores) else float("nan"),
        steps_per_second=steps_per_second,
        finished=outcome.finished,
        loss=loss(outcome),
    )


def loss(outcome: Outcome) -> float:
    """Return the loss of the last update, or NaN if there was none."""
    learned = int(outcome.lane.step) >= int(outcome.job.agent.learning_starts)
    return float(outcome.lane.loss) if learned else float("nan")
