"""The settled policy of a seed, which is greedy on the posterior mean after `core.settling`.

It is computed when it is first needed, from the replay buffer in the seed's checkpoint, and written
to the folder settled/ of the run folder. It is the same whenever it is computed: a function of the
checkpoint.
"""

import contextlib
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rove.core.settling import can_settle, settled
from rove.errors import ConfigError, RunFolderError
from rove.parts import noise
from rove.training import checkpoint, storage
from rove.training.lane import SETTLING, Lane
from rove.training.outcomes import Outcome

SETTLED = "settled"
"""The name of the policy."""


def lane_for(outcome: Outcome, policy: str) -> Lane:
    """Return the lane that a policy of a seed is played with; raise `ConfigError` if the settled
    policy is not known."""
    if policy != SETTLED:
        return outcome.lane
    lane = settled_lane(outcome)
    if lane is None:
        need = "a run that was trained in a run folder, which has the replay buffer"
        message = f"policy = {SETTLED!r} needs {need}; train it again with out=FOLDER"
        raise ConfigError("policy", policy, need, message)
    return lane


def settled_lane(outcome: Outcome) -> Lane | None:
    """Return the lane with the settled φ; None if there is no replay buffer to learn from, if
    learning has not begun, or if a number is not finite."""
    job, path = outcome.job, path_of(outcome)
    if path is None or not can_settle(job.agent):
        return None
    parts = _saved(outcome, path)
    if parts is None and (parts := _computed(outcome)) is not None:
        with contextlib.suppress(OSError):  # a folder that cannot be written to
            _save(outcome, parts, path)
    if parts is None:
        return None
    phi, actor = parts
    return outcome.lane._replace(agent=outcome.lane.agent._replace(phi=phi, actor=actor))


def is_known(outcome: Outcome) -> bool:
    """Whether the settled policy has been computed at this step."""
    path = path_of(outcome)
    return path is not None and _saved(outcome, path) is not None


def copy(outcome: Outcome, to: Outcome) -> None:
    """Write the settled policy of a seed, if it is known, for the same seed in another folder."""
    path, new = path_of(outcome), path_of(to)
    if path and new and (parts := _saved(outcome, path)) is not None:
        _save(to, parts, new)


def path_of(outcome: Outcome) -> Path | None:
    """Return the path of the file; None without a run folder."""
    path = outcome.job.path
    return None if path is None else outcome.job.folder / "settled" / path.name


def _save(outcome: Outcome, parts: tuple[Any, Any], path: Path) -> None:
    checkpoint.save_arrays(path, checkpoint.flatten(parts), _description(outcome))


def _saved(outcome: Outcome, path: Path) -> tuple[Any, Any] | None:
    """Return φ and the actor from the file; None if it is of another step, or not valid."""
    try:
        arrays, description = checkpoint.load_arrays(path)
        if description != _description(outcome):
            return None
        return checkpoint.unflatten(_parts(outcome.lane), arrays, path)
    except RunFolderError:
        return None


def _computed(outcome: Outcome) -> tuple[Any, Any] | None:
    job = outcome.job
    try:
        lane = storage.load_whole(job) if storage.exists(job) else None
    except RunFolderError:
        return None
    if lane is None or int(lane.step) != int(outcome.lane.step):
        return None
    if int(lane.step) < int(job.agent.learning_starts):
        return None
    key = noise.fold(noise.root(lane.seed), SETTLING)
    parts = _parts(lane._replace(agent=settled(job.agent, lane.agent, key)))
    return parts if all(np.isfinite(x).all() for x in jax.tree.leaves(parts)) else None


def _parts(lane: Lane) -> tuple[Any, Any]:
    return lane.agent.phi, lane.agent.actor


def _description(outcome: Outcome) -> dict[str, Any]:
    return {"job": outcome.job.identity, "step": int(outcome.lane.step)}
