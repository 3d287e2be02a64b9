"""q_φ(θ): one network and Gaussian noise whose scale adapts (Plappert et al. 2018)."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Int

from rove import networks, noise, replay
from rove.errors import check_integer, check_number
from rove.networks import Theta
from rove.noise import Key
from rove.posteriors.base import Phi, Posterior, Target
from rove.replay import Replay

_STATES = 64
_STEP = 1.01


class Law(NamedTuple):
    mean: Theta
    std: Float[Array, ""]


class ParameterNoise(Posterior):
    """Control draws θ = μ + σ·ε with one σ for all; learning uses μ, and φ⁻ its own. Every
    `period` steps σ grows or shrinks by 1%, so that the perturbed values stay as far from the
    unperturbed as `distance` says: the root mean square of their difference over states from the
    replay buffer, in units of the spread of the network's outputs over them."""

    std: float | Array = 0.05
    """σ at the start."""
    distance: float | Array = 0.5
    """How far apart to keep the two."""
    period: int | Array = 10
    """Steps between adaptations."""

    def __check_init__(self) -> None:
        check_number("std", self.std, above=0.0)
        check_number("distance", self.distance, above=0.0)
        check_integer("period", self.period, at_least=1)

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        return Phi(networks.init(key, sizes), jnp.asarray(self.std, jnp.float32))

    def law(self, phi: Phi) -> Law:
        return Law(phi.learned, phi.held)

    def sample(self, law: Law, key: Key) -> Theta:
        leaves, treedef = jax.tree.flatten(law.mean)
        return treedef.unflatten(
            w + law.std * noise.normal(noise.fold(key, i), w.shape) for i, w in enumerate(leaves)
        )

    def apply(
        self, law: Law, draw: Theta, x: Float[Array, " features"]
    ) -> Float[Array, " outputs"]:
        return networks.forward(draw, x)

    def forward_all(
        self, law: Law, xs: Float[Array, "n features"], key: Key
    ) -> Float[Array, "1 n outputs"]:
        """Without noise: it is for control alone."""
        return networks.forward(law.mean, xs)[None]

    def mean(self, law: Law, x: Float[Array, " features"]) -> Float[Array, " outputs"]:
        return networks.forward(law.mean, x)

    def refit(
        self,
        phi: Phi,
        scale: float | Array,
        counter: Int[Array, ""],
        replay: Replay,
        target: Target,
        key: Key,
    ) -> Float[Array, ""]:
        return lax.cond(
            counter % self.period == 0,
            lambda: self._adapted(phi, replay, key),
            lambda: phi.held,
        )

    def _adapted(self, phi: Phi, memory: Replay, key: Key) -> Float[Array, ""]:
        k_states, k_theta = (noise.fold(key, i) for i in range(2))
        states = replay.sample(memory, k_states, _STATES)[0].observation
        law = self.law(phi)
        plain = networks.forward(law.mean, states)
        perturbed = networks.forward(self.sample(law, k_theta), states)
        apart = jnp.sqrt(jnp.mean((perturbed - plain) ** 2))
        near = apart < self.distance * (jnp.std(plain) + 1e-6)
        return phi.held * jnp.where(near, _STEP, 1.0 / _STEP)
