"""Multi-layer perceptrons: the functions f_θ behind all posteriors."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import Features, Scaled


class Linear(NamedTuple):
    """A fully connected layer, x ↦ x·weight + bias. Parts of φ have the same structure."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]


Theta: TypeAlias = tuple[Linear, ...]
"""θ, the parameters of one network."""


def init(key: Key, sizes: Sequence[int]) -> Theta:
    """Initialise a network: weights uniform in ±√(3/inputs) (variance 1/inputs), biases 0."""
    layers = []
    for i, (inputs, outputs) in enumerate(pairwise(sizes)):
        unit = 2.0 * noise.uniform(noise.fold(key, i), (inputs, outputs)) - 1.0
        layers.append(Linear(unit * (3.0 / inputs) ** 0.5, jnp.zeros(outputs)))
    return tuple(layers)


def init_many(key: Key, sizes: Sequence[int], count: int) -> Theta:
    """Initialise `count` networks, stacked along a first axis."""
    return jax.vmap(lambda k: init(k, sizes))(noise.folds(key, count))


def affine(layer: Linear, x: Features | Scaled) -> Float[Array, "*n outputs"]:
    """Apply a fully connected layer to vectors, or to codes."""
    return x @ layer.weight + layer.bias


def forward(
    layers: Sequence, x: Features, linear: Callable[..., Array] = affine
) -> Float[Array, "*n outputs"]:
    """Compute f_θ(x), with ReLU between layers.

    `linear` applies one layer. A posterior that draws pre-activations instead of weights passes
    its own function.
    """
    for layer in layers[:-1]:
        x = jax.nn.relu(linear(layer, x))
    return linear(layers[-1], x)


def forward_many(stack: Theta, xs: Features) -> Float[Array, "count *n outputs"]:
    """Evaluate every network of a stack on every row."""
    return jax.vmap(forward, (0, None))(stack, xs)
