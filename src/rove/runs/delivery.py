"""The policy that a run delivers: the posterior mean, unless another one is clearly better."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rove.core.policies import POLICIES, candidates_of, policies_of
from rove.errors import LaneError, check_choice
from rove.parts.files import read_text
from rove.runs.recorded import check_created
from rove.runs.settled import SETTLED, is_known, lane_for, settled_lane
from rove.training.lane import EVALUATION, SELECTION, Lane
from rove.training.outcomes import Outcome, without_memory
from rove.training.playing import Acting, play, policy_key
from rove.training.solving import is_optimal

EPISODES = 20
"""Number of episodes for choosing a policy, and of other episodes for evaluating it."""
MOST_STEPS = 20_000
"""Maximum total number of steps of these episodes; if they are long, fewer are played."""
RECENT = 50
"""Number of last training episodes whose scores the posterior mean is compared with."""
LEVEL = 0.2
"""Significance level of the tests. A worse posterior mean costs more than a needless change."""
PERMUTATIONS = 9_999
"""Number of random permutations of a test."""


class Delivered(NamedTuple):
    """The policy that a seed delivers, and why."""

    policy: str
    """Its name; see `rove.core.policies.POLICIES`."""
    candidates: dict[str, float]
    """The mean score of each candidate in the episodes for choosing a policy. Candidates after one
    that is optimal in all of them were not played."""


def deliver(outcome: Outcome) -> Delivered:
    """Choose the policy of a seed. If the environment fails, it is the posterior mean.

    If the last training episodes score significantly more than the chosen policy (see `preferred`),
    the settled policy becomes a candidate too.
    """
    agent, environment = outcome.job.agent, outcome.job.environment
    selection: dict[str, np.ndarray] = {}
    recent = outcome.scores[-RECENT:]
    for name in candidates_of(agent):
        try:
            selection[name] = _scores(outcome, name, SELECTION, outcome.lane)
        except LaneError:
            return Delivered(candidates_of(agent)[0], {})
        optimum = environment.optimum
        if optimum is not None and np.all(is_optimal(selection[name], optimum)):
            break
    policy = preferred(selection, recent)
    worse = unpaired_p(recent, selection[policy]) <= LEVEL
    if worse and (lane := settled_lane(outcome)) is not None:
        selection[SETTLED] = _scores(outcome, SETTLED, SELECTION, lane)
        policy = preferred(selection, recent)
    return Delivered(policy, {name: float(np.mean(row)) for name, row in selection.items()})


def evaluated(outcome: Outcome, policy: str) -> list[float]:
    """Return the scores of a seed's policy in other episodes than those for choosing it."""
    return _scores(outcome, policy, EVALUATION, lane_for(outcome, policy)).tolist()


def _scores(outcome: Outcome, policy: str, stream: int, lane: Lane) -> np.ndarray:
    agent, environment = outcome.job.agent, outcome.job.environment
    check_created(environment)
    return play(policy, agent, environment, lane, EPISODES, stream, MOST_STEPS)


def preferred(
    selection: Mapping[str, Float[np.ndarray, " _"]], recent: Float[np.ndarray, " _"]
) -> str:
    """Return the name of the policy to deliver, given the scores of each candidate in the same
    episodes, the posterior mean first, and the scores of the last training episodes.

    It is the posterior mean, unless the best candidate scores significantly more in the same
    episodes, or the last training episodes score significantly more (one-sided permutation tests at
    20%). In that case it is the best candidate.
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


class Record(NamedTuple):
    """The policy of a seed in diagnostics.json of its run folder."""

    delivered: Delivered
    scores: list[float]
    """See `evaluated`."""
    step: int
    """The training step of the agent."""

    def as_json(self) -> dict[str, Any]:
        """Return the entry of a seed in diagnostics.json."""
        return self.delivered._asdict() | {"scores": self.scores, "step": self.step}

    @staticmethod
    def from_json(entry: Any) -> "Record":
        """Return a seed's entry; raise `ValueError`, `TypeError`, `KeyError` or `AttributeError` if
        it is not valid."""
        policy, scores, step = entry["policy"], [*map(float, entry["scores"])], int(entry["step"])
        candidates = {str(name): float(score) for name, score in entry["candidates"].items()}
        if policy not in POLICIES or not scores:
            raise ValueError("it has no policy, or no scores")
        if not np.isfinite([*scores, *candidates.values()]).all():
            raise ValueError("its scores are not finite")
        return Record(Delivered(policy, candidates), scores, step)


def recorded(path: Path | None, outcome: Outcome) -> Record | None:
    """Return the record of a seed's policy in the run folder; None if there is none, or if the seed
    was trained further since."""
    if path is None:
        return None
    try:
        entries = json.loads(read_text(path / "diagnostics.json"))["policies"]
        record = Record.from_json(entries[str(outcome.job.seed)])
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    policy = record.delivered.policy
    known = policy in policies_of(outcome.job.agent) and (policy != SETTLED or is_known(outcome))
    return record if known and record.step == int(outcome.lane.step) else None


class TrainedPolicy:
    """A trained policy: a function from an observation of the environment to an action.

    Call `reset` at the start of an episode: a policy that samples θ then resamples it.
    """

    def __init__(self, outcome: Outcome, name: str):
        check_choice("policy", name, policies_of(outcome.job.agent))
        job, lane = outcome.job, without_memory(lane_for(outcome, name))
        self.name, self.seed = name, job.seed
        self._environment = job.environment
        self._acting = Acting(POLICIES[name], job.agent, job.environment, lane)
        self._episode = -1
        self.reset()

    def __repr__(self) -> str:
        return f"<TrainedPolicy: {POLICIES[self.name].description}, seed {self.seed}>"

    def reset(self) -> None:
        """Begin the next episode."""
        self._episode += 1
        self._acting.begin(policy_key(self.seed, EVALUATION, self._episode))

    def __call__(self, observation: Any, action_mask: Any = None) -> Any:
        """Return the action for an observation and, if the environment masks actions, its mask."""
        x = self._environment.observation(observation, action_mask)
        return self._environment.action(self._acting(x))

    def batch(self, observations: Any, action_masks: Any = None) -> np.ndarray:
        """Return the actions for several observations, of as many environments that take their
        steps together. A policy that samples θ has one of its own for each; `reset` begins an
        episode in all of them."""
        masks = [None] * len(observations) if action_masks is None else action_masks
        pairs = zip(observations, masks, strict=True)
        rows = [self._environment.observation(*pair) for pair in pairs]
        actions = self._acting.rows(jax.tree.map(lambda *x: jnp.stack(x), *rows))
        return np.stack([np.asarray(self._environment.action(action)) for action in actions])
