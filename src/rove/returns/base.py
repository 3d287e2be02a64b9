"""The family of return distributions Z_θ(s, a)."""

import abc

import equinox as eqx
from jax import Array
from jaxtyping import Float

from rove.noise import Key


class Return(eqx.Module):
    """A family Z_θ(s, a), described by the numbers z that the network puts out for one action.

    All methods are for one action and one transition; the algorithm maps them over a batch.
    """

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """How many numbers describe one action's distribution."""

    @property
    @abc.abstractmethod
    def scale(self) -> float | Array:
        """c, where `loss` is −c·log Z_θ. The entropy of q_φ is weighted by the same c."""

    @abc.abstractmethod
    def mean(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        """E[Z_θ(s, a)], exact."""

    @abc.abstractmethod
    def target(
        self,
        z: Float[Array, " outputs"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Array:
        """x ~ r + γ·Z_θ⁻(s′, a′), a draw or the law itself; `discount` is 0 where s′ ends it."""

    @abc.abstractmethod
    def loss(self, z: Float[Array, " outputs"], target: Array) -> Float[Array, ""]:
        """−c·log Z_θ(x), up to a constant."""
