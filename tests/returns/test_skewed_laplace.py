"""Skewed Laplace returns: against scipy, numerical integration, and the Fisher information."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from rove.parts import noise
from rove.returns import Laplace, SkewedLaplace


def output(returns: SkewedLaplace, mu: float, left: float, right: float):
    scales = np.log(np.expm1(np.array([left, right]) - returns.floor))
    return jnp.array([mu, *scales], jnp.float32)


def law_of(mu: float, left: float, right: float):
    """scipy's κ is √(left/right), and its scale √(left·right)."""
    return stats.laplace_asymmetric(np.sqrt(left / right), mu, np.sqrt(left * right))


@pytest.mark.parametrize("scales", [(0.4, 1.3), (2.0, 0.3), (0.7, 0.7)])
def test_moments_and_density_are_scipys(scales):
    returns, law = SkewedLaplace(), law_of(0.5, *scales)
    z = output(returns, 0.5, *scales)
    assert float(returns.mean(z)) == pytest.approx(law.mean(), abs=1e-5)
    assert float(returns.std(z)) == pytest.approx(law.std(), rel=1e-5)
    points, heights = returns.density(z)
    np.testing.assert_allclose(heights, law.pdf(np.asarray(points, float)), rtol=1e-3, atol=1e-6)


def test_target_is_the_law_of_the_bellman_update():
    """Of 100,000 samples of r + γZ, against scipy's law with the target's numbers; KS at 1e-4."""
    returns = SkewedLaplace()
    z = output(returns, 2.0, 0.5, 1.5)
    target = returns.target(z, jnp.float32(1.0), jnp.float32(0.9), noise.root(0))
    x = 1.0 + 0.9 * law_of(2.0, 0.5, 1.5).rvs(100_000, random_state=0)
    assert stats.kstest(x, law_of(*np.asarray(target, float)).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    "target", [(0.3, 0.4, 1.0), (1.5, 0.9, 0.2), (1.5, 1e-3, 1e-3), (-2.0, 2.5, 0.5)]
)
def test_loss_is_the_cross_entropy(target):
    """By numerical integration, piece by piece."""
    returns, law, model = SkewedLaplace(), law_of(*target), law_of(1.2, 0.7, 1.1)
    z = output(returns, 1.2, 0.7, 1.1)

    def integrand(x):
        return -law.pdf(x) * model.logpdf(x)

    ends = target[0] - 40 * target[1], target[0] + 40 * target[2]
    points = sorted({*ends, *(p for p in (target[0], 1.2) if ends[0] < p < ends[1])})
    pieces = itertools.pairwise(points)
    expected = sum(integrate.quad(integrand, a, b, limit=200)[0] for a, b in pieces)
    assert float(returns.loss(z, jnp.array(target, jnp.float32))) == pytest.approx(
        expected, rel=1e-4, abs=1e-5
    )


def test_equal_scales_are_the_laplace_family():
    z, target = output(SkewedLaplace(), 0.5, 0.8, 0.8), jnp.array([1.1, 0.4, 0.4])
    loss = SkewedLaplace().loss(z, target)
    assert float(loss) == pytest.approx(float(Laplace().loss(z[:2], target[:2])), rel=1e-5)


def test_inverse_fisher_is_that_of_the_scores():
    """E[score·scoreᵀ] by numerical integration, inverted by NumPy."""
    mu, left, right = 0.5, 0.6, 1.4
    law, h = law_of(mu, left, right), 1e-5

    def score(x, i):
        at = np.array([mu, left, right])
        up, down = at + h * np.eye(3)[i], at - h * np.eye(3)[i]
        return (law_of(*up).logpdf(x) - law_of(*down).logpdf(x)) / (2 * h)

    # The score in μ jumps at μ, where the central difference must not straddle it.
    x = np.concatenate(
        [mu - np.geomspace(1e-4, 40, 40_001)[::-1], mu + np.geomspace(1e-4, 60, 40_001)]
    )
    scores = np.stack([score(x, i) for i in range(3)])
    fisher = integrate.trapezoid(law.pdf(x) * scores[:, None] * scores[None], x, axis=2)
    z = output(SkewedLaplace(), mu, left, right)
    np.testing.assert_allclose(
        SkewedLaplace().inverse_fisher(z), np.linalg.inv(fisher), rtol=2e-3, atol=2e-3
    )


def test_natural_gradients_are_the_inverse_fisher_times_gradients():
    """In (μ, b, c), whatever the outputs' parametrisation."""
    plain, returns = SkewedLaplace(), SkewedLaplace(natural=True)
    z, target = output(plain, 0.5, 0.6, 1.4), jnp.array([1.0, 0.3, 0.8])
    link = np.append(1.0, jax.nn.sigmoid(z[1:]))
    slope = jax.grad(plain.loss)(z, target) / link
    expected = np.asarray(plain.inverse_fisher(z)) @ slope
    np.testing.assert_allclose(jax.grad(returns.loss)(z, target) * link, expected, rtol=1e-4)
    assert float(returns.loss(z, target)) == float(plain.loss(z, target))


def test_quantiles_of_a_one_sided_law_have_finite_gradients():
    """With scales of 1e6 and 0.01, float32 rounds the probability of the left side to 1."""
    returns = SkewedLaplace()
    z = jnp.array([0.0, 1e6, -20.0])
    assert float(returns.sides(z)[1]) > 9e5
    for level in (0.1, 0.999):
        assert np.all(np.isfinite(jax.grad(returns.quantile)(z, level)))
        assert float(returns.quantile(z, level)) == pytest.approx(1e6 * np.log(level), rel=1e-4)
