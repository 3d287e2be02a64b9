"""The mean-field Gaussian: its moments, its entropy, and draws of pre-activations.

Statistical limits are two-sided normal quantiles at a chance of 1e-4 for all values of a test
together; seeds are fixed.
"""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import integrate, stats

from helpers import rows, single
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.networks import Linear
from rove.posteriors import MeanField, Phi
from rove.posteriors.mean_field import MeanFieldLaw, MeanFieldLearned, softplus
from rove.posteriors.priors import Input

DRAWS = 200_000
POSTERIOR = MeanField(-1.0)
X = jnp.array([0.8, -1.5, 0.3])


def limit(several: int) -> float:
    return stats.norm.isf(0.5e-4 / several)


def some_law(sizes: tuple[int, ...], seed: int) -> MeanFieldLaw:
    """Means and standard deviations that differ from weight to weight, biases too."""
    rng = np.random.default_rng(seed)

    def layer(draw):
        return tuple(
            Linear(jnp.asarray(draw((i, o)), jnp.float32), jnp.asarray(draw((o,)), jnp.float32))
            for i, o in pairwise(sizes)
        )

    mean = layer(lambda shape: rng.normal(size=shape) / np.sqrt(shape[0]))
    return MeanFieldLaw(mean, layer(lambda shape: rng.uniform(0.1, 0.8, size=shape) ** 2))


def keys(seed: int, n: int = DRAWS):
    return jax.vmap(lambda i: noise.fold(noise.root(seed), i))(jnp.arange(n))


@jax.jit
def forwards(law: MeanFieldLaw, seed):
    """Many draws of f_θ(X) as in control."""
    return jax.vmap(lambda key: single(POSTERIOR, law, X, key))(keys(seed))


@jax.jit
def batched(law: MeanFieldLaw, seed):
    """The same by rows: a minibatch in which every row is X, from one key."""
    outputs = rows(POSTERIOR, law, jnp.tile(X, (DRAWS, 1)), noise.root(seed))
    return outputs[0]


@jax.jit
def explicit(law: MeanFieldLaw, seed):
    """The same by writing out θ for each."""
    return jax.vmap(lambda key: networks.forward(POSTERIOR.sample(law, key), X))(keys(seed))


jitted_forward = jax.jit(lambda law, key: single(POSTERIOR, law, X, key))
jitted_sample = jax.jit(POSTERIOR.sample)


def test_law_is_softplus_of_rho():
    form = networks.mlp(3, 4, 2)
    network = jax.jit(form.init)(noise.root(0))
    phi = jax.jit(MeanField(-2.0).init, static_argnums=0)(form, noise.root(0))
    assert phi.fitted == ()
    law = POSTERIOR.law(phi)
    for mean, centre in zip(jax.tree.leaves(law.mean), jax.tree.leaves(network), strict=True):
        assert np.array_equal(mean, centre)
    for std in jax.tree.leaves(law.std):
        np.testing.assert_allclose(std, np.log1p(np.exp(-2.0)), rtol=1e-6)
    rho = np.array([-30.0, -10.0, -1.0, 0.0, 3.0, 10.0], np.float32)
    one = (Linear(jnp.zeros((1, 6)), jnp.asarray(rho)),)
    std = POSTERIOR.law(Phi(MeanFieldLearned(one, one))).std[0].bias
    exact = np.logaddexp(0, rho.astype(np.float64))
    np.testing.assert_allclose(std, exact, rtol=1e-6, atol=3e-19)


def test_softplus_and_its_derivative():
    """Against float64 over all that ρ can be; the derivative is the logistic function."""
    rho = jnp.linspace(-30.0, 30.0, 20_001)
    exact = np.asarray(rho, np.float64)
    np.testing.assert_allclose(softplus(rho), np.logaddexp(0, exact), rtol=5e-7, atol=3e-19)
    slope = jax.vmap(jax.grad(softplus))(rho)
    np.testing.assert_allclose(slope, 1 / (1 + np.exp(-exact)), rtol=5e-7)


def test_mean_is_the_network_of_the_means():
    law = some_law((3, 4, 2), 0)
    assert np.array_equal(POSTERIOR.mean(law, Input(X)), networks.forward(law.mean, X))


def test_a_draw_is_applied_as_the_network_it_is():
    law = some_law((3, 4, 2), 0)
    theta = jitted_sample(law, noise.root(0))
    applied = POSTERIOR.apply(law, theta, Input(X))
    assert np.array_equal(applied, networks.forward(theta, X))
    assert not np.any(np.asarray(applied) == np.asarray(POSTERIOR.mean(law, Input(X))))


