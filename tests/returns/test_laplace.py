"""Laplace returns: against scipy, numerical integration, and the published updates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from rove.parts import noise
from rove.returns import Laplace


def raw(scale: float, floor: float) -> float:
    """ϱ whose softplus(ϱ) + floor is the scale."""
    return float(np.log(np.expm1(scale - floor)))


def output(returns: Laplace, mu: float, beta: float):
    return jnp.array([mu, raw(beta, returns.floor)], jnp.float32)


def test_moments_density_and_cdf_are_scipys():
    returns = Laplace(floor=0.05)
    z = output(returns, 1.5, 0.7)
    law = stats.laplace(1.5, 0.7)
    assert float(returns.mean(z)) == 1.5
    assert float(returns.std(z)) == pytest.approx(law.std(), rel=1e-5)
    points, heights = returns.density(z)
    np.testing.assert_allclose(heights, law.pdf(np.asarray(points, float)), rtol=1e-4)


def test_target_is_the_law_of_the_bellman_update():
    """Of 100,000 samples of r + γZ, against scipy's law with the target's numbers; KS at 1e-4."""
    returns = Laplace()
    z = output(returns, 2.0, 0.5)
    location, scale = returns.target(z, jnp.float32(1.0), jnp.float32(0.9), noise.root(0))
    x = 1.0 + 0.9 * stats.laplace(2.0, 0.5).rvs(100_000, random_state=0)
    assert stats.kstest(x, stats.laplace(float(location), float(scale)).cdf).pvalue > 1e-4


@pytest.mark.parametrize("target", [(0.3, 0.4), (1.5, 0.9), (1.5, 1e-3), (-2.0, 2.5)])
def test_loss_is_the_cross_entropy(target):
    """By numerical integration."""
    returns, law = Laplace(), stats.laplace(*target)
    z = output(returns, 1.5, 0.7)

    def integrand(x):
        return -law.pdf(x) * stats.laplace(1.5, 0.7).logpdf(x)

    ends = target[0] - 40 * target[1], target[0] + 40 * target[1]
    points = [p for p in (target[0], 1.5) if ends[0] < p < ends[1]]
    expected = integrate.quad(integrand, *ends, points=points, limit=200)[0]
    assert float(returns.loss(z, jnp.array(target, jnp.float32))) == pytest.approx(
        expected, rel=1e-4, abs=1e-5
    )


def test_loss_of_a_known_return_is_the_negative_log_density():
    """At the end of a task the target is a point, with scale 0."""
    returns = Laplace()
    for x in (-1.0, 1.5, 4.0):
        loss = returns.loss(output(returns, 1.5, 0.7), jnp.array([x, 0.0], jnp.float32))
        assert float(loss) == pytest.approx(-stats.laplace(1.5, 0.7).logpdf(x), rel=1e-5)


@pytest.mark.parametrize("d", [-1.2, -0.1, 0.4, 3.0])
@pytest.mark.parametrize("scale", [0.0, 0.3, 2.0])
def test_natural_gradients_are_the_published_updates(d, scale):
    """μ += αβ·sign(d)(1 − e^(−|d|/b′)), β += α(|d| + b′e^(−|d|/b′) − β) of Morimura et al. 2012."""
    returns, mu, beta = Laplace(natural=True), 0.5, 0.8
    z = output(returns, mu, beta)
    slope = jax.grad(returns.loss)(z, jnp.array([mu + d, scale], jnp.float32))
    decay = np.exp(-abs(d) / scale) if scale else 0.0
    step_mu = beta * np.sign(d) * (1.0 - decay)
    step_beta = abs(d) + scale * decay - beta
    link = float(jax.nn.sigmoid(z[1]))  # dβ/dϱ
    assert -float(slope[0]) == pytest.approx(step_mu, rel=1e-4)
    assert -float(slope[1]) * link == pytest.approx(step_beta, rel=1e-4, abs=1e-5)


def test_natural_gradients_do_not_change_the_loss():
    z, target = jnp.array([0.3, -0.5]), jnp.array([1.0, 0.4])
    assert float(Laplace(natural=True).loss(z, target)) == float(Laplace().loss(z, target))
