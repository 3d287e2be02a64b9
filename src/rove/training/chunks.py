"""Training of compiled environments in chunks of steps, with reports and checkpoints between."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from rove.errors import LaneError
from rove.parts import platform
from rove.training import compiled, delivering, outcomes, progress, storage
from rove.training.evaluating import evaluated, next_pause
from rove.training.lane import Lane
from rove.training.outcomes import Job, Outcome
from rove.training.progress import Report, Saved, progress_of

_run = jax.jit(compiled.run, donate_argnums=2)
_run_together = jax.jit(compiled.run_together, donate_argnums=2)


def compile_program(job: Job) -> None:
    """Compile a job's program by running it for no steps."""
    platform.clear_programs()
    zero = jnp.zeros((), jnp.int32)
    _run(job.agent, job.environment, outcomes.fresh(job).lane, zero, zero, zero)


def drive(
    jobs: Sequence[Job], report: Report, saved: Saved, stop: threading.Event
) -> list[Outcome | LaneError]:
    """Run one job, or several in lockstep, from their checkpoints to their end."""
    results: list[Outcome | LaneError] = [storage.resumed(job) for job in jobs]
    for result in results:
        if isinstance(result, Outcome):
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
        lanes = advance([before for _, before in running], steps, chunk)
        done = [int(lane.step) - step for lane, step in zip(lanes, steps, strict=True)]
        seconds = max(time.monotonic() - began, 1e-6)
        due = time.monotonic() - last_save > progress.CHECKPOINT_SECONDS
        for (i, before), lane, count in zip(running, lanes, done, strict=True):
            try:
                outcome = evaluated(outcomes.extended(before, lane), lane)
            except LaneError as error:
                results[i] = error
                continue
            if outcome.finished:
                outcome = delivering.finished(outcome)
            if outcome.job.path is not None and (due or outcome.finished):
                storage.save(outcome)
                saved(outcome.job, outcome.tables)
                last_save = time.monotonic()
            results[i] = outcomes.retired(outcome)
            report(_progress(outcome, count / seconds))
        if not 0.8 * progress.CHUNK_SECONDS < seconds < 1.5 * progress.CHUNK_SECONDS:
            chunk = int(min(max(max(done) / seconds * progress.CHUNK_SECONDS, 50), 4 * chunk))
    for result in results:  # save those that were stopped
        if isinstance(result, Outcome) and result.job.path is not None and not result.finished:
            storage.save(result)
            saved(result.job, result.tables)
    return results


def advance(running: Sequence[Outcome], steps: Sequence[int], chunk: int) -> list[Lane]:
    """Run one chunk of a lane, or of several that share a program."""
    pauses = [next_pause(outcome) for outcome in running]
    last_step = [min(step + chunk, last) for step, (last, _) in zip(steps, pauses, strict=True)]
    last_episode = [episode for _, episode in pauses]
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


def _progress(outcome: Outcome, steps_per_second: float) -> progress.Progress:
    lane = outcome.lane
    return progress_of(outcome, int(lane.step), int(lane.episode), steps_per_second)
