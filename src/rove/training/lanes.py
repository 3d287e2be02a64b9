"""Lanes: independent runs of one compiled program, from a pool of one thread a core."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rove import platform, replay
from rove.algorithm import Agent
from rove.environments.base import Environment
from rove.errors import ConfigError, LaneError
from rove.training import checkpoint, compiled

UNLIMITED = 2**31 - 1
SECONDS_A_CHUNK = 0.5

_start = jax.jit(compiled.start)
_run = jax.jit(compiled.run, donate_argnums=2)


@dataclass(frozen=True)
class Job:
    """What a lane is to do."""

    agent: Agent
    environment: Environment
    seed: int
    episodes: int = UNLIMITED
    steps: int = UNLIMITED
    path: Path | None = None
    """Where its checkpoint is, if it has one."""
    name: str = ""
    """How to call it in messages."""


class Episodes(NamedTuple):
    """One entry an episode."""

    returns: np.ndarray
    length: np.ndarray
    step: np.ndarray
    terminated: np.ndarray


class Outcome(NamedTuple):
    """A lane so far: its episodes, its visits, and the pytree it continues from."""

    job: Job
    episodes: Episodes
    lane: compiled.Lane
    finished: bool

    @property
    def visits(self) -> np.ndarray:
        return np.asarray(self.lane.visits)


class Progress(NamedTuple):
    """What a lane tells between chunks."""

    job: Job
    step: int
    episode: int
    recent: float
    """Mean return of its last 20 episodes; NaN before the first."""
    steps_per_second: float
    finished: bool


Report = Callable[[Progress], None]


def execute(
    jobs: Sequence[Job],
    report: Report = lambda progress: None,
    saved: Callable[[Outcome], None] = lambda outcome: None,
    workers: int | None = None,
    checkpoint_seconds: float = 10.0,
) -> list[Outcome | LaneError]:
    """Run all lanes to their end, in parallel; a lane that fails costs the others nothing.

    `report` is called after every chunk of a lane, `saved` after every checkpoint; both from the
    lane's own thread.
    """
    platform.prepare()
    check_memory(jobs, workers or cores())
    stop = threading.Event()

    def one(job: Job) -> Outcome | LaneError:
        try:
            return _drive(job, report, saved, checkpoint_seconds, stop)
        except LaneError as error:
            return error

    _compile(jobs)
    with ThreadPoolExecutor(workers or cores(), thread_name_prefix="lane") as pool:
        futures = [pool.submit(one, job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_memory(jobs: Sequence[Job], workers: int) -> None:
    """Refuse replay buffers that would not fit, before anything is allocated."""
    sizes = sorted(
        (
            replay.nbytes(job.agent.buffer_size, job.environment.observation_size)
            for job in jobs
        ),
        reverse=True,
    )
    needed, free = sum(sizes[:workers]), _free_memory()
    if free is not None and needed > 0.8 * free:
        largest = max(job.agent.buffer_size for job in jobs)
        raise ConfigError(
            "buffer_size",
            largest,
            f"{min(workers, len(jobs))} lanes at once would take {needed:,} bytes for replay, and "
            f"{free:,} bytes of memory are free; use a smaller buffer or fewer workers",
        )


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None


def _compile(jobs: Sequence[Job]) -> None:
    """Compile each program once, before threads could do so side by side."""
    seen = set()
    for job in jobs:
        program = jax.tree.structure((job.agent, job.environment))
        if program not in seen:
            seen.add(program)
            lane = _start(job.agent, job.environment, _int(job.seed))
            _run(job.agent, job.environment, lane, _int(0), _int(0))


def _int(value: int) -> jax.Array:
    return jnp.asarray(value, jnp.int32)


def _drive(
    job: Job,
    report: Report,
    saved: Callable[[Outcome], None],
    checkpoint_seconds: float,
    stop: threading.Event,
) -> Outcome:
    """Take one lane from where it stands to its end."""
    lane, episodes = _resume(job)
    step, episode = int(lane.step), int(lane.episode)
    last_save, speed = time.monotonic(), 0.0
    chunk = 200
    while step < job.steps and episode < job.episodes:
        if stop.is_set():
            raise LaneError(f"{job.name}: stopped at step {step:,}")
        began = time.monotonic()
        last = min(step + chunk, job.steps)
        lane = _run(job.agent, job.environment, lane, _int(last), _int(job.episodes))
        done = int(lane.step) - step
        took = max(time.monotonic() - began, 1e-6)
        speed = done / took
        step, episode = int(lane.step), int(lane.episode)
        if fault := compiled.FAULTS[int(lane.fault)]:
            raise LaneError(
                f"{job.name}: the {fault} was not a finite number at step {step:,}"
                + (" (try a smaller lr)" if fault == "loss" else "")
            )
        episodes = _extend(episodes, lane.log)
        finished = step >= job.steps or episode >= job.episodes
        if job.path and (finished or time.monotonic() - last_save > checkpoint_seconds):
            outcome = Outcome(job, episodes, lane, finished)
            save(outcome)
            saved(outcome)
            last_save = time.monotonic()
        recent = float(np.mean(episodes.returns[-20:])) if len(episodes.returns) else np.nan
        report(Progress(job, step, episode, recent, speed, finished))
        if took < 0.8 * SECONDS_A_CHUNK or took > 1.5 * SECONDS_A_CHUNK:
            chunk = int(min(max(speed * SECONDS_A_CHUNK, 50), 4 * chunk))
    return Outcome(job, episodes, lane, True)


def _extend(episodes: Episodes, log: compiled.Log) -> Episodes:
    count = int(log.count)
    return Episodes(
        *(
            np.concatenate([old, np.asarray(new[:count])])
            for old, new in zip(episodes, log[1:], strict=True)
        )
    )


def save(outcome: Outcome) -> None:
    """Everything the lane's future depends on, and its log, in one file. A finished lane has no
    future: it keeps what evaluation needs."""
    job, episodes, lane, finished = outcome
    assert job.path is not None
    memory = lane.agent.replay
    stored = 0 if finished else min(int(memory.added), memory.rows.shape[0])
    arrays = checkpoint.flatten(_bare(lane, finished))
    arrays |= {f"episodes.{k}": v for k, v in episodes._asdict().items()}
    arrays["replay"] = np.asarray(memory.rows)[:stored]
    checkpoint.save_arrays(job.path, arrays, {"finished": finished})


def _bare(lane: compiled.Lane, finished: bool) -> compiled.Lane:
    """A lane without what is stored apart (the replay's rows), drained (the log) or over."""
    agent = lane.agent._replace(replay=lane.agent.replay._replace(rows=None))
    if finished:
        agent = agent._replace(optimiser=None)
    return lane._replace(agent=agent, log=None)


def _resume(job: Job) -> tuple[compiled.Lane, Episodes]:
    """The lane as its checkpoint has it, or a fresh one."""
    none = Episodes(
        np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, bool)
    )
    if job.path is None or not job.path.exists():
        return _start(job.agent, job.environment, _int(job.seed)), none
    outcome = load(job)
    return outcome.lane, outcome.episodes


def load(job: Job) -> Outcome:
    """A lane from its checkpoint."""
    assert job.path is not None
    arrays, about = checkpoint.load_arrays(job.path)
    fresh: Any = jax.eval_shape(compiled.start, job.agent, job.environment, _int(job.seed))
    lane: Any = checkpoint.unflatten(_bare(fresh, about["finished"]), arrays, job.path)
    rows = np.zeros((0 if about["finished"] else len(fresh.agent.replay.rows), arrays["replay"].shape[1]), np.float32)
    rows[: len(arrays["replay"])] = arrays["replay"]
    agent = lane.agent._replace(replay=lane.agent.replay._replace(rows=jnp.array(rows)))
    log = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), fresh.log)
    episodes = Episodes(*(arrays[f"episodes.{field}"] for field in Episodes._fields))
    return Outcome(job, episodes, lane._replace(agent=agent, log=log), about["finished"])
