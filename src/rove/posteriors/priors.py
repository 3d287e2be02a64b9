"""Prior functions g_1 … g_M: random networks that never learn, and what f_θ takes for an x.

The value of a prior function at an observation never changes, so the replay buffer may keep it
with the observation. `inputs` uses such a cached value where there is one.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts import networks
from rove.parts.networks import Theta

LEAST_CACHE = 64
"""Maximum number of cached values per observation: the larger of this and the observation's
size. More would make the replay buffer much larger than the observations it is for."""


class Input(NamedTuple):
    """What f_θ takes: an observation, and the values of the prior functions there."""

    features: Float[Array, "*n features"]
    priors: Any = ()
    """g_1(x), …, g_M(x), of shape [*n, M, outputs]; () for a family without prior functions."""


def inputs(
    priors: Theta | tuple[()],
    x: Float[Array, "*n features"],
    cached: Float[Array, "*n cached"] | None = None,
) -> Input:
    """The input for x, given the stack of prior functions and, if they were kept, their values.

    Args:
        priors: M networks, stacked along a first axis, or () if there are none.
        x: One observation, or several.
        cached: What `cache` gave for x. Without it, or if it is empty, the values are computed.
    """
    if not priors:
        return Input(x)
    count = priors[0].bias.shape[0]
    if cached is not None and cached.shape[-1]:
        return Input(x, cached.reshape(*x.shape[:-1], count, -1))
    return Input(x, jnp.moveaxis(networks.forward_many(priors, x), 0, -2))


def cache(priors: Theta | tuple[()], x: Float[Array, "n features"]) -> Float[Array, "n cached"]:
    """The values to keep with each observation: all, or none if they are too many."""
    width = cache_size(priors, x.shape[-1])
    return inputs(priors, x).priors.reshape(len(x), -1) if width else jnp.zeros((len(x), 0))


def cache_size(priors: Theta | tuple[()], features: int) -> int:
    """How many values `cache` keeps with an observation of so many features."""
    size = priors[-1].bias.size if priors else 0
    return size if size <= max(features, LEAST_CACHE) else 0
