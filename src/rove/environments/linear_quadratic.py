"""A point mass with quadratic costs and continuous actions, whose optimal policy is known."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.environments.base import GRID, Coordinate, Environment, Step, cell
from rove.errors import check_integer, check_number
from rove.parts import noise
from rove.parts.noise import Key

EDGE = 2.0
"""Bound of the cells' coordinates, in both directions."""


class PointMass(NamedTuple):
    x: Float[Array, " features"]
    """N positions, then N velocities."""
    time: Int[Array, ""]
    """Number of steps taken in the episode."""


class LinearQuadratic(Environment):
    """A point mass in N dimensions, to be brought to rest at 0 by N forces in [−1, 1].

    With position p, velocity v and force u, a step of length h moves to p + h·v and v + h·u and
    pays −h·(|p|² + c·|u|²). An episode starts at rest, anywhere in [−1, 1]^N, and is truncated
    after `horizon` steps. The optimal policy is linear as long as the forces stay within their
    bounds, which holds for the default c = 1. Visits are counted on a grid of the first position
    and its velocity.
    """

    n: int = eqx.field(static=True)
    """N, the number of dimensions."""
    horizon: int = eqx.field(default=50, static=True)
    """Number of steps per episode."""
    step_length: float = eqx.field(default=0.1, static=True)
    """Duration h of a step."""
    control_cost: float = eqx.field(default=1.0, static=True)
    """Weight c of the cost of forces."""

    def __check_init__(self) -> None:
        check_integer("n", self.n, at_least=1, at_most=1000)
        check_integer("horizon", self.horizon, at_least=1)
        check_number("step_length", self.step_length, above=0.0, at_most=1.0)
        check_number("control_cost", self.control_cost, at_least=0.0)

    @property
    def name(self) -> str:
        return f"linear-quadratic-{self.n}"

    @property
    def observation_size(self) -> int:
        return 2 * self.n

    @property
    def num_actions(self) -> int:
        return self.n

    @property
    def continuous(self) -> bool:
        return True

    @property
    def bins(self) -> int:
        return GRID**2

    @property
    def cells(self) -> tuple[int, int]:
        return (GRID, GRID)

    @property
    def coordinates(self) -> tuple[Coordinate, Coordinate]:
        return Coordinate("velocity", -EDGE, EDGE), Coordinate("position", -EDGE, EDGE)

    def bin(self, state: PointMass) -> Int[Array, ""]:
        return cell(self.coordinates, (state.x[self.n], state.x[0]))

    @property
    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The matrices A, B, Q and R: x ← A·x + B·u, and a step pays −(xᵀQx + uᵀRu)."""
        eye, zero, h = np.eye(self.n), np.zeros((self.n, self.n)), self.step_length
        a = np.block([[eye, h * eye], [zero, eye]])
        b = np.vstack([zero, h * eye])
        return a, b, h * np.block([[eye, zero], [zero, zero]]), h * self.control_cost * eye

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """Return one initial observation."""
        return {"start": self.reset(noise.root(0))[1]}

    def reset(self, key: Key) -> tuple[PointMass, Float[Array, " features"]]:
        position = 2.0 * noise.uniform(key, (self.n,)) - 1.0
        x = jnp.concatenate([position, jnp.zeros(self.n)])
        return PointMass(x, jnp.zeros((), jnp.int32)), x

    def step(self, state: PointMass, action: Float[Array, " k"], key: Key) -> Step:
        u = jnp.clip(action, -1.0, 1.0)
        p, v = state.x[: self.n], state.x[self.n :]
        h, time = self.step_length, state.time + 1
        x = jnp.concatenate([p + h * v, v + h * u])
        reward = -h * (jnp.sum(p**2) + self.control_cost * jnp.sum(u**2))
        return Step(PointMass(x, time), x, reward, jnp.zeros((), bool), time >= self.horizon)
