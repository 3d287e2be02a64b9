"""Z_θ(s, a) by its quantiles, as in QR-DQN (Dabney et al. 2018)."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.errors import check_integer, check_number
from rove.parts.noise import Key
from rove.returns.base import Return, check_weight


class Quantile(Return):
    """n values z of equal probability: z_i is the quantile at the midpoint τ̂_i = (i − ½)/n.

    The target is the law of r + γZ_θ⁻ itself, again n values; the loss is the quantile Huber
    loss. At κ = 0 each of its terms is −log of an asymmetric Laplace density, up to a constant.
    The entropy of q_φ is weighted by `weight`.
    """

    quantiles: int = eqx.field(default=32, static=True)
    kappa: float | Array = 1.0
    """κ: errors up to κ are squared, larger ones absolute; 0 gives the pinball loss."""
    weight: float | Array = 1e-4
    """c of `Return.scale`."""

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

    def picture(
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
        """Σ_i mean_j |τ̂_i − 1{u_ij < 0}|·L_κ(u_ij)/κ with u_ij = x_j − z_i and Huber's L_κ.

        The division by κ (which QR-DQN leaves out) makes the pinball loss the limit κ → 0.
        """
        tau = (jnp.arange(self.quantiles) + 0.5) / self.quantiles
        u = target[None, :] - z[:, None]
        size = jnp.abs(u)
        # L_κ(u)/κ: u²/2κ up to κ, |u| − κ/2 beyond. Finite, as its slope, at κ = 0.
        inner = jnp.minimum(size, self.kappa)
        huber = 0.5 * inner**2 / jnp.maximum(self.kappa, 1e-30) + size - inner
        weights = jnp.abs(tau[:, None] - (u < 0.0))
        return jnp.sum(jnp.mean(weights * huber, axis=1))
