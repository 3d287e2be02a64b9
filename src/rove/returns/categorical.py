"""Z_θ(s, a) on fixed atoms, as in C51 (Bellemare, Dabney and Munos 2017)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from rove.errors import check_integer, check_number
from rove.parts.noise import Key
from rove.returns.base import Return, check_weight


class Categorical(Return):
    """A categorical distribution with probabilities softmax(z) on evenly spaced atoms.

    The target is the distribution of r + γZ_θ⁻, projected on the atoms; the loss is the
    cross-entropy.
    """

    atoms: int = eqx.field(default=51, static=True)
    """Number of atoms."""
    low: float | Array = -10.0
    """Position of the lowest atom. Lower returns are clipped to it."""
    high: float | Array = 10.0
    """Position of the highest atom. Higher returns are clipped to it."""
    weight: float | Array = 1e-4
    """Weight c of the entropy of q_φ (see `Return.scale`)."""

    def __check_init__(self) -> None:
        check_integer("atoms", self.atoms, at_least=2, at_most=2**16)
        check_number("low", self.low)
        check_number("high", self.high, above=float(self.low))
        check_weight("weight", self.weight)

    @property
    def outputs(self) -> int:
        return self.atoms

    @property
    def scale(self) -> float | Array:
        return self.weight

    @property
    def discrete(self) -> bool:
        return True

    @property
    def support(self) -> Float[Array, " atoms"]:
        """The positions of the atoms."""
        return jnp.linspace(self.low, self.high, self.atoms)

    def mean(self, z: Float[Array, " atoms"]) -> Float[Array, ""]:
        # Products with a matrix take less time than sums over a short last axis.
        sums = jnp.exp(_shifted(z)) @ jnp.stack([self.support, jnp.ones(self.atoms)], axis=1)
        return sums[0] / sums[1]

    def std(self, z: Float[Array, " atoms"]) -> Float[Array, ""]:
        return jnp.sqrt(jnp.sum(jax.nn.softmax(z) * (self.support - self.mean(z)) ** 2))

    def density(
        self, z: Float[Array, " atoms"]
    ) -> tuple[Float[Array, " atoms"], Float[Array, " atoms"]]:
        return self.support, jax.nn.softmax(z)

    def target(
        self,
        z: Float[Array, " atoms"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, " atoms"]:
        """Return the probabilities of r + γZ_θ⁻, projected on the atoms.

        The probability of a shifted atom is divided between its two neighbours in proportion to
        their proximity, which preserves the mean.
        """
        gap = (self.high - self.low) / (self.atoms - 1)
        index = (reward + discount * self.support - self.low) / gap
        index = jnp.clip(index, 0.0, self.atoms - 1.0)
        distance = jnp.abs(index[None, :] - jnp.arange(self.atoms)[:, None])
        return jnp.maximum(1.0 - distance, 0.0) @ jax.nn.softmax(z)

    def loss(self, z: Float[Array, " atoms"], target: Float[Array, " atoms"]) -> Float[Array, ""]:
        z = _shifted(z)
        return jnp.log(jnp.exp(z) @ jnp.ones((self.atoms, 1)))[0] - jnp.sum(target * z)

    def error(self, z: Float[Array, " atoms"], target: Float[Array, " atoms"]) -> Float[Array, ""]:
        """Return KL(x ‖ Z_θ(s, a)), which is the loss minus its minimum, as in Rainbow."""
        return self.loss(z, target) + jnp.sum(jax.scipy.special.xlogy(target, target))


def _shifted(z: Float[Array, " atoms"]) -> Float[Array, " atoms"]:
    """Return z minus its maximum, which has the same softmax, without overflow."""
    largest = lax.stop_gradient(z)
    # `jnp.max` takes twice as long as the maximum of two overlapping halves, again and again.
    while len(largest) > 1:
        half = (len(largest) + 1) // 2
        largest = jnp.maximum(largest[:half], largest[-half:])
    return z - largest
