"""The base class of control tasks."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.base import GRID, Coordinate, Environment, Step, cell
from rove.errors import check_integer
from rove.parts import noise
from rove.parts.noise import Key


class ControlState(NamedTuple):
    """The state of a control task."""

    values: Float[Array, " values"]
    """Positions and velocities, in the order that the task defines."""
    time: Int[Array, ""]
    """Number of steps taken in the episode."""


class Control(Environment):
    """A control task with discrete actions and a time limit, which truncates episodes."""

    horizon: eqx.AbstractVar[int]
    """Maximum number of steps per episode."""

    def __check_init__(self) -> None:
        check_integer("horizon", self.horizon, at_least=1)

    @property
    @abc.abstractmethod
    def starts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Lower and upper bounds of initial states, which are uniform between them."""

    @property
    @abc.abstractmethod
    def coordinates(self) -> tuple[Coordinate, Coordinate]:
        """The coordinates of the grid that visits are counted in: vertical, then horizontal."""

    @abc.abstractmethod
    def grid_point(self, values: Float[Array, " values"]) -> tuple[Array, Array]:
        """Return a state's values along the two coordinates."""

    @abc.abstractmethod
    def observe(self, values: Float[Array, " values"]) -> Float[Array, " features"]:
        """Return the observation of a state."""

    @abc.abstractmethod
    def move(
        self, values: Float[Array, " values"], action: Int[Array, ""]
    ) -> Float[Array, " values"]:
        """Return the state's values one step later."""

    @abc.abstractmethod
    def ended(self, values: Float[Array, " values"]) -> Bool[Array, ""]:
        """Whether the task terminates in a state."""

    @abc.abstractmethod
    def earned(self, ended: Bool[Array, ""]) -> Float[Array, ""]:
        """Return the reward of a step, given whether it terminated the task."""

    @property
    def bins(self) -> int:
        return GRID**2

    @property
    def cells(self) -> tuple[int, int]:
        return (GRID, GRID)

    def bin(self, state: ControlState) -> Int[Array, ""]:
        return cell(self.coordinates, self.grid_point(state.values))

    def reset(self, key: Key) -> tuple[ControlState, Float[Array, " features"]]:
        low, high = (jnp.asarray(bound, jnp.float32) for bound in self.starts)
        values = low + (high - low) * noise.uniform(key, low.shape)
        return ControlState(values, jnp.zeros((), jnp.int32)), self.observe(values)

    def step(self, state: ControlState, action: Int[Array, ""], key: Key) -> Step:
        after = ControlState(self.move(state.values, action), state.time + 1)
        ended = self.ended(after.values)
        return Step(
            state=after,
            observation=self.observe(after.values),
            reward=self.earned(ended),
            terminated=ended,
            truncated=after.time >= self.horizon,
        )
