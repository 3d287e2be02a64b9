"""Gaussian returns of learned width: against scipy and the closed form of the best fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from rove.parts import noise
from rove.returns import Gaussian, LearnedGaussian


def raw(std: float, floor: float) -> float:
    """ϱ whose softplus(ϱ) + floor is std."""
    return float(np.log(np.expm1(std - floor)))


def test_mean_and_standard_deviation_by_hand():
    """softplus(0) = log 2."""
    returns = LearnedGaussian(floor=0.25)
    z = jnp.array([-2.5, 0.0])
    assert returns.outputs == 2
    assert float(returns.mean(z)) == -2.5
    assert float(returns.std(z)) == pytest.approx(np.log(2) + 0.25, rel=1e-6)


def test_loss_is_scipys_log_density():
    rng = np.random.default_rng(0)
    returns = LearnedGaussian(floor=0.05)
    z = rng.normal(size=(200, 2)).astype(np.float32) * [2.0, 3.0]
    x = rng.normal(size=200).astype(np.float32)
    loss = jax.vmap(returns.loss)(jnp.asarray(z, jnp.float32), x)
    std = np.logaddexp(0.0, z[:, 1]) + 0.05
    np.testing.assert_allclose(loss, -stats.norm.logpdf(x, z[:, 0], std), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_best_fit_is_the_mean_and_standard_deviation_of_the_sample():
    """The loss's slope is 0 there, and positive definite curvature makes it the minimum."""
    returns = LearnedGaussian(floor=0.1)
    x = np.random.default_rng(1).gamma(2.0, size=500).astype(np.float32)

    def loss(z):
        return jnp.mean(jax.vmap(returns.loss, (None, 0))(z, x))

    best = jnp.array([x.mean(), raw(x.std(), 0.1)])
    np.testing.assert_allclose(jax.grad(loss)(best), 0.0, atol=2e-5)
    assert np.all(np.linalg.eigvalsh(jax.hessian(loss)(best)) > 0.1)


def test_slopes_are_the_gaussians_at_a_fixed_width():
    """In the mean: 1/s² times the slope of ½(m − x)², the loss of `Gaussian`."""
    z, x = jnp.array([1.5, -0.3]), jnp.array(0.2)
    returns = LearnedGaussian(floor=0.05)
    slope = jax.grad(Gaussian(0.0).loss)(z[:1], x)[0]
    expected = slope / returns.std(z) ** 2
    assert float(jax.grad(returns.loss)(z, x)[0]) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("draw", ["sample", "mean"])
def test_target_is_normal_about_the_bellman_mean(draw):
    """r + γZ with Z = N(2, 0.5²), r = 1, γ = 0.9: N(2.8, 0.45²), or 2.8. KS at 1e-4."""
    returns = LearnedGaussian(draw=draw)
    z = jnp.array([2.0, raw(0.5, returns.floor)])
    keys = noise.folds(noise.root(0), 2**16)
    target = jax.jit(jax.vmap(lambda key: returns.target(z, jnp.array(1.0), jnp.array(0.9), key)))
    x = np.asarray(target(keys), np.float64)
    if draw == "mean":
        np.testing.assert_allclose(x, 2.8, rtol=1e-6)
    else:
        assert stats.ks_1samp(x, stats.norm(2.8, 0.45).cdf).pvalue > 1e-4


def test_picture_is_scipys_density():
    returns = LearnedGaussian()
    z = jnp.array([3.0, -1.0])
    points, heights = returns.density(z)
    std = float(returns.std(z))
    np.testing.assert_allclose(points, np.linspace(3 - 4 * std, 3 + 4 * std, 101), rtol=1e-5)
    np.testing.assert_allclose(heights, stats.norm.pdf(np.linspace(-4, 4, 101)) / std, rtol=1e-4)


def test_loss_of_a_distribution_is_the_cross_entropy():
    """By numerical integration; the target is r + γZ = N(1.9, 0.45²)."""
    returns = LearnedGaussian(draw="distribution")
    following = jnp.array([1.0, raw(0.5, returns.floor)])
    x = returns.target(following, jnp.array(1.0), jnp.array(0.9), noise.root(0))
    law, z = stats.norm(1.9, 0.45), jnp.array([1.2, raw(0.8, returns.floor)])
    expected = integrate.quad(lambda y: -law.pdf(y) * stats.norm(1.2, 0.8).logpdf(y), -5, 9)[0]
    assert float(returns.loss(z, x)) == pytest.approx(expected, rel=1e-5)
    assert float(returns.error(z, x)) == pytest.approx(0.7, rel=1e-5)


@pytest.mark.parametrize("d", [-1.2, 0.4, 3.0])
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_natural_gradients_are_the_published_updates(d, spread):
    """μ += αd, σ += α(d² + γ²σ′² − σ²)/2σ of Morimura et al. 2012."""
    returns, mean, std = LearnedGaussian(draw="distribution", natural=True), 0.5, 0.8
    z = jnp.array([mean, raw(std, returns.floor)], jnp.float32)
    slope = jax.grad(returns.loss)(z, jnp.array([mean + d, spread], jnp.float32))
    link = float(jax.nn.sigmoid(z[1]))  # dσ/dϱ
    assert -float(slope[0]) == pytest.approx(d, rel=1e-4)
    expected = (d**2 + spread**2 - std**2) / (2 * std)
    assert -float(slope[1]) * link == pytest.approx(expected, rel=1e-4, abs=1e-5)
