"""Networks that are custom functions."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from rove.errors import ConfigError
from rove.parts.noise import Key
from rove.parts.onehot import Features

Make: TypeAlias = Callable[[tuple[int, ...], int, Array], Callable[[Array], Array]]
"""A user's function of the shape of an observation, the number of outputs and a JAX key. It returns
a pytree that can be called with an observation, and whose arrays are the parameters θ."""


class Function(NamedTuple):
    """A custom function in place of layers, without its parameters."""

    make: Make
    shape: tuple[int, ...]
    """Shape of an observation."""
    outputs: int

    @property
    def inputs(self) -> int:
        """Number of entries of an observation."""
        return math.prod(self.shape)

    def init(self, key: Key) -> "Parameters":
        """Return initial parameters."""
        leaves = jax.tree.leaves(self.called(key))
        return Parameters([jnp.asarray(leaf) for leaf in leaves if _is_array(leaf)], self)

    def called(self, key: Key) -> Any:
        """Return what the user's function returns."""
        return self.make(self.shape, self.outputs, jax.random.wrap_key_data(key))

    @property
    def name(self) -> str:
        """The name of the user's function."""
        return name_of(self.make)


class Parameters(eqx.Module):
    """The parameters of a custom function."""

    arrays: list[Float[Array, "..."]]
    function: Function = eqx.field(static=True)

    @property
    def inputs(self) -> int:
        """Number of entries of an input."""
        return self.function.inputs

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.function.outputs

    def __call__(self, x: Features) -> Float[Array, "*n outputs"]:
        structure, others = _constant_parts(self.function)
        arrays = iter(self.arrays)
        leaves = [next(arrays) if other is _ARRAY else other for other in others]
        call = jax.tree.unflatten(structure, leaves)
        n = x.shape[:-1]
        rows = jnp.asarray(x).reshape(-1, *self.function.shape)
        return jax.vmap(call)(rows).reshape(*n, self.outputs)


_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""Types of the arrays of a network; those of 64 bits are converted to 32."""
_ARRAY = object()
"""Stands for a parameter among the leaves of a pytree."""


@functools.cache
def _constant_parts(function: Function) -> tuple[Any, tuple[Any, ...]]:
    """Return the structure of the pytree that a user's function returns, and its leaves, with
    _ARRAY for every array.

    They are evaluated once: otherwise, a function that defines another function in each call would
    be compiled again each time.
    """
    key = jnp.zeros(2, jnp.uint32)
    leaves, structure = jax.tree.flatten(eqx.filter_eval_shape(function.called, key))
    return structure, tuple(_ARRAY if _is_array(leaf) else leaf for leaf in leaves)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def name_of(make: Make) -> str:
    """Return the name of a user's function, or of its class."""
    return getattr(make, "__qualname__", type(make).__qualname__).rpartition(".")[2]


def check_function(function: Function) -> None:
    """Raise `ConfigError` if a user's function fails or does not return a network.

    Only shapes are computed.
    """
    name, key = function.name, jax.ShapeDtypeStruct((2,), jnp.uint32)
    call = f"{name}({function.shape}, {function.outputs}, key)"
    try:
        network = eqx.filter_eval_shape(function.called, key)
    except Exception as error:
        raise _wrong(name, f"{call} failed: {_first_line(error)}") from error
    if not callable(network):
        kind = type(network).__name__
        raise _wrong(name, f"{call} returned a {kind}, which cannot be called")
    arrays = [leaf for leaf in jax.tree.leaves(network) if _is_array(leaf)]
    if not arrays or not all(array.dtype in _FLOATS for array in arrays):
        needed = "must return a pytree whose arrays are float32"
        raise _wrong(name, f"{call} {needed}, got {[str(a.dtype) for a in arrays]}")
    x = jax.ShapeDtypeStruct(function.shape, jnp.float32)
    try:
        y = eqx.filter_eval_shape(network, x)
    except Exception as error:
        reason = f"{call}(x) failed for an x of shape {function.shape}: {_first_line(error)}"
        raise _wrong(name, reason) from error
    shape = getattr(y, "shape", None)
    if shape != (function.outputs,):
        needed = f"must return an array of shape {(function.outputs,)}"
        raise _wrong(name, f"{call}(x) {needed}, got {y if shape is None else shape}")
    if y.dtype != jnp.float32:
        raise _wrong(name, f"{call}(x) must return an array of float32, got {y.dtype}")


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _wrong(name: str, reason: str) -> ConfigError:
    return ConfigError("network", name, reason, f"network function {reason}")
