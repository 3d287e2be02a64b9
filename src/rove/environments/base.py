"""What an environment is, and what one that compiles is: pure functions of its state."""

import abc
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.errors import ConfigError
from rove.noise import Key

State: TypeAlias = Any
Bound: TypeAlias = float | tuple[float, ...]
"""For all entries of an observation alike, or one for each."""
GRID = 40
"""Cells along each side of a board whose sides are coordinates."""


class Step(NamedTuple):
    """One step. `terminated` (the task ended) and `truncated` (time ran out) are two things:
    only the first stops bootstrapping. The observation is the final one, before any reset."""

    state: State
    observation: Float[Array, " features"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class Coordinate(NamedTuple):
    """What a board of cells shows along one side."""

    name: str
    low: float
    high: float


def cell(sides: tuple[Coordinate, ...], place: tuple[Array, Array]) -> Int[Array, ""]:
    """The cell of a board of GRID by GRID that a place along its two sides is in; what lies outside
    their range counts for the cell at its edge."""
    row, column = (
        jnp.clip(jnp.floor((x - c.low) / (c.high - c.low) * GRID).astype(jnp.int32), 0, GRID - 1)
        for c, x in zip(sides, place, strict=True)
    )
    return row * GRID + column


class Task(eqx.Module):
    """What training asks of any environment. Flat observations; actions that are numbers 0, 1, …,
    or vectors in [−1, 1]^k."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name a person types, for example chain-100."""

    @property
    @abc.abstractmethod
    def observation_size(self) -> int:
        """Length of an observation."""

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Number of actions; where they are continuous, k."""

    @property
    def continuous(self) -> bool:
        """Whether an action is a vector in [−1, 1]^k."""
        return False

    @property
    @abc.abstractmethod
    def optimum(self) -> float | None:
        """The best score of an episode, where it is known."""

    @property
    def score_label(self) -> str:
        """What the score is."""
        return "return"

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        """How well an episode went, or each of an array of them, as it is plotted: the return,
        but for the tasks that the paper scores in another way."""
        return returns

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The least and the greatest score that an episode can have, where both are known.
        Intervals of mean scores rely on it."""
        return None

    @property
    @abc.abstractmethod
    def bins(self) -> int:
        """How many cells state visits are counted in; 0: not counted."""

    @property
    def cells(self) -> tuple[int, ...]:
        """How the cells lie: in a row, or, with two numbers, on a board."""
        return (self.bins,)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The two sides of a board whose cells are ranges of numbers: the vertical, from below,
        then the horizontal."""
        return ()

    @abc.abstractmethod
    def bin(self, state: State) -> Int[Array, ""]:
        """The cell a state is in."""

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """A few observations worth watching during training, by name."""
        return {}

    def shown(
        self, state: State, observation: Float[Array, " features"]
    ) -> Float[Array, " features"]:
        """What the agent is shown of an observation."""
        return observation

    def vector(self, observation: Any) -> np.ndarray:
        """An observation from outside, as `shown` takes it."""
        x = np.asarray(observation, np.float32)
        if x.shape != (self.observation_size,):
            raise ConfigError(
                "observation", x.shape, f"an array of shape {(self.observation_size,)}"
            )
        return x

    def action(self, chosen: Array) -> int | np.ndarray:
        """An action as the environment takes it."""
        return np.asarray(chosen) if self.continuous else int(chosen)

    @abc.abstractmethod
    def reset(self, key: Key) -> tuple[State, Float[Array, " features"]]:
        """A first state and its observation."""


class Environment(Task):
    """An environment whose `reset` and `step` compile."""

    @property
    @abc.abstractmethod
    def observation_bounds(self) -> tuple[Bound, Bound]:
        """The least and the greatest numbers an observation can hold."""

    @abc.abstractmethod
    def step(self, state: State, action: Int[Array, ""] | Float[Array, " k"], key: Key) -> Step:
        """The next state, observation and reward."""
