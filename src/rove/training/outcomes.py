"""The training of one seed: its job and its outcome, as stored on the host.

The state of the training on the device is a `Lane`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rove.core.learner import Learner
from rove.environments.base import Task
from rove.environments.host import HostEnvironment
from rove.errors import LaneError
from rove.training.conclusion import FIELDS, Conclusion
from rove.training.lane import FAULTS, SNAPSHOTS, UNLIMITED, Lane, start
from rove.training.solving import LAST, reaches

_start = jax.jit(start)


@dataclass(frozen=True)
class Job:
    """The training of one agent on one environment with one seed."""

    agent: Learner
    environment: Task
    seed: int
    episodes: int = UNLIMITED
    steps: int = UNLIMITED
    in_a_row: int = UNLIMITED
    """Number of optimal episodes in a row after which to stop."""
    path: Path | None = None
    """Path of its checkpoint, if it has one."""
    name: str = ""
    """Its name in messages."""
    run: str = ""
    """Hash of its agent and environment, so that the checkpoint of another run is not used."""
    extendable: bool = False
    """Whether its last checkpoint contains all that is needed to extend it, such as the replay."""
    eval_every: int | None = None
    """Number of episodes, or of steps if they are its budget, between evaluations."""
    eval_episodes: int = 0
    """Number of episodes of an evaluation."""
    stop_at: float | None = None
    """Score at which to stop; see `Outcome.stopped`."""
    delivers: bool = False
    """Whether it ends with a `Conclusion`, which takes seconds."""

    @property
    def identity(self) -> str:
        """The text that identifies the job in its checkpoint."""
        return f"{self.run} seed {self.seed}"

    @property
    def goal(self) -> tuple[str, int]:
        """Its budget: the unit, "step" or "episode", and the number of them to train for."""
        by_steps = self.episodes == UNLIMITED
        return ("step", self.steps) if by_steps else ("episode", self.episodes)

    @property
    def folder(self) -> Path:
        """The run folder its checkpoint is in."""
        assert self.path is not None
        return self.path.parent.parent


class Episodes(NamedTuple):
    """Results of the episodes so far: arrays with one entry per episode."""

    returns: np.ndarray
    """Undiscounted sum of the rewards."""
    length: np.ndarray
    """Number of steps."""
    step: np.ndarray
    """The training step at which the episode ended."""
    terminated: np.ndarray
    """Whether the episode terminated, rather than being truncated."""
    spread: np.ndarray
    """Standard deviation of Q_θ over θ ~ q_φ, averaged over the probe states and actions."""
    return_spread: np.ndarray
    """Standard deviation of Z, averaged in the same way."""
    coverage: np.ndarray
    """Number of cells visited so far."""


class Evaluations(NamedTuple):
    """Evaluations of the greedy policy during training: arrays with one entry per evaluation."""

    step: np.ndarray
    """The training step at which it was evaluated."""
    episode: np.ndarray
    """The number of training episodes before."""
    scores: np.ndarray
    """The scores of its episodes, of shape [evaluations, episodes]."""
    network: np.ndarray
    """What the network said: an `Inspection.row` each, of NaN for an agent without one."""

    @property
    def mean(self) -> np.ndarray:
        """The mean score of each evaluation."""
        return self.scores.mean(axis=1)


def no_evaluations(episodes: int = 0) -> Evaluations:
    """Return an empty table of evaluations, each with the given number of episodes."""
    none = np.zeros(0, np.int32)
    return Evaluations(none, none, np.zeros((0, max(episodes, 1))), np.zeros((0, len(FIELDS))))


class Tables(NamedTuple):
    """The results of a job so far, as tables."""

    episodes: Episodes
    evaluations: Evaluations = no_evaluations()


def structures(jobs: Sequence[Job]) -> list[Any]:
    """Return the tree structure of each job's agent and environment.

    Jobs with the same structure share a compiled program. It is computed once for jobs that share
    these objects, such as those of one run.
    """
    structure_of: dict[tuple[int, int], Any] = {}
    for job in jobs:
        key = id(job.agent), id(job.environment)
        if key not in structure_of:
            structure_of[key] = jax.tree.structure((job.agent, job.environment))
    return [structure_of[id(job.agent), id(job.environment)] for job in jobs]


class Unfinished(NamedTuple):
    """The episodes of a Gymnasium environment that a job was in the middle of: repeating their
    actions restores the state of the environment."""

    actions: np.ndarray = np.zeros((0, 1), np.float32)
    """The actions of the current episode; if there are copies of the environment, of each in
    turn."""
    columns: np.ndarray = np.zeros((0, 1), np.float32)
    """The last observation of each copy, to see whether its state is the same."""


UNFINISHED = Unfinished()


class Outcome(NamedTuple):
    """The results of a job so far: its episodes, and the state that it resumes from."""

    job: Job
    episodes: Episodes
    lane: Lane
    finished: bool = False
    diverged: str = ""
    """Why the job diverged, or empty. A diverged job counts as finished."""
    unfinished: Unfinished = UNFINISHED
    evaluations: Evaluations = no_evaluations()
    kept: dict[str, Any] = {}  # noqa: RUF012  (never changed in place)
    """The parts of earlier or later networks that policies need, by the name of the policy; see
    `rove.training.delivering`."""
    conclusion: Conclusion | None = None
    """What was concluded at the end, if it has been reached."""

    @property
    def tables(self) -> Tables:
        """The results as tables."""
        return Tables(self.episodes, self.evaluations)

    @property
    def scores(self) -> np.ndarray:
        """The environment's score of every episode."""
        played = self.episodes
        return self.job.environment.score(played.returns, played.length, played.terminated)

    @property
    def stopped(self) -> bool:
        """Whether the job has reached the score at which to stop: by the mean of its last
        evaluation or, without evaluations during training, of its last 20 episodes."""
        job = self.job
        if job.stop_at is None:
            return False
        if job.eval_every:
            return any(reaches(row, job.stop_at) for row in self.evaluations.scores[-1:])
        recent = self.scores[-LAST:]
        return len(recent) == LAST and reaches(recent, job.stop_at)

    @property
    def history(self) -> np.ndarray:
        """Visits in episodes 1, 2, 3–4, 5–8, 9–16 and so on, of shape [periods, cells]."""
        num_snapshots = min(len(self.episodes.returns).bit_length(), SNAPSHOTS)
        counts = np.asarray(self.lane.snapshots.visits)[:num_snapshots]
        if counts.size and len(self.episodes.returns) > 2 ** (num_snapshots - 1):
            counts = np.vstack([counts, self.visits])
        return np.diff(counts, axis=0, prepend=0)

    @property
    def visits(self) -> np.ndarray:
        """The number of episodes that visited each cell."""
        return np.asarray(self.lane.visits)


