"""Running statistics that normalise observations."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

CLIP = 10.0
"""Bound on normalised observations, in standard deviations."""


class Statistics(NamedTuple):
    """Running statistics of the observations so far."""

    count: Float[Array, ""]
    mean: Float[Array, " features"]
    squares: Float[Array, " features"]
    """Sum of squared deviations from the mean."""

    def updated(self, x: Float[Array, " features"]) -> "Statistics":
        """Return the statistics with one more observation (Welford 1962)."""
        count = self.count + 1.0
        mean = self.mean + (x - self.mean) / count
        return Statistics(count, mean, self.squares + (x - self.mean) * (x - mean))

    def normalised(self, x: Float[Array, " features"]) -> Float[Array, " features"]:
        """Return the observation normalised by the mean and standard deviation, and clipped."""
        std = jnp.sqrt(self.squares / jnp.maximum(self.count, 1.0) + 1e-8)
        return jnp.clip((x - self.mean) / std, -CLIP, CLIP)
