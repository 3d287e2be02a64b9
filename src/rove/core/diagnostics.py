"""Diagnostics of an agent's value estimates in given states, for reports and plots."""

from typing import Any, NamedTuple

import jax
from jax import Array
from jaxtyping import Float

from rove.parts import noise
from rove.parts.noise import Key
from rove.posteriors.base import Posterior, apply_all
from rove.posteriors.priors import Input
from rove.returns.base import Return, by_action, stds
from rove.returns.base import values as action_values

DRAWS = 16
"""Number of samples of θ in `Beliefs.values`."""


class Beliefs(NamedTuple):
    """An agent's value estimates and return distributions in n states."""

    values: Float[Array, "draws n actions"]
    """Q_θ(s, ·), or its risk measure (`Return.value`), for several samples θ ~ q_φ."""
    outputs: Float[Array, "n outputs"]
    """The parameters of Z(s, ·) at the posterior mean: the network's outputs."""
    stds: Float[Array, "n actions"]
    """The standard deviations of Z(s, ·) at the posterior mean."""
    reward_scale: float | Float[Array, ""] = 1.0
    """What rewards were divided by. `outputs` describe the divided returns; the other fields are in
    the unit of the task's rewards."""


def beliefs_at(
    returns: Return,
    posterior: Posterior[Any, Any],
    law: Any,
    xs: Input,
    reward_scale: Float[Array, ""],
    key: Key,
) -> Beliefs:
    """Return the `Beliefs` at the inputs xs. `law` is q_φ as returned by `Posterior.law`."""

    def values(key: Key) -> Array:
        z = apply_all(posterior, law, posterior.sample(law, key), xs)
        return reward_scale * action_values(returns, by_action(returns, z))

    outputs = jax.vmap(posterior.mean, (None, 0))(law, xs)
    spread = reward_scale * stds(returns, by_action(returns, outputs))
    return Beliefs(jax.vmap(values)(noise.folds(key, DRAWS)), outputs, spread, reward_scale)


def density_curves(returns: Return, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
    """Return, for each action, the points and heights of a plot of Z(s, a)."""
    return [returns.density(z) for z in by_action(returns, outputs)]
