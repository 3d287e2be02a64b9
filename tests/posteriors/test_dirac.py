"""The Dirac posterior: one network, whatever the key."""

import jax
import jax.numpy as jnp
import numpy as np

from rove import networks, noise
from rove.posteriors import Dirac

init = jax.jit(networks.init, static_argnums=1)
X = jnp.array([0.5, -1.0, 2.0])


def test_every_draw_is_phi():
    posterior, network = Dirac(), init(noise.root(0), (3, 5, 2))
    phi = posterior.init(network)
    law = posterior.law(phi)
    expected = np.asarray(networks.forward(network, X))
    for seed in range(3):
        theta = posterior.sample(law, noise.root(seed))
        for drawn, centre in zip(jax.tree.leaves(theta), jax.tree.leaves(network), strict=True):
            assert np.array_equal(drawn, centre)
        assert np.array_equal(posterior.forward(law, X, noise.root(seed)), expected)
    for mean, centre in zip(
        jax.tree.leaves(posterior.mean(law)), jax.tree.leaves(network), strict=True
    ):
        assert np.array_equal(mean, centre)


def test_entropy_is_0_and_has_no_gradient():
    posterior = Dirac()
    phi = posterior.init(init(noise.root(0), (3, 5, 2)))
    value, gradient = jax.value_and_grad(lambda phi: posterior.entropy(posterior.law(phi)))(phi)
    assert float(value) == 0.0
    assert all(not np.any(g) for g in jax.tree.leaves(gradient))
