"""Convolutions by loops in NumPy and by XLA, which tests compare rove's with."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from rove.parts.layers import Convolution, Window


def layer_of(window: Window, seed: int = 0) -> Convolution:
    rng = np.random.default_rng(seed)
    sizes = (window.patch, window.filters), (window.filters,)
    return Convolution(*(jnp.asarray(rng.normal(size=s), jnp.float32) for s in sizes), window)


def by_hand(layer: Convolution, image: np.ndarray) -> np.ndarray:
    """[rows, columns, filters]: a sum for each position, channel and entry of the window."""
    w = layer.window
    weight = np.asarray(layer.weight, np.float64).reshape(w.kernel, w.kernel, w.channels, w.filters)
    y = np.empty((w.rows, w.columns, w.filters))
    for row in range(w.rows):
        for column in range(w.columns):
            for f in range(w.filters):
                total = float(layer.bias[f])
                for i in range(w.kernel):
                    for j in range(w.kernel):
                        at = image[row * w.stride + i, column * w.stride + j]
                        total += at @ weight[i, j, :, f]
                y[row, column, f] = total
    return y


def xla(weight, bias, window: Window, x):
    """The same by XLA."""
    kernel = weight.reshape(window.kernel, window.kernel, window.channels, window.filters)
    images = x.reshape(-1, window.height, window.width, window.channels)
    strides, names = (window.stride,) * 2, ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(images, kernel, strides, "VALID", dimension_numbers=names) + bias
    return y.reshape(x.shape[0], -1)
