"""Adam's step is optax's, to rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rove.core.optimiser import EPSILON, EPSILON_WITH_ENTROPY, adam_step, init_optimiser


@pytest.mark.parametrize("scale", [0.0, 1e-4])
def test_a_step_is_optaxs(scale):
    rng = np.random.default_rng(0)
    start = {"w": jnp.asarray(rng.normal(size=(3, 4)), jnp.float32), "b": jnp.zeros(4)}
    sizes = 10.0 ** -np.array((0, 3, 1, 6, 2) * 4)
    gradients = [
        {
            name: jnp.asarray(size * rng.normal(size=x.shape), jnp.float32)
            for name, x in start.items()
        }
        for size in sizes
    ]
    optimiser = optax.adam(1e-2, eps=EPSILON_WITH_ENTROPY if scale else EPSILON)
    theirs, state = start, optimiser.init(start)
    mine, moments = start, init_optimiser(start)
    for gradient in gradients:
        scaled = jax.tree.map(lambda g: g / np.sqrt(scale) if scale else g, gradient)
        updates, state = optimiser.update(scaled, state)
        theirs = optax.apply_updates(theirs, updates)
        mine, moments = adam_step(mine, gradient, moments, 1e-2, scale)
    assert int(moments.count) == len(gradients)
    for a, b in zip(*map(jax.tree.leaves, (mine, theirs)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    for a, b in zip(*map(jax.tree.leaves, (moments[1:], state[0][1:])), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
