"""The deterministic policy π_ψ of an actor–critic, and soft updates of target networks."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts import networks
from rove.parts.masks import unmasked
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.parts.onehot import Observation

_LAST_LAYER_SCALE = 0.01
"""Scale of the last layer of a new policy. Its initial actions are near 0, where tanh is not
saturated (DDPG initialises that layer within ±0.003)."""


def init_policy(features: int, hidden: tuple[int, ...], actions: int, key: Key) -> Theta:
    """Return the initial parameters ψ of a policy."""
    *body, head = networks.mlp(features, *hidden, actions).init(key)
    return (*body, jax.tree.map(lambda w: _LAST_LAYER_SCALE * w, head))


def policy(psi: Theta, s: Observation) -> Float[Array, "*n k"]:
    """Return π_ψ(s) = tanh f_ψ(s)."""
    return jnp.tanh(networks.forward(psi, unmasked(s)))


def critic_input(s: Observation, a: Float[Array, "*n k"]) -> Float[Array, "*n inputs"]:
    """Concatenate s and a, which form the input of a critic."""
    return jnp.concatenate([jnp.asarray(unmasked(s)), a], axis=-1)


def soft_update(old: Any, new: Any, tau: Float[Array, ""]) -> Any:
    """Return (1 − τ)·old + τ·new; leaves that are not floats, such as keys, are those of new."""

    def mix(old: Array, new: Array) -> Array:
        inexact = jnp.issubdtype(new.dtype, jnp.inexact)
        return (1.0 - tau) * old + tau * new if inexact else new

    return jax.tree.map(mix, old, new)
