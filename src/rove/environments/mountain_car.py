"""Mountain Car (Moore 1990), as in Gymnasium's MountainCar-v0."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.base import Bound, Coordinate, GoalReached
from rove.environments.control import Control

LEFT_WALL, RIGHT_WALL, TOP_SPEED, GOAL = -1.2, 0.6, 0.07, 0.5
ENGINE, GRAVITY = 0.001, 0.0025


class MountainCar(GoalReached, Control):
    """Mountain Car: a car too weak for the hill has to swing back and forth to climb it.

    A state consists of the car's position and velocity; it starts at rest, between −0.6 and −0.4.
    Actions push left, not at all, or right. Every step costs 1. The task ends at position 0.5,
    the top of the right hill. The score is 1 if that was reached, and 0 otherwise.
    """

    horizon: int = eqx.field(default=200, static=True)
    """Maximum number of steps per episode."""

    @property
    def name(self) -> str:
        return "mountain-car"

    @property
    def observation_size(self) -> int:
        return 2

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        return (LEFT_WALL, -TOP_SPEED), (RIGHT_WALL, TOP_SPEED)

    @property
    def num_actions(self) -> int:
        return 3

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("left", "no push", "right")

    @property
    def starts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (-0.6, 0.0), (-0.4, 0.0)

    @property
    def coordinates(self) -> tuple[Coordinate, Coordinate]:
        return (
            Coordinate("velocity", -TOP_SPEED, TOP_SPEED),
            Coordinate("position", LEFT_WALL, RIGHT_WALL),
        )

    def grid_point(self, values: Float[Array, "2"]) -> tuple[Array, Array]:
        return values[1], values[0]

    def observe(self, values: Float[Array, "2"]) -> Float[Array, "2"]:
        return values

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """Return three states: at rest in the valley and high on the left, and near the goal."""
        states = {"start": (-0.5, 0.0), "left": (-1.1, 0.0), "last": (0.45, 0.03)}
        return {name: jnp.array(values, jnp.float32) for name, values in states.items()}

    def move(self, values: Float[Array, "2"], action: Int[Array, ""]) -> Float[Array, "2"]:
        position, velocity = values
        velocity += (action - 1) * ENGINE - GRAVITY * jnp.cos(3 * position)
        velocity = jnp.clip(velocity, -TOP_SPEED, TOP_SPEED)
        position = jnp.clip(position + velocity, LEFT_WALL, RIGHT_WALL)
        stopped = (position == jnp.float32(LEFT_WALL)) & (velocity < 0)
        return jnp.stack([position, jnp.where(stopped, 0.0, velocity)])

    def ended(self, values: Float[Array, "2"]) -> Bool[Array, ""]:
        return (values[0] >= GOAL) & (values[1] >= 0)

    def earned(self, ended: Bool[Array, ""]) -> Float[Array, ""]:
        return -jnp.ones(())
