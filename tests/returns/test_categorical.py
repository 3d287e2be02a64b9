"""Categorical returns: the projection against a slow loop and rlax, the loss against optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rove.parts import noise
from rove.returns import Categorical

KEY = noise.root(0)


def number(x: float):
    return jnp.asarray(x, jnp.float32)


def project(returns: Categorical, probabilities, reward: float, discount: float) -> np.ndarray:
    """The target where Z_θ⁻ has these probabilities."""
    z = jnp.log(jnp.asarray(probabilities, jnp.float32))
    return np.asarray(returns.target(z, number(reward), number(discount), KEY), np.float64)


def slow(probabilities, reward, discount, atoms, low, high) -> np.ndarray:
    """Algorithm 1 of Bellemare, Dabney and Munos, atom by atom, in float64."""
    gap, mass = (high - low) / (atoms - 1), np.zeros(atoms)
    for j, p in enumerate(probabilities):
        x = min(max(reward + discount * (low + j * gap), low), high)
        b = (x - low) / gap
        lower = min(int(np.floor(b)), atoms - 2)
        mass[lower] += p * (lower + 1 - b)
        mass[lower + 1] += p * (b - lower)
    return mass


CASES = [
    # reward, discount, atoms, low, high
    (0.3, 0.9, 51, -10.0, 10.0),
    (0.0, 0.99, 7, -1.0, 2.0),
    (-30.0, 0.5, 11, -3.0, 3.0),  # all below
    (30.0, 0.5, 11, -3.0, 3.0),  # all above
    (2.5, 1.0, 11, -3.0, 3.0),  # some above
    (0.7, 0.0, 11, -3.0, 3.0),  # the end: all mass at r
    (0.4, 0.9, 2, 0.0, 1.0),
]


@pytest.mark.parametrize("case", CASES)
def test_projection_is_that_of_the_slow_loop(case):
    reward, discount, atoms, low, high = case
    p = np.random.default_rng(0).dirichlet(np.full(atoms, 0.5))
    got = project(Categorical(atoms, low, high), p, reward, discount)
    np.testing.assert_allclose(got, slow(p, *case), atol=3e-6)


@pytest.mark.parametrize("case", CASES)
def test_projection_is_rlaxs(case):
    rlax = pytest.importorskip("rlax")
    reward, discount, atoms, low, high = case
    returns = Categorical(atoms, low, high)
    p = np.random.default_rng(1).dirichlet(np.full(atoms, 0.5))
    x = reward + discount * returns.support
    theirs = rlax.categorical_l2_project(x, jnp.asarray(p, jnp.float32), returns.support)
    np.testing.assert_allclose(project(returns, p, reward, discount), theirs, atol=3e-6)


def test_projection_by_hand():
    """Atoms 0, 1, 2, 3. An atom on the grid stays whole; one at 1.75 is split ¼ to ¾."""
    returns = Categorical(4, 0.0, 3.0)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(project(returns, p, 0.0, 1.0), p, atol=1e-7)
    np.testing.assert_allclose(project(returns, p, 1.0, 1.0), [0, 0.1, 0.2, 0.7], atol=1e-7)
    np.testing.assert_allclose(project(returns, p, -2.0, 1.0), [0.6, 0.4, 0, 0], atol=1e-7)
    np.testing.assert_allclose(project(returns, p, 2.0, 0.0), [0, 0, 1, 0], atol=1e-7)
    np.testing.assert_allclose(project(returns, p, 1.75, 0.0), [0, 0.25, 0.75, 0], atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_projection_keeps_the_mass_and_inside_the_support_the_mean(seed):
    """E[r + γZ] = r + γ·E[Z] while no atom is clipped: |r| + γ·5 ≤ 5."""
    rng = np.random.default_rng(seed)
    returns = Categorical(21, -5.0, 5.0)
    z = jnp.asarray(rng.normal(size=21), jnp.float32)
    reward, discount = rng.uniform(-0.5, 0.5), 0.9
    law = returns.target(z, number(reward), number(discount), KEY)
    assert float(law.sum()) == pytest.approx(1.0, abs=1e-6)
    assert np.all(np.asarray(law) >= 0.0)
    mean = reward + discount * float(returns.mean(z))
    assert float(jnp.sum(law * returns.support)) == pytest.approx(mean, abs=1e-5)
    far = returns.target(z, number(4.0), number(discount), KEY)  # clipped: the mass stays
    assert float(far.sum()) == pytest.approx(1.0, abs=1e-6)


def test_loss_is_optaxs_cross_entropy():
    rng = np.random.default_rng(2)
    z = jnp.asarray(3 * rng.normal(size=(50, 51)), jnp.float32)
    law = jnp.asarray(rng.dirichlet(np.ones(51), size=50), jnp.float32)
    loss = jax.vmap(Categorical().loss)(z, law)
    np.testing.assert_allclose(loss, optax.softmax_cross_entropy(z, law), rtol=1e-5)


def test_loss_is_least_at_the_law():
    """Its slope is softmax(z) − p; there it is the entropy of p, by hand for (½, ¼, ¼)."""
    returns = Categorical(3, 0.0, 1.0)
    p = jnp.array([0.5, 0.25, 0.25])
    loss, slope = jax.value_and_grad(returns.loss)(jnp.log(p) + 7.0, p)
    assert float(loss) == pytest.approx(1.5 * np.log(2), rel=1e-5)
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_mean_and_standard_deviation_are_numpys():
    rng = np.random.default_rng(3)
    returns = Categorical(51, -10.0, 10.0)
    z = rng.normal(size=51)
    p, x = np.exp(z) / np.exp(z).sum(), np.linspace(-10, 10, 51)
    mean = np.average(x, weights=p)
    std = np.sqrt(np.average((x - mean) ** 2, weights=p))
    z = jnp.asarray(z, jnp.float32)
    assert returns.outputs == 51
    assert float(returns.mean(z)) == pytest.approx(mean, abs=1e-5)
    assert float(returns.std(z)) == pytest.approx(std, rel=1e-5)
    points, heights = returns.density(z)
    np.testing.assert_allclose(points, x, atol=1e-6)
    np.testing.assert_allclose(heights, p, rtol=1e-4)


def test_a_moved_support_does_not_retrace():
    traces = 0

    @jax.jit
    def mean(returns, z):
        nonlocal traces
        traces += 1
        return returns.mean(z)

    z = jnp.zeros(5)
    assert float(mean(Categorical(5, 0.0, 1.0), z)) == pytest.approx(0.5)
    assert float(mean(Categorical(5, 0.0, 3.0), z)) == pytest.approx(1.5)
    assert traces == 1
