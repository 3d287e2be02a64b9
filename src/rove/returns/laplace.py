"""Z_θ(s, a) is Laplace: parametric return density estimation (Morimura et al. 2012)."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.errors import check_flag, check_number
from rove.parts.noise import Key
from rove.returns.base import GRID, Return, check_weight, natural, visible

Sides = tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]
"""The location of a distribution, and its scales on the left and on the right of the location."""


class TwoSided(Return):
    """The base class of `Laplace` and `SkewedLaplace`, with their options and quantiles."""

    floor: float | Array = 1e-2
    """Minimum of the scales. Gradients of the loss can grow as large as its inverse."""
    weight: float | Array = 1e-4
    """Weight c of the entropy of q_φ (see `Return.scale`)."""
    natural: bool = eqx.field(default=False, static=True)
    """Replace the gradient of the loss by the natural gradient."""

    def __check_init__(self) -> None:
        check_number("floor", self.floor, at_least=1e-6)
        check_weight("weight", self.weight)
        check_flag("natural", self.natural)

    @property
    def scale(self) -> float | Array:
        return self.weight

    @abc.abstractmethod
    def sides(self, z: Float[Array, " z"]) -> Sides:
        """Return the location, and the scales on its left and on its right."""

    def quantile(self, z: Float[Array, " z"], level: float | Array) -> Float[Array, ""]:
        return skewed_quantile(level, *self.sides(z))

    def shortfall(self, z: Float[Array, " z"], threshold: Float[Array, ""]) -> Float[Array, ""]:
        location, left, right = self.sides(z)
        return one_sided_means(location - threshold, left, right)[0]


class Laplace(TwoSided):
    """A Laplace distribution, with density exp(−|x − μ|/β)/2β.

    z = (μ, ϱ), with β = softplus(ϱ) + `floor`. The target is the distribution of r + γZ_θ⁻, which
    is Laplace with location r + γμ′ and scale b′ = γβ′. The loss is the cross-entropy,
    log 2β + (|d| + b′·exp(−|d|/b′))/β, where d = r + γμ′ − μ.
    """

    @property
    def outputs(self) -> int:
        return 2

    def parts(self, z: Float[Array, " 2"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return μ and β."""
        return z[0], jax.nn.softplus(z[1]) + self.floor

    def sides(self, z: Float[Array, " 2"]) -> Sides:
        mu, beta = self.parts(z)
        return mu, beta, beta

    def mean(self, z: Float[Array, " 2"]) -> Float[Array, ""]:
        return z[0]

    def std(self, z: Float[Array, " 2"]) -> Float[Array, ""]:
        return jnp.sqrt(2.0) * self.parts(z)[1]

    def density(self, z: Float[Array, " 2"]) -> tuple[Float[Array, " 101"], Float[Array, " 101"]]:
        mu, beta = self.parts(z)
        steps = visible(mu, self.std(z)) * GRID
        return mu + steps, jnp.exp(-jnp.abs(steps) / beta) / (2.0 * beta)

    def target(
        self,
        z: Float[Array, " 2"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, " 2"]:
        """Return the location and the scale of r + γZ_θ⁻."""
        mu, beta = self.parts(z)
        return jnp.stack([reward + discount * mu, discount * beta])

    def loss(self, z: Float[Array, " 2"], target: Float[Array, " 2"]) -> Float[Array, ""]:
        if self.natural:  # the Fisher information is diag(1, 1)/β²
            z = natural(z, self.parts(z)[1] ** 2 * jnp.eye(2))
        (mu, beta), (location, scale) = self.parts(z), target
        below, above = one_sided_means(location - mu, scale, scale)
        return jnp.log(2.0 * beta) + (below + above) / beta

    def error(self, z: Float[Array, " 2"], target: Float[Array, " 2"]) -> Float[Array, ""]:
        """Return |E[Z_θ(s, a)] − E[x]|, the absolute TD error."""
        return jnp.abs(z[0] - target[0])


def one_sided_means(
    location: Float[Array, ""], left: Float[Array, ""], right: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return E[X⁻] and E[X⁺] of a skewed Laplace variable X; see `SkewedLaplace`.

    The smaller of the two is s²·exp(−|location|/s)/(left + right), where s is the scale of the tail
    that extends beyond 0. Their difference is E[X] = location + right − left. Scales may be 0.
    """
    tail = jnp.maximum(jnp.where(location >= 0.0, left, right), 1e-30)
    weight = tail / jnp.maximum(left + right, 1e-30)
    part = weight * tail * jnp.exp(-jnp.abs(location) / tail)
    mean = location + right - left
    positive = location >= 0.0
    return part - jnp.where(positive, 0.0, mean), part + jnp.where(positive, mean, 0.0)


def skewed_quantile(
    level: float | Array,
    location: Float[Array, ""],
    left: Float[Array, ""],
    right: Float[Array, ""],
) -> Float[Array, ""]:
    """Return a quantile of a skewed Laplace distribution; see `SkewedLaplace`."""
    # The probabilities of values below and above the location.
    share, rest = left / (left + right), right / (left + right)
    below = location + left * jnp.log(jnp.minimum(level / share, 1.0))
    above = location - right * jnp.log(jnp.minimum((1.0 - level) / rest, 1.0))
    return jnp.where(level < share, below, above)
