"""rove.parts.networks: a fresh network's law, and its forward pass against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rove.parts import networks, noise
from rove.parts.networks import Linear

SIZES = (300, 200, 100, 7)

init = jax.jit(lambda key, sizes: networks.mlp(*sizes).init(key), static_argnums=1)
forward = jax.jit(jax.vmap(networks.forward, (None, 0)))


@pytest.fixture(scope="module")
def theta():
    return init(noise.root(0), SIZES)


def test_a_fresh_network_has_the_right_shapes_and_no_bias(theta):
    assert [layer.weight.shape for layer in theta] == [(300, 200), (200, 100), (100, 7)]
    assert [layer.bias.shape for layer in theta] == [(200,), (100,), (7,)]
    assert all(not np.any(layer.bias) for layer in theta)


def test_fresh_weights_are_uniform_of_variance_one_over_inputs(theta):
    """Kolmogorov–Smirnov of each layer on ±√(3/inputs), at a chance of 1e-4 together."""
    for layer, inputs in zip(theta, SIZES[:-1], strict=True):
        bound = np.sqrt(3 / inputs)
        weights = np.asarray(layer.weight, np.float64).ravel()
        assert np.max(np.abs(weights)) < bound
        law = stats.uniform(-bound, 2 * bound)
        assert law.var() == pytest.approx(1 / inputs)
        assert stats.ks_1samp(weights, law.cdf).pvalue > 1e-4 / 3


def test_layers_and_keys_have_weights_of_their_own():
    same = init(noise.root(0), (9, 9, 9))
    other = init(noise.root(1), (9, 9, 9))
    again = init(noise.root(0), (9, 9, 9))
    assert np.array_equal(same[0].weight, again[0].weight)
    for a, b in ((same[0], same[1]), (same[0], other[0]), (same[1], other[1])):
        assert not np.any(np.asarray(a.weight) == np.asarray(b.weight))


def test_forward_by_hand():
    """(1, 2) → relu(1·1 − 2·1 + 0.5, 1·2 + 2·3 − 1) = (0, 7) → 0·5 + 7·(−2) + 3 = −11."""
    theta = (
        Linear(jnp.array([[1.0, 2.0], [-1.0, 3.0]]), jnp.array([0.5, -1.0])),
        Linear(jnp.array([[5.0], [-2.0]]), jnp.array([3.0])),
    )
    assert networks.forward(theta, jnp.array([1.0, 2.0])).tolist() == [-11.0]


def test_forward_is_numpy_with_relu_between_layers_only():
    rng = np.random.default_rng(0)
    sizes = [(4, 8), (8, 8), (8, 3)]
    theta = tuple(
        Linear(*(rng.normal(size=shape).astype(np.float32) for shape in (size, size[1:])))
        for size in sizes
    )
    xs = rng.normal(size=(50, 4)).astype(np.float32)
    outputs = np.asarray(forward(theta, xs))
    h = xs.astype(np.float64)
    for i, layer in enumerate(theta):
        h = h @ layer.weight.astype(np.float64) + layer.bias.astype(np.float64)
        if i < 2:
            h = np.maximum(h, 0)
    assert h.min() < 0  # so that a ReLU on the output would be seen
    np.testing.assert_allclose(outputs, h, rtol=1e-5, atol=1e-5 * np.max(np.abs(h)))


def test_forward_lets_a_caller_say_what_a_layer_does():
    """With `linear(a, x) = x − a`: relu(5 − 1) = 4, relu(4 − 7) = 0, then 0 − 2 = −2."""
    steps = (1.0, 7.0, 2.0)
    assert networks.forward(steps, jnp.array([5.0]), lambda a, x: x - a).tolist() == [-2.0]
