"""What every learner of a composition Z_θ × q_φ minimises, and the step it takes."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Bool, Float

from rove import noise
from rove.noise import Key
from rove.posteriors.base import Law, Posterior
from rove.returns.base import Return

EPSILON, LEAST_EPSILON = 1e-8, 1e-16
"""Adam's ε, as usual where the objective has no entropy, and where it has one. The second is
negligible beside the entropy's gradient in `descended`, which is 1e-10 at σ = 1e-8 and a minibatch
of 64, and above 3e-18, below which the square of a gradient vanishes in float32."""


def _adam(scale: float | Array) -> optax.GradientTransformation:
    return optax.scale_by_adam(eps=jnp.where(scale > 0.0, LEAST_EPSILON, EPSILON))


def init_optimiser(parameters: Any) -> Any:
    """Adam's moments at the start."""
    return optax.scale_by_adam().init(parameters)


def objective(
    returns: Return,
    posterior: Posterior,
    law: Law,
    z: Float[Array, "draws n outputs"],
    weights: Float[Array, "draws_ n_"],
    x: Array,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """c/N times E_θ[−Σ log Z_θ(x_j)] − H(q_φ): (4), (7) for a Gaussian. Also its first term.

    c is the return's `scale`. Where the loss is −c·log Z_θ, as the Gaussian's, the constant c/N
    changes neither the minimiser nor, by `descended`, the steps towards it; where it is
    −log Z_θ, c tempers q_φ. The expectation takes draws of θ for every term of the sum, which has
    less variance than one draw for all. `z` and `weights` came from one key; `x` holds a target
    for each draw and term.
    """
    loss = jnp.mean(weights * jax.vmap(jax.vmap(returns.loss))(z, x))
    return loss - returns.scale / z.shape[1] * posterior.entropy(law), loss


def targets(
    returns: Return,
    z: Float[Array, "draws n outputs"],
    reward: Float[Array, " n"],
    terminated: Bool[Array, " n"],
    gamma: float | Array,
    key: Key,
) -> Array:
    """x ~ r + γ·Z_θ⁻(s′, a′) for each draw and transition, from z at (s′, a′): bootstrapped
    unless `terminated`."""
    draws, n, _ = z.shape
    keys = noise.folds(key, draws * n).reshape(draws, n, 2)
    discount = gamma * (1.0 - terminated)
    over_rows = jax.vmap(returns.target)
    return jax.vmap(over_rows, (0, None, None, 0))(z, reward, discount, keys)


def means(returns: Return, z: Float[Array, "*n outputs"]) -> Float[Array, "*n"]:
    """E[Z] of every row of outputs."""
    return jnp.vectorize(returns.mean, signature="(k)->()")(z)


def stds(returns: Return, z: Float[Array, "*n outputs"]) -> Float[Array, "*n"]:
    """The standard deviation of Z, of every row of outputs."""
    return jnp.vectorize(returns.std, signature="(k)->()")(z)


def descended(
    parameters: Any,
    gradient: Any,
    optimiser: Any,
    lr: float | Array,
    scale: float | Array = 0.0,
) -> tuple[Any, Any]:
    """A step of Adam: the parameters, and its moments, after it.

    Adam's steps are the same for any positive multiple of the objective, as long as it is one
    multiple in all steps, ε is negligible and squares of gradients are within float32. In the
    objective of `scale` c the data's gradients are of the order of 1 and the entropy's of c/N,
    whose squares vanish where σ is small. Divided by √c, both are safe for σ from 1e-8 to 1: the
    least entropy gradient is 1e-10, and the largest of the data, with errors of 1e3, about 1e14.
    Where c is 0 the gradient is taken as it is.
    """
    factor = lax.rsqrt(jnp.where(scale > 0.0, scale, 1.0))
    gradient = jax.tree.map(lambda g: factor * g, gradient)
    direction, optimiser = _adam(scale).update(gradient, optimiser)
    return jax.tree.map(lambda p, d: p - lr * d, parameters, direction), optimiser
