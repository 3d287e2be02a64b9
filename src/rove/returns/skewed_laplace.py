"""Z_θ(s, a) is a skewed Laplace: parametric return density estimation (Morimura et al. 2012)."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts.noise import Key
from rove.returns.base import GRID, natural, visible
from rove.returns.laplace import Sides, TwoSided, one_sided_means


class SkewedLaplace(TwoSided):
    """A Laplace distribution with two scales, b on the left of its mode μ and c on the right.

    The density is exp(−(μ − x)/b)/(b + c) below μ and exp(−(x − μ)/c)/(b + c) above it; the mean is
    μ + c − b and the variance b² + c². z = (μ, ϱ_b, ϱ_c), where the scales are softplus(ϱ) +
    `floor`. The target is the distribution of r + γZ_θ⁻, and the loss the cross-entropy,
    log(b + c) + E[(x − μ)⁻]/b + E[(x − μ)⁺]/c.
    """

    @property
    def outputs(self) -> int:
        return 3

    def sides(self, z: Float[Array, " 3"]) -> Sides:
        """Return μ, b and c."""
        left, right = jax.nn.softplus(z[1:]) + self.floor
        return z[0], left, right

    def mean(self, z: Float[Array, " 3"]) -> Float[Array, ""]:
        mu, left, right = self.sides(z)
        return mu + right - left

    def std(self, z: Float[Array, " 3"]) -> Float[Array, ""]:
        _, left, right = self.sides(z)
        return jnp.sqrt(left**2 + right**2)

    def density(self, z: Float[Array, " 3"]) -> tuple[Float[Array, " 101"], Float[Array, " 101"]]:
        (mu, left, right), mean = self.sides(z), self.mean(z)
        points = mean + visible(mean, self.std(z)) * GRID
        distance = points - mu
        exponent = jnp.where(distance < 0.0, distance / left, -distance / right)
        return points, jnp.exp(exponent) / (left + right)

    def target(
        self,
        z: Float[Array, " 3"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, " 3"]:
        """Return the mode and the two scales of r + γZ_θ⁻."""
        mu, left, right = self.sides(z)
        return jnp.stack([reward + discount * mu, discount * left, discount * right])

    def loss(self, z: Float[Array, " 3"], target: Float[Array, " 3"]) -> Float[Array, ""]:
        if self.natural:
            z = natural(z, self.inverse_fisher(z))
        (mu, left, right), (mode, b, c) = self.sides(z), target
        below, above = one_sided_means(mode - mu, b, c)
        return jnp.log(left + right) + below / left + above / right

    def inverse_fisher(self, z: Float[Array, " 3"]) -> Float[Array, "3 3"]:
        """Return the inverse of the Fisher information of (μ, b, c)."""
        _, b, c = self.sides(z)
        zero, product, total = jnp.zeros(()), b * c, b + c
        rows = [2 * product, product, -product], [product, b * total, zero]
        return jnp.array([*rows, [-product, zero, c * total]])

    def error(self, z: Float[Array, " 3"], target: Float[Array, " 3"]) -> Float[Array, ""]:
        """Return |E[Z_θ(s, a)] − E[x]|, the absolute TD error."""
        mode, left, right = target
        return jnp.abs(self.mean(z) - (mode + right - left))
