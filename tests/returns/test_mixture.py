"""Mixtures of Gaussians: density, moments and draws against scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from rove.parts import noise
from rove.returns import LearnedGaussian, Mixture

FLOOR = 0.05


def number(x: float):
    return jnp.asarray(x, jnp.float32)


class Oracle:
    """The same law in float64, by scipy."""

    def __init__(self, z):
        logits, self.means, raw = np.asarray(z, np.float64).reshape(3, -1)
        self.weights = np.exp(logits) / np.exp(logits).sum()
        self.stds = np.logaddexp(0.0, raw) + FLOOR

    def pdf(self, x):
        return np.dot(stats.norm.pdf(np.expand_dims(x, -1), self.means, self.stds), self.weights)

    def cdf(self, x):
        return np.dot(stats.norm.cdf(np.expand_dims(x, -1), self.means, self.stds), self.weights)


def law(seed: int, components: int = 3):
    z = np.random.default_rng(seed).normal(size=3 * components) * 1.5
    return jnp.asarray(z, jnp.float32)


@pytest.mark.parametrize("components", [1, 3, 5])
def test_loss_is_scipys_log_density(components):
    returns = Mixture(components, floor=FLOOR)
    assert returns.outputs == 3 * components
    for seed in range(5):
        z, x = law(seed, components), np.linspace(-3, 3, 41).astype(np.float32)
        loss = jax.vmap(returns.loss, (None, 0))(z, x)
        np.testing.assert_allclose(loss, -np.log(Oracle(z).pdf(x)), rtol=1e-4, atol=1e-5)


def test_loss_far_from_every_component_is_finite():
    """There the density underflows, and its logarithm is that of the nearest component."""
    z = jnp.array([0.0, 0.0, -1.0, 1.0, -50.0, -50.0])
    loss, slope = jax.value_and_grad(Mixture(2, floor=FLOOR).loss)(z, number(40.0))
    expected = -(np.log(0.5) + stats.norm.logpdf(40.0, 1.0, FLOOR))
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert np.all(np.isfinite(slope))


def test_mean_and_standard_deviation_are_those_of_the_density():
    """By quadrature."""
    returns = Mixture(3, floor=FLOOR)
    for seed in range(5):
        z = law(seed)
        oracle = Oracle(z)
        points = sorted(oracle.means)

        def moment(power, oracle=oracle, points=points):
            found = integrate.quad(
                lambda x: x**power * oracle.pdf(x), -60, 60, points=points, limit=400
            )
            return found[0]

        mean = moment(1)
        assert float(returns.mean(z)) == pytest.approx(mean, abs=1e-5)
        assert float(returns.std(z)) == pytest.approx(np.sqrt(moment(2) - mean**2), rel=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_target_is_a_draw_of_the_mixture(seed):
    """1 + 0.9·Z, from row keys: KS at 1e-4."""
    returns, z = Mixture(3, floor=FLOOR), law(seed)
    draw = jax.jit(jax.vmap(lambda key: returns.target(z, number(1.0), number(0.9), key)))
    x = np.asarray(draw(noise.folds(noise.root(seed), 2**16)), np.float64)
    assert stats.ks_1samp((x - 1.0) / 0.9, Oracle(z).cdf).pvalue > 1e-4


def test_components_are_drawn_by_weight_and_apart_from_the_normal():
    """Components far apart: their shares by χ², each one's draws by KS, at 1e-4. A component of
    no weight is not drawn."""
    weights, means = np.array([0.2, 0.5, 0.3]), np.array([-100.0, 0.0, 100.0])
    logits = np.append(np.log(weights), -1000.0)
    z = jnp.asarray([*logits, *means, 300.0, *np.full(4, np.log(np.e - 1))], jnp.float32)
    returns = Mixture(4, floor=1e-6)
    draw = jax.jit(jax.vmap(lambda key: returns.target(z, number(0.0), number(1.0), key)))
    x = np.asarray(draw(noise.folds(noise.root(2), 2**16)), np.float64)
    counts = [np.sum(np.abs(x - mean) < 50) for mean in means]
    assert sum(counts) == 2**16
    assert stats.chisquare(counts, 2**16 * weights).pvalue > 1e-4
    for mean in means:
        assert stats.ks_1samp(x[np.abs(x - mean) < 50] - mean, stats.norm.cdf).pvalue > 1e-4


def test_target_of_the_mean():
    """1 + 0.5·E[Z], whatever the key."""
    returns, z = Mixture(3, draw="mean"), law(3)
    expected = 1.0 + 0.5 * float(returns.mean(z))
    for seed in range(3):
        x = returns.target(z, number(1.0), number(0.5), noise.root(seed))
        assert float(x) == pytest.approx(expected, rel=1e-6)


def test_one_component_is_the_learned_gaussian():
    one, gaussian = Mixture(1, floor=FLOOR), LearnedGaussian(floor=FLOOR)
    z, x = jnp.array([0.7, -1.2, 0.4]), number(0.3)
    for method in ("mean", "std"):
        a, b = getattr(one, method)(z), getattr(gaussian, method)(z[1:])
        assert float(a) == pytest.approx(float(b), rel=1e-6)
    assert float(one.loss(z, x)) == pytest.approx(float(gaussian.loss(z[1:], x)), rel=1e-6)


def test_picture_is_scipys_density():
    returns, z = Mixture(3, floor=FLOOR), law(4)
    points, heights = returns.density(z)
    mean, std = float(returns.mean(z)), float(returns.std(z))
    np.testing.assert_allclose(
        points, np.linspace(mean - 4 * std, mean + 4 * std, 101), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(heights, Oracle(z).pdf(points), rtol=1e-3, atol=1e-6)
