"""Dropout: what a mask does, how often, and what stays the same in the mean.

Statistical limits: a chance of 1e-4 for all values of a test together; seeds are fixed.
"""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import stats

from helpers import rows, single
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.networks import Linear
from rove.posteriors import Dropout
from rove.posteriors.priors import Input

DRAWS = 50_000
X = jnp.array([0.8, -1.5, 0.3])


def limit(several: int) -> float:
    return stats.norm.isf(0.5e-4 / several)


def some_law(sizes: tuple[int, ...], seed: int = 0):
    """Biases too."""
    rng = np.random.default_rng(seed)
    network = networks.mlp(*sizes).init(noise.root(seed))
    return tuple(
        Linear(w, jnp.asarray(0.3 * rng.normal(size=b.shape), jnp.float32)) for w, b in network
    )


def f64(law):
    return [[np.asarray(part, np.float64) for part in layer] for layer in law]


@jax.jit
def masks(posterior, law, seed):
    keys = jax.vmap(lambda i: noise.fold(noise.root(seed), i))(jnp.arange(DRAWS))
    return jax.vmap(lambda key: posterior.sample(law, key))(keys)


rows_of = jax.jit(rows)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_a_unit_is_left_out_at_the_rate_and_scaled_up_else(rate):
    """11 hidden units: 0 or 1/(1 − rate), each on its own."""
    draws = np.asarray(masks(Dropout(rate), some_law((3, 6, 5, 2)), 1), np.float64)
    assert draws.shape == (DRAWS, 11)
    np.testing.assert_allclose(np.unique(draws), [0.0, 1 / (1 - rate)], rtol=1e-6)
    z = ((draws == 0) - rate) / np.sqrt(rate * (1 - rate))
    assert np.max(np.abs(z.mean(0))) * np.sqrt(DRAWS) < limit(11)
    between = (z.T @ z / DRAWS)[np.triu_indices(11, 1)]
    assert np.max(np.abs(between)) * np.sqrt(DRAWS) < limit(55)


def test_a_mask_multiplies_the_hidden_units_in_order():
    law = some_law((3, 6, 5, 2))
    draw = np.random.default_rng(2).uniform(0.5, 2.0, size=11)  # not 0 or 1: all of it must show
    (w1, b1), (w2, b2), (w3, b3) = f64(law)
    h = np.maximum(np.asarray(X, np.float64) @ w1 + b1, 0.0) * draw[:6]
    exact = (np.maximum(h @ w2 + b2, 0.0) * draw[6:]) @ w3 + b3
    got = Dropout().apply(law, jnp.asarray(draw, jnp.float32), Input(X))
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-6)


def test_moments_of_a_linear_network():
    """Where all units are active, f = Σ_u m_u·h_u·w_u + b, with m of mean 1 and variance
    p/(1 − p): the mean is the network's own, the covariance p/(1 − p)·Σ_u h_u²·w_u·w_uᵀ."""
    rate, rng = 0.3, np.random.default_rng(3)
    first = Linear(jnp.asarray(rng.uniform(0.1, 1, (3, 6)), jnp.float32), jnp.ones(6))
    last = Linear(jnp.asarray(rng.normal(size=(6, 2)), jnp.float32), jnp.array([0.5, -1.0]))
    law, x = (first, last), jnp.array([0.8, 1.5, 0.3])
    (w1, b1), (w2, b2) = f64(law)
    h = np.asarray(x, np.float64) @ w1 + b1
    exact = h @ w2 + b2
    covariance = rate / (1 - rate) * (h[:, None] * w2).T @ (h[:, None] * w2)
    np.testing.assert_allclose(Dropout(rate).mean(law, Input(x)), exact, rtol=1e-5)
    ys = np.asarray(
        rows_of(Dropout(rate), law, jnp.tile(x, (DRAWS, 1)), noise.root(4))[0], np.float64
    )
    z = (ys - exact) / np.sqrt(np.diag(covariance))
    assert np.max(np.abs(z.mean(0))) * np.sqrt(DRAWS) < limit(2)
    products = np.stack([z[:, 0] ** 2, z[:, 1] ** 2, z[:, 0] * z[:, 1]], axis=1)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    expected = (covariance / scale)[[0, 1, 0], [0, 1, 1]]
    error = products.std(0) / np.sqrt(DRAWS)
    assert np.max(np.abs(products.mean(0) - expected) / error) < limit(3)


def test_rate_0_is_the_network_itself():
    law = some_law((3, 6, 5, 2))
    exact = networks.forward(law, X)
    assert np.array_equal(single(Dropout(0.0), law, X, noise.root(0)), exact)
    assert np.array_equal(Dropout(0.5).mean(law, Input(X)), exact)


def test_entropy_is_0():
    assert float(Dropout().entropy(some_law((3, 6, 2)))) == 0.0


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan"), "half"])
def test_bad_values_are_refused_by_name(rate, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match="rate") as caught:
        Dropout(rate)
    assert caught.value.field == "rate"
