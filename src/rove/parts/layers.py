"""The layers of networks, with and without their parameters.

Between layers there are always vectors: an image is flattened row by row, with its channels last.
A layer can therefore be used in the same way whatever its kind is. `Linear` and `Convolution` are
also linear in their parameters.
"""

from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts import noise
from rove.parts.functions import Function, Parameters
from rove.parts.noise import Key
from rove.parts.onehot import Features, OneHot, Scaled


class Linear(NamedTuple):
    """The parameters of a fully connected layer, x ↦ x·weight + bias.

    Parts of φ have the same structure.
    """

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return self.weight.shape[-2]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.bias.shape[-1]

    def __call__(self, x: Features | Scaled) -> Float[Array, "*n outputs"]:
        return product(x, self.weight) + self.bias


NARROW = 4
"""Largest number of columns for which `product` computes them one at a time."""


def product(
    x: Features | Scaled, weight: Float[Array, "inputs outputs"]
) -> Float[Array, "*n outputs"]:
    """Return x·weight.

    XLA computes a product with a few columns, and the gradient with respect to them, up to five
    times as fast if they are separate vectors.
    """
    columns = weight.shape[-1]
    if columns > NARROW or isinstance(x, OneHot | Scaled):
        return x @ weight
    return jnp.stack([x @ weight[:, i] for i in range(columns)], axis=-1)


class Dense(NamedTuple):
    """A fully connected layer, without its parameters."""

    inputs: int
    outputs: int

    def init(self, key: Key) -> Linear:
        """Return initial parameters (see `fresh`)."""
        return Linear(*fresh(self.inputs, self.outputs, key))


class Window(NamedTuple):
    """A convolution without its parameters: a square window that moves over an image.

    It stays within the image ("valid" padding).
    """

    height: int
    width: int
    channels: int
    """Number of channels of the image."""
    kernel: int
    """Height and width of the window."""
    stride: int
    """Number of pixels by which the window moves."""
    filters: int
    """Number of channels of the result."""

    @property
    def rows(self) -> int:
        """Height of the result."""
        return (self.height - self.kernel) // self.stride + 1

    @property
    def columns(self) -> int:
        """Width of the result."""
        return (self.width - self.kernel) // self.stride + 1

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return self.height * self.width * self.channels

    @property
    def outputs(self) -> int:
        """Number of outputs: a unit for each channel at each position."""
        return self.rows * self.columns * self.filters

    @property
    def patch(self) -> int:
        """Number of entries that the window covers."""
        return self.kernel**2 * self.channels

    def init(self, key: Key) -> "Convolution":
        """Return initial parameters (see `fresh`)."""
        return Convolution(*fresh(self.patch, self.filters, key), self)

    def patches(self, x: Float[Array, "*n inputs"]) -> Float[Array, "*n positions patch"]:
        """Return what the window covers at each position.

        XLA's own convolutions are 10 to 20 times slower inside a loop on CPUs than the product of
        these patches with a matrix.
        """
        n = x.shape[:-1]
        image = x.reshape(*n, self.height, self.width, self.channels)
        down, across = ((side - 1) * self.stride + 1 for side in (self.rows, self.columns))
        moved = [
            image[..., i : i + down : self.stride, j : j + across : self.stride, :]
            for i in range(self.kernel)
            for j in range(self.kernel)
        ]
        return jnp.concatenate(moved, axis=-1).reshape(*n, self.rows * self.columns, self.patch)


class Convolution(eqx.Module):
    """The parameters of a convolution. Parts of φ have the same structure.

    The result at a position is that of a `Linear` for the patch there, so a weight is used at all
    positions.
    """

    weight: Float[Array, "patch filters"]
    bias: Float[Array, " filters"]
    window: Window = eqx.field(static=True)

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return self.window.inputs

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.window.outputs

    def __call__(self, x: Features) -> Float[Array, "*n outputs"]:
        patches = self.window.patches(jnp.asarray(x))
        return (patches @ self.weight + self.bias).reshape(*x.shape[:-1], self.outputs)


def fresh(inputs: int, outputs: int, key: Key) -> tuple[Float[Array, "inputs outputs"], Array]:
    """Return initial weights and biases: weights uniform in ±√(3/inputs), of variance 1/inputs, and
    biases 0."""
    unit = 2.0 * noise.uniform(key, (inputs, outputs)) - 1.0
    return unit * (3.0 / inputs) ** 0.5, jnp.zeros(outputs)


Weighted: TypeAlias = Linear | Convolution
"""The parameters of a layer that multiplies its inputs by a matrix of weights."""
Layer: TypeAlias = Linear | Convolution | Parameters
"""The parameters of a layer, or of a custom function in place of layers."""
LayerSpec: TypeAlias = Dense | Window | Function
"""A layer without its parameters."""
Theta: TypeAlias = tuple[Layer, ...]
"""θ, the parameters of one network: those of its layers."""
