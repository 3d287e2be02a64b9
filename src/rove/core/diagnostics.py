"""Diagnostics of an agent's value estimates in given states, for reports and plots."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.core.folding import is_plain
from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import Features
from rove.posteriors.base import Foldable, Phi, Posterior, apply_all
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


class Inspected(NamedTuple):
    """What the posterior mean of an agent with a value network says in n states."""

    actions: Int[Array, " n"] | Float[Array, "n k"]
    """The greedy action."""
    values: Float[Array, " n"]
    """Its value Q(s, a), or its risk measure, in the unit of the task's rewards."""
    gaps: Float[Array, " n"]
    """How much the best action is better than the second best; 0 if there is no second one."""
    units: tuple[Float[Array, "2 units"], ...]
    """For each hidden layer, the lowest and the highest output of every unit over the states; () if
    the layers are not known."""
    gamma: float | Float[Array, ""]
    """The discount factor of the values."""
    expected: bool | Bool[Array, ""] = True
    """Whether values are expected returns of the task: not with intrinsic rewards, or if they are a
    risk measure."""


def unit_bounds(
    posterior: Posterior[Any, Any], phi: Phi, x: Features
) -> tuple[Float[Array, "2 units"], ...]:
    """Return the lowest and the highest output of every hidden unit over the rows of x, for each
    layer of the network at the posterior mean, or of the learned networks whose mean it is."""
    if not isinstance(posterior, Foldable):
        return ()
    learned = posterior.mean_networks(phi)[0].networks
    if not is_plain(learned):
        return ()

    def bounds(layers: Any) -> tuple[Array, ...]:
        found, h = [], x
        for layer in layers[:-1]:
            h = jax.nn.relu(layer(h))
            found.append(jnp.stack([jnp.min(h, axis=0), jnp.max(h, axis=0)]))
        return tuple(found)

    return tuple(jnp.concatenate(list(rows), axis=1) for rows in jax.vmap(bounds)(learned))


def gap(q: Float[Array, "n actions"], allowed: Bool[Array, "n actions"] | None) -> Array:
    """Return the difference between the values of the best two actions that are allowed; 0 if there
    is one."""
    if q.shape[1] == 1:
        return jnp.zeros(q.shape[0])
    ordered = jnp.sort(q if allowed is None else jnp.where(allowed, q, -jnp.inf), axis=1)
    difference = ordered[:, -1] - ordered[:, -2]
    return jnp.where(jnp.isfinite(difference), difference, 0.0)
