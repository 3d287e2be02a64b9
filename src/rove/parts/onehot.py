"""Observations that are one of K codes: one-hot vectors that are stored as an integer."""

from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.parts.images import Image
from rove.parts.integers import Integers
from rove.parts.masks import Masked


class OneHot(eqx.Module):
    """One-hot vectors, stored as the index of their one.

    A network uses it like the array that it stands for: a product with a matrix is a lookup of
    rows, whose gradient touches only the rows that were seen. `jnp.asarray` returns the array.
    """

    index: Int[Array, "*n"]
    """Index of the one; an index of `size` or above stands for a vector of zeros."""
    size: int = eqx.field(static=True)
    """K, the number of entries of a vector."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array that this stands for."""
        return (*self.index.shape, self.size)

    def __matmul__(self, matrix: Float[Array, "size outputs"]) -> Float[Array, "*n outputs"]:
        return matrix.at[self.index].get(mode="fill", fill_value=0)

    def __mul__(self, factors: Float[Array, "*n size"]) -> "Scaled":
        picked = jnp.take_along_axis(factors, self.index[..., None], axis=-1, mode="clip")
        return Scaled(self, picked)

    def __pow__(self, exponent: int) -> "OneHot":
        return self

    def __getitem__(self, rows: Any) -> "OneHot":
        return OneHot(self.index[rows], self.size)

    def __jax_array__(self) -> Float[Array, "*n size"]:
        return jax.nn.one_hot(self.index, self.size)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.__jax_array__(), dtype)


class Scaled(eqx.Module):
    """One-hot vectors, each multiplied by a number."""

    vectors: OneHot
    factor: Float[Array, "*n 1"]

    def __matmul__(self, matrix: Float[Array, "size outputs"]) -> Float[Array, "*n outputs"]:
        return self.factor * (self.vectors @ matrix)


Features: TypeAlias = Float[Array, "*n features"] | OneHot
"""One or more inputs of a network: vectors, or codes."""
Observation: TypeAlias = Features | Masked
"""One or more observations: features, possibly with the actions that are allowed."""


class Form(NamedTuple):
    """The form of observations: vectors, unless they are codes or images; and their number."""

    coded: bool = False
    """Whether they are `OneHot`."""
    masked: bool = False
    """Whether they are `Masked`, with the actions that are allowed."""
    image: Image | None = None
    """The form of images, which are flattened to vectors."""
    integers: Integers | None = None
    """The form of vectors of integers, which the replay buffer stores as bytes."""
    copies: int = 1
    """Number of copies of the environment, which take turns in adding steps to the buffer."""


VECTORS = Form()


def width(features: int, coded: bool) -> int:
    """Return the number of columns that store an observation."""
    return 1 if coded else features


def to_columns(x: Features) -> Float[Array, "*n width"]:
    """Return features as columns of numbers. An index is exact up to 2²⁴."""
    return x.index[..., None].astype(jnp.float32) if isinstance(x, OneHot) else x


def from_columns(columns: Float[Array, "*n width"], features: int, coded: bool) -> Features:
    """Return features of `features` entries from their columns."""
    return OneHot(columns[..., 0].astype(jnp.int32), features) if coded else columns