def test_a_draw_has_independent_coordinates_of_the_right_mean_and_variance():
    """(θ − μ)/σ over all 26 parameters: means 0 and covariance I."""
    law = some_law((3, 4, 2), 1)

    @jax.jit
    def draw(law):
        thetas = jax.vmap(lambda key: POSTERIOR.sample(law, key))(keys(1, 100_000))
        parts = (thetas, law.mean, law.std)
        return jax.tree.leaves(jax.tree.map(lambda t, m, s: (t - m) / s, *parts))

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
    leaves = jax.tree.leaves(law.std)
    stds = np.concatenate([np.asarray(std, np.float64).ravel() for std in leaves])
    exact = np.sum(stats.norm.entropy(0, stds)) - 26 * 0.5 * np.log(2 * np.pi * np.e)
    assert float(POSTERIOR.entropy(law)) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("prior", [0.3, 1.0, 5.0])
def test_with_a_prior_the_entropy_is_minus_kl_up_to_the_known_constant(prior):
    """−KL(N(μ, σ²) ‖ N(0, s²)) = ∫ q·log(p/q) = entropy + (½ − log s) for each of 26 parameters.

    The divergence once as scipy's entropy and E log p, once by numerical integration of one
    parameter's.
    """
    law = some_law((3, 4, 2), 2)
    mean, std = (
        np.concatenate([np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(part)])
        for part in (law.mean, law.std)
    )
    p = stats.norm(0, prior)
    # E_q log p is log p at the mean, less σ²/2s² for the spread about it.
    minus_kl = stats.norm.entropy(0, std) + p.logpdf(mean) - std**2 / (2 * prior**2)
    q = stats.norm(mean[0], std[0])
    ends = mean[0] - 12 * std[0], mean[0] + 12 * std[0]
    one = integrate.quad(lambda x: q.pdf(x) * (p.logpdf(x) - q.logpdf(x)), *ends)[0]
    assert minus_kl[0] == pytest.approx(one, rel=1e-6)
    exact = np.sum(minus_kl) - 26 * (0.5 - np.log(prior))
    assert float(MeanField(-1.0, prior).entropy(law)) == pytest.approx(exact, rel=1e-5)


def test_with_a_bound_the_entropy_is_minus_kl_to_a_prior_about_the_mean():
    """−KL(N(μ, σ²) ‖ N(μ, s²)) = log σ/s + ½ − σ²/2s², with s = prior_std/√inputs of the layer: the
    constants ½ − log s apart. Where σ = s its gradient is 0, and it has none by μ."""
    law, bound = some_law((3, 4, 2), 2), 0.6
    exact = 0.0
    for layer in law.std:
        std = np.concatenate([np.asarray(x, np.float64).ravel() for x in layer])
        s = bound / np.sqrt(layer.weight.shape[0])
        exact += np.sum(np.log(std) - std**2 / (2 * s**2))
    posterior = MeanField(-1.0, prior_std=bound)
    assert float(posterior.entropy(law)) == pytest.approx(exact, rel=1e-5)
    at_bound = MeanFieldLaw(
        law.mean,
        tuple(
            jax.tree.map(lambda x, n=n: jnp.full_like(x, bound**2 / n), layer)
            for layer, n in zip(law.variance, (3, 4), strict=True)
        ),
    )
    for g in jax.tree.leaves(jax.grad(posterior.entropy)(at_bound)):
        np.testing.assert_allclose(g, 0.0, atol=1e-5)


def test_a_wide_prior_tends_to_none_and_a_prior_is_where_its_gradient_is_0():
    law = some_law((3, 4, 2), 2)
    wide = float(MeanField(-1.0, 1e6).entropy(law))
    assert wide == pytest.approx(float(POSTERIOR.entropy(law)), rel=1e-6)
    at_prior = MeanFieldLaw(
        *(jax.tree.map(lambda x, v=v: jnp.full_like(x, v), law.mean) for v in (0, 0.49))
    )
    for g in jax.tree.leaves(jax.grad(MeanField(-1.0, 0.7).entropy)(at_prior)):
        np.testing.assert_allclose(g, 0.0, atol=1e-6)


def test_one_layer_forward_is_the_closed_form():
    """f(x) ~ N(x·μ_W + μ_b, x²·σ_W² + σ_b²), independent over the four outputs."""
    law = some_law((3, 4), 3)
    (mean,), (variance,) = law
    x = np.asarray(X, np.float64)
    m = x @ np.asarray(mean.weight, np.float64) + np.asarray(mean.bias, np.float64)
    v = x**2 @ np.asarray(variance.weight, np.float64) + np.asarray(variance.bias, np.float64)
    for outputs in (forwards(law, 3), batched(law, 3), explicit(law, 4)):
        z = (np.asarray(outputs, np.float64) - m) / np.sqrt(v)
        assert np.max(np.abs(z.mean(0))) * np.sqrt(DRAWS) < limit(4)
        product = z.T @ z / DRAWS
        assert np.max(np.abs(np.diag(product) - 1)) * np.sqrt(DRAWS / 2) < limit(4)
        assert np.max(np.abs(product[np.triu_indices(4, 1)])) * np.sqrt(DRAWS) < limit(6)
        for output in z.T:
            assert stats.ks_1samp(output[:50_000], stats.norm.cdf).pvalue > 1e-4 / 4


