"""q_φ(θ): NoisyNet's factorised noise, a product of noise per input and per output of a layer."""

from itertools import accumulate
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.parts import networks, noise
from rove.parts.networks import Linear, Network, Theta
from rove.parts.noise import Key
from rove.parts.onehot import Observation
from rove.posteriors.base import Paired, Phi, Posterior, Rows, row_count
from rove.posteriors.mean_field import centred, check_rho, softplus
from rove.posteriors.priors import Input


class FactorisedLaw(NamedTuple):
    """Means and standard deviations, shaped like θ."""

    mean: Theta
    std: Theta


class FactorRows(Rows[FactorisedLaw]):
    """Samples that consist of f(ε) for all inputs and outputs of every layer."""

    f: Float[Array, "n factors"]

    def __call__(self, law: FactorisedLaw, x: Input) -> Float[Array, "1 n outputs"]:
        """Evaluate the network without forming the weights of each row.

        With e = f(ε), x·(σ_W ⊙ e_in e_outᵀ) = ((x ⊙ e_in)·σ_W) ⊙ e_out.
        """

        def linear(layer: tuple[Linear, Linear, Array, Array], x: Observation) -> Array:
            mean, std, e_in, e_out = layer
            return networks.affine(mean, x) + networks.affine(std, x * e_in) * e_out

        return networks.forward(_factors(law, self.f), x.features, linear)[None]


class Factorised(Posterior[FactorisedLaw, Theta]):
    """Factorised Gaussian noise (Fortunato et al. 2018): θ = μ_θ + σ_θ·f(ε_in)·f(ε_out).

    Here f(ε) = sign(ε)·√|ε| and σ_θ = softplus(ρ_θ). The noise of a layer has rank one, so q_φ has
    no density; its entropy is defined as 0, as in NoisyNet. NoisyNet's independent noise is
    `MeanField`.
    """

    rho: float | Array
    """Initial value of every ρ_θ."""
    paired: bool = eqx.field(default=False, static=True, kw_only=True)
    """Whether the target of a transition uses the same noise for θ⁻ as for θ."""

    def __check_init__(self) -> None:
        check_rho(self.rho)

    def init(self, network: Network, key: Key) -> Phi:
        return centred(network, self.rho, key)

    def law(self, phi: Phi) -> FactorisedLaw:
        mu, rho = phi.learned
        return FactorisedLaw(mu, jax.tree.map(softplus, rho))

    def sample(self, law: FactorisedLaw, key: Key) -> Theta:
        layers = []
        for mean, std, e_in, e_out in _factors(law, _noise(law, 1, key)):
            weight = mean.weight + std.weight * e_in[0][:, None] * e_out[0][None, :]
            layers.append(Linear(weight, mean.bias + std.bias * e_out[0]))
        return tuple(layers)

    def apply(self, law: FactorisedLaw, draw: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(draw, x.features)

    def mean(self, law: FactorisedLaw, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law.mean, x.features)

    def sample_rows(
        self, law: FactorisedLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[FactorisedLaw]:
        rows = FactorRows(_noise(law, row_count(ids), key))
        return Paired(rows) if self.paired else rows


def _sizes(law: FactorisedLaw) -> list[int]:
    """Return the numbers of inputs and outputs of each layer in turn."""
    return [size for layer in law.mean for size in layer.weight.shape]


def _noise(law: FactorisedLaw, n: int, key: Key) -> Float[Array, "n factors"]:
    """Return n rows of f(ε) for every input and output of every layer."""
    epsilon = noise.normal(key, (n, sum(_sizes(law))))
    return epsilon / jnp.sqrt(jnp.abs(epsilon))  # sign(ε)·√|ε|; `noise.normal` is never 0


def _factors(
    law: FactorisedLaw, f: Float[Array, "n factors"]
) -> list[tuple[Linear, Linear, Array, Array]]:
    """Return each layer's means and standard deviations, and its rows of f(ε_in) and f(ε_out)."""
    parts = jnp.split(f, list(accumulate(_sizes(law)[:-1])), axis=1)
    return list(zip(law.mean, law.std, parts[::2], parts[1::2], strict=True))
