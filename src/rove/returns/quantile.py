"""Z_θ(s, a) represented by its quantiles, as in QR-DQN (Dabney et al. 2018)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from rove.errors import check_integer, check_number
from rove.parts.noise import Key
from rove.returns.base import Return, check_weight

COMPARED = 256
"""Maximum number of quantiles that are ranked by pairwise comparison."""


class Quantile(Return):
    """A distribution on n equally likely values: z_i is the quantile at level τ̂_i = (i − ½)/n.

    The target is the distribution of r + γZ_θ⁻, again n values; the loss is the quantile Huber
    loss. For κ = 0, each of its terms is −log of an asymmetric Laplace density, up to a constant.
    """

    quantiles: int = eqx.field(default=32, static=True)
    """Number n of quantiles."""
    kappa: float | Array = 1.0
    """Threshold κ of the Huber loss: quadratic for errors up to κ, linear beyond; 0 gives the
    pinball loss."""
    weight: float | Array = 1e-4
    """Weight c of the entropy of q_φ (see `Return.scale`)."""

    def __check_init__(self) -> None:
        check_integer("quantiles", self.quantiles, at_least=1, at_most=2**16)
        check_number("kappa", self.kappa, at_least=0.0)
        check_weight("weight", self.weight)

    @property
    def outputs(self) -> int:
        return self.quantiles

    @property
    def scale(self) -> float | Array:
        return self.weight

    @property
    def discrete(self) -> bool:
        return True

    def mean(self, z: Float[Array, " quantiles"]) -> Float[Array, ""]:
        return jnp.mean(z)

    def std(self, z: Float[Array, " quantiles"]) -> Float[Array, ""]:
        return jnp.std(z)

    def quantile(self, z: Float[Array, " quantiles"], level: float | Array) -> Float[Array, ""]:
        """Return the smallest value whose rank reaches the level. Up to `COMPARED` values are
        ranked by pairwise comparison. More are counted, which takes less time than sorting them."""
        if self.quantiles > COMPARED:
            return smallest(z, jnp.ceil((level - 1e-6) * self.quantiles))
        ranks = jnp.sum(z[None, :] <= z[:, None], axis=1) / self.quantiles
        return jnp.min(jnp.where(ranks >= level - 1e-6, z, jnp.inf))

    def shortfall(
        self, z: Float[Array, " quantiles"], threshold: Float[Array, ""]
    ) -> Float[Array, ""]:
        return jnp.mean(jnp.maximum(threshold - z, 0.0))

    def density(
        self, z: Float[Array, " quantiles"]
    ) -> tuple[Float[Array, " quantiles"], Float[Array, " quantiles"]]:
        return jnp.sort(z), jnp.full_like(z, 1.0 / self.quantiles)

    def target(
        self,
        z: Float[Array, " quantiles"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, " quantiles"]:
        return reward + discount * z

    def loss(
        self, z: Float[Array, " quantiles"], target: Float[Array, " quantiles"]
    ) -> Float[Array, ""]:
        """Return Σ_i mean_j |τ̂_i − 1{u_ij < 0}|·L_κ(u_ij)/κ, where u_ij = x_j − z_i.

        L_κ is the Huber loss. Dividing by κ, which QR-DQN's paper omits, makes the pinball loss the
        limit κ → 0.
        """
        tau = (jnp.arange(self.quantiles) + 0.5) / self.quantiles
        u = target[None, :] - z[:, None]
        size = jnp.abs(u)
        # L_κ(u)/κ is u²/2κ up to κ and |u| − κ/2 beyond. This form and its gradient are finite for
        # κ = 0 as well.
        inner = jnp.minimum(size, self.kappa)
        huber = 0.5 * inner**2 / jnp.maximum(self.kappa, 1e-30) + size - inner
        weights = jnp.abs(tau[:, None] - (u < 0.0))
        return jnp.sum(jnp.mean(weights * huber, axis=1))

    def error(
        self, z: Float[Array, " quantiles"], target: Float[Array, " quantiles"]
    ) -> Float[Array, ""]:
        """Return the 1-Wasserstein distance of the two distributions on n values."""
        return jnp.mean(jnp.abs(jnp.sort(z) - jnp.sort(target)))


def smallest(z: Float[Array, " n"], rank: float | Array) -> Float[Array, ""]:
    """Return the smallest value of z whose rank, from 1 to n, is at least `rank`.

    Floats are mapped to unsigned integers of the same order, and the bits of the result are found
    from the highest to the lowest: a bit is 1 if fewer than `rank` integers are below the result
    with that bit.
    """
    bits = lax.bitcast_convert_type(z, jnp.uint32)
    negative, top = bits >> 31 == 1, np.uint32(1 << 31)
    order = jnp.where(negative, ~bits, bits | top)

    def with_bit(i: Array, found: Array) -> Array:
        candidate = found | (top >> i.astype(jnp.uint32))
        return jnp.where(jnp.sum(order < candidate) < rank, candidate, found)

    found = lax.fori_loop(0, 32, with_bit, jnp.zeros((), jnp.uint32))
    return jnp.min(jnp.where(order >= found, z, jnp.inf))
