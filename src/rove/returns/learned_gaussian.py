"""Z_θ(s, a) = N(m_θ(s, a), s_θ(s, a)²): a Gaussian with a learned standard deviation."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.errors import check_choice, check_flag, check_number
from rove.parts import noise
from rove.parts.noise import Key
from rove.returns.base import Return, check_weight, log_density, natural, normal_shortfall


class LearnedGaussian(Return):
    """A Gaussian whose mean and standard deviation are outputs of the network.

    z = (m, ϱ), with mean m and standard deviation s = softplus(ϱ) + `floor`. The loss is minus the
    log-density of the target. With draw="distribution", it is the expectation of this over
    r + γZ_θ⁻, a Gaussian with mean r + γm′ and standard deviation γs′, as in parametric return
    density estimation (Morimura et al. 2012).
    """

    floor: float | Array = 1e-2
    """Minimum standard deviation. Gradients of the loss can grow as large as its inverse."""
    weight: float | Array = 1e-4
    """Weight c of the entropy of q_φ (see `Return.scale`)."""
    draw: Literal["sample", "mean", "distribution"] = eqx.field(default="sample", static=True)
    """Targets: samples of r + γZ, its mean, or its whole distribution."""
    natural: bool = eqx.field(default=False, static=True)
    """Replace the gradient of the loss by the natural gradient."""

    def __check_init__(self) -> None:
        check_number("floor", self.floor, at_least=1e-6)
        check_weight("weight", self.weight)
        check_choice("draw", self.draw, ("sample", "mean", "distribution"))
        check_flag("natural", self.natural)

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

    def quantile(self, z: Float[Array, " 2"], level: float | Array) -> Float[Array, ""]:
        return self.mean(z) + self.std(z) * jax.scipy.special.ndtri(level)

    def shortfall(self, z: Float[Array, " 2"], threshold: Float[Array, ""]) -> Float[Array, ""]:
        return normal_shortfall(threshold - self.mean(z), self.std(z))

    def target(
        self,
        z: Float[Array, " 2"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, "*law"]:
        """Return a number or, with draw="distribution", the mean and the standard deviation."""
        if self.draw == "distribution":
            return jnp.stack([reward + discount * self.mean(z), discount * self.std(z)])
        xi = noise.normal(key) if self.draw == "sample" else 0.0
        return reward + discount * (self.mean(z) + self.std(z) * xi)

    def loss(self, z: Float[Array, " 2"], target: Float[Array, "*law"]) -> Float[Array, ""]:
        if self.natural:  # the Fisher information is diag(1, 2)/s²
            z = natural(z, self.std(z) ** 2 * jnp.diag(jnp.array([1.0, 0.5])))
        if self.draw != "distribution":
            return -log_density(target - self.mean(z), self.std(z))
        mean, spread = target
        return -log_density(mean - self.mean(z), self.std(z)) + 0.5 * (spread / self.std(z)) ** 2

    def error(self, z: Float[Array, " 2"], target: Float[Array, "*law"]) -> Float[Array, ""]:
        """Return |E[Z_θ(s, a)] − E[x]|, the absolute TD error."""
        return jnp.abs(self.mean(z) - jnp.ravel(target)[0])
