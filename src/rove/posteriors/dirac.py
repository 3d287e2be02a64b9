"""q_φ(θ) = δ(θ − φ): no uncertainty about the parameters, as in DQN and C51."""

from jax import Array
from jaxtyping import Float

from rove.parts import networks
from rove.parts.networks import Network, Theta
from rove.parts.noise import Key
from rove.posteriors.base import Foldable, Phi, Stack, single
from rove.posteriors.priors import Input


class Dirac(Foldable[Theta, tuple[()]]):
    """A point mass at a single network. The entropy is defined as 0."""

    def init(self, network: Network, key: Key) -> Phi:
        return Phi(network.init(key))

    def law(self, phi: Phi) -> Theta:
        return phi.learned

    def sample(self, law: Theta, key: Key) -> tuple[()]:
        """Return an empty sample: θ is always the current network, which continues to learn."""
        return ()

    def apply(self, law: Theta, draw: tuple[()], x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law, x.features)

    def mean(self, law: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law, x.features)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        return single(phi.learned)
