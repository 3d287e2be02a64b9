"""Z_θ(s, a) = N(m_θ(s, a), s_θ(s, a)²): a Gaussian with a learned standard deviation."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.errors import check_choice, check_number
from rove.parts import noise
from rove.parts.noise import Key
from rove.returns.base import Return, check_weight, log_density


class LearnedGaussian(Return):
    """A Gaussian whose mean and standard deviation are outputs of the network.

    z = (m, ϱ), with mean m and standard deviation softplus(ϱ) + `floor`. The loss is −log density.
    """

    floor: float | Array = 1e-2
    """Minimum standard deviation. Gradients of the loss can grow as large as its inverse."""
    weight: float | Array = 1e-4
    """Weight c of the entropy of q_φ (see `Return.scale`)."""
    draw: Literal["sample", "mean"] = eqx.field(default="sample", static=True)
    """Targets: samples of r + γZ, or its mean."""

    def __check_init__(self) -> None:
        check_number("floor", self.floor, at_least=1e-6)
        check_weight("weight", self.weight)
        check_choice("draw", self.draw, ("sample", "mean"))

    @property
    def outputs(self) -> int:
        return 2

    @property
    def scale(self) -> float | Array:
        return self.weight

    def mean(self, z: Float[Array, " 2"]) -> Float[Array, ""]:
        return z[0]

    def std(self, z: Float[Array, " 2"]) -> Float[Array, ""]:
        return jax.nn.softplus(z[1]) + self.floor

    def target(
        self,
        z: Float[Array, " 2"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, ""]:
        xi = noise.normal(key) if self.draw == "sample" else 0.0
        return reward + discount * (self.mean(z) + self.std(z) * xi)

    def loss(self, z: Float[Array, " 2"], target: Float[Array, ""]) -> Float[Array, ""]:
        return -log_density(target - self.mean(z), self.std(z))

    def error(self, z: Float[Array, " 2"], target: Float[Array, ""]) -> Float[Array, ""]:
        """Return |E[Z_θ(s, a)] − x|, the absolute TD error."""
        return jnp.abs(self.mean(z) - target)
