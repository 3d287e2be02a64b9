"""q_φ(θ) = δ(θ − φ): no uncertainty about the parameters (DQN, C51)."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove import networks
from rove.networks import Theta
from rove.noise import Key
from rove.posteriors.base import Posterior


class Dirac(Posterior):
    """All mass on one network. Its entropy is a constant, taken as 0."""

    def init(self, network: Theta) -> Theta:
        return network

    def law(self, phi: Theta) -> Theta:
        return phi

    def sample(self, law: Theta, key: Key) -> Theta:
        return law

    def forward(
        self, law: Theta, x: Float[Array, " features"], key: Key
    ) -> Float[Array, " outputs"]:
        return networks.forward(law, x)

    def mean(self, law: Theta) -> Theta:
        return law

    def entropy(self, law: Theta) -> Float[Array, ""]:
        return jnp.zeros(())
