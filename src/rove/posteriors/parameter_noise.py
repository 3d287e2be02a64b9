"""q_φ(θ): a network with Gaussian noise of an adaptive scale (Plappert et al. 2018)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.errors import check_integer, check_number
from rove.parts import networks, noise, replay
from rove.parts.networks import Network, Theta
from rove.parts.noise import Key
from rove.posteriors.base import Data, Foldable, OneTheta, Phi, Rows, Stack, single
from rove.posteriors.priors import Input
from rove.posteriors.refitting import refitted

_STATES = 64
"""Number of states on which the distance is measured."""
_STEP = 1.01
"""Factor by which σ grows or shrinks."""


class ParameterNoiseLaw(NamedTuple):
    """The network μ, and the standard deviation σ of all parameters."""

    mean: Theta
    std: Float[Array, ""]


class MeanRows(Rows[ParameterNoiseLaw]):
    """The unperturbed network μ for every row."""

    def __call__(self, law: ParameterNoiseLaw, x: Input) -> Float[Array, "1 n outputs"]:
        return networks.forward(law.mean, x.features)[None]


class ParameterNoise(Foldable[ParameterNoiseLaw, Theta]):
    """Adaptive parameter noise: actions are chosen with θ = μ + σ·ε, where σ is a single number.

    Learning and targets use μ without noise. Every `period` steps, σ grows or shrinks by 1% to keep
    the distance between the perturbed and the unperturbed network's outputs at `distance`: the root
    mean square of their difference over states from the replay buffer, divided by the standard
    deviation of the unperturbed outputs.
    """

    std: float | Array = 0.05
    """Initial standard deviation σ of the noise."""
    distance: float | Array = 0.5
    """Desired distance between the perturbed and the unperturbed network's outputs."""
    period: int | Array = 10
    """Number of steps between adaptations of σ."""

    def __check_init__(self) -> None:
        check_number("std", self.std, above=0.0)
        check_number("distance", self.distance, above=0.0)
        check_integer("period", self.period, at_least=1)

    def init(self, network: Network, key: Key) -> Phi:
        return Phi(network.init(key), jnp.asarray(self.std, jnp.float32))

    def law(self, phi: Phi) -> ParameterNoiseLaw:
        return ParameterNoiseLaw(phi.learned, phi.fitted)

    def sample(self, law: ParameterNoiseLaw, key: Key) -> Theta:
        leaves, treedef = jax.tree.flatten(law.mean)
        return treedef.unflatten(
            w + law.std * noise.normal(noise.fold(key, i), w.shape) for i, w in enumerate(leaves)
        )

    def apply(self, law: ParameterNoiseLaw, draw: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(draw, x.features)

    def mean(self, law: ParameterNoiseLaw, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law.mean, x.features)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        return single(phi.learned)

    def sample_rows(
        self, law: ParameterNoiseLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[ParameterNoiseLaw]:
        """Return θ with noise for choosing an action, and without noise for learning."""
        return OneTheta(self, key) if ids is None else MeanRows()

    def refit(self, phi: Phi, data: Data) -> Phi:
        """Adapt σ every `period` steps."""
        return refitted(phi, data, self.period, self._adapted)

    def _adapted(self, phi: Phi, data: Data) -> Float[Array, ""]:
        """Return σ, larger if the networks are closer than `distance` and smaller otherwise."""
        k_states, k_theta = (noise.fold(data.key, i) for i in range(2))
        batch = replay.sample(data.replay, k_states, _STATES, data.gamma)
        states = data.pairs(phi.priors, batch).inputs.features
        law = self.law(phi)
        plain = networks.forward(law.mean, states)
        perturbed = networks.forward(self.sample(law, k_theta), states)
        distance = jnp.sqrt(jnp.mean((perturbed - plain) ** 2))
        near = distance < self.distance * (jnp.std(plain) + 1e-6)
        return phi.fitted * jnp.where(near, _STEP, 1.0 / _STEP)
