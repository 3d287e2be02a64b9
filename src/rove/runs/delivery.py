"""A trained policy of a run, as a function."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove.core.policies import POLICIES, policies_of
from rove.errors import check_choice
from rove.training.delivering import lane_for
from rove.training.lane import EVALUATION
from rove.training.outcomes import Outcome, without_memory
from rove.training.playing import Acting, policy_key


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
