"""Every posterior family over a convolutional network.

Statistical limits as in test_protocol.py.
"""

import functools
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convolutions import by_hand, layer_of, xla
from posteriors import test_protocol as protocol
from posteriors.test_protocol import FAMILIES, explicit, keys, limit, rows_of
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import noise, replay
from rove.parts.architectures import ConvNet, build
from rove.parts.images import Image
from rove.parts.layers import Convolution, Window
from rove.parts.onehot import Form
from rove.parts.replay import Transition
from rove.posteriors.mean_field import MeanFieldLaw, NoiseRows
from rove.posteriors.priors import Input
from rove.returns import Gaussian

IMAGE, OUTPUTS, DRAWS = Image(4, 3, 2), 2, 20_000
CONV, HIDDEN = ConvNet((3,), 2), (4,)
NETWORK = build(CONV, 24, HIDDEN, OUTPUTS, IMAGE)
X = np.random.default_rng(5).normal(size=(2, 24)).astype(np.float32)
NAMES = [name for name in FAMILIES if name != "conjugate" and "plain" not in name]
init_agent = jax.jit(Agent.init, static_argnums=(1, 2, 4))


@functools.cache
def setting(name: str):
    posterior = FAMILIES[name].make()
    return posterior, protocol.moved(posterior, NETWORK)


@pytest.mark.fast_cases("mean field", "last layer")
@pytest.mark.parametrize("name", protocol.PER_ROW[1:])
def test_rows_have_the_law_of_draws_applied(name):
    """Means and covariances of the outputs. For mean-field and factorised noise, this is where
    positions of a convolution share their weights."""
    posterior, phi = setting(name)
    a = rows_of(posterior, phi, jnp.tile(X, (DRAWS, 1)), noise.root(1))
    b = explicit(posterior, phi, jnp.asarray(X), keys(0, DRAWS))
    a, b = (np.asarray(z, np.float64).reshape(DRAWS, 2, OUTPUTS) for z in (a, b))
    protocol.check_same_moments(a, b)


WINDOW = Window(4, 4, 2, 3, 1, 2)


def conv_law(seed: int = 0) -> MeanFieldLaw:
    variance = jax.tree.map(lambda w: (0.1 + 0.3 * jnp.abs(w)) ** 2, layer_of(WINDOW, seed + 1))
    return MeanFieldLaw((layer_of(WINDOW, seed),), (variance,))


def test_positions_of_a_mean_field_convolution_covary_as_they_share_weights():
    """Closed form: within a channel, Cov(y_p, y_q) = Σ_k x_pk·x_qk·σ_k² + σ_b²; 0 between
    channels. Independent noise for each position would have the variances, but no covariance."""
    law, rng = conv_law(), np.random.default_rng(8)
    (mean,), (variance,) = law
    x = rng.normal(size=32).astype(np.float32)
    count = sum(w.size for w in jax.tree.leaves(mean))
    rows = NoiseRows(noise.normal(noise.root(3), (DRAWS, count)))
    y = jax.jit(lambda x: rows(law, Input(x)))(jnp.tile(x, (DRAWS, 1)))[0]
    y = np.asarray(y, np.float64).reshape(DRAWS, 4, 2)
    centre = by_hand(mean, x.reshape(4, 4, 2).astype(np.float64)).reshape(4, 2)
    patches = np.asarray(WINDOW.patches(jnp.asarray(x)), np.float64)
    weights = np.asarray(variance.weight, np.float64)
    exact = np.einsum("pk,qk,kc->pqc", patches, patches, weights) + np.asarray(variance.bias)
    deviation = y - centre
    error = y.std(0) / np.sqrt(DRAWS)
    assert np.max(np.abs(deviation.mean(0)) / error) < limit(8)
    shared = np.abs(exact[0, 1]) / np.sqrt(exact[0, 0] * exact[1, 1])
    assert np.max(shared) > 0.3
    for p, q, c, d in product(range(4), range(4), range(2), range(2)):
        products = deviation[:, p, c] * deviation[:, q, d]
        expected = exact[p, q, c] if c == d else 0.0
        assert abs(products.mean() - expected) < limit(64) * products.std() / np.sqrt(DRAWS)


