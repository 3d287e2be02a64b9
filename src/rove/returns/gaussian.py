"""Z_θ(s, a) = N(Q_θ(s, a), σ²) with fixed σ: Section 4.3 of the paper."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.errors import check_choice
from rove.parts import noise
from rove.parts.noise import Key
from rove.returns.base import LEAST_SCALE, Return, check_weight, normal_shortfall

LEAST_SIGMA = LEAST_SCALE**0.5 * (1.0 - 1e-7)
"""Minimum σ above 0: 1e-8, with a tolerance for rounding to float32."""


class Gaussian(Return):
    """A Gaussian with mean Q_θ and fixed standard deviation σ.

    The loss is −log Z_θ multiplied by σ²: σ²·(Q − x)²/2σ² = ½(Q − x)². Hence σ = 0 is the limit of
    Section 5.2, with noise-free targets and no entropy: the squared Bellman error.
    """

    sigma: float | Array
    """Standard deviation σ of the return."""
    draw: Literal["sample", "mean"] = eqx.field(default="sample", static=True)
    """Targets: samples of r + γZ (as in the paper), or its mean (as in Variational DQN)."""

    def __check_init__(self) -> None:
        check_weight("sigma", self.sigma, LEAST_SIGMA)
        check_choice("draw", self.draw, ("sample", "mean"))

    @property
    def outputs(self) -> int:
        return 1

    @property
    def scale(self) -> float | Array:
        return self.sigma**2

    @property
    def unit(self) -> float | Array:
        return self.sigma**2

    @property
    def exact(self) -> bool:
        return True

    def mean(self, z: Float[Array, " 1"]) -> Float[Array, ""]:
        return z[0]

    def std(self, z: Float[Array, " 1"]) -> Float[Array, ""]:
        return jnp.asarray(self.sigma, z.dtype)

    def quantile(self, z: Float[Array, " 1"], level: float | Array) -> Float[Array, ""]:
        return self.mean(z) + self.std(z) * jax.scipy.special.ndtri(level)

    def shortfall(self, z: Float[Array, " 1"], threshold: Float[Array, ""]) -> Float[Array, ""]:
        return normal_shortfall(threshold - self.mean(z), self.std(z))

    def target(
        self,
        z: Float[Array, " 1"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, ""]:
        xi = noise.normal(key) if self.draw == "sample" else 0.0
        return reward + discount * (z[0] + self.sigma * xi)

    def loss(self, z: Float[Array, " 1"], target: Float[Array, ""]) -> Float[Array, ""]:
        return 0.5 * (z[0] - target) ** 2

    def error(self, z: Float[Array, " 1"], target: Float[Array, ""]) -> Float[Array, ""]:
        """Return |E[Z_θ(s, a)] − x|, the absolute TD error."""
        return jnp.abs(self.mean(z) - target)
