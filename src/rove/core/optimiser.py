"""Update steps of φ: Adam, with an ε too small to weaken the entropy of q_φ, or a `Sampler`."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from rove.parts.noise import Key
from rove.posteriors.base import Posterior, Sampler

BETA_1, BETA_2 = 0.9, 0.999
"""Decay rates β₁ and β₂ of Adam's moments."""
EPSILON, EPSILON_WITH_ENTROPY = 1e-8, 1e-16
"""Adam's ε without and with an entropy in the objective. The second is negligible compared to the
entropy's gradient in `adam_step` (1e-10 for σ = 1e-8 and minibatches of 64), and above 3e-18, below
which (1 − β₂)·g² underflows in float32."""


def init_optimiser(parameters: Any) -> Any:
    """Return Adam's initial moments."""
    import optax  # imported here because it is slow to import

    return optax.scale_by_adam().init(parameters)


def adam_step(
    parameters: Any,
    gradient: Any,
    moments: Any,
    lr: float | Array,
    scale: float | Array = 0.0,
) -> tuple[Any, Any]:
    """Take a step of Adam, and return the parameters and moments after it.

    The gradient is first divided by √c, where c is `scale`, unless c is 0. Adam's steps do not
    depend on a constant factor of the objective, provided that ε is negligible and that squares of
    gradients are representable in float32. Without the division, the entropy's gradients (of order
    c/N = σ²/N) have squares that underflow for small σ. With it, σ from 1e-8 to 1 is safe: the
    smallest gradient of the entropy, σ/N, is about 1e-10, and a gradient of the data, which is
    error × activation / σ, is at most 1e14 for errors and activations up to 1e3 (squares overflow
    above 1e19).
    """
    factor = lax.rsqrt(jnp.where(scale > 0.0, scale, 1.0))
    epsilon = jnp.where(scale > 0.0, EPSILON_WITH_ENTROPY, EPSILON)
    count = moments.count + 1
    mu = jax.tree.map(lambda g, m: (1.0 - BETA_1) * (factor * g) + BETA_1 * m, gradient, moments.mu)
    nu = jax.tree.map(
        lambda g, v: (1.0 - BETA_2) * (factor * g) ** 2 + BETA_2 * v, gradient, moments.nu
    )
    # The bias corrections are factors of the step and of ν. This takes one division per parameter,
    # where `optax.adam` takes three, which cost more than the rest of the step.
    step, unbias = lr / (1.0 - BETA_1**count), 1.0 / (1.0 - BETA_2**count)

    def moved(p: Array, m: Array, v: Array) -> Array:
        return p - step * m / (jnp.sqrt(unbias * v) + epsilon)

    return jax.tree.map(moved, parameters, mu, nu), moments._replace(count=count, mu=mu, nu=nu)


def first_moments(posterior: Posterior[Any, Any], learned: Any) -> Any:
    """Return the initial moments of the optimiser: those of Adam, or of a `Sampler`."""
    return posterior.start(learned) if isinstance(posterior, Sampler) else init_optimiser(learned)


def posterior_step(
    posterior: Posterior[Any, Any],
    learned: Any,
    gradient: Any,
    moments: Any,
    lr: float | Array,
    scale: tuple[float | Array, float | Array],
    key: Key,
) -> tuple[Any, Any]:
    """Return φ and the moments after a step of Adam, or of a `Sampler`.

    `scale` contains the weight c of the entropy, for Adam, and the temperature c/N, for a
    `Sampler`.
    """
    if isinstance(posterior, Sampler):
        return posterior.step(learned, gradient, moments, lr, scale[1], key)
    return adam_step(learned, gradient, moments, lr, scale[0])
