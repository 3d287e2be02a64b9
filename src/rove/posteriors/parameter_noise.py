"""q_φ(θ): one network and Gaussian noise whose scale adapts (Plappert et al. 2018)."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Int

from rove.errors import check_integer, check_number
from rove.parts import networks, noise, replay
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.posteriors.base import Data, OneTheta, Phi, Posterior, Rows
from rove.posteriors.priors import Input

_STATES = 64
_STEP = 1.01


class ParameterNoiseLaw(NamedTuple):
    mean: Theta
    std: Float[Array, ""]


class MeanRows(Rows[ParameterNoiseLaw]):
    """μ for every row."""

    def __call__(self, law: ParameterNoiseLaw, x: Input) -> Float[Array, "1 n outputs"]:
        return networks.forward(law.mean, x.features)[None]


class ParameterNoise(Posterior[ParameterNoiseLaw, Theta]):
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

    def law(self, phi: Phi) -> ParameterNoiseLaw:
        return ParameterNoiseLaw(phi.learned, phi.held)

    def sample(self, law: ParameterNoiseLaw, key: Key) -> Theta:
        leaves, treedef = jax.tree.flatten(law.mean)
        return treedef.unflatten(
            w + law.std * noise.normal(noise.fold(key, i), w.shape) for i, w in enumerate(leaves)
        )

    def apply(self, law: ParameterNoiseLaw, draw: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(draw, x.features)

    def mean(self, law: ParameterNoiseLaw, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law.mean, x.features)

    def sample_rows(
        self, law: ParameterNoiseLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[ParameterNoiseLaw]:
        """Without noise in learning: it is for control alone."""
        return OneTheta(self, key) if ids is None else MeanRows()

    def refit(self, phi: Phi, data: Data) -> Phi:
        """Adapt σ."""
        std = lax.cond(
            data.counter % self.period == 0,
            lambda: self._adapted(phi, data),
            lambda: phi.held,
        )
        return phi._replace(held=std)

    def _adapted(self, phi: Phi, data: Data) -> Float[Array, ""]:
        k_states, k_theta = (noise.fold(data.key, i) for i in range(2))
        batch, _ = replay.sample(data.replay, k_states, _STATES)
        states = data.pairs(phi.priors, batch).inputs.features
        law = self.law(phi)
        plain = networks.forward(law.mean, states)
        perturbed = networks.forward(self.sample(law, k_theta), states)
        apart = jnp.sqrt(jnp.mean((perturbed - plain) ** 2))
        near = apart < self.distance * (jnp.std(plain) + 1e-6)
        return phi.held * jnp.where(near, _STEP, 1.0 / _STEP)
