"""A point mass in two rooms: the goal is behind a wall, and the door is at the far end of it."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.base import Bound, Coordinate, GoalReached
from rove.environments.control import Control

PUSH, FRICTION, TOP_SPEED = 0.01, 0.1, 0.05
"""Change of a velocity by an action, the fraction of it that is lost in a step, and its maximum."""
DOOR = (0.6, 0.9)
"""The values of y between which the wall at x = 0 is open."""
GOAL, RADIUS = (0.8, -0.8), 0.2
"""Centre and radius of the goal."""
CLOSEST = 0.001
"""Distance from the wall at which it stops the point."""


class PointRooms(GoalReached, Control):
    """Point Rooms: steer a point through a door into the other room, to a goal.

    The rooms are the halves of the square from −1 to 1, and the wall between them at x = 0 is open
    for y between 0.6 and 0.9. The point starts at rest near (−0.8, −0.8), and the goal is the disc
    of radius 0.2 around (0.8, −0.8). Actions push right, up, left, down, or not at all. Friction
    slows the point down, and walls stop it. The only reward is 1 at the goal, which ends the task;
    the shortest way takes about 80 steps. The score is 1 if the goal was reached, and 0 otherwise.
    """

    horizon: int = eqx.field(default=300, static=True)
    """Maximum number of steps per episode."""

    @property
    def name(self) -> str:
        return "point-rooms"

    @property
    def observation_size(self) -> int:
        return 4

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        high = (1.0, 1.0, TOP_SPEED, TOP_SPEED)
        return tuple(-x for x in high), high

    @property
    def num_actions(self) -> int:
        return 5

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("right", "up", "left", "down", "no push")

    @property
    def starts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (-0.9, -0.9, 0.0, 0.0), (-0.7, -0.7, 0.0, 0.0)

    @property
    def coordinates(self) -> tuple[Coordinate, Coordinate]:
        return Coordinate("y", -1.0, 1.0), Coordinate("x", -1.0, 1.0)

    def grid_point(self, values: Float[Array, "4"]) -> tuple[Array, Array]:
        return values[1], values[0]

    def observe(self, values: Float[Array, "4"]) -> Float[Array, "4"]:
        return values

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """Return three states: at the start, in the door and near the goal."""
        door, last = (0, 0.75, 0.05, 0), (0.8, -0.5, 0, -0.05)
        states = {"start": (-0.8, -0.8, 0, 0), "door": door, "last": last}
        return {name: jnp.array(values, jnp.float32) for name, values in states.items()}

    def move(self, values: Float[Array, "4"], action: Int[Array, ""]) -> Float[Array, "4"]:
        position, velocity = values[:2], values[2:]
        pushes = jnp.array([(1, 0), (0, 1), (-1, 0), (0, -1), (0, 0)], jnp.float32)
        velocity = (1 - FRICTION) * velocity + PUSH * pushes[action]
        velocity = jnp.clip(velocity, -TOP_SPEED, TOP_SPEED)
        after = position + velocity
        # The wall between the rooms stops the point, unless it crosses the wall in the door.
        on_left, crosses = position[0] < 0, (position[0] < 0) != (after[0] < 0)
        fraction = position[0] / jnp.where(crosses, position[0] - after[0], 1.0)
        y = position[1] + fraction * velocity[1]
        blocked = crosses & ((y <= DOOR[0]) | (y >= DOOR[1]))
        beside = jnp.where(on_left, -CLOSEST, CLOSEST)
        after = after.at[0].set(jnp.where(blocked, beside, after[0]))
        velocity = velocity.at[0].set(jnp.where(blocked, 0.0, velocity[0]))
        # The outer walls stop it too.
        velocity = jnp.where(jnp.abs(after) > 1.0, 0.0, velocity)
        return jnp.concatenate([jnp.clip(after, -1.0, 1.0), velocity])

    def ended(self, values: Float[Array, "4"]) -> Bool[Array, ""]:
        return jnp.sum((values[:2] - jnp.array(GOAL)) ** 2) < RADIUS**2

    def earned(self, ended: Bool[Array, ""]) -> Float[Array, ""]:
        return jnp.where(ended, 1.0, 0.0)
