"""The training of one seed on the host (NumPy and files): its job, its outcome and its checkpoint.

A lane is the state of one seed's training on the device.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rove.core.learner import Learner
from rove.environments.base import Task
from rove.environments.host import HostEnvironment
from rove.errors import LaneError, RunFolderError
from rove.training import checkpoint
from rove.training.lane import FAULTS, UNLIMITED, Lane, start

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
    """Hash of its run's configuration, so that the checkpoint of another run is not used."""

    @property
    def identity(self) -> str:
        """Identifies the job in its checkpoint."""
        return f"{self.run} seed {self.seed}"

    @property
    def goal(self) -> tuple[str, int]:
        """The unit of its budget, "step" or "episode", and how many of them to train for."""
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


class Outcome(NamedTuple):
    """The results of a job so far: its episodes, and the state that it resumes from."""

    job: Job
    episodes: Episodes
    lane: Lane
    finished: bool = False
    diverged: str = ""
    """Why the job diverged, or empty. A diverged job counts as finished."""

    @property
    def scores(self) -> np.ndarray:
        """The environment's score of every episode."""
        played = self.episodes
        return self.job.environment.score(played.returns, played.length, played.terminated)

    @property
    def history(self) -> np.ndarray:
        """Visits by episodes 1, 2 and 3, 4 to 7, 8 to 15, …, of shape [octaves, cells]."""
        return np.asarray(self.lane.history)

    @property
    def visits(self) -> np.ndarray:
        """The number of episodes that visited each cell."""
        return np.asarray(self.lane.visits)


def fresh(job: Job) -> Outcome:
    """Return a job's outcome at step 0."""
    kinds = (np.float32, np.int32, np.int32, np.bool_, np.float32, np.float32, np.int32)
    lane = _start(job.agent, job.environment, jnp.asarray(job.seed, jnp.int32))
    return Outcome(job, Episodes(*(np.zeros(0, kind) for kind in kinds)), lane)


def extended(before: Outcome, lane: Lane) -> Outcome:
    """Return the outcome after `lane` has run further.

    Raises `LaneError` if the environment returned a number that is not finite. If the agent
    computed one, the job ends and keeps the episodes completed before.
    """
    job, fault = before.job, FAULTS[int(lane.fault)]
    problem = f"{job.name}: the {fault} was not a finite number at step {int(lane.step):,}"
    if fault in ("observation", "reward"):
        raise LaneError(f"{problem}; fix the environment")
    diverged = f"{problem} (try a smaller lr)" if fault else ""
    if not fault and _overflowed(lane.agent.optimiser):
        remedy = "smaller rewards, a larger sigma or a wider prior"
        diverged = f"{job.name}: the square of a gradient overflowed (try {remedy})"
    # The episode that the faulty step ended does not count; on the host, an action that is not
    # finite is not taken, so that the last episode had ended before.
    not_taken = fault == "action" and isinstance(job.environment, HostEnvironment)
    ended = bool(diverged) and int(lane.length) == 0 and not not_taken
    count = max(int(lane.log.count) - ended, 0)
    episodes = Episodes(
        *(
            np.concatenate([old, np.asarray(new)[:count]])
            for old, new in zip(before.episodes, lane.log[1:], strict=True)
        )
    )
    limits = ((lane.step, job.steps), (lane.episode, job.episodes), (lane.streak, job.in_a_row))
    finished = bool(diverged) or any(int(reached) >= limit for reached, limit in limits)
    return Outcome(job, episodes, _retired(lane) if finished else lane, finished, diverged)


def _overflowed(optimiser: Any) -> bool:
    """Whether one of Adam's moments is infinite, so that its parameter would never change again."""
    return any(not np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(optimiser))


def _retired(lane: Lane) -> Lane:
    """Return a finished lane without what only learning needs, such as the replay buffer."""
    memory = lane.agent.replay
    memory = memory._replace(rows=memory.rows[:0])
    agent = lane.agent._replace(replay=memory, optimiser=None, phi_target=None)
    return lane._replace(agent=agent)


