"""rove.parts.layers: convolutions against loops in NumPy and against XLA's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from convolutions import by_hand, layer_of, xla
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.architectures import ConvNet, build, default_for
from rove.parts.images import Image
from rove.parts.layers import Convolution, Dense, Window

SHAPES = [
    (5, 4, 2, 3, 1, 3), (7, 6, 3, 2, 2, 4), (8, 8, 1, 3, 2, 2), (6, 9, 2, 1, 4, 5),
    (4, 4, 3, 4, 1, 2),
]  # fmt: skip
"""Height, width and channels of an image; kernel, stride and filters."""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_convolution_is_the_sum_over_its_window(shape):
    window = Window(*shape)
    layer = layer_of(window)
    images = np.random.default_rng(1).normal(size=(3, *shape[:3])).astype(np.float32)
    expected = np.stack([by_hand(layer, image.astype(np.float64)) for image in images])
    assert expected[0].size == window.outputs == layer.outputs
    actual = layer(jnp.asarray(images.reshape(3, -1)))
    np.testing.assert_allclose(actual, expected.reshape(3, -1), rtol=1e-5, atol=1e-5)
    one = layer(jnp.asarray(images[0].ravel()))
    np.testing.assert_allclose(one, expected[0].ravel(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_gradients_are_those_of_xlas_convolution(shape):
    """With respect to the weights, the biases and the image."""
    window = Window(*shape)
    layer, rng = layer_of(window), np.random.default_rng(2)
    x = jnp.asarray(rng.normal(size=(4, window.inputs)), jnp.float32)

    def own(weight, bias, x):
        return jnp.sum(jnp.sin(Convolution(weight, bias, window)(x)))

    def other(weight, bias, x):
        return jnp.sum(jnp.sin(xla(weight, bias, window, x)))

    gradients = [jax.jit(jax.grad(f, (0, 1, 2)))(layer.weight, layer.bias, x) for f in (own, other)]
    for actual, expected in zip(*gradients, strict=True):
        assert np.any(np.asarray(expected) != 0)
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_a_fresh_convolution_has_variance_one_over_the_entries_of_its_window():
    window = Window(10, 10, 4, 5, 1, 64)
    layer = jax.jit(window.init)(noise.root(0))
    bound = np.sqrt(3 / 100)
    assert layer.weight.shape == (100, 64)
    assert not np.any(layer.bias)
    weights = np.asarray(layer.weight, np.float64).ravel()
    assert stats.ks_1samp(weights, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-4


def test_convolutions_come_before_fully_connected_layers():
    """MinAtar's network: a 3 by 3 convolution with 16 channels, then 128 units."""
    network = build(ConvNet(16), 400, (128,), 6, Image(10, 10, 4))
    assert network.layers == (Window(10, 10, 4, 3, 1, 16), Dense(1024, 128), Dense(128, 6))
    assert (network.inputs, network.outputs) == (400, 6)
    theta = jax.eval_shape(network.init, noise.root(0))
    assert [layer.weight.shape for layer in theta] == [(36, 16), (1024, 128), (128, 6)]
    flat = build(ConvNet(()), 400, (128,), 6, Image(10, 10, 4))
    assert flat == build(None, 400, (128,), 6, Image(10, 10, 4)) == networks.mlp(400, 128, 6)


def test_a_network_of_convolutions_has_relu_between_its_layers():
    image, rng = Image(6, 5, 2), np.random.default_rng(3)
    network = build(ConvNet((3, 4), (2, 3), (1, 2)), 60, (7,), 2, image)
    theta = jax.tree.map(
        lambda w: jnp.asarray(rng.normal(size=w.shape), jnp.float32),
        jax.eval_shape(network.init, noise.root(0)),
    )
    x = rng.normal(size=image.shape)
    first, second, *dense = theta
    h = np.maximum(by_hand(second, np.maximum(by_hand(first, x), 0)), 0).ravel()
    h = np.maximum(h @ np.asarray(dense[0].weight) + np.asarray(dense[0].bias), 0)
    expected = h @ np.asarray(dense[1].weight) + np.asarray(dense[1].bias)
    actual = networks.forward(theta, jnp.asarray(x.ravel(), jnp.float32))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_integers_and_lists_stand_for_tuples():
    same = ConvNet((32, 64), (3,), (2,)), ConvNet([32, 64], 3, 2), ConvNet((32, 64), stride=2)
    assert len(set(same)) == 1
    network = build(same[0], 20 * 20 * 3, (), 2, Image(20, 20, 3))
    assert network.layers[1] == Window(9, 9, 32, 3, 2, 64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"channels": (16, 0)}, "every entry of channels must be an integer"),
        ({"kernel": (3, 3)}, "kernel must be one integer, or one for each of the 1 convolutions"),
        ({"channels": (8, 8), "stride": (1, 1, 1)}, "stride must be one integer"),
        ({"channels": "16"}, "channels must be integers, one for each convolution"),
        ({"kernel": 3.0}, "kernel must be integers"),
    ],
)
def test_a_network_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        ConvNet(**arguments)


def test_a_window_larger_than_its_image_is_refused():
    message = r"kernel of convolution 2 must be at most 2, the size of its input \(2 by 3 "
    with pytest.raises(ConfigError, match=message + r"pixels\), got 4"):
        build(ConvNet((8, 8), 4), 90, (), 2, Image(5, 6, 3))
    with pytest.raises(ConfigError, match="needs images, but observations are vectors"):
        build(ConvNet(), 90, (), 2, None)


def test_the_default_network_depends_on_the_sides_of_an_image():
    assert default_for(Image(7, 40, 3)) == ConvNet(())
    assert default_for(Image(8, 8, 1)) == default_for(Image(35, 99, 3)) == ConvNet(16, 3, 1)
    large = default_for(Image(36, 36, 4))
    assert large == default_for(Image(210, 160, 3)) == ConvNet((32, 64, 64), (8, 4, 3), (4, 2, 1))
    assert [w.rows for w in large.windows(Image(84, 84, 4))] == [20, 9, 7]
    assert large.windows(Image(36, 36, 4))[-1].outputs == 64
