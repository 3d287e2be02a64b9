"""Environments that change a part of another one."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Bool, Int

from rove.environments.base import Bound, Coordinate, Environment, State
from rove.errors import ConfigError
from rove.parts.images import Image
from rove.parts.integers import Integers
from rove.parts.onehot import Observation


class Wrapper(Environment):
    """An environment that takes everything but `name`, `reset` and `step` from an inner one."""

    environment: Environment
    """The inner environment."""

    def __check_init__(self) -> None:
        if not isinstance(self.environment, Environment):
            hint = "; for a Gymnasium environment, use the options of rove.adopt"
            raise ConfigError.must_be("environment", self.environment, "a rove.Environment", hint)

    def inner(self, state: Any) -> State:
        """Return the state of the inner environment, given the state of this one."""
        return state

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
    def num_actions(self) -> int:
        return self.environment.num_actions

    @property
    def continuous(self) -> bool:
        return self.environment.continuous

    @property
    def action_names(self) -> tuple[str, ...]:
        return self.environment.action_names

    def action(self, chosen: Array) -> int | np.ndarray:
        return self.environment.action(chosen)

    def action_mask(self, state: Any) -> Bool[Array, " actions"] | None:
        return self.environment.action_mask(self.inner(state))

    @property
    def optimum(self) -> float | None:
        return self.environment.optimum

    @property
    def score_label(self) -> str:
        return self.environment.score_label

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        return self.environment.score(returns, length, terminated)

    @property
    def score_range(self) -> tuple[float, float] | None:
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

    def bin(self, state: Any) -> Int[Array, ""]:
        return self.environment.bin(self.inner(state))

    def probes(self) -> Mapping[str, Observation]:
        return self.environment.probes()
