"""CartPole (Barto, Sutton and Anderson 1983), as in Gymnasium's CartPole-v1."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.base import Bound, Coordinate
from rove.environments.control import Control

GRAVITY, CART, POLE, FORCE, TIME_STEP = 9.8, 1.0, 0.1, 10.0, 0.02
HALF = 0.5
"""Half the length of the pole."""
EDGE, FALLEN = 2.4, math.radians(12)
"""Maximum distance of the cart from the middle, and maximum angle of the pole."""


class CartPole(Control):
    """CartPole: push a cart left or right so that the pole on it stays upright.

    A state consists of the cart's position and velocity and the pole's angle and angular velocity;
    each starts within ±0.05. Every step pays 1. The task ends when the pole leans by more than 12°
    or the cart is more than 2.4 from the middle. The score is the length of the episode.
    """

    horizon: int = eqx.field(default=500, static=True)
    """Maximum number of steps per episode."""

    @property
    def name(self) -> str:
        return "cartpole"

    @property
    def observation_size(self) -> int:
        return 4

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        """Gymnasium's bounds: twice the values at which the task ends; velocities are unbounded."""
        high = (2 * EDGE, math.inf, 2 * FALLEN, math.inf)
        return tuple(-x for x in high), high

    @property
    def num_actions(self) -> int:
        return 2

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("left", "right")

    @property
    def optimum(self) -> float:
        return float(self.horizon)

    @property
    def score_label(self) -> str:
        return "episode length"

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        return length

    @property
    def score_range(self) -> tuple[float, float]:
        return 1.0, self.optimum

    @property
    def starts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (-0.05,) * 4, (0.05,) * 4

    @property
    def coordinates(self) -> tuple[Coordinate, Coordinate]:
        return Coordinate("pole angle", -FALLEN, FALLEN), Coordinate("cart position", -EDGE, EDGE)

    def grid_point(self, values: Float[Array, "4"]) -> tuple[Array, Array]:
        return values[2], values[0]

    def observe(self, values: Float[Array, "4"]) -> Float[Array, "4"]:
        return values

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """Return three states: upright, falling to the right, and upright near the right edge."""
        states = {"start": (0, 0, 0, 0), "falling": (0, 0, 0.15, 0.5), "edge": (2.0, 0.5, 0, 0)}
        return {name: jnp.array(values, jnp.float32) for name, values in states.items()}

    def move(self, values: Float[Array, "4"], action: Int[Array, ""]) -> Float[Array, "4"]:
        """Integrate one step by Euler's method."""
        _, velocity, angle, angular_velocity = values
        force = jnp.where(action == 1, FORCE, -FORCE)
        sine, cosine, mass = jnp.sin(angle), jnp.cos(angle), CART + POLE
        push = (force + POLE * HALF * angular_velocity**2 * sine) / mass
        lever = HALF * (4.0 / 3.0 - POLE * cosine**2 / mass)
        angular_acceleration = (GRAVITY * sine - cosine * push) / lever
        acceleration = push - POLE * HALF * angular_acceleration * cosine / mass
        rates = [velocity, acceleration, angular_velocity, angular_acceleration]
        return values + TIME_STEP * jnp.stack(rates)

    def ended(self, values: Float[Array, "4"]) -> Bool[Array, ""]:
        return (jnp.abs(values[0]) > EDGE) | (jnp.abs(values[2]) > FALLEN)

    def earned(self, ended: Bool[Array, ""]) -> Float[Array, ""]:
        return jnp.ones(())