@pytest.mark.parametrize("drawn", [forwards, batched])
def test_deep_forward_has_the_law_of_explicit_weights(drawn):
    """Mean, covariance and shape: two samples of 200,000, standard errors from the samples."""
    law = some_law((3, 6, 5, 3), 5)
    # Outputs that all rise with the hidden units they share vary together.
    last = Linear(1.0 + jnp.abs(law.mean[-1].weight), law.mean[-1].bias)
    law = MeanFieldLaw((*law.mean[:-1], last), law.variance)
    a, b = (np.asarray(x, np.float64) for x in (drawn(law, 5), explicit(law, 6)))
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


@pytest.mark.parametrize(("drawn", "lags"), [(forwards, (1,)), (batched, (1, 2, DRAWS // 2))])
def test_rows_are_independent(drawn, lags):
    """A fresh θ for every row: the outputs of neighbouring rows are uncorrelated, and their
    squares. So are those of rows half a batch apart, whose noise has its bits in common."""
    outputs = np.asarray(drawn(some_law((3, 6, 5, 3), 7), 7), np.float64)
    for values in (outputs, (outputs - outputs.mean(0)) ** 2):
        z = (values - values.mean(0)) / values.std(0)
        for lag in lags:
            cross = z[:-lag].T @ z[lag:] / np.sqrt(DRAWS - lag)
            assert np.max(np.abs(cross)) < limit(9 * 2 * len(lags))


def test_a_batch_is_numpys_row_by_row():
    """Each layer's pre-activations from their own means, spreads and a row of the noise."""
    n, law = 20, some_law((3, 6, 5, 3), 9)
    xs = np.random.default_rng(9).normal(size=(n, 3)).astype(np.float32)
    outputs = np.asarray(jax.jit(rows)(POSTERIOR, law, xs, noise.root(9)))
    assert outputs.shape == (1, n, 3)
    epsilons = np.asarray(noise.normal(noise.root(9), (n, 14)), np.float64)
    mean, std = jax.tree.map(lambda x: np.asarray(x, np.float64), (law.mean, law.std))
    expected = []
    for x, row in zip(xs.astype(np.float64), epsilons, strict=True):
        for i, epsilon in enumerate(np.split(row, [6, 11])):
            spread = np.sqrt(x**2 @ std[i].weight ** 2 + std[i].bias ** 2)
            x = x @ mean[i].weight + mean[i].bias + spread * epsilon
            x = np.maximum(x, 0) if i < 2 else x
        expected.append(x)
    np.testing.assert_allclose(outputs[0], expected, rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize("prior", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_prior_is_refused_by_name(prior, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match="prior"):
        MeanField(-1.0, prior)


@pytest.mark.parametrize("prior_std", [0.0, -1.0, float("nan")])
def test_bad_bound_is_refused_by_name(prior_std, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match="prior_std"):
        MeanField(-1.0, prior_std=prior_std)
    with pytest.raises(ConfigError, match="None if prior is set"):
        MeanField(-1.0, 1.0, prior_std=1.0)


def test_one_draw_for_a_minibatch_is_the_same_network_for_all_rows():
    """And another one for another key, with the law of a draw; acting has a draw of its own."""
    law, posterior = some_law((3, 4, 2), 7), MeanField(-1.0, draws="minibatch")
    x = jnp.stack([X, -X, 2.0 * X])
    rows = posterior.sample_rows(law, jnp.arange(3), noise.root(8))
    theta = posterior.sample(law, noise.root(8))
    np.testing.assert_allclose(rows(law, Input(x))[0], networks.forward(theta, x), rtol=1e-6)
    other = posterior.sample_rows(law, jnp.arange(3), noise.root(9))
    assert not np.any(np.isclose(rows(law, Input(x)), other(law, Input(x))))
    paired = MeanField(-1.0, draws="minibatch", paired=True)
    theta_rows = paired.sample_rows(law, jnp.arange(3), noise.root(8))
    assert theta_rows.for_target(other) is theta_rows


def test_both_kinds_of_draws_have_the_same_gradient_on_average():
    """The gradient of the mean square of f_θ over a minibatch, by means and deviations."""
    law, x = some_law((3, 4, 2), 7), jnp.stack([X, -X])

    @partial(jax.jit, static_argnums=0)
    def gradients(posterior, law):
        def loss(law, key):
            rows = posterior.sample_rows(law, jnp.arange(2), key)
            return jnp.mean(rows(law, Input(x)) ** 2)

        return jax.vmap(lambda key: jax.grad(loss)(law, key))(keys(11, 50_000))

    both = [gradients(MeanField(-1.0, draws=draws), law) for draws in ("row", "minibatch")]
    parts = zip(*map(jax.tree.leaves, both), strict=True)
    count = sum(leaf[0].size for leaf in jax.tree.leaves(both[0]))
    for one, other in parts:
        a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
        error = np.sqrt((a.var(0) + b.var(0)) / len(a))
        assert np.max(np.abs(a.mean(0) - b.mean(0)) / error) < limit(count)


def test_draws_are_checked(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match="draws"):
        MeanField(-1.0, draws="batch")
