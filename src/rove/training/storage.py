"""Saving the outcome of a job to its checkpoint, and loading it."""

import os
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove.errors import RunFolderError
from rove.parts import replay
from rove.training import checkpoint
from rove.training.conclusion import FIELDS, Conclusion
from rove.training.evaluating import expected
from rove.training.lane import BEST, SETTLED, Lane, kept_parts, start
from rove.training.outcomes import (
    UNFINISHED,
    Episodes,
    Evaluations,
    Job,
    Outcome,
    Tables,
    Unfinished,
    fresh,
    retired,
    without_memory,
)

BLOCK = 2**22
"""Number of bytes that are compressed at a time."""
_ROWS = {"rows": "replay", "bytes": "replay.bytes"}
"""Names of the parts of a replay buffer in a checkpoint."""
_NONE = UNFINISHED._asdict()
"""Names of the parts of unfinished episodes in a checkpoint, and their values if there are none."""


def save(outcome: Outcome) -> None:
    """Write a checkpoint: everything that is needed to resume, and the episodes so far.

    The replay buffer is compressed: many environments have one-hot observations.
    """
    job = outcome.job
    assert job.path is not None
    outcome = outcome if job.extendable else retired(outcome)
    lane, memory = outcome.lane, outcome.lane.agent.replay
    arrays = checkpoint.flatten(_without_log_and_rows(lane))
    arrays |= {f"episodes.{k}": v for k, v in outcome.episodes._asdict().items()}
    if job.eval_every:
        arrays |= {f"evaluations.{k}": v for k, v in outcome.evaluations._asdict().items()}
    for name, rows in _rows(memory).items():
        rows = _compressed(np.asarray(rows)[: int(memory.added)])
        arrays[_ROWS[name]] = np.frombuffer(rows, np.uint8)
    arrays |= outcome.unfinished._asdict()
    for name, parts in outcome.kept.items():
        arrays |= {f"kept.{name}{k}": v for k, v in checkpoint.flatten(parts).items()}
    ended = outcome.conclusion
    metadata = {
        "job": job.identity,
        "diverged": outcome.diverged,
        "stopped": outcome.stopped,
        "has_replay": len(memory.rows) > 0,
        "step": int(lane.step),
        "episode": int(lane.episode),
        "streak": int(lane.streak),
        "conclusion": None if ended is None else ended.as_json(),
    }
    checkpoint.save_arrays(job.path, arrays, metadata)


def load(job: Job) -> Outcome:
    """Load a job's outcome from its checkpoint; if it is finished, `without_memory`."""
    return _loaded(job, *_read(job))


def load_whole(job: Job) -> Lane | None:
    """Load the lane in a job's checkpoint with its replay buffer, also of a finished job; None if
    it was written without one."""
    arrays, metadata = _read(job)
    return _loaded(job, arrays, metadata, whole=True).lane if metadata.get("has_replay") else None


def _loaded(
    job: Job, arrays: dict[str, np.ndarray], metadata: dict[str, Any], whole: bool = False
) -> Outcome:
    assert job.path is not None
    finished = _finished(job, metadata) and not whole
    if not finished and not metadata.get("has_replay"):
        raise RunFolderError(
            f"{job.path} cannot be extended: it was written without its replay buffer. "
            "Train again in another folder"
        )
    seed = jax.ShapeDtypeStruct((), jnp.int32)
    template: Any = jax.eval_shape(start, job.agent, job.environment, seed)
    template = jax.eval_shape(without_memory, template) if finished else template
    lane = checkpoint.unflatten(_without_log_and_rows(template), arrays, job.path)
    tables, added = _tables(job, arrays, metadata), int(lane.agent.replay.added)
    counts = [int(getattr(lane, key)) == metadata[key] for key in ("step", "episode", "streak")]
    ended = len(tables.episodes.returns)
    if not all(counts) or ended != lane.episode or not 0 <= added <= lane.step:
        raise _damaged(job.path, "its numbers of steps and episodes contradict each other")
    memory = lane.agent.replay
    for name, shape in _rows(template.agent.replay).items():
        rows = np.zeros(shape.shape, shape.dtype)
        if len(rows):
            _fill(rows, added, arrays.get(_ROWS[name]), job.path)
        memory = memory._replace(**{name: jnp.array(rows)})
    agent = lane.agent._replace(replay=memory)
    log = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), template.log)
    kept, conclusion = _kept(lane, arrays, job.path), conclusion_of(metadata)
    if conclusion is not None and conclusion.delivered.policy in {BEST, SETTLED} - kept.keys():
        conclusion = None
    return Outcome(
        job=job,
        episodes=tables.episodes,
        evaluations=tables.evaluations,
        lane=lane._replace(agent=agent, log=log),
        finished=finished,
        diverged=str(metadata.get("diverged", "")),
        unfinished=Unfinished(*(arrays.get(key, none) for key, none in _NONE.items())),
        kept=kept,
        conclusion=conclusion if finished else None,
    )


