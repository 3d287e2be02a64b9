"""The paper's sparse rewards (Section 6): a single reward when the task terminates."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Int

from rove.environments.base import Bound, Coordinate, Environment, State, Step
from rove.errors import ConfigError, check_number
from rove.parts.images import Image
from rove.parts.integers import Integers
from rove.parts.noise import Key
from rove.parts.onehot import Observation


class Sparse(Environment):
    """An environment whose only reward is paid when the task terminates.

    Nothing is paid when an episode is truncated. Everything else, including the score, is
    inherited from the inner environment.
    """

    environment: Environment
    """The inner environment, whose rewards are replaced."""
    reward: float = eqx.field(default=1.0, static=True)
    """The reward for termination: 1 for reaching a goal, −1 for falling."""

    def __check_init__(self) -> None:
        if not isinstance(self.environment, Environment):
            raise ConfigError.must_be("environment", self.environment, "a rove.Environment")
        check_number("reward", self.reward, at_least=-1e6, at_most=1e6)

    @property
    def name(self) -> str:
        return f"sparse-{self.environment.name}"

    @property
    def observation_size(self) -> int:
        return self.environment.observation_size

    @property
    def coded(self) -> bool:
        return self.environment.coded

    @property
    def image(self) -> Image | None:
        return self.environment.image

    @property
    def integers(self) -> Integers | None:
        return self.environment.integers

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        return self.environment.observation_bounds

    @property
    def action_names(self) -> tuple[str, ...]:
        return self.environment.action_names

    @property
    def num_actions(self) -> int:
        return self.environment.num_actions

    def action_mask(self, state: State) -> Bool[Array, " actions"] | None:
        return self.environment.action_mask(state)

    @property
    def optimum(self) -> float | None:
        """The inner environment's optimum, or None if its score is the return, which changes."""
        return None if self.score_label == "return" else self.environment.optimum

    @property
    def continuous(self) -> bool:
        return self.environment.continuous

    @property
    def score_label(self) -> str:
        return self.environment.score_label

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        return self.environment.score(returns, length, terminated)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The inner environment's range; if its score is the return, that of the new rewards."""
        if self.score_label == "return":
            return min(0.0, self.reward), max(0.0, self.reward)
        return self.environment.score_range

    @property
    def bins(self) -> int:
        return self.environment.bins

    @property
    def cells(self) -> tuple[int, ...]:
        return self.environment.cells

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self.environment.coordinates

    @property
    def first_cell(self) -> int:
        return self.environment.first_cell

    @property
    def landmarks(self) -> dict[str, int]:
        return self.environment.landmarks

    def bin(self, state: State) -> Int[Array, ""]:
        return self.environment.bin(state)

    def probes(self) -> Mapping[str, Observation]:
        return self.environment.probes()

    def reset(self, key: Key) -> tuple[State, Observation]:
        return self.environment.reset(key)

    def step(self, state: State, action: Int[Array, ""], key: Key) -> Step:
        after = self.environment.step(state, action, key)
        return after._replace(reward=jnp.where(after.terminated, self.reward, 0.0))
