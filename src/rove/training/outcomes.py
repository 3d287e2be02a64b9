"""A lane as the host sees it: what it is to do, what came of it, and its file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rove.core.learner import Learner
from rove.environments.base import Task
from rove.errors import LaneError, RunFolderError
from rove.training import checkpoint
from rove.training.lane import FAULTS, UNLIMITED, Lane, start

_start = jax.jit(start)


@dataclass(frozen=True)
class Job:
    """What a lane is to do."""

    agent: Learner
    environment: Task
    seed: int
    episodes: int = UNLIMITED
    steps: int = UNLIMITED
    in_a_row: int = UNLIMITED
    """Stop after so many optimal episodes in a row."""
    path: Path | None = None
    """Where its checkpoint is, if it has one."""
    name: str = ""
    """How to call it in messages."""
    run: str = ""
    """What tells its run from others, so that a checkpoint is not taken for another's."""

    @property
    def identity(self) -> str:
        return f"{self.run} seed {self.seed}"

    @property
    def goal(self) -> tuple[str, int]:
        """What it counts, and how many of them it is to do."""
        by_steps = self.episodes == UNLIMITED
        return ("step", self.steps) if by_steps else ("episode", self.episodes)

    @property
    def folder(self) -> Path:
        """The run folder its checkpoint is in."""
        assert self.path is not None
        return self.path.parent.parent


class Episodes(NamedTuple):
    """One entry an episode."""

    returns: np.ndarray
    length: np.ndarray
    step: np.ndarray
    terminated: np.ndarray
    spread: np.ndarray
    return_spread: np.ndarray
    coverage: np.ndarray


class Outcome(NamedTuple):
    """A lane so far: its episodes, and the pytree it goes on from."""

    job: Job
    episodes: Episodes
    lane: Lane
    finished: bool = False
    diverged: str = ""
    """If it did, what is to be said of it; it is finished then."""

    @property
    def scores(self) -> np.ndarray:
        """One entry an episode, as the environment scores it."""
        played = self.episodes
        return self.job.environment.score(played.returns, played.length, played.terminated)

    @property
    def visits(self) -> np.ndarray:
        return np.asarray(self.lane.visits)


def fresh(job: Job) -> Outcome:
    """A lane at step 0."""
    kinds = (np.float32, np.int32, np.int32, np.bool_, np.float32, np.float32, np.int32)
    lane = _start(job.agent, job.environment, jnp.asarray(job.seed, jnp.int32))
    return Outcome(job, Episodes(*(np.zeros(0, kind) for kind in kinds)), lane)


def extended(before: Outcome, lane: Lane) -> Outcome:
    """A lane after one more chunk. Raises where a number of its environment was not finite; where
    one of the agent's was not, the lane ends with the last episode before."""
    job, fault = before.job, FAULTS[int(lane.fault)]
    told = f"{job.name}: the {fault} was not a finite number at step {int(lane.step):,}"
    if fault in ("observation", "reward"):
        raise LaneError(told)
    diverged = f"{told} (try a smaller lr)" if fault else ""
    if not fault and _overflowed(lane.agent.optimiser):
        remedy = "smaller rewards, a larger sigma or a wider prior"
        diverged = f"{job.name}: a gradient was too large to be squared (try {remedy})"
    count = int(lane.log.count) - bool(diverged and int(lane.length) == 0)
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
    """Whether one of Adam's moments is infinite: its parameter would never move again."""
    return any(not np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(optimiser))


def _retired(lane: Lane) -> Lane:
    """A finished lane: it keeps what evaluation needs and lets go of what learning needed."""
    memory = lane.agent.replay
    memory = memory._replace(rows=memory.rows[:0])
    agent = lane.agent._replace(replay=memory, optimiser=None, phi_target=None)
    return lane._replace(agent=agent)


def save(outcome: Outcome) -> None:
    """Everything the lane's future depends on, and its log, in one file."""
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
    """A lane from its file."""
    assert job.path is not None
    arrays, about = _read(job)
    seed = jax.ShapeDtypeStruct((), jnp.int32)
    shape: Any = jax.eval_shape(start, job.agent, job.environment, seed)
    finished = bool(about.get("finished"))
    if finished:
        shape = jax.eval_shape(_retired, shape)
    lane = checkpoint.unflatten(_portable(shape), arrays, job.path)
    episodes = _episodes(arrays, job.path)
    rows = np.zeros(shape.agent.replay.rows.shape, np.float32)
    if not finished:
        kept = arrays.get("replay")
        if kept is None or kept.shape != rows[: len(kept)].shape:
            raise checkpoint.unlike(job.path, "the replay", kept, f"float32{list(rows.shape)}")
        rows[: len(kept)] = kept
    agent = lane.agent._replace(replay=lane.agent.replay._replace(rows=jnp.array(rows)))
    log = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape.log)
    diverged = str(about.get("diverged", ""))
    return Outcome(job, episodes, lane._replace(agent=agent, log=log), finished, diverged)


def resumed(job: Job) -> Outcome:
    """The lane as its file has it, or a fresh one."""
    return load(job) if exists(job) else fresh(job)


def exists(job: Job) -> bool:
    return job.path is not None and job.path.exists()


def over(job: Job) -> bool:
    """Whether its file says that the lane is finished."""
    return exists(job) and glance(job)[1]


def glance(job: Job) -> tuple[Episodes, bool]:
    """A lane's episodes, and whether it is finished, without the rest of its file."""
    assert job.path is not None
    arrays, about = _read(job, "episodes.")
    return _episodes(arrays, job.path), bool(about.get("finished"))


def _episodes(arrays: dict[str, np.ndarray], path: Path) -> Episodes:
    try:
        episodes = Episodes(*(arrays[f"episodes.{field}"] for field in Episodes._fields))
    except KeyError as error:
        raise RunFolderError(f"{path} is not a checkpoint of this run: no {error}") from None
    if len({column.shape for column in episodes}) != 1 or episodes.returns.ndim != 1:
        raise RunFolderError(f"{path} is not a checkpoint of this run: its columns do not match")
    return episodes


def _read(job: Job, start: str = "") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A lane's file, if it is this lane's."""
    assert job.path is not None
    arrays, about = checkpoint.load_arrays(job.path, start)
    if about.get("lane") != job.identity:
        raise RunFolderError(
            f"{job.path} is the checkpoint of another lane; remove it to train this one again"
        )
    return arrays, about


def _portable(lane: Any) -> Any:
    """A lane without what is stored apart (the replay's rows) or drained (the log)."""
    agent = lane.agent._replace(replay=lane.agent.replay._replace(rows=None))
    return lane._replace(agent=agent, log=None)
