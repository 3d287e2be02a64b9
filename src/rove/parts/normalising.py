"""Running statistics that normalise observations."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

CLIP = 10.0
"""Bound on normalised observations, in standard deviations."""


class Statistics(NamedTuple):
    """Running statistics of the values so far, such as observations."""

    count: Float[Array, ""]
    mean: Float[Array, "*shape"]
    squares: Float[Array, "*shape"]
    """Sum of squared deviations from the mean."""

    @classmethod
    def of_shape(cls, *shape: int) -> "Statistics":
        """Return statistics without any values yet."""
        return cls(jnp.zeros(()), jnp.zeros(shape), jnp.zeros(shape))

    def updated(self, x: Float[Array, "*shape"]) -> "Statistics":
        """Return the statistics with one more value (Welford 1962)."""
        count = self.count + 1.0
        mean = self.mean + (x - self.mean) / count
        return Statistics(count, mean, self.squares + (x - self.mean) * (x - mean))

    @property
    def std(self) -> Float[Array, "*shape"]:
        """Standard deviation of the values so far; never below 1e-4."""
        return jnp.sqrt(self.squares / jnp.maximum(self.count, 1.0) + 1e-8)

    def normalised(self, x: Float[Array, "*n"], clip: float | Array = CLIP) -> Float[Array, "*n"]:
        """Return values normalised by the mean and standard deviation, and clipped."""
        return jnp.clip((x - self.mean) / self.std, -clip, clip)
