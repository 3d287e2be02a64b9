"""Acrobot (Sutton 1996), as in Gymnasium's Acrobot-v1, with the dynamics of Sutton and Barto."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.base import Bound, Coordinate
from rove.environments.control import Control

GRAVITY, TIME_STEP = 9.8, 0.2
MAX_VELOCITIES = (4 * math.pi, 9 * math.pi)
"""Maximum angular velocities of the two links."""


class Acrobot(Control):
    """Acrobot: swing up two links, driven at the joint between them, above a given height.

    A state consists of the angle θ₁ of the first link (0 when it hangs down), the angle θ₂ of the
    second relative to the first, and their velocities; each starts within ±0.1. Observations show
    the cosines and sines of the angles. Actions apply a torque of −1, 0 or 1. The task ends when
    the tip is one link's length above the pivot. Every step costs 1, except the last one. The score
    is minus the length of the episode.
    """

    horizon: int = eqx.field(default=500, static=True)
    """Maximum number of steps per episode."""

    @property
    def name(self) -> str:
        return "acrobot"

    @property
    def observation_size(self) -> int:
        return 6

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        high = (1.0, 1.0, 1.0, 1.0, *MAX_VELOCITIES)
        return tuple(-x for x in high), high

    @property
    def num_actions(self) -> int:
        return 3

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("torque −1", "no torque", "torque +1")

    @property
    def optimum(self) -> None:
        """None, since the shortest possible episode is not known."""
        return None

    @property
    def score_label(self) -> str:
        return "− episode length"

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        return -length

    @property
    def score_range(self) -> tuple[float, float]:
        return -float(self.horizon), -1.0

    @property
    def starts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (-0.1,) * 4, (0.1,) * 4

    @property
    def coordinates(self) -> tuple[Coordinate, Coordinate]:
        return Coordinate("θ₂", -math.pi, math.pi), Coordinate("θ₁", -math.pi, math.pi)

    def grid_point(self, values: Float[Array, "4"]) -> tuple[Array, Array]:
        return values[1], values[0]

    def observe(self, values: Float[Array, "4"]) -> Float[Array, "6"]:
        one, two = values[0], values[1]
        angles = [jnp.cos(one), jnp.sin(one), jnp.cos(two), jnp.sin(two)]
        return jnp.concatenate([jnp.stack(angles), values[2:]])

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """Return three states: hanging at rest, stretched out to the side, and just below the
        height of the goal."""
        states = {"start": (0, 0, 0, 0), "side": (1.5, 0, 0, 0), "last": (2.0, 0, 1, 0)}
        return {name: self.observe(jnp.array(x, jnp.float32)) for name, x in states.items()}

    def move(self, values: Float[Array, "4"], action: Int[Array, ""]) -> Float[Array, "4"]:
        """Integrate one step by the Runge–Kutta method."""
        torque = (action - 1).astype(jnp.float32)
        k1 = _slope(values, torque)
        k2 = _slope(values + TIME_STEP / 2 * k1, torque)
        k3 = _slope(values + TIME_STEP / 2 * k2, torque)
        k4 = _slope(values + TIME_STEP * k3, torque)
        after = values + TIME_STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        angles = after[:2] - 2 * math.pi * jnp.round(after[:2] / (2 * math.pi))
        limits = jnp.array(MAX_VELOCITIES)
        return jnp.concatenate([angles, jnp.clip(after[2:], -limits, limits)])

    def ended(self, values: Float[Array, "4"]) -> Bool[Array, ""]:
        return -jnp.cos(values[0]) - jnp.cos(values[0] + values[1]) > 1.0

    def earned(self, ended: Bool[Array, ""]) -> Float[Array, ""]:
        return jnp.where(ended, 0.0, -1.0)


def _slope(values: Float[Array, "4"], torque: Float[Array, ""]) -> Float[Array, "4"]:
    """Return the time derivative of a state; d₁, d₂, φ₁ and φ₂ are named as in the book.

    The links have length, mass and moment of inertia 1, and their centres of mass in the middle.
    """
    one, two, velocity_one, velocity_two = values
    sine, cosine = jnp.sin(two), jnp.cos(two)
    d1, d2 = 3.5 + cosine, 1.25 + 0.5 * cosine
    phi2 = 0.5 * GRAVITY * jnp.sin(one + two)
    phi1 = (
        -(0.5 * velocity_two + velocity_one) * velocity_two * sine
        + 1.5 * GRAVITY * jnp.sin(one)
        + phi2
    )
    push = torque + d2 / d1 * phi1 - 0.5 * velocity_one**2 * sine - phi2
    acceleration_two = push / (1.25 - d2**2 / d1)
    acceleration_one = -(d2 * acceleration_two + phi1) / d1
    return jnp.stack([velocity_one, velocity_two, acceleration_one, acceleration_two])
