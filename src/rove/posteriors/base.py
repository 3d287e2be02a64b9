"""The family of parameter distributions q_φ(θ)."""

import abc
from typing import Any, TypeAlias

import equinox as eqx
from jax import Array
from jaxtyping import Float

from rove.networks import Theta
from rove.noise import Key

Phi: TypeAlias = Any
"""φ: what is learned, a pytree of arrays."""
Law: TypeAlias = Any
"""q_φ written out (for a Gaussian: means and variances), a pytree of arrays."""


class Posterior(eqx.Module):
    """A family q_φ(θ). `law` turns φ into the form every draw uses, so that an update pays for
    it once, and the target network's is kept as long as φ⁻ stands."""

    @abc.abstractmethod
    def init(self, network: Theta) -> Phi:
        """φ such that q_φ is centred on a fresh network."""

    @abc.abstractmethod
    def law(self, phi: Phi) -> Law:
        """q_φ, written out."""

    @abc.abstractmethod
    def sample(self, law: Law, key: Key) -> Theta:
        """One θ ~ q_φ, for use on many states."""

    @abc.abstractmethod
    def forward(self, law: Law, x: Float[Array, " features"], key: Key) -> Float[Array, " outputs"]:
        """f_θ(x) with θ ~ q_φ drawn for this x alone, at the price of a product or two. All
        it draws comes from one call on the key, which may be a row's (see `noise.rows`)."""

    @abc.abstractmethod
    def mean(self, law: Law) -> Theta:
        """E[θ], for greedy evaluation."""

    @abc.abstractmethod
    def entropy(self, law: Law) -> Float[Array, ""]:
        """H(q_φ), up to a constant."""
