"""The Dirac posterior: one network, whatever the key."""

import jax
import jax.numpy as jnp
import numpy as np

from helpers import rows, single
from rove.parts import networks, noise
from rove.posteriors import Dirac
from rove.posteriors.priors import Input

NETWORK = networks.mlp(3, 5, 2)
X = jnp.array([0.5, -1.0, 2.0])

POSTERIOR = Dirac()
init = jax.jit(POSTERIOR.init, static_argnums=0)
rows_of = jax.jit(lambda law, xs, key: rows(POSTERIOR, law, xs, key))


def test_phi_is_a_fresh_network_and_nothing_is_held():
    phi = init(NETWORK, noise.root(0))
    network = jax.jit(NETWORK.init)(noise.root(0))
    for mine, fresh in zip(jax.tree.leaves(phi.learned), jax.tree.leaves(network), strict=True):
        assert np.array_equal(mine, fresh)
    assert phi.fitted == ()


def test_every_draw_is_phi():
    phi = init(NETWORK, noise.root(0))
    law, network = POSTERIOR.law(phi), phi.learned
    for of_law, centre in zip(jax.tree.leaves(law), jax.tree.leaves(network), strict=True):
        assert np.array_equal(of_law, centre)
    expected = np.asarray(networks.forward(network, X))
    other = jax.tree.map(lambda x: x + 1.0, law)
    for seed in range(3):
        theta = POSTERIOR.sample(law, noise.root(seed))
        assert np.array_equal(POSTERIOR.apply(law, theta, Input(X)), expected)
        assert np.array_equal(single(POSTERIOR, law, X, noise.root(seed)), expected)
        # A θ that is held follows the network as it learns.
        learnt = np.asarray(networks.forward(other, X))
        assert np.array_equal(POSTERIOR.apply(other, theta, Input(X)), learnt)
        assert not np.any(learnt == expected)
    assert np.array_equal(POSTERIOR.mean(law, Input(X)), expected)


def test_a_batch_is_the_network_row_by_row_whatever_the_key():
    phi = init(NETWORK, noise.root(0))
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(9, 3)), jnp.float32)
    expected = np.stack([np.asarray(networks.forward(phi.learned, x)) for x in xs])
    for seed in range(2):
        outputs = rows_of(POSTERIOR.law(phi), xs, noise.root(seed))
        assert outputs.shape == (1, 9, 2)
        np.testing.assert_allclose(outputs[0], expected, rtol=1e-5, atol=1e-6)


def test_entropy_is_0_and_has_no_gradient():
    phi = init(NETWORK, noise.root(0))
    value, gradient = jax.value_and_grad(lambda phi: POSTERIOR.entropy(POSTERIOR.law(phi)))(phi)
    assert float(value) == 0.0
    assert all(not np.any(g) for g in jax.tree.leaves(gradient))
