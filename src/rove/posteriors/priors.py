"""Prior functions g_1 … g_M: random networks that stay as they are. Their values at an x never
change, so x carries them along: an update of a minibatch takes them from the buffer."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove import networks
from rove.networks import Theta


def carried(priors: Theta, x: Float[Array, "*n features"]) -> Float[Array, "*n inputs"]:
    """x with g_1(x), …, g_M(x) after it, unless it has them."""
    if x.shape[-1] > priors[0].weight.shape[-2]:
        return x
    each = jnp.moveaxis(networks.forward_many(priors, x), 0, -2)
    return jnp.concatenate([x, each.reshape(*x.shape[:-1], -1)], axis=-1)


def plain(inputs: Float[Array, "*n inputs"], network: Theta) -> Float[Array, "*n features"]:
    """x again: what the first layer of a network, or of a stack of them, takes."""
    return inputs[..., : network[0].weight.shape[-2]]


def values(
    inputs: Float[Array, "*n inputs"], network: Theta, count: int
) -> Float[Array, "*n count outputs"]:
    """g_1(x), …, g_M(x) again, for M = `count`."""
    after = inputs[..., network[0].weight.shape[-2] :]
    return after.reshape(*after.shape[:-1], count, -1)
