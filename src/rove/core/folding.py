"""Greedy policies as weighted sums of ordinary networks, for export."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts import noise
from rove.parts.layers import Convolution, Linear, Theta
from rove.posteriors.base import Foldable, Phi, Posterior, Stack
from rove.returns import Categorical
from rove.returns.base import Return, values


class Folded(NamedTuple):
    """A weighted sum of networks, whose output contains action values or a continuous action."""

    stacks: tuple[Stack, ...]
    """The networks, and the weights of their sum."""
    support: Float[Array, " atoms"] | None = None
    """The atoms of the return, if the sum contains logits for each action; an action's value is
    then the mean of its distribution. None: the sum contains the values themselves."""
    squashed: bool = False
    """Whether tanh of the sum is a continuous action in [−1, 1]^k."""


def folded_values(
    returns: Return, posterior: Posterior[Any, Any], phi: Phi, reward_scale: Float[Array, ""]
) -> Folded | None:
    """Return the networks whose sum is `Return.value` at the posterior mean, in the unit of the
    task's rewards; None if it is not such a sum."""
    if not isinstance(posterior, Foldable):
        return None
    stacks = posterior.mean_networks(phi)
    if not all(is_plain(stack.networks) for stack in stacks):
        return None
    if isinstance(returns, Categorical) and returns.risk is None:
        return Folded(stacks, reward_scale * returns.support)
    z = noise.normal(noise.root(0), (8, returns.outputs))
    weights = jax.grad(returns.value)(jnp.zeros(returns.outputs))
    if not jnp.allclose(values(returns, z), z @ weights, rtol=1e-4, atol=1e-5):
        return None
    return Folded(tuple(_contracted(stack, reward_scale * weights) for stack in stacks))


def is_plain(theta: Theta) -> bool:
    """Whether all layers are fully connected or convolutions, and the last is fully connected."""
    known = all(isinstance(layer, Linear | Convolution) for layer in theta)
    return known and isinstance(theta[-1], Linear)


def _contracted(stack: Stack, weights: Float[Array, " outputs"]) -> Stack:
    """Return networks whose outputs are w·z for each action instead of z."""
    *body, head = stack.networks

    def contract(x: Array) -> Array:
        return x.reshape(*x.shape[:-1], -1, weights.shape[0]) @ weights

    return stack._replace(networks=(*body, jax.tree.map(contract, head)))
