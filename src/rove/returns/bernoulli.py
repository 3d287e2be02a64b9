"""Z_θ(s, a) is 0 or 1: for bandits that pay or do not, and tasks with a single reward of 1."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.parts.noise import Key
from rove.returns.base import Return, check_weight


class Bernoulli(Return):
    """A return of 1 with probability sigmoid(z), and of 0 otherwise.

    The target is the probability of a 1, r + γ·E[Z_θ⁻] clipped to [0, 1]. It is exact when the task
    ends; before, γ acts as the probability that the task continues. The loss is the cross-entropy.
    """

    weight: float | Array = 1e-4
    """Weight c of the entropy of q_φ (see `Return.scale`)."""

    def __check_init__(self) -> None:
        check_weight("weight", self.weight)

    @property
    def outputs(self) -> int:
        return 1

    @property
    def scale(self) -> float | Array:
        return self.weight

    @property
    def discrete(self) -> bool:
        return True

    @property
    def binary(self) -> bool:
        return True

    def mean(self, z: Float[Array, " 1"]) -> Float[Array, ""]:
        return jax.nn.sigmoid(z[0])

    def std(self, z: Float[Array, " 1"]) -> Float[Array, ""]:
        return jnp.sqrt(jax.nn.sigmoid(z[0]) * jax.nn.sigmoid(-z[0]))

    def density(self, z: Float[Array, " 1"]) -> tuple[Float[Array, " 2"], Float[Array, " 2"]]:
        return jnp.array([0.0, 1.0]), jax.nn.sigmoid(jnp.array([-1.0, 1.0]) * z[0])

    def target(
        self,
        z: Float[Array, " 1"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, ""]:
        return jnp.clip(reward + discount * self.mean(z), 0.0, 1.0)

    def loss(self, z: Float[Array, " 1"], target: Float[Array, ""]) -> Float[Array, ""]:
        """Return −x·log p − (1 − x)·log(1 − p), where p = sigmoid(z)."""
        return jax.nn.softplus(z[0]) - target * z[0]

    def error(self, z: Float[Array, " 1"], target: Float[Array, ""]) -> Float[Array, ""]:
        """Return |E[Z_θ(s, a)] − x|, the absolute TD error."""
        return jnp.abs(self.mean(z) - target)
