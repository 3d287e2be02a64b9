"""The end of a seed: the policy that it delivers, and a look inside its network.

The policy is the posterior mean (with evaluations during training, that of the best one), unless
another one is clearly better. It is chosen as soon as the seed has finished, where it was trained,
since that is where the replay buffer is.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from rove.core.policies import candidates_of
from rove.core.settling import can_settle, settled
from rove.errors import ConfigError, RoveError, RunFolderError
from rove.parts import noise
from rove.training import storage
from rove.training.conclusion import Conclusion, Delivered
from rove.training.inspecting import inspect
from rove.training.lane import (
    BEST,
    EVALUATION,
    SELECTION,
    SETTLED,
    SETTLING,
    Lane,
    kept_parts,
    with_parts,
)
from rove.training.outcomes import Outcome
from rove.training.playing import episodes_of, play, scores_of
from rove.training.solving import is_optimal

EPISODES = 20
"""Number of episodes for choosing a policy, and of other episodes for evaluating it."""
MOST_STEPS = 20_000
"""Maximum total number of steps of these episodes; if they are long, fewer are played."""
RECENT = 50
"""Number of last training episodes whose scores the first candidate is compared with."""
LEVEL = 0.2
"""Significance level of the tests. A worse policy costs more than a needless change."""
PERMUTATIONS = 9_999
"""Number of random permutations of a test."""


def concluded(outcome: Outcome) -> Outcome:
    """Return the outcome with its conclusion; without one if the environment fails."""
    try:
        return conclude(outcome)
    except RoveError:
        return outcome


def conclude(outcome: Outcome) -> Outcome:
    """Return the outcome with its conclusion, and with the networks that its policies need. Raise
    `RoveError` if the environment fails."""
    if outcome.diverged or outcome.conclusion is not None:
        return outcome
    delivered, kept = deliver(outcome)
    outcome = outcome._replace(kept=kept)
    job, lane = outcome.job, outcome.lane
    greedy = episodes_of("mean", job.agent, job.environment, lane, EPISODES, EVALUATION, MOST_STEPS)
    scores = scores_of(job.environment, greedy)
    own = scores if delivered.policy == "mean" else _scores(outcome, delivered.policy)
    inspection = inspect(job, whole_lane(outcome), greedy)
    conclusion = Conclusion(int(lane.step), delivered, own.tolist(), scores.tolist(), inspection)
    return outcome._replace(conclusion=conclusion)


def deliver(outcome: Outcome) -> tuple[Delivered, dict[str, Any]]:
    """Choose the policy of a seed, and return it with the networks to keep.

    If the last training episodes score significantly more than the chosen policy (see `preferred`),
    the settled policy becomes a candidate too.
    """
    recent, optimum = outcome.scores[-RECENT:], outcome.job.environment.optimum
    selection: dict[str, np.ndarray] = {}
    first = [BEST] if BEST in outcome.kept else []
    for name in [*first, *candidates_of(outcome.job.agent)]:
        selection[name] = _scores(outcome, name, SELECTION)
        if optimum is not None and np.all(is_optimal(selection[name], optimum)):
            break
    policy = preferred(selection, recent)
    if unpaired_p(recent, selection[policy]) <= LEVEL:
        outcome = with_settled(outcome)
        if SETTLED in outcome.kept:
            selection[SETTLED] = _scores(outcome, SETTLED, SELECTION)
            policy = preferred(selection, recent)
    means = {name: float(np.mean(row)) for name, row in selection.items()}
    return Delivered(policy, means), outcome.kept


def _scores(outcome: Outcome, policy: str, stream: int = EVALUATION) -> np.ndarray:
    job, lane = outcome.job, lane_for(outcome, policy)
    return play(policy, job.agent, job.environment, lane, EPISODES, stream, MOST_STEPS)


def preferred(
    selection: Mapping[str, Float[np.ndarray, " _"]], recent: Float[np.ndarray, " _"]
) -> str:
    """Return the name of the policy to deliver, given the scores of each candidate in the same
    episodes, and the scores of the last training episodes.

    It is the first candidate, unless the best one scores significantly more in the same episodes,
    or the last training episodes score significantly more (one-sided permutation tests at 20%). In
    that case it is the best one.
    """
    first, *_ = selection
    mean, best = selection[first], max(selection, key=lambda name: np.mean(selection[name]))
    both = min(len(mean), len(selection[best]))
    better = paired_p(selection[best][:both] - mean[:both]) <= LEVEL
    return best if better or unpaired_p(recent, mean) <= LEVEL else first


def paired_p(differences: Float[np.ndarray, " n"]) -> float:
    """Return the p-value of the hypothesis that differences are as often negative as positive,
    against a positive mean."""
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (PERMUTATIONS, len(differences)))
    return _p(np.sum(differences), signs @ differences)


def unpaired_p(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " m"]) -> float:
    """Return the p-value of the hypothesis that two samples have one distribution, against a higher
    mean of the first; 1 if it is empty."""
    if not len(a):
        return 1.0
    values = np.tile(np.concatenate([a, b]), (PERMUTATIONS, 1))
    shuffled = np.random.default_rng(1).permuted(values, axis=1)
    return _p(np.sum(a, dtype=float), shuffled[:, : len(a)].sum(axis=1, dtype=float))


def _p(observed: np.floating | float, permuted: Float[np.ndarray, " k"]) -> float:
    """Return the fraction of values, among those of permutations and the observed one, that are at
    least as high as the observed one, up to rounding."""
    tolerance = 1e-6 * max(float(np.max(np.abs(permuted))), abs(float(observed)))
    return (1 + int(np.sum(permuted >= observed - tolerance))) / (1 + len(permuted))


def lane_for(outcome: Outcome, policy: str) -> Lane:
    """Return the lane that a policy of a seed is played with; raise `ConfigError` if its network is
    not known."""
    if policy not in (BEST, SETTLED):
        return outcome.lane
    outcome = with_settled(outcome) if policy == SETTLED else outcome
    if policy not in outcome.kept:
        need = "a run that was trained with eval_every, which keeps the best evaluated policy"
        if policy == SETTLED:
            need = "a seed that settled at its end, or a run folder that keeps the replay buffer"
        message = f"policy = {policy!r} needs {need}; train it again"
        raise ConfigError("policy", policy, need, message)
    return with_parts(outcome.lane, outcome.kept[policy])


def with_settled(outcome: Outcome) -> Outcome:
    """Return the outcome with the settled network (see `core.settling`); unchanged if there is no
    replay buffer to learn from, if learning has not begun, or if a number is not finite."""
    agent, lane = outcome.job.agent, whole_lane(outcome)
    ready = int(lane.step) >= int(agent.learning_starts) and len(lane.agent.replay.rows)
    if SETTLED in outcome.kept or not ready or not can_settle(agent):
        return outcome
    key = noise.fold(noise.root(lane.seed), SETTLING)
    parts = kept_parts(lane._replace(agent=settled(agent, lane.agent, key)))
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(parts[:2])):
        return outcome
    return outcome._replace(kept=outcome.kept | {SETTLED: jax.tree.map(np.array, parts)})


def whole_lane(outcome: Outcome) -> Lane:
    """Return the lane of an outcome with its replay buffer, if it is in memory or in a checkpoint
    of the same step; otherwise the lane as it is."""
    job, lane = outcome.job, outcome.lane
    if len(lane.agent.replay.rows) or not storage.exists(job):
        return lane
    try:
        whole = storage.load_whole(job)
    except RunFolderError:
        return lane
    if whole is None or int(whole.step) != int(lane.step):
        return lane
    return whole._replace(agent=whole.agent._replace(phi=lane.agent.phi, actor=lane.agent.actor))
