"""Lanes: independent runs of one compiled program, from a pool of one thread a core."""

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
    """What a lane tells between chunks."""

    job: Job
    step: int
    episode: int
    recent: float
    """Mean score of its last 20 episodes; NaN before the first."""
    steps_per_second: float
    finished: bool
    loss: float
    """That of the last update; NaN before the first, and where it was not asked for."""


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
    """Run all lanes to their end; a lane that fails costs the others nothing.

    On a CPU lanes run side by side, one thread each. `together` (the default where there is an
    accelerator) stacks those that share a program, and steps them as one. `report` is called
    after every chunk of a lane, `saved` after every checkpoint; both from the lane's own thread.
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

    def drive_apart(group: list[Job]) -> None:
        try:
            done = drive(group, report, saved, checkpoint_seconds, stop)
        except Exception as error:  # whatever it is, it is this lane's alone
            told = str(error) if isinstance(error, RoveError) else repr(error)
            done = [LaneError(f"{job.name}: {told}") for job in group]
        results.update({id(job): result for job, result in zip(group, done, strict=True)})

    with ThreadPoolExecutor(workers, thread_name_prefix="lane") as pool:
        try:
            # Each program is compiled once, before lanes that share it could do so side by side.
            if not together:
                ahead = [
                    [job for job in group if not outcomes.over(job)] for group in programs.values()
                ]
                list(pool.map(_compile, [group[0] for group in ahead if group]))
            for future in [pool.submit(drive_apart, group) for group in groups]:
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [results[id(job)] for job in jobs]


def cores() -> int:
    """How many lanes to run at once: one for each core this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked_workers(jobs: Sequence[Job], workers: int | None, together: bool = False) -> int:
    """How many lanes to run at once. Refuses agents that would not fit in memory, before anything
    is allocated."""
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
    copies = 2 if any(job.path for job in jobs) else 1  # a checkpoint is put together in memory
    if free is not None and copies * needed > 0.8 * free:
        most, lanes = max(sizes, key=lambda size: size.nbytes), min(at_once, len(jobs))
        count = "1 lane" if lanes == 1 else f"{lanes} lanes"
        raise ConfigError(
            most.field,
            most.value,
            f"{count} at once would take {copies * needed:,} bytes, most of it {most.what}, and "
            f"{free:,} bytes of memory are free; use {most.remedy} or fewer workers",
        )
    return workers


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None


def _compile(job: Job) -> None:
    """Compile a lane's program: start it, and run it for no step."""
    platform.clear_programs()
    none = jnp.zeros((), jnp.int32)
    _run(job.agent, job.environment, outcomes.fresh(job).lane, none, none, none)


def drive(
    jobs: Sequence[Job],
    report: Report,
    saved: Saved,
    checkpoint_seconds: float,
    stop: threading.Event,
) -> list[Outcome | LaneError]:
    """Take one lane, or several in lockstep, from where they stand to their end."""
    results: list[Outcome | LaneError] = [outcomes.resumed(job) for job in jobs]
    for result in results:
        if isinstance(result, Outcome) and result.finished:
            report(_progress(result, 0.0))
    last_save, chunk = time.monotonic(), 200
    while not stop.is_set():
        flying = [
            (i, r) for i, r in enumerate(results) if isinstance(r, Outcome) and not r.finished
        ]
        if not flying:
            break
        steps = [int(flight.lane.step) for _, flight in flying]
        began = time.monotonic()
        lanes = _advance([flight for _, flight in flying], steps, chunk)
        done = [int(lane.step) - step for lane, step in zip(lanes, steps, strict=True)]
        took = max(time.monotonic() - began, 1e-6)
        due = time.monotonic() - last_save > checkpoint_seconds
        for (i, flight), lane, count in zip(flying, lanes, done, strict=True):
            try:
                results[i] = outcome = outcomes.extended(flight, lane)
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
    for result in results:  # stopped on the way: nothing of it is lost
        if isinstance(result, Outcome) and result.job.path is not None and not result.finished:
            outcomes.save(result)
            saved(result.job, result.episodes)
    return results


def _advance(flights: Sequence[Outcome], steps: Sequence[int], chunk: int) -> list[Lane]:
    """One chunk of a lane, or of several that share a program."""
    last_step = [min(s + chunk, f.job.steps) for s, f in zip(steps, flights, strict=True)]
    last_episode = [flight.job.episodes for flight in flights]
    in_a_row = [flight.job.in_a_row for flight in flights]
    limits = [jnp.asarray(limit, jnp.int32) for limit in (last_step, last_episode, in_a_row)]
    job = flights[0].job
    if len(flights) == 1:
        return [_run(job.agent, job.environment, flights[0].lane, *(limit[0] for limit in limits))]
    agents = _stack([flight.job.agent for flight in flights])
    environments = _stack([flight.job.environment for flight in flights])
    lanes = _stack([flight.lane for flight in flights])
    lanes = _run_together(agents, environments, lanes, *limits)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], lanes) for i in range(len(flights))]


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
    """That of a lane's last update; NaN if it had none."""
    learned = int(outcome.lane.step) >= int(outcome.job.agent.learning_starts)
    return float(outcome.lane.loss) if learned else float("nan")
