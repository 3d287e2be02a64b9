"""What an agent believes of some states, for reports and pictures."""

from typing import Any, NamedTuple

import jax
from jax import Array
from jaxtyping import Float

from rove.parts import noise
from rove.parts.noise import Key
from rove.posteriors.base import Posterior, apply_all
from rove.posteriors.priors import Input
from rove.returns.base import Return, by_action, means, stds

DRAWS = 16
"""Number of draws of θ."""


class Beliefs(NamedTuple):
    """What an agent believes of n states."""

    values: Float[Array, "draws n actions"]
    """Q_θ(s, ·) for some θ ~ q_φ."""
    outputs: Float[Array, "n outputs"]
    """The parameters of Z(s, ·) on the posterior mean, as the network puts them out."""
    stds: Float[Array, "n actions"]
    """The standard deviation of Z(s, ·), from those."""


def beliefs_at(
    returns: Return, posterior: Posterior[Any, Any], law: Any, xs: Input, key: Key
) -> Beliefs:
    """What Z_θ and q_φ say of some inputs."""

    def values(key: Key) -> Array:
        z = apply_all(posterior, law, posterior.sample(law, key), xs)
        return means(returns, by_action(returns, z))

    outputs = jax.vmap(posterior.mean, (None, 0))(law, xs)
    spread = stds(returns, by_action(returns, outputs))
    return Beliefs(jax.vmap(values)(noise.folds(key, DRAWS)), outputs, spread)


def pictures_of(returns: Return, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
    """Z(s, a) of every action, to draw: positions and heights."""
    return [returns.picture(z) for z in by_action(returns, outputs)]
