"""Prior functions g_1, …, g_M: random networks that are never trained (Osband et al. 2018).

The value of a prior function at an observation never changes, so the replay buffer can store it
with the observation. `inputs` uses such cached values if they are available.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts import networks
from rove.parts.networks import Theta

LEAST_CACHE = 64
"""Maximum number of cached values per observation: the larger of this and the observation's size.
More would make the replay buffer much larger than without them."""


class Input(NamedTuple):
    """An input of f_θ: an observation, and the values of the prior functions there."""

    features: Float[Array, "*n features"]
    priors: Any = ()
    """g_1(x), …, g_M(x), of shape [*n, M, outputs]; () for a family without prior functions."""


def inputs(
    priors: Theta | tuple[()],
    x: Float[Array, "*n features"],
    cached: Float[Array, "*n cached"] | None = None,
) -> Input:
    """Return x as an input of f_θ, with the values of the prior functions.

    **Arguments**
    - `priors`: M networks, stacked along the first axis, or () if there are none.
    - `x`: one or more observations.
    - `cached`: the result of `cache` for x. If it is None or empty, the values are computed.
    """
    if not priors:
        return Input(x)
    count = priors[0].bias.shape[0]
    if cached is not None and cached.shape[-1]:
        return Input(x, cached.reshape(*x.shape[:-1], count, -1))
    return Input(x, jnp.moveaxis(networks.forward_many(priors, x), 0, -2))


def cache(priors: Theta | tuple[()], x: Float[Array, "n features"]) -> Float[Array, "n cached"]:
    """Return the values to store with each observation: all, or none if there are too many."""
    width = cache_size(priors, x.shape[-1])
    return inputs(priors, x).priors.reshape(len(x), -1) if width else jnp.zeros((len(x), 0))


def cache_size(priors: Theta | tuple[()], features: int) -> int:
    """Return the number of values that `cache` returns per observation of the given size."""
    size = priors[-1].bias.size if priors else 0
    return size if size <= max(features, LEAST_CACHE) else 0
