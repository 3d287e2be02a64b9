"""Prior functions g_1, …, g_M: random networks that are never trained (Osband et al. 2018).

The value of a prior function at an observation never changes. If observations are codes, the prior
functions are replaced by tables of their values (`tabulated`). Otherwise, the replay buffer can
store the values with the observation, and `inputs` uses these cached values.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts import networks
from rove.parts.masks import unmasked
from rove.parts.networks import Linear, Theta
from rove.parts.onehot import Features, Observation, OneHot
from rove.parts.replay import Transition

LEAST_CACHE = 64
"""Maximum number of cached values per observation: the larger of this and the observation's size.
With more, the cache would dominate the size of the replay buffer."""


class Input(NamedTuple):
    """An input of f_θ: an observation, and the values of the prior functions there."""

    features: Features
    priors: Any = ()
    """g_1(x), …, g_M(x), of shape [*n, M, outputs]; () for a family without prior functions."""


def inputs(
    priors: Theta | tuple[()],
    x: Observation,
    cached: Float[Array, "*n cached"] | None = None,
) -> Input:
    """Return x as an input of f_θ, with the values of the prior functions.

    **Arguments**
    - `priors`: M networks, stacked along the first axis, or () if there are none.
    - `x`: one or more observations; masks of actions are left out.
    - `cached`: the result of `cache` for x. If it is None or empty, the values are computed.
    """
    features: Features = unmasked(x)
    if not priors:
        return Input(features)
    count = stacked(priors)
    if cached is not None and cached.shape[-1]:
        return Input(features, cached.reshape(*features.shape[:-1], count, -1))
    return Input(features, jnp.moveaxis(networks.forward_many(priors, features), 0, -2))


def stacked(priors: Theta) -> int:
    """Return M, the number of prior functions."""
    return jax.tree.leaves(priors)[0].shape[0]


def tabulated(priors: Theta | tuple[()], coded: bool) -> Theta | tuple[()]:
    """Return the prior functions as tables if observations are codes, otherwise unchanged.

    A table is a linear function with the same values: g(x) = (g(e_i) − g(0))·x_i + g(0) for a
    one-hot x.
    """
    if not coded or not priors:
        return priors
    size = priors[0].inputs
    values = networks.forward_many(priors, OneHot(jnp.arange(size), size))
    at_zero = networks.forward_many(priors, OneHot(jnp.asarray(size), size))
    return (Linear(values - at_zero[:, None], at_zero),)


def with_cache(priors: Theta | tuple[()], transition: Transition) -> Transition:
    """Return a transition with the values of the prior functions at s and s′, to be stored."""
    both = jax.tree.map(
        lambda s, s_next: jnp.stack([s, s_next]),
        unmasked(transition.observation),
        unmasked(transition.next_observation),
    )
    values, next_values = cache(priors, both)
    return transition._replace(priors=values, next_priors=next_values)


def cache(priors: Theta | tuple[()], x: Features) -> Float[Array, "n cached"]:
    """Return the values to store with each observation: all, or none if there are too many."""
    n, features = x.shape
    width = cache_size(priors, features, isinstance(x, OneHot))
    return inputs(priors, x).priors.reshape(n, -1) if width else jnp.zeros((n, 0))


def cache_size(priors: Theta | tuple[()], features: int, coded: bool = False) -> int:
    """Return the number of values that `cache` returns per observation of the given size.

    It is 0 for codes, whose values are looked up.
    """
    size = stacked(priors) * priors[-1].outputs if priors and not coded else 0
    return size if size <= max(features, LEAST_CACHE) else 0