def test_gradients_of_a_mean_field_convolution_are_those_of_its_weights():
    """With respect to μ and σ, for the same ε: θ = μ + σ·ε in XLA's convolution, row by row."""
    law, n = conv_law(), 3
    rng = np.random.default_rng(9)
    xs = jnp.asarray(rng.normal(size=(n, 32)), jnp.float32)
    sizes = [w.size for w in jax.tree.leaves(law.mean)]
    epsilon = noise.normal(noise.root(4), (n, sum(sizes)))

    def own(law):
        return jnp.sum(jnp.sin(NoiseRows(epsilon)(law, Input(xs))))

    def other(law):
        (mean,), (std,) = law.mean, law.std
        total = 0.0
        for i in range(n):
            parts = jnp.split(epsilon[i], [sizes[0]])
            weight = mean.weight + std.weight * parts[0].reshape(mean.weight.shape)
            bias = mean.bias + std.bias * parts[1]
            total += jnp.sum(jnp.sin(xla(weight, bias, WINDOW, xs[i : i + 1])))
        return total

    (value, gradient), (expected, gradients) = (
        jax.jit(jax.value_and_grad(f))(law) for f in (own, other)
    )
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for actual, wanted in zip(*map(jax.tree.leaves, (gradient, gradients)), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


def filled(agent: Agent, state, n: int = 9):
    """The state after some transitions between random images."""
    rng = np.random.default_rng(7)
    for i in range(n):
        s, s_next = (jnp.asarray(rng.normal(size=24), jnp.float32) for _ in range(2))
        outcome = jnp.float32(rng.normal()), s_next, jnp.asarray(i % 4 == 3)
        state = protocol.observe(agent, state, Transition(s, jnp.int32(i % 2), *outcome))
    return state


@pytest.mark.fast_cases("dirac", "ensemble")
@pytest.mark.parametrize("name", NAMES)
def test_an_agent_acts_on_images_and_learns_all_layers(name):
    agent = Agent(
        Gaussian(0.5), FAMILIES[name].make(),
        network=CONV, hidden=HIDDEN, batch_size=6, buffer_size=12, resample="episode",
    )  # fmt: skip
    start = init_agent(agent, 24, OUTPUTS, noise.root(0), Form(image=IMAGE))
    state = filled(agent, start)
    for i in range(3):
        state, loss = protocol.learn(agent, state, noise.root(3 + i))
        assert np.isfinite(loss)
    for before, after in zip(
        *(jax.tree.leaves(s.phi.learned) for s in (start, state)), strict=True
    ):
        assert np.all(np.isfinite(after))
        assert not np.array_equal(before, after)
    assert any(isinstance(part, Convolution) for part in _parts(state.phi.learned))
    x = jnp.asarray(X[0])
    assert int(protocol.act(agent, state, x, noise.root(9))) in (0, 1)
    assert int(protocol.greedy(agent, state, x)) in (0, 1)
    assert protocol.beliefs(agent, state, jnp.asarray(X), noise.root(9)).values.shape[1:] == (2, 2)


def _parts(tree) -> list:
    return jax.tree.leaves(tree, is_leaf=lambda part: isinstance(part, Convolution))


@pytest.mark.parametrize("name", ["ensemble", "low rank"])
def test_prior_functions_are_convolutional_networks_too(name):
    """Their values in the buffer, by loops in NumPy, network by network."""
    agent = Agent(
        Gaussian(0.5), FAMILIES[name].make(),
        network=CONV, hidden=HIDDEN, batch_size=6, buffer_size=12,
    )  # fmt: skip
    state = init_agent(agent, 24, OUTPUTS, noise.root(0), Form(image=IMAGE))
    kept = replay.last(filled(agent, state, 1).replay)
    for x, cached in ((kept.observation, kept.priors), (kept.next_observation, kept.next_priors)):
        values = []
        for k in range(jax.tree.leaves(state.phi.priors)[0].shape[0]):
            conv, *dense = jax.tree.map(lambda leaf, k=k: leaf[k], state.phi.priors)
            h = np.maximum(by_hand(conv, np.asarray(x, np.float64).reshape(IMAGE.shape)), 0).ravel()
            h = np.maximum(h @ np.asarray(dense[0].weight) + np.asarray(dense[0].bias), 0)
            values.append(h @ np.asarray(dense[1].weight) + np.asarray(dense[1].bias))
        np.testing.assert_allclose(cached, np.ravel(values), rtol=1e-4, atol=1e-5)


def test_a_table_has_no_convolutions():
    with pytest.raises(ConfigError, match="network must be None for Conjugate"):
        Agent(Gaussian(0.5), FAMILIES["conjugate"].make(), network=CONV, hidden=())
