"""Gaussian returns: mean, target and loss against hand values and scipy."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import stats

from rove.errors import ConfigError
from rove.parts import noise
from rove.returns import Gaussian

DRAWS = 400_000


def number(x: float):
    return jnp.asarray(x, jnp.float32)


def targets(returns: Gaussian, q: float, reward: float, discount: float) -> np.ndarray:
    """Many draws of the target, one a key."""

    @jax.jit
    def draw(returns, q, reward, discount):
        keys = jax.vmap(lambda i: noise.fold(noise.root(0), i))(jnp.arange(DRAWS))
        return jax.vmap(lambda key: returns.target(q, reward, discount, key))(keys)

    x = draw(returns, number(q)[None], number(reward), number(discount))
    return np.asarray(x, np.float64)


def test_mean_is_the_only_output():
    returns = Gaussian(0.3)
    assert returns.outputs == 1
    assert float(returns.mean(jnp.array([-2.5]))) == -2.5


def test_loss_by_hand():
    """½(3 − 1)² = 2 and ½(−1 − 0.5)² = 1.125, whatever σ."""
    for sigma in (0.0, 0.1, 7.0):
        returns = Gaussian(sigma)
        assert float(returns.loss(jnp.array([3.0]), number(1.0))) == 2.0
        assert float(returns.loss(jnp.array([-1.0]), number(0.5))) == 1.125


@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_loss_is_minus_scale_times_log_density_up_to_a_constant(sigma):
    """`scale` is the c of both: the loss + c·log N(x; Q, σ²) is −c·log(σ√2π) for all Q and x."""
    returns = Gaussian(sigma)
    rng = np.random.default_rng(1)
    q, x = rng.normal(size=(2, 100)).astype(np.float32)
    loss = np.asarray(jax.vmap(returns.loss)(q[:, None], x), np.float64)
    constant = loss + float(returns.scale) * stats.norm.logpdf(x.astype(float), q, sigma)
    np.testing.assert_allclose(
        constant, -(sigma**2) * np.log(sigma * np.sqrt(2 * np.pi)), atol=1e-5
    )


def test_target_is_normal_about_the_bellman_mean():
    """r + γZ with Z = N(2, 0.5²), r = 1, γ = 0.9: N(2.8, 0.45²). Each check at a chance of 1e-4."""
    x = targets(Gaussian(0.5), 2.0, 1.0, 0.9)
    z_mean = (x.mean() - 2.8) / (0.45 / np.sqrt(DRAWS))
    z_variance = (x.var() / 0.45**2 - 1) / np.sqrt(2 / DRAWS)
    assert abs(z_mean) < stats.norm.isf(0.5e-4)
    assert abs(z_variance) < stats.norm.isf(0.5e-4)
    assert stats.ks_1samp(x[:100_000], stats.norm(2.8, 0.45).cdf).pvalue > 1e-4


def test_discount_0_gives_exactly_the_reward():
    assert np.all(targets(Gaussian(0.5), 2.0, 0.625, 0.0) == 0.625)


@pytest.mark.parametrize("returns", [Gaussian(0.5, draw="mean"), Gaussian(0.0)])
def test_the_mean_or_sigma_0_has_no_noise(returns):
    """1 + 0.5·3 = 2.5, exact in float32."""
    assert np.all(targets(returns, 3.0, 1.0, 0.5) == 2.5)


def test_sigma_0_leaves_no_weight_on_the_entropy():
    assert float(Gaussian(0.0).scale) == 0.0
    assert float(Gaussian(0.5).scale) == 0.25


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("sigma", {"sigma": -0.1}),
        ("sigma", {"sigma": float("nan")}),
        ("sigma", {"sigma": float("inf")}),
        ("sigma", {"sigma": 1e-9}),
        ("draw", {"sigma": 1.0, "draw": "median"}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    """With the run-time check of annotations off, as it is outside tests: it would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        Gaussian(**settings)
    assert caught.value.field == field


@pytest.mark.parametrize("sigma", [0.0, 1e-8, 0.3])
def test_picture_is_scipys_density_and_a_spike_for_sigma_0(sigma):
    """A spike, of mass 1 all the same, is drawn with a width of 1e-5·max(1, |Q|): here 2e-5."""
    returns, z = Gaussian(sigma), jnp.array([-2.0])
    assert float(returns.std(z)) == pytest.approx(sigma)
    points, heights = returns.density(z)
    width = max(sigma, 2e-5)
    grid = np.linspace(-4, 4, 101)
    np.testing.assert_allclose(points, -2.0 + width * grid, atol=2e-7)
    np.testing.assert_allclose(heights, stats.norm.pdf(grid) / width, rtol=1e-4)
    assert np.all(np.diff(points) > 0)