def _kept(lane: Lane, arrays: dict[str, np.ndarray], path: Path) -> dict[str, Any]:
    """Return the parts of other networks in a checkpoint, by the name of the policy."""
    kept = {}
    for name in (BEST, SETTLED):
        prefix = f"kept.{name}"
        own = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        if own:
            parts = checkpoint.unflatten(kept_parts(lane), own, path)
            kept[name] = jax.tree.map(np.array, parts)
    return kept


def conclusion_of(metadata: dict[str, Any]) -> Conclusion | None:
    """Return the conclusion in a checkpoint's description; None if there is none that is valid."""
    try:
        conclusion = Conclusion.from_json(metadata["conclusion"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    return conclusion if conclusion.step == metadata["step"] else None


def _fill(rows: np.ndarray, added: int, saved: np.ndarray | None, path: Path) -> None:
    """Decompress the rows of a replay buffer, given the number of transitions `added` so far."""
    count = min(added, len(rows))
    target = rows[:count].reshape(-1).view(np.uint8)
    reader, filled = zlib.decompressobj(), 0
    try:
        rest = np.asarray(saved, np.uint8).tobytes()
        while filled < len(target) and (
            block := reader.decompress(rest, min(BLOCK, len(target) - filled))
        ):
            target[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
            filled, rest = filled + len(block), reader.unconsumed_tail
    except (zlib.error, TypeError, ValueError):
        filled = -1
    if filled != len(target):
        raise _damaged(path, f"its replay buffer does not have {count:,} transitions")


def _compressed(rows: np.ndarray) -> bytes:
    """Compress the rows of a replay buffer in blocks, so that no copy of all rows is needed."""
    writer = zlib.compressobj(level=1)
    data = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
    blocks = [writer.compress(data[i : i + BLOCK].tobytes()) for i in range(0, len(data), BLOCK)]
    return b"".join([*blocks, writer.flush()])


def is_done(metadata: dict[str, Any], steps: int, episodes: int, in_a_row: int) -> bool:
    """Whether a checkpoint with the given description diverged or has reached a limit.

    Raises `ValueError` if the description lacks its progress.
    """
    if not isinstance(metadata.get("diverged"), str):
        raise ValueError("it does not say whether it diverged")
    reached = bool(metadata["diverged"]) or metadata.get("stopped") is True
    for key, limit in (("step", steps), ("episode", episodes), ("streak", in_a_row)):
        count = metadata.get(key)
        if type(count) is not int or count < 0:
            raise ValueError(f"its number of {key}s is not valid")
        reached |= count >= limit
    return reached


def _finished(job: Job, metadata: dict[str, Any]) -> bool:
    """Whether a checkpoint with the given description has reached a limit of the job."""
    assert job.path is not None
    try:
        return is_done(metadata, job.steps, job.episodes, job.in_a_row)
    except ValueError as error:
        raise _damaged(job.path, str(error)) from None


def stopped_mid_episode(job: Job) -> bool:
    """Whether the job's checkpoint was written within an episode of a Gymnasium environment."""
    return exists(job) and len(_read(job, "actions")[0].get("actions", ())) > 0


def resumed(job: Job) -> Outcome:
    """Return the outcome in the job's checkpoint, or a fresh one if there is none."""
    return load(job) if exists(job) else fresh(job)


def exists(job: Job) -> bool:
    """Whether the job has a checkpoint."""
    return job.path is not None and os.path.lexists(job.path)


def is_finished(job: Job) -> bool:
    """Whether the job is finished according to its checkpoint."""
    return exists(job) and load_tables(job)[1]


def load_tables(job: Job) -> tuple[Tables, bool]:
    """Read a job's tables, and whether it is finished, without the rest of its checkpoint."""
    arrays, metadata = _read(job, ("episodes.", "evaluations."))
    finished = _finished(job, metadata)
    return _tables(job, arrays, metadata), finished


def _tables(job: Job, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> Tables:
    """Return the tables in a checkpoint with a valid description."""
    assert job.path is not None
    episodes = _episodes(arrays, job.path, job.environment.copies)
    if not job.eval_every:
        return Tables(episodes)
    try:
        step, episode, scores = (arrays[f"evaluations.{x}"] for x in ("step", "episode", "scores"))
    except KeyError as error:
        raise _damaged(job.path, f"{error} is missing") from None
    network = arrays.get("evaluations.network", np.full((len(step), len(FIELDS)), np.nan))
    evaluations = Evaluations(step, episode, scores, network)
    width = evaluations.network.shape[-1] if evaluations.network.ndim == 2 else 0
    count = expected(job, metadata["step"], metadata["episode"])
    if metadata["diverged"]:  # it may have diverged when an evaluation was due
        count = len(evaluations.step)
    shapes = [(count,), (count,), (count, job.eval_episodes), (count, max(width, len(FIELDS)))]
    finite = bool(np.isfinite(evaluations.scores).all())
    if not finite or [column.shape for column in evaluations] != shapes:
        raise _damaged(job.path, "its evaluations contradict its episodes")
    return Tables(episodes, evaluations)


def _episodes(arrays: dict[str, np.ndarray], path: Path, copies: int) -> Episodes:
    try:
        episodes = Episodes(*(arrays[f"episodes.{field}"] for field in Episodes._fields))
    except KeyError as error:
        raise _damaged(path, f"{error} is missing") from None
    if len({column.shape for column in episodes}) != 1 or episodes.returns.ndim != 1:
        raise _damaged(path, "its columns differ in length")
    rounds, copy = np.divmod(episodes.step - 1, copies)  # copies of the environment take turns
    by_copy = np.argsort(copy, kind="stable")
    lengths = np.diff(rounds[by_copy], prepend=-1)
    first = np.diff(copy[by_copy], prepend=-1) > 0
    lengths[first] = rounds[by_copy][first] + 1
    same = np.array_equal(lengths, episodes.length[by_copy])
    if not np.isfinite(episodes.returns).all() or not same or np.any(np.diff(episodes.step) <= 0):
        raise _damaged(path, "its episodes contradict each other")
    return episodes


def _damaged(path: Path, reason: str) -> RunFolderError:
    return RunFolderError(f"{path} is damaged ({reason}); remove it to train this seed again")


def _read(
    job: Job, prefix: str | tuple[str, ...] = ""
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays of a job's checkpoint whose names begin with `prefix`, or one of several, and
    its description.

    Raises `RunFolderError` if the checkpoint belongs to another job.
    """
    assert job.path is not None
    arrays, metadata = checkpoint.load_arrays(job.path, prefix)
    if metadata.get("job") != job.identity:
        raise RunFolderError(
            f"{job.path} is the checkpoint of another run or seed: its agent or environment "
            "differs. Pass the same ones, or train in another folder"
        )
    return arrays, metadata


def _without_log_and_rows(lane: Any) -> Any:
    """Return a lane without its log, which is empty, and without the rows of its replay buffer.

    The rows are stored separately.
    """
    agent = lane.agent._replace(replay=replay.with_rows(lane.agent.replay))
    return lane._replace(agent=agent, log=None)


def _rows(memory: replay.Replay) -> dict[str, Any]:
    """Return the rows of a replay buffer by name: columns and, if it has them, bytes."""
    return {name: x for name in _ROWS if (x := getattr(memory, name)) is not None}
