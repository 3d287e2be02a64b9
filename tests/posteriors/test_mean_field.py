"""The mean-field Gaussian: its moments, its entropy, and draws of pre-activations.

Statistical limits are two-sided normal quantiles at a chance of 1e-4 for all values of a test
together; seeds are fixed.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import stats

from rove import networks, noise
from rove.errors import ConfigError
from rove.networks import Linear
from rove.posteriors import MeanField
from rove.posteriors.mean_field import Law, Phi, softplus

DRAWS = 200_000
POSTERIOR = MeanField(-1.0)
X = jnp.array([0.8, -1.5, 0.3])


def limit(several: int) -> float:
    return stats.norm.isf(0.5e-4 / several)


def some_law(sizes: tuple[int, ...], seed: int) -> Law:
    """Means and standard deviations that differ from weight to weight, biases too."""
    rng = np.random.default_rng(seed)

    def layer(draw):
        return tuple(
            Linear(jnp.asarray(draw((i, o)), jnp.float32), jnp.asarray(draw((o,)), jnp.float32))
            for i, o in pairwise(sizes)
        )

    mean = layer(lambda shape: rng.normal(size=shape) / np.sqrt(shape[0]))
    return Law(mean, layer(lambda shape: rng.uniform(0.1, 0.8, size=shape)))


def keys(seed: int, n: int = DRAWS):
    return jax.vmap(lambda i: noise.fold(noise.root(seed), i))(jnp.arange(n))


@jax.jit
def forwards(law: Law, seed):
    """Many draws of f_θ(X) by `forward`."""
    return jax.vmap(lambda key: POSTERIOR.forward(law, X, key))(keys(seed))


@jax.jit
def explicit(law: Law, seed):
    """The same by writing out θ for each."""
    return jax.vmap(lambda key: networks.forward(POSTERIOR.sample(law, key), X))(keys(seed))


jitted_forward = jax.jit(lambda law, key: POSTERIOR.forward(law, X, key))
jitted_sample = jax.jit(POSTERIOR.sample)


def test_law_is_softplus_of_rho():
    network = some_law((3, 4, 2), 0).mean
    phi = MeanField(-2.0).init(network)
    law = POSTERIOR.law(phi)
    for mean, centre in zip(jax.tree.leaves(law.mean), jax.tree.leaves(network), strict=True):
        assert np.array_equal(mean, centre)
    for variance in jax.tree.leaves(law.variance):
        np.testing.assert_allclose(variance, np.log1p(np.exp(-2.0)) ** 2, rtol=1e-6)
    rho = np.array([-30.0, -10.0, -1.0, 0.0, 3.0, 10.0], np.float32)
    one = (Linear(jnp.zeros((1, 6)), jnp.asarray(rho)),)
    variance = POSTERIOR.law(Phi(one, one)).variance[0].bias
    exact = np.logaddexp(0, rho.astype(np.float64)) ** 2
    np.testing.assert_allclose(variance, exact, rtol=1e-6, atol=1e-31)


def test_softplus_and_its_derivative():
    """Against float64 over all that ρ can be; the derivative is the logistic function."""
    rho = jnp.linspace(-30.0, 30.0, 20_001)
    exact = np.asarray(rho, np.float64)
    np.testing.assert_allclose(softplus(rho), np.logaddexp(0, exact), rtol=5e-7, atol=3e-19)
    slope = jax.vmap(jax.grad(softplus))(rho)
    np.testing.assert_allclose(slope, 1 / (1 + np.exp(-exact)), rtol=5e-7)


def test_mean_is_the_mean():
    law = some_law((3, 4, 2), 0)
    for mean, centre in zip(
        jax.tree.leaves(POSTERIOR.mean(law)), jax.tree.leaves(law.mean), strict=True
    ):
        assert np.array_equal(mean, centre)


def test_a_draw_has_independent_coordinates_of_the_right_mean_and_variance():
    """(θ − μ)/σ over all 26 parameters: means 0 and covariance I."""
    law = some_law((3, 4, 2), 1)

    @jax.jit
    def draw(law):
        thetas = jax.vmap(lambda key: POSTERIOR.sample(law, key))(keys(1, 100_000))
        parts = (thetas, law.mean, law.variance)
        return jax.tree.leaves(jax.tree.map(lambda t, m, v: (t - m) / jnp.sqrt(v), *parts))

    z = np.concatenate([np.asarray(x).reshape(100_000, -1) for x in draw(law)], axis=1)
    n, d = z.shape
    assert d == 26
    z = z.astype(np.float64)
    assert np.max(np.abs(z.mean(0))) * np.sqrt(n) < limit(d)
    product = z.T @ z / n
    assert np.max(np.abs(np.diag(product) - 1)) * np.sqrt(n / 2) < limit(d)
    off = product[np.triu_indices(d, 1)]
    assert np.max(np.abs(off)) * np.sqrt(n) < limit(len(off))


def test_entropy_is_scipys_up_to_the_known_constant():
    """Σ norm.entropy(σ) = entropy + ½·log 2πe for each of 26 parameters."""
    law = some_law((3, 4, 2), 2)
    leaves = jax.tree.leaves(law.variance)
    stds = np.sqrt(np.concatenate([np.asarray(v, np.float64).ravel() for v in leaves]))
    exact = np.sum(stats.norm.entropy(0, stds)) - 26 * 0.5 * np.log(2 * np.pi * np.e)
    assert float(POSTERIOR.entropy(law)) == pytest.approx(exact, rel=1e-5)


def test_one_layer_forward_is_the_closed_form():
    """f(x) ~ N(x·μ_W + μ_b, x²·σ_W² + σ_b²), independent over the four outputs."""
    law = some_law((3, 4), 3)
    (mean,), (variance,) = law
    x = np.asarray(X, np.float64)
    m = x @ np.asarray(mean.weight, np.float64) + np.asarray(mean.bias, np.float64)
    v = x**2 @ np.asarray(variance.weight, np.float64) + np.asarray(variance.bias, np.float64)
    for outputs in (forwards(law, 3), explicit(law, 4)):
        z = (np.asarray(outputs, np.float64) - m) / np.sqrt(v)
        assert np.max(np.abs(z.mean(0))) * np.sqrt(DRAWS) < limit(4)
        product = z.T @ z / DRAWS
        assert np.max(np.abs(np.diag(product) - 1)) * np.sqrt(DRAWS / 2) < limit(4)
        assert np.max(np.abs(product[np.triu_indices(4, 1)])) * np.sqrt(DRAWS) < limit(6)
        for output in z.T:
            assert stats.ks_1samp(output[:50_000], stats.norm.cdf).pvalue > 1e-4 / 4


def test_deep_forward_has_the_law_of_explicit_weights():
    """Mean, covariance and shape: two samples of 200,000, standard errors from the samples."""
    law = some_law((3, 6, 5, 3), 5)
    # Outputs that all rise with the hidden units they share vary together.
    last = Linear(1.0 + jnp.abs(law.mean[-1].weight), law.mean[-1].bias)
    law = Law((*law.mean[:-1], last), law.variance)
    a, b = (np.asarray(x, np.float64) for x in (forwards(law, 5), explicit(law, 6)))
    error = np.sqrt((a.var(0) + b.var(0)) / DRAWS)
    assert np.max(np.abs(a.mean(0) - b.mean(0)) / error) < limit(3)
    # Entries of the covariance: means of products of centred outputs.
    i, j = np.triu_indices(3)
    products = [((x - x.mean(0))[:, i] * (x - x.mean(0))[:, j]) for x in (a, b)]
    error = np.sqrt((products[0].var(0) + products[1].var(0)) / DRAWS)
    difference = products[0].mean(0) - products[1].mean(0)
    assert np.max(np.abs(difference) / error) < limit(6)
    correlation = np.corrcoef(b.T)[i, j][i != j]
    assert np.min(correlation) > 0.1  # so that a covariance left out would be seen
    for k in range(3):
        assert stats.ks_2samp(a[:, k], b[:, k], method="asymp").pvalue > 1e-4 / 3


def test_rows_with_keys_of_their_own_are_independent():
    """A fresh θ for every row: the outputs of neighbouring rows are uncorrelated."""
    outputs = np.asarray(forwards(some_law((3, 6, 5, 3), 7), 7), np.float64)
    z = (outputs - outputs.mean(0)) / outputs.std(0)
    cross = z[:-1].T @ z[1:] / np.sqrt(DRAWS - 1)
    assert np.max(np.abs(cross)) < limit(9)


def test_the_same_key_agrees_and_two_keys_differ():
    law = some_law((3, 4, 2), 8)
    draws = [jitted_forward(law, noise.root(s)) for s in (0, 0, 1)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.any(np.asarray(draws[0]) == np.asarray(draws[2]))
    thetas = [jax.tree.leaves(jitted_sample(law, noise.root(s))) for s in (0, 0, 1)]
    for a, b, c in zip(*thetas, strict=True):
        assert np.array_equal(a, b)
        assert not np.any(np.asarray(a) == np.asarray(c))


@pytest.mark.parametrize("rho", [-31.0, 10.5, float("nan")])
def test_bad_rho_is_refused_by_name(rho, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match="rho"):
        MeanField(rho)
