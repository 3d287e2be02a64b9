"""Networks: the functions f_θ behind all posteriors."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import jax
from jax import Array
from jaxtyping import Float

from rove.parts import noise
from rove.parts.layers import Dense, Layer, LayerSpec, Linear, Theta, Weighted
from rove.parts.noise import Key
from rove.parts.onehot import Features, OneHot

__all__ = [
    "Layer",
    "Linear",
    "Network",
    "Theta",
    "Weighted",
    "affine",
    "forward",
    "forward_many",
    "mlp",
    "trunk",
]


class Network(NamedTuple):
    """A network without its parameters: its layers, with ReLU between them."""

    layers: tuple[LayerSpec, ...]

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return self.layers[0].inputs

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.layers[-1].outputs

    @property
    def head(self) -> "Network":
        """The last layer, whose inputs are the last hidden layer."""
        return Network(self.layers[-1:])

    def init(self, key: Key) -> Theta:
        """Return initial parameters."""
        return tuple(layer.init(noise.fold(key, i)) for i, layer in enumerate(self.layers))

    def init_many(self, key: Key, count: int) -> Theta:
        """Return the initial parameters of `count` networks, stacked along a first axis."""
        return jax.vmap(self.init)(noise.folds(key, count))


def mlp(*sizes: int) -> Network:
    """Return a multilayer perceptron: sizes of its input, its hidden layers and its output."""
    return Network(tuple(Dense(*pair) for pair in pairwise(sizes)))


def affine(layer: Layer, x: Features) -> Float[Array, "*n outputs"]:
    """Apply a layer to vectors, or to codes."""
    return layer(x)


def forward(
    layers: Sequence, x: Features, linear: Callable[..., Array] = affine
) -> Float[Array, "*n outputs"]:
    """Compute f_θ(x), with ReLU between layers.

    `linear` applies one layer. A posterior that draws pre-activations instead of weights passes
    its own function.
    """
    return linear(layers[-1], trunk(layers[:-1], x, linear))


def trunk(
    layers: Sequence, x: Features, linear: Callable[..., Array] = affine
) -> Float[Array, "*n hidden"] | OneHot:
    """Return the last hidden layer; without hidden layers, x itself."""
    for layer in layers:
        x = jax.nn.relu(linear(layer, x))
    return x


def forward_many(stack: Theta, xs: Features) -> Float[Array, "count *n outputs"]:
    """Evaluate every network of a stack on every row."""
    return jax.vmap(forward, (0, None))(stack, xs)
