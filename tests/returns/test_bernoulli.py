"""Bernoulli returns: against scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from rove.parts import noise
from rove.returns import Bernoulli


@pytest.mark.parametrize("logit", [-2.0, 0.0, 0.7])
def test_moments_and_loss_are_scipys(logit):
    returns, z = Bernoulli(), jnp.array([logit], jnp.float32)
    law = stats.bernoulli(special.expit(logit))
    assert returns.outputs == 1
    assert float(returns.mean(z)) == pytest.approx(law.mean(), rel=1e-5)
    assert float(returns.std(z)) == pytest.approx(law.std(), rel=1e-5)
    for x in (0, 1):
        loss = returns.loss(z, jnp.float32(x))
        assert float(loss) == pytest.approx(-law.logpmf(x), rel=1e-5)
    points, heights = returns.density(z)
    np.testing.assert_allclose(heights, law.pmf(np.asarray(points)), rtol=1e-5)


def test_a_probability_is_the_mean_of_both_losses():
    """And the loss is smallest where the mean is the target."""
    z, x = jnp.array([0.7]), jnp.float32(0.3)
    zero, one = (Bernoulli().loss(z, jnp.float32(k)) for k in (0, 1))
    assert float(Bernoulli().loss(z, x)) == pytest.approx(0.7 * float(zero) + 0.3 * float(one))
    best = jnp.array([special.logit(0.3)], jnp.float32)
    assert float(jax.grad(Bernoulli().loss)(best, x)[0]) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("reward", "discount", "expected"), [(0.0, 0.9, 0.45), (1.0, 0.0, 1.0), (0.8, 0.9, 1.0)]
)
def test_target_is_a_probability(reward, discount, expected):
    x = Bernoulli().target(jnp.zeros(1), jnp.float32(reward), jnp.float32(discount), noise.root(0))
    assert float(x) == pytest.approx(expected)
