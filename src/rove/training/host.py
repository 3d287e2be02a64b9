"""The training loop on the host, for Gymnasium environments: one compiled call per step.

An episode begins with `begin`, which takes its first observation. It continues with `step`, which
takes the environment's response, learns, and acts again, and `end` logs it. Several copies of an
environment take a step each before a compiled call. Checkpoints are written when an episode has
ended. A lane is then the complete state, except for the other copies of the environment, whose
episodes are repeated. As the seed of a reset is derived from the run's seed and the number of the
episode, a resumed run sees the same episodes as one that was never interrupted.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove.environments.faults import BadEnvironment
from rove.environments.host import HostEnvironment
from rove.errors import ConfigError, LaneError, RoveError
from rove.parts import interrupts
from rove.training import delivering, outcomes, progress, storage
from rove.training.evaluating import evaluated, expected
from rove.training.host_copies import HostCopies
from rove.training.host_programs import Packs, programs_for
from rove.training.lane import LOG_CAPACITY, UNLIMITED, Lane
from rove.training.outcomes import Job, Outcome
from rove.training.progress import Report, Saved, progress_of
from rove.training.solving import LAST
from rove.training.stepping import drained


def drive(
    jobs: Sequence[Job],
    report: Report,
    saved: Saved,
    stop: threading.Event,
    workers: int | None = None,
) -> list[Outcome | LaneError]:
    """Run jobs from their checkpoints to their end, or until `stop` is set.

    Jobs take turns, one step each; at most `workers` of them are active, by default all. Each job
    has its own compiled call. A single unrolled call for all jobs was 7% faster, and one with
    `vmap` 25%, but a program would have to be compiled for every number of jobs, and with `vmap`
    the bits of a job's results would depend on the other jobs. A job that is stopped is returned as
    it was last saved.
    """
    waiting = list(jobs)
    results: dict[int, Outcome | LaneError] = {}
    active: list[_Trainer] = []
    try:
        while (active or waiting) and not stop.is_set():
            interrupts.check()
            while waiting and len(active) < (workers or len(jobs)):
                job = waiting.pop(0)
                trainer = _Trainer(job, report, saved)
                active.append(trainer)
                _guarded(trainer, trainer.begin, results)
                if any(trainer.shares(other) for other in active if other is not trainer):
                    name = job.environment.name
                    reason = "pass a function that returns a new environment each time"
                    message = f"environment {name} is shared by several seeds: {reason}"
                    raise ConfigError("environment", name, reason, message)
            for trainer in active:
                _guarded(trainer, trainer.step, results)
            for trainer in [t for t in active if id(t.job) in results]:
                trainer.close()
                active.remove(trainer)
    finally:
        for trainer in active:
            trainer.close()
    results |= {id(job): storage.resumed(job) for job in jobs if id(job) not in results}
    return [results[id(job)] for job in jobs]


def check_resumable(job: Job) -> None:
    """Raise `LaneError` if a job that ended within an episode cannot be trained further."""
    trainer = _Trainer(job, progress.ignore, progress.ignore)
    try:
        trainer.begin()
    finally:
        trainer.close()


def _guarded(
    trainer: "_Trainer", action: Callable[[], None], results: dict[int, Outcome | LaneError]
) -> None:
    """Perform an action of a trainer, unless it has ended; record its end and its errors."""
    if id(trainer.job) in results:
        return
    job = trainer.job
    try:
        action()
        if trainer.outcome.finished:
            results[id(job)] = trainer.outcome
    except (BadEnvironment, ConfigError) as error:
        when = "while the environment was created"
        if trainer.copies is not None:
            step = trainer.steps + trainer.copies.turn + 1
            when = f"step {step:,} (episode {trainer.episodes + 1:,})"
        results[id(job)] = LaneError(f"{job.name}, {when}: {error}")
    except LaneError as error:
        results[id(job)] = error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        reason = str(error) if isinstance(error, RoveError) else repr(error)
        results[id(job)] = LaneError(f"{job.name}: {reason}")


class _Trainer:
    """Trains one seed: its environments, its arrays, and its own counts of steps and episodes.

    Counting on the host avoids transfers from the device.
    """

    def __init__(self, job: Job, report: Report, saved: Saved):
        assert isinstance(job.environment, HostEnvironment)
        self.job, self._report, self._saved = job, report, saved
        self._environment = job.environment
        self.copies: HostCopies | None = None
        self.steps = self.episodes = 0
        numbers, structure = jax.tree.flatten((job.agent, job.environment))
        self._numbers, self._programs = jax.device_put(numbers), programs_for(structure)
        self._learning_starts = int(job.agent.learning_starts)
        self.outcome: Any = None
        self._hot: Any = None
        self._cold: Any = None
        self._actions: Any = None
        self._chosen: Any = None
        self._unread = 0
        self._saved_at = self._read_at = self._reported_at = time.monotonic()
        self._reported_steps = 0

    def begin(self) -> None:
        """Begin from the job's checkpoint, or from step 0."""
        self.outcome = storage.resumed(self.job)
        lane = self.outcome.lane
        self.steps, self.episodes = int(lane.step), int(lane.episode)
        self._reported_steps = self.steps
        self._report_progress()
        if self.outcome.finished:
            return
        self.copies = HostCopies(self._environment, self.job.seed, self.outcome.episodes.step)
        between, same = self.copies.repeat(lane, self.outcome.unfinished)
        if not same:
            raise LaneError(
                f"{self.job.name} cannot be trained further: the run ended within an episode, and "
                f"{self._environment.name} does not repeat an episode when it is reset with the "
                "same seed. Train again in another folder, or with a number of episodes"
            )
        self._hot, self._cold = self._programs.pack(jax.tree.map(jnp.array, lane))
        if len(between) < self._environment.copies:
            self._hot, self._actions, self._chosen = self._programs.resume(self._numbers, self._hot)
        self._reset(between)

    def _take_lane(self) -> Lane:
        """Return the training state, which has to be packed again before the next step."""
        packs, self._hot, self._cold = Packs(self._hot, self._cold), None, None
        return self._programs.unpack(self._numbers, packs)

    def shares(self, other: "_Trainer") -> bool:
        """Whether two trainers use the same environment object."""
        a, b = (trainer.copies.objects if trainer.copies else set() for trainer in (self, other))
        return not a.isdisjoint(b)

    def step(self) -> None:
        """Lines 2.4–2.15: take the chosen action, store, learn, and choose the next action, for
        every copy of the environment."""
        assert self.copies is not None
        *chosen, fault = np.asarray(self._chosen).tolist()  # waits for the previous update
        if fault:
            self._end([], over=True)  # reports the fault
            return
        responses, ended = self.copies.step(chosen)
        self.steps += self._environment.copies
        learn = self.steps >= self._learning_starts
        self._hot, self._actions, self._chosen = self._programs.step(
            self._numbers, self._hot, self._actions, responses, learn
        )
        for copy, terminated in ended:
            packs = Packs(self._hot, self._cold)
            self._hot, self._cold = self._programs.end(self._numbers, packs, copy, terminated)
            self.episodes += 1
            self.copies.end(copy, self.episodes + self._environment.copies - 1)
        if expected(self.job, self.steps, self.episodes) > len(self.outcome.evaluations.step):
            lane = self._take_lane()
            self.outcome = evaluated(self.outcome, lane)
            self._hot, self._cold = self._programs.pack(lane)
        over = self.steps >= self.job.steps or self.episodes >= self.job.episodes
        over = over or self.outcome.finished
        if ended and self.job.in_a_row < UNLIMITED:
            streak = self._programs.streak(self._numbers, self._cold)
            over = over or int(streak) >= self.job.in_a_row
        if ended or over:
            self._end([copy for copy, _ in ended], over)
        elif time.monotonic() - self._reported_at > 2 * progress.CHUNK_SECONDS:  # a long episode
            self._report_progress()

    def _end(self, ended: list[int], over: bool) -> None:
        """End an episode of some copies, or the run if it is over; read the log and save it if that
        is due."""
        assert self.copies is not None
        self._unread += len(ended)
        now = time.monotonic()
        due = now - self._saved_at > progress.CHECKPOINT_SECONDS
        full = self._unread + self._environment.copies > LOG_CAPACITY
        stale = full or now - self._read_at > progress.CHUNK_SECONDS
        stale = stale or (self.job.stop_at is not None and self.episodes >= LAST)
        if over or due or stale:
            lane = self._take_lane()
            outcome, self._read_at = outcomes.extended(self.outcome, lane), now
            outcome = outcome._replace(unfinished=self.copies.unfinished)
            over = outcome.finished
            if over:
                outcome = delivering.finished(outcome)
            if self.job.path is not None and (over or due):
                storage.save(outcome)
                self._saved(self.job, outcome.tables)
                self._saved_at = time.monotonic()
            if over:
                self.outcome = outcomes.retired(outcome)
            else:  # keep what reports need, and pass the arrays on
                without: dict[str, Any] = dict.fromkeys(("agent", "log", "snapshots"))
                read = jax.tree.map(np.array, lane._replace(**without))
                self.outcome = outcome._replace(lane=read)
                self._hot, self._cold = self._programs.pack(drained(lane))
            self._report_progress()
            self._unread = 0
        if not over:
            self._reset(ended)

    def close(self) -> None:
        if self.copies is not None:
            self.copies.close()

    def _reset(self, copies: list[int]) -> None:
        """Begin an episode in some copies of the environment."""
        assert self.copies is not None
        for copy in copies:
            observation = self.copies.reset(copy)
            self._hot, self._actions, self._chosen = self._programs.begin(
                self._numbers, self._hot, copy, observation
            )

    def _report_progress(self) -> None:
        now = time.monotonic()
        speed = (self.steps - self._reported_steps) / max(now - self._reported_at, 1e-6)
        self._report(progress_of(self.outcome, self.steps, self.episodes, speed))
        self._reported_at, self._reported_steps = now, self.steps