def save(outcome: Outcome) -> None:
    """Write a checkpoint: everything that is needed to resume, and the episodes so far."""
    assert outcome.job.path is not None
    memory = outcome.lane.agent.replay
    arrays = checkpoint.flatten(_portable(outcome.lane))
    arrays |= {f"episodes.{k}": v for k, v in outcome.episodes._asdict().items()}
    arrays["replay"] = np.asarray(memory.rows)[: int(memory.added)]
    about = {"finished": outcome.finished, "lane": outcome.job.identity}
    if outcome.diverged:
        about["diverged"] = outcome.diverged
    checkpoint.save_arrays(outcome.job.path, arrays, about)


def load(job: Job) -> Outcome:
    """Load a job's outcome from its checkpoint."""
    assert job.path is not None
    arrays, about = _read(job)
    seed = jax.ShapeDtypeStruct((), jnp.int32)
    shape: Any = jax.eval_shape(start, job.agent, job.environment, seed)
    finished = bool(about.get("finished"))
    if finished:
        shape = jax.eval_shape(_retired, shape)
        # Versions before this array existed: their finished runs can still be loaded.
        arrays.setdefault(".history", np.zeros(shape.history.shape, np.int32))
    lane = checkpoint.unflatten(_portable(shape), arrays, job.path)
    episodes = _episodes(arrays, job.path)
    rows = np.zeros(shape.agent.replay.rows.shape, np.float32)
    if not finished:
        saved = arrays.get("replay")
        if saved is None or saved.shape != rows[: len(saved)].shape:
            needed = f"float32{list(rows.shape)}"
            raise checkpoint.incompatible(job.path, "the replay", saved, needed)
        rows[: len(saved)] = saved
    agent = lane.agent._replace(replay=lane.agent.replay._replace(rows=jnp.array(rows)))
    log = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape.log)
    diverged = str(about.get("diverged", ""))
    return Outcome(job, episodes, lane._replace(agent=agent, log=log), finished, diverged)


def resumed(job: Job) -> Outcome:
    """Return the outcome in the job's checkpoint, or a fresh one if there is none."""
    return load(job) if exists(job) else fresh(job)


def exists(job: Job) -> bool:
    """Whether the job has a checkpoint."""
    return job.path is not None and job.path.exists()


def is_finished(job: Job) -> bool:
    """Whether the job is finished according to its checkpoint."""
    return exists(job) and load_episodes(job)[1]


def load_episodes(job: Job) -> tuple[Episodes, bool]:
    """Read a job's episodes, and whether it is finished, without the rest of its checkpoint."""
    assert job.path is not None
    arrays, about = _read(job, "episodes.")
    return _episodes(arrays, job.path), bool(about.get("finished"))


def _episodes(arrays: dict[str, np.ndarray], path: Path) -> Episodes:
    try:
        episodes = Episodes(*(arrays[f"episodes.{field}"] for field in Episodes._fields))
    except KeyError as error:
        raise _damaged(path, f"{error} is missing") from None
    if len({column.shape for column in episodes}) != 1 or episodes.returns.ndim != 1:
        raise _damaged(path, "its columns differ in length")
    return episodes


def _damaged(path: Path, why: str) -> RunFolderError:
    return RunFolderError(f"{path} is damaged ({why}); remove it to train this seed again")


def _read(job: Job, prefix: str = "") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays of a job's checkpoint whose names begin with `prefix`, and its description.

    Raises `RunFolderError` if the checkpoint belongs to another job.
    """
    assert job.path is not None
    arrays, about = checkpoint.load_arrays(job.path, prefix)
    if about.get("lane") != job.identity:
        raise RunFolderError(
            f"{job.path} is the checkpoint of another run or seed. Remove it to train seed "
            f"{job.seed} from the start"
        )
    return arrays, about


def _portable(lane: Any) -> Any:
    """Return a lane without its log, which is empty, and the replay's rows, which are stored
    separately."""
    agent = lane.agent._replace(replay=lane.agent.replay._replace(rows=None))
    return lane._replace(agent=agent, log=None)
