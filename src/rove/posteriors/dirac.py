"""q_φ(θ) = δ(θ − φ): no uncertainty about the parameters, as in DQN and C51."""

from collections.abc import Sequence

from jax import Array
from jaxtyping import Float

from rove.parts import networks
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.posteriors.base import Phi, Posterior
from rove.posteriors.priors import Input


class Dirac(Posterior[Theta, tuple[()]]):
    """A point mass at a single network. The entropy is defined as 0."""

    point = True

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        return Phi(networks.init(key, sizes))

    def law(self, phi: Phi) -> Theta:
        return phi.learned

    def sample(self, law: Theta, key: Key) -> tuple[()]:
        """Return an empty sample: θ is always the current network, which continues to learn."""
        return ()

    def apply(self, law: Theta, draw: tuple[()], x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law, x.features)

    def mean(self, law: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law, x.features)
