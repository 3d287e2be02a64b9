"""Quantile returns: the loss against a double loop and rlax, its minimiser against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rove.parts import noise
from rove.returns import Quantile
from rove.returns.quantile import smallest


def slow(z, x, kappa) -> float:
    """Σ_i mean_j of the quantile Huber loss, term by term, in float64."""
    total = 0.0
    for i, value in enumerate(z):
        tau = (2 * i + 1) / (2 * len(z))
        for target in x:
            u = float(target) - float(value)
            if kappa == 0:
                huber = abs(u)
            elif abs(u) <= kappa:
                huber = u**2 / 2 / kappa
            else:
                huber = abs(u) - kappa / 2
            total += (tau if u >= 0 else 1 - tau) * huber / len(x)
    return total


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0, 5.0])
def test_loss_is_that_of_the_double_loop(kappa):
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(2, 16)).astype(np.float32)
    loss = Quantile(16, kappa).loss(jnp.asarray(z), jnp.asarray(x))
    assert float(loss) == pytest.approx(slow(z, x, kappa), rel=1e-5)


@pytest.mark.parametrize("kappa", [0.0, 1.0, 2.5])
def test_loss_is_rlaxs(kappa):
    """rlax, as QR-DQN, does not divide by κ."""
    rlax = pytest.importorskip("rlax")
    rng = np.random.default_rng(1)
    z, z_next = (jnp.asarray(row, jnp.float32) for row in 2 * rng.normal(size=(2, 9)))
    returns, reward, discount = Quantile(9, kappa), jnp.array(0.3), jnp.array(0.9)
    tau = (jnp.arange(9) + 0.5) / 9
    action = jnp.array(0)
    theirs = rlax.quantile_q_learning(
        z[:, None], tau, action, reward, discount, z_next[:, None], z_next[:, None], kappa
    )
    loss = returns.loss(z, returns.target(z_next, reward, discount, noise.root(0)))
    assert float(loss) * (kappa or 1.0) == pytest.approx(float(theirs), rel=1e-5)


def test_small_kappa_tends_to_the_pinball_loss():
    rng = np.random.default_rng(2)
    z, x = (jnp.asarray(row, jnp.float32) for row in rng.normal(size=(2, 8)))
    pinball = float(Quantile(8, 0.0).loss(z, x))
    gaps = [abs(float(Quantile(8, kappa).loss(z, x)) - pinball) for kappa in (1e-1, 1e-2, 1e-3)]
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2] > 0


def test_minimiser_is_the_quantiles_of_the_law():
    """x has 4n values and z n: the minimisers of the pinball loss are the (4i + 2)-th of x to
    the next, in order, since n·τ̂_i·4 = 4i + 2 of the values lie below."""
    n = 6
    x = np.sort(np.random.default_rng(3).normal(size=4 * n)).astype(np.float32)
    # Four laws of n values, whose mean loss is that of all of them.
    laws = jnp.asarray(x.reshape(n, 4).T)
    returns = Quantile(n, 0.0)
    optimiser = optax.adam(optax.cosine_decay_schedule(0.05, 3000))

    def loss(z):
        return jnp.mean(jax.vmap(returns.loss, (None, 0))(z, laws))

    def step(carry, _):
        z, state = carry
        update, state = optimiser.update(jax.grad(loss)(z), state)
        return (z + update, state), None

    @jax.jit
    def minimise(z):
        return jax.lax.scan(step, (z, optimiser.init(z)), None, 3000)[0][0]

    z = np.asarray(minimise(jnp.zeros(n)))
    below, above = x[1::4], x[2::4]
    assert np.all((below - 1e-3 <= z) & (z <= above + 1e-3))
    # Any point between is as good.
    exact = np.quantile(x, (np.arange(n) + 0.5) / n, method="averaged_inverted_cdf")
    assert float(loss(jnp.asarray(z))) == pytest.approx(float(loss(jnp.asarray(exact))), rel=1e-4)


def test_mean_standard_deviation_picture_and_target_by_hand():
    """(4, 0, 2): mean 2, variance 8/3. 1 + ½·(4, 0, 2) = (3, 1, 2)."""
    returns, z = Quantile(3), jnp.array([4.0, 0.0, 2.0])
    assert returns.outputs == 3
    assert float(returns.mean(z)) == 2.0
    assert float(returns.std(z)) == pytest.approx(np.sqrt(8 / 3), rel=1e-6)
    points, heights = returns.density(z)
    np.testing.assert_array_equal(points, [0.0, 2.0, 4.0])
    np.testing.assert_allclose(heights, 1 / 3, rtol=1e-6)
    law = returns.target(z, jnp.array(1.0), jnp.array(0.5), noise.root(0))
    np.testing.assert_array_equal(law, [3.0, 1.0, 2.0])


def test_one_quantile_is_the_huber_loss_of_the_median():
    """τ̂ = ½: half of optax's Huber loss, at κ = 1."""
    for z, x in ((0.0, 0.4), (1.0, -2.0)):
        loss = Quantile(1).loss(jnp.array([z]), jnp.array([x]))
        assert float(loss) == pytest.approx(0.5 * float(optax.huber_loss(z, x)), rel=1e-6)


def test_the_smallest_value_of_a_rank_is_the_sorted_ones():
    """Negative and positive, with ties, zeros and large magnitudes; every rank, exactly."""
    rng = np.random.default_rng(0)
    rounded = np.round(rng.normal(size=37), 1)
    for z in (rng.normal(size=37), rounded, -1e30 * rng.exponential(size=37), -np.zeros(37)):
        x = jnp.asarray(z, jnp.float32)
        found = jax.jit(jax.vmap(lambda rank, x=x: smallest(x, rank)))(jnp.arange(1, 38))
        np.testing.assert_array_equal(found, np.sort(np.asarray(x)))
