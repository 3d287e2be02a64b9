"""Evaluation of the greedy policy during training, every N episodes or steps.

It does not affect training: it plays separate episodes (see `playing`), and training pauses for it
between two steps, which does not change its results.
"""

import jax
import numpy as np

from rove.training.conclusion import FIELDS
from rove.training.inspecting import inspect
from rove.training.lane import BEST, Lane, kept_parts
from rove.training.outcomes import Evaluations, Job, Outcome
from rove.training.playing import episodes_of, scores_of
from rove.training.solving import LAST

POLICY = "mean"
"""The policy that is evaluated: greedy on the posterior mean."""


def evaluated(outcome: Outcome, lane: Lane) -> Outcome:
    """Return an outcome with an evaluation of its lane, if that is due. The network of the best
    evaluation, and of the latest of equal ones, is kept."""
    job, before = outcome.job, outcome.evaluations
    due = expected(job, int(lane.step), int(lane.episode)) > len(before.step)
    if not due or outcome.diverged or int(lane.fault):
        return outcome
    played = episodes_of(POLICY, job.agent, job.environment, lane, job.eval_episodes)
    scores, network = scores_of(job.environment, played), inspect(job, lane, played)
    row = np.full(len(FIELDS), np.nan) if network is None else np.array(network.row)
    best = not len(before.step) or np.mean(scores) >= np.max(before.mean)
    after = Evaluations(
        step=np.append(before.step, np.int32(lane.step)),
        episode=np.append(before.episode, np.int32(lane.episode)),
        scores=np.vstack([before.scores, scores]),
        network=_stacked(before.network, row),
    )
    outcome = outcome._replace(evaluations=after)
    if best:
        parts = jax.tree.map(np.array, kept_parts(lane))
        outcome = outcome._replace(kept=outcome.kept | {BEST: parts})
    return outcome._replace(finished=outcome.finished or outcome.stopped)


def _stacked(rows: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Append a row to a table. What is narrower is filled with NaN: a row of an agent, or of an
    earlier version, that said nothing about layers."""
    width = max(rows.shape[-1], len(row))
    filled = [np.append(x, np.full(width - len(x), np.nan)) for x in (*rows, row)]
    return np.stack(filled)


def expected(job: Job, step: int, episode: int) -> int:
    """Return the number of evaluations of a job that has reached a step and an episode."""
    count = step if job.goal[0] == "step" else episode
    return count // job.eval_every if job.eval_every else 0


def next_pause(outcome: Outcome) -> tuple[int, int]:
    """Return the step and the episode at which training pauses next: at the end of its budget, for
    an evaluation, or to see whether it has reached the score at which to stop."""
    job, lane = outcome.job, outcome.lane
    limits = {"step": job.steps, "episode": job.episodes}
    if job.eval_every:
        unit, goal = job.goal
        count = int(getattr(lane, unit))
        limits[unit] = min(goal, count - count % job.eval_every + job.eval_every)
    elif job.stop_at is not None:
        limits["episode"] = min(job.episodes, max(int(lane.episode) + 1, LAST))
    return limits["step"], limits["episode"]
