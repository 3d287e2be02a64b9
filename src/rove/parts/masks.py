"""Action masks: observations that say which actions are allowed."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

_BITS = 24
"""Number of actions in a column of the replay buffer: float32 represents integers up to 2²⁴."""


class Masked(eqx.Module):
    """Observations with the actions that are allowed there.

    The mask is a part of the observation, so that both are always stored and passed on together.
    Observations of an environment that always allows all actions have no mask.
    """

    observation: Any
    """The observations themselves: vectors, or codes."""
    allowed: Bool[Array, "*n actions"]
    """Whether each action is allowed; arbitrary if the state is terminal."""


def masked(observation: Any, allowed: Bool[Array, "*n actions"] | None) -> Any:
    """Return observations with a mask, or without one if it is None."""
    return observation if allowed is None else Masked(observation, allowed)


def unmasked(observation: Any) -> Any:
    """Return observations without their mask, if they have one."""
    return observation.observation if isinstance(observation, Masked) else observation


def allowed_actions(observation: Any) -> Bool[Array, "*n actions"] | None:
    """Return the mask of observations, or None if they have none: all actions are allowed."""
    return observation.allowed if isinstance(observation, Masked) else None


def width(actions: int) -> int:
    """Return the number of columns that store a mask of `actions` actions."""
    return -(-actions // _BITS)


def to_columns(allowed: Bool[Array, " actions"] | None) -> Float[Array, " width"]:
    """Return a mask as columns, each a number whose bits are up to 24 actions; none for None."""
    if allowed is None:
        return jnp.zeros(0)
    bits = jnp.pad(allowed, (0, -allowed.shape[0] % _BITS)).reshape(-1, _BITS)
    return jnp.sum(bits * 2.0 ** jnp.arange(_BITS), axis=-1)


def from_columns(columns: Float[Array, "n width"], actions: int) -> Bool[Array, "n actions"] | None:
    """Return masks of `actions` actions from their columns; None if `actions` is 0."""
    if not actions:
        return None
    bits = columns.astype(jnp.int32)[..., None] >> jnp.arange(_BITS) & 1
    return bits.reshape(len(columns), -1)[:, :actions] == 1