def fresh(job: Job) -> Outcome:
    """Return a job's outcome at step 0."""
    kinds = (np.float32, np.int32, np.int32, np.bool_, np.float32, np.float32, np.int32)
    lane = _start(job.agent, job.environment, jnp.asarray(job.seed, jnp.int32))
    episodes = Episodes(*(np.zeros(0, kind) for kind in kinds))
    return Outcome(job, episodes, lane, evaluations=no_evaluations(job.eval_episodes))


def extended(before: Outcome, lane: Lane) -> Outcome:
    """Return the outcome after `lane` has run further.

    Raises `LaneError` if the environment returned a number that is not finite, a mask without an
    allowed action, or rewards whose sum is not finite. If the agent computed such a number, the job
    ends and keeps the episodes completed before.
    """
    job, fault = before.job, FAULTS[int(lane.fault)]
    problem = f"{job.name}: the {fault} was not a finite number at step {int(lane.step):,}"
    if fault in ("observation", "reward"):
        raise LaneError(f"{problem}; fix the environment")
    if fault == "action_mask":
        problem = f"{job.name}: action_mask allowed no action at step {int(lane.step):,}; at least "
        raise LaneError(f"{problem}one must be allowed unless the task has terminated")
    remedy = "a smaller lr"
    if hasattr(job.agent, "reward_scale"):
        remedy += " or, if rewards are not about 1, another reward_scale"
    diverged = f"{problem} (try {remedy})" if fault else ""
    if fault == "optimiser":
        remedy = "a smaller lr, smaller rewards, a larger sigma or a wider prior"
        diverged = f"{job.name}: the square of a gradient overflowed (try {remedy})"
    # Episodes that ended in the faulty step do not count. In a Gymnasium environment, an action
    # that is not finite is never taken, so that no episode ended in that step.
    not_taken = fault == "action" and isinstance(job.environment, HostEnvironment)
    count, last_round = int(lane.log.count), int(lane.step) - job.environment.copies
    if diverged and not not_taken:
        count = int(np.sum(np.asarray(lane.log.step)[:count] <= last_round))
    episodes = Episodes(
        *(
            np.concatenate([old, np.asarray(new)[:count]])
            for old, new in zip(before.episodes, lane.log[1:], strict=True)
        )
    )
    overflowed = np.flatnonzero(~np.isfinite(episodes.returns))
    if len(overflowed) and not diverged:
        problem = f"{job.name}: the return of episode {overflowed[0] + 1:,} was not a finite number"
        raise LaneError(f"{problem} in float32; divide the rewards of the environment")
    lane = lane._replace(episode=lane.episode - (lane.log.count - count))
    limits = ((lane.step, job.steps), (lane.episode, job.episodes), (lane.streak, job.in_a_row))
    finished = bool(diverged) or any(int(reached) >= limit for reached, limit in limits)
    evaluations = before.evaluations
    kept = {name: parts for name, parts in before.kept.items() if name == "best"}
    outcome = Outcome(job, episodes, lane, finished, diverged, evaluations=evaluations, kept=kept)
    return outcome._replace(finished=finished or outcome.stopped)


def retired(outcome: Outcome) -> Outcome:
    """Return the outcome, `without_memory` if it is finished."""
    return outcome._replace(lane=without_memory(outcome.lane)) if outcome.finished else outcome


def without_memory(lane: Lane) -> Lane:
    """Return a lane without the parts that only learning needs: replay buffer, optimiser, target
    and the state of the intrinsic reward."""
    memory = lane.agent.replay
    no_bytes = None if memory.bytes is None else memory.bytes[:0]
    memory = memory._replace(rows=memory.rows[:0], bytes=no_bytes, priorities=None)
    agent = lane.agent._replace(replay=memory, optimiser=None, phi_target=None, bonus=None)
    return lane._replace(agent=agent)
