"""The paper's sparse rewards (Section 6): a single reward when the task terminates."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Int

from rove.environments.base import State, Step
from rove.environments.wrapper import Wrapper
from rove.errors import check_number
from rove.parts.noise import Key
from rove.parts.onehot import Observation


class Sparse(Wrapper):
    """An environment whose only reward is paid when the task terminates.

    Nothing is paid when an episode is truncated. Everything else, including the score, is
    inherited from the inner environment.
    """

    reward: float = eqx.field(default=1.0, static=True)
    """The reward for termination: 1 for reaching a goal, −1 for falling."""

    def __check_init__(self) -> None:
        check_number("reward", self.reward, at_least=-1e6, at_most=1e6)

    @property
    def name(self) -> str:
        return f"sparse-{self.environment.name}"

    @property
    def optimum(self) -> float | None:
        """The inner environment's optimum, or None if its score is the return, which changes."""
        return None if self.score_label == "return" else self.environment.optimum

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The inner environment's range; if its score is the return, that of the new rewards."""
        if self.score_label == "return":
            return min(0.0, self.reward), max(0.0, self.reward)
        return self.environment.score_range

    def reset(self, key: Key) -> tuple[State, Observation]:
        return self.environment.reset(key)

    def step(self, state: State, action: Int[Array, ""], key: Key) -> Step:
        after = self.environment.step(state, action, key)
        return after._replace(reward=jnp.where(after.terminated, self.reward, 0.0))
