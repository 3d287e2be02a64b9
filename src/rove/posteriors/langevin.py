"""q_φ(θ): the current state of a Markov chain, which follows Langevin dynamics."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.errors import check_number
from rove.parts import networks, noise
from rove.parts.networks import Network, Theta
from rove.parts.noise import Key
from rove.posteriors.base import Foldable, OneTheta, Phi, Rows, Sampler, Stack, single
from rove.posteriors.priors import Input


class Langevin(Sampler[Theta, Theta], Foldable[Theta, Theta]):
    """Langevin Monte Carlo: one network θ that is trained by gradient steps with noise.

    With the objective J = mean(loss) − (c/N)·log p(θ), the posterior is proportional to
    exp(−J/T) with T = c/N, the weight that the entropy has in other families. A step is
    θ ← θ − α·∇J + √(2αT)·ε, whose stationary distribution tends to the posterior as α → 0. With
    `adam`, the drift is ∇J + a·m/√v, where m and v are Adam's moments (Adam LMC, Ishfaq et al.
    2024): networks are trained faster, and the stationary distribution is narrower.

    A sample of θ is the current state of the chain, and control uses it for as long as
    `Agent.resample` says. If the return has c = 0, there is no noise: stochastic gradient descent.
    """

    adam: float | Array | None = None
    """Weight a of Adam's direction m/√v in the drift; None: no such term."""
    temperature: float | Array = 1.0
    """Factor of T: 1 for the posterior, less for a narrower distribution."""
    prior: float | Array | None = None
    """Standard deviation of a Gaussian prior with mean 0; None: a uniform prior."""

    def __check_init__(self) -> None:
        if self.adam is not None:
            check_number("adam", self.adam, at_least=0.0)
        check_number("temperature", self.temperature, at_least=0.0)
        if self.prior is not None:
            check_number("prior", self.prior, at_least=1e-6, at_most=1e6)

    def init(self, network: Network, key: Key) -> Phi:
        return Phi(network.init(key))

    def law(self, phi: Phi) -> Theta:
        return phi.learned

    def sample(self, law: Theta, key: Key) -> Theta:
        """Return the current state of the chain."""
        return law

    def apply(self, law: Theta, draw: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(draw, x.features)

    def mean(self, law: Theta, x: Input) -> Float[Array, " outputs"]:
        """Return f_θ(x) at the current state of the chain."""
        return networks.forward(law, x.features)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        return single(phi.learned)

    def sample_rows(self, law: Theta, ids: Int[Array, " n"] | None, key: Key) -> Rows[Theta]:
        return OneTheta(self, key)

    def entropy(self, law: Theta) -> Float[Array, ""]:
        """Return log p(θ) of the prior, up to a constant; 0 if it is uniform."""
        if self.prior is None:
            return jnp.zeros(())
        squares = jnp.stack([jnp.sum(w**2) for w in jax.tree.leaves(law)])
        return -jnp.sum(squares) / (2.0 * self.prior**2)

    def start(self, learned: Any) -> Any:
        import optax  # imported here because it is slow to import

        return () if self.adam is None else optax.scale_by_adam().init(learned)

    def step(
        self,
        learned: Any,
        gradient: Any,
        moments: Any,
        lr: float | Array,
        temperature: float | Array,
        key: Key,
    ) -> tuple[Any, Any]:
        drift = gradient
        if self.adam is not None:
            import optax  # imported here because it is slow to import

            direction, moments = optax.scale_by_adam().update(gradient, moments)
            drift = jax.tree.map(lambda g, d: g + self.adam * d, gradient, direction)
        leaves, structure = jax.tree.flatten(learned)
        deviation = jnp.sqrt(2.0 * lr * self.temperature * temperature)
        epsilons = noise.normals(key, [leaf.shape for leaf in leaves])
        parts = zip(leaves, jax.tree.leaves(drift), epsilons, strict=True)
        return structure.unflatten(w - lr * d + deviation * e for w, d, e in parts), moments
