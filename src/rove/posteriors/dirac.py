"""q_φ(θ) = δ(θ − φ): no uncertainty about the parameters (DQN, C51)."""

from collections.abc import Sequence

from jax import Array
from jaxtyping import Float

from rove.parts import networks
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.posteriors.base import Phi, Posterior
from rove.posteriors.priors import Input


class Dirac(Posterior[Theta, tuple[()]]):
    """All mass on one network. Its entropy is a constant, taken as 0."""

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        return Phi(networks.init(key, sizes))

    def law(self, phi: Phi) -> Theta:
        return phi.learned

    def sample(self, law: Theta, key: Key) -> tuple[()]:
        """Nothing is drawn: θ is the law itself, and keeps learning while it is acted on."""
        return ()

    def apply(self, law: Theta, draw: tuple[()], x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law, x.features)

    def mean(self, law: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law, x.features)
