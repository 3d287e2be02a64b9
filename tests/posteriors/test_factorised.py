"""NoisyNet's factorised noise: rank one, its moments, and exact draws without the weights."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from helpers import rows, single
from rove.parts import networks, noise
from rove.parts.networks import Linear
from rove.posteriors import Factorised
from rove.posteriors.factorised import FactorisedLaw
from rove.posteriors.priors import Input

POSTERIOR = Factorised(-1.0)
SIZES = (3, 6, 5, 2)


def forward(law, x, key):
    return single(POSTERIOR, law, x, key)


rows_of = jax.jit(lambda law, xs, key: rows(POSTERIOR, law, xs, key))
sample = jax.jit(POSTERIOR.sample)


@pytest.fixture(scope="module")
def law() -> FactorisedLaw:
    """Means and standard deviations that differ from weight to weight, biases too."""
    rng = np.random.default_rng(0)

    def layers(draw):
        return tuple(
            Linear(jnp.asarray(draw((i, o)), jnp.float32), jnp.asarray(draw((o,)), jnp.float32))
            for i, o in pairwise(SIZES)
        )

    mean = layers(lambda shape: rng.normal(size=shape))
    return FactorisedLaw(mean, layers(lambda shape: rng.uniform(0.2, 1.0, size=shape)))


def noise_of(law: FactorisedLaw, theta) -> list[tuple[np.ndarray, np.ndarray]]:
    """(θ − μ)/σ of each layer's weight and bias."""
    return [
        tuple(
            (np.asarray(t, np.float64) - np.asarray(m, np.float64)) / np.asarray(s, np.float64)
            for t, m, s in zip(*parts, strict=True)
        )
        for parts in zip(theta, law.mean, law.std, strict=True)
    ]


def test_init_is_centred_on_a_fresh_network_with_one_rho():
    form = networks.mlp(*SIZES)
    network = jax.jit(form.init)(noise.root(0))
    phi = jax.jit(Factorised(-2.0).init, static_argnums=0)(form, noise.root(0))
    assert phi.fitted == ()
    law = POSTERIOR.law(phi)
    for mean, centre in zip(jax.tree.leaves(law.mean), jax.tree.leaves(network), strict=True):
        assert np.array_equal(mean, centre)
    for std in jax.tree.leaves(law.std):
        np.testing.assert_allclose(std, np.log1p(np.exp(-2.0)), rtol=1e-6)


def test_noise_has_rank_one_and_the_bias_shares_its_output_factor(law):
    """W-noise = f(ε_in)·f(ε_out)ᵀ and b-noise = f(ε_out), f(ε) = sign ε·√|ε|, ε from the key."""
    key, at = noise.root(1), 0
    widths = [size for pair in pairwise(SIZES) for size in pair]
    epsilons = np.asarray(noise.normal(key, (sum(widths),)), np.float64)
    for weight, bias in noise_of(law, sample(law, key)):
        values = np.linalg.svd(weight, compute_uv=False)
        assert values[1] < 1e-5 * values[0]
        inputs, outputs = weight.shape
        epsilon = epsilons[at : at + inputs + outputs]
        at += inputs + outputs
        f = np.sign(epsilon) * np.sqrt(np.abs(epsilon))
        np.testing.assert_allclose(bias, f[inputs:], atol=1e-5)
        np.testing.assert_allclose(weight, np.outer(f[:inputs], f[inputs:]), atol=1e-5)


def test_moments_of_the_noise(law):
    """E f² = E|ε| = √(2/π): a bias has variance σ²√(2/π), a weight σ²·2/π; means are 0.

    100,000 draws; limits at a chance of 1e-4 for all 66 parameters together.
    """
    n = 100_000

    @jax.jit
    def draw(law):
        keys = jax.vmap(lambda i: noise.fold(noise.root(2), i))(jnp.arange(n))
        return jax.vmap(lambda key: POSTERIOR.sample(law, key))(keys)

    limit = stats.norm.isf(0.5e-4 / 66)
    for weight, bias in noise_of(law, draw(law)):
        # E f⁴ = E ε² = 1, so the fourth moment of a weight's noise is 1 too.
        for z, variance in ((weight, 2 / np.pi), (bias, np.sqrt(2 / np.pi))):
            assert np.max(np.abs(z.mean(0))) * np.sqrt(n / variance) < limit
            error = np.sqrt((1 - variance**2) / n)
            assert np.max(np.abs((z**2).mean(0) - variance)) / error < limit


def test_forward_is_the_network_of_the_same_draw(law):
    """Exactly, up to float32 rounding: the key's noise is the same in both."""
    rng = np.random.default_rng(3)
    xs = jnp.asarray(rng.normal(size=(64, 3)), jnp.float32)
    keys = jax.vmap(lambda i: noise.fold(noise.root(3), i))(jnp.arange(64))
    short = jax.jit(jax.vmap(forward, (None, 0, 0)))(law, xs, keys)
    long = jax.jit(jax.vmap(lambda x, key: networks.forward(POSTERIOR.sample(law, key), x)))(
        xs, keys
    )
    applied = jax.jit(
        jax.vmap(lambda x, key: POSTERIOR.apply(law, POSTERIOR.sample(law, key), Input(x)))
    )(xs, keys)
    scale = np.max(np.abs(np.asarray(long)))
    np.testing.assert_allclose(short, long, atol=1e-5 * scale)
    np.testing.assert_allclose(applied, long, atol=1e-6 * scale)
    assert len(np.unique(np.asarray(short)[:, 0])) == 64


def test_a_batch_has_a_network_of_its_own_for_each_row(law):
    """θ written out in NumPy from each row of the key's noise."""
    n, widths = 64, [size for pair in pairwise(SIZES) for size in pair]
    xs = np.random.default_rng(4).normal(size=(n, 3)).astype(np.float32)
    short = np.asarray(rows_of(law, xs, noise.root(4)))
    assert short.shape == (1, n, 2)
    epsilons = np.asarray(noise.normal(noise.root(4), (n, sum(widths))), np.float64)
    f = np.sign(epsilons) * np.sqrt(np.abs(epsilons))
    mean, std = jax.tree.map(lambda x: np.asarray(x, np.float64), (law.mean, law.std))
    long = []
    for x, row in zip(xs.astype(np.float64), f, strict=True):
        parts = np.split(row, np.cumsum(widths)[:-1])
        layers = zip(mean, std, parts[::2], parts[1::2], strict=True)
        for i, (mu, sigma, e_in, e_out) in enumerate(layers):
            weight = mu.weight + sigma.weight * np.outer(e_in, e_out)
            x = x @ weight + mu.bias + sigma.bias * e_out
            x = np.maximum(x, 0) if i < len(mean) - 1 else x
        long.append(x)
    np.testing.assert_allclose(short[0], long, atol=1e-5 * np.max(np.abs(long)))


def test_the_same_key_agrees_and_two_keys_differ(law):
    x = jnp.array([0.8, -1.5, 0.3])
    draws = [np.asarray(jax.jit(forward)(law, x, noise.root(s))) for s in (0, 0, 1)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.any(draws[0] == draws[2])


def test_mean_and_entropy(law):
    x = jnp.array([0.8, -1.5, 0.3])
    assert np.array_equal(POSTERIOR.mean(law, Input(x)), networks.forward(law.mean, x))
    assert float(POSTERIOR.entropy(law)) == 0.0
