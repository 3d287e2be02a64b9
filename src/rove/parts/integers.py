"""Observations of integers, such as images: the replay buffer stores them as bytes or bits."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, UInt8


class Integers(NamedTuple):
    """The form of observations whose entries are integers from 0 to 255, multiplied by a scale."""

    scale: float = 1.0
    """Factor by which the integers are multiplied for the agent, for example 1/255."""
    flags: bool = False
    """Whether the integers are all 0 or 1, so that eight of them are stored in a byte."""

    def width(self, features: int) -> int:
        """Return the number of bytes that store an observation with `features` entries."""
        return -(-features // 8) if self.flags else features

    def to_bytes(self, x: Float[Array, "*n features"]) -> UInt8[Array, "*n width"]:
        """Return observations as bytes."""
        integers = jnp.round(x / jnp.float32(self.scale)).astype(jnp.uint8)
        return jnp.packbits(integers, axis=-1) if self.flags else integers

    def from_bytes(
        self, stored: UInt8[Array, "*n width"], features: int
    ) -> Float[Array, "*n features"]:
        """Return observations with `features` entries from their bytes, without a rounding error.

        Requires that entries were computed as `integer * float32(scale)`.
        """
        if self.flags:
            stored = jnp.unpackbits(stored, axis=-1, count=features)
        return stored.astype(jnp.float32) * jnp.float32(self.scale)
