"""A pendulum that has to be swung up: the dynamics of Gymnasium's Pendulum-v1, a sparse reward."""

import math

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.base import Bound, Coordinate, GoalReached
from rove.environments.control import Control

GRAVITY, TIME_STEP, TOP_SPEED = 10.0, 0.05, 8.0
"""As in Pendulum-v1, with mass and length 1."""
TORQUE = 1.0
"""Half of the largest torque of Pendulum-v1, so that more swings are needed."""
UPRIGHT, SLOW = 0.2, 1.0
"""Largest angle and velocity of the goal."""


class SwingUp(GoalReached, Control):
    """Swing-up: bring a hanging pendulum upright, with a torque too weak to lift it directly.

    A state consists of the angle θ (0 when upright) and the angular velocity; the pendulum starts
    hanging down, both within ±0.1. Observations show the cosine and the sine of θ and the velocity.
    Actions apply a torque of −1, 0 or 1. The only reward is 1 for being upright and slow, |θ| < 0.2
    with a velocity below 1, which ends the task; that takes about 100 steps. The score is 1 if it
    was reached, and 0 otherwise.
    """

    horizon: int = eqx.field(default=400, static=True)
    """Maximum number of steps per episode."""

    @property
    def name(self) -> str:
        return "swing-up"

    @property
    def observation_size(self) -> int:
        return 3

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        return (-1.0, -1.0, -TOP_SPEED), (1.0, 1.0, TOP_SPEED)

    @property
    def num_actions(self) -> int:
        return 3

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("torque −1", "no torque", "torque +1")

    @property
    def starts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (math.pi - 0.1, -0.1), (math.pi + 0.1, 0.1)

    @property
    def coordinates(self) -> tuple[Coordinate, Coordinate]:
        return Coordinate("velocity", -TOP_SPEED, TOP_SPEED), Coordinate("θ", -math.pi, math.pi)

    def grid_point(self, values: Float[Array, "2"]) -> tuple[Array, Array]:
        return values[1], _wrapped(values[0])

    def observe(self, values: Float[Array, "2"]) -> Float[Array, "3"]:
        return jnp.stack([jnp.cos(values[0]), jnp.sin(values[0]), values[1]])

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """Return three states: hanging at rest, level and rising, and just before the goal."""
        states = {"start": (math.pi, 0), "level": (math.pi / 2, -5), "last": (0.3, -1)}
        return {name: self.observe(jnp.array(x, jnp.float32)) for name, x in states.items()}

    def move(self, values: Float[Array, "2"], action: Int[Array, ""]) -> Float[Array, "2"]:
        angle, velocity = values
        torque = TORQUE * (action - 1)
        velocity += (1.5 * GRAVITY * jnp.sin(angle) + 3.0 * torque) * TIME_STEP
        velocity = jnp.clip(velocity, -TOP_SPEED, TOP_SPEED)
        return jnp.stack([_wrapped(angle + velocity * TIME_STEP), velocity])

    def ended(self, values: Float[Array, "2"]) -> Bool[Array, ""]:
        return (jnp.abs(_wrapped(values[0])) < UPRIGHT) & (jnp.abs(values[1]) < SLOW)

    def earned(self, ended: Bool[Array, ""]) -> Float[Array, ""]:
        return jnp.where(ended, 1.0, 0.0)


def _wrapped(angle: Float[Array, ""]) -> Float[Array, ""]:
    """Return an angle between −π and π."""
    return angle - 2 * math.pi * jnp.round(angle / (2 * math.pi))
