"""q_φ(θ): NoisyNet's factorised noise, a product of noise per input and per output of a layer."""

from itertools import accumulate
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.parts import networks, noise
from rove.parts.networks import Linear, Network, Theta, Weighted
from rove.parts.noise import Key
from rove.parts.onehot import Features
from rove.posteriors.base import (
    Foldable,
    Paired,
    Phi,
    Rows,
    Spec,
    Stack,
    check_layers,
    row_count,
    single,
)
from rove.posteriors.mean_field import centred, check_rho, softplus
from rove.posteriors.priors import Input


class FactorisedLaw(NamedTuple):
    """Means and standard deviations, shaped like θ."""

    mean: tuple[Weighted, ...]
    std: tuple[Weighted, ...]


class FactorRows(Rows[FactorisedLaw]):
    """Samples that consist of f(ε) for all inputs and outputs of every layer."""

    f: Float[Array, "n factors"]

    def __call__(self, law: FactorisedLaw, x: Input) -> Float[Array, "1 n outputs"]:
        """Evaluate the network, without forming the weights of each row where that is possible.

        With e = f(ε), x·(σ_W ⊙ e_in e_outᵀ) = ((x ⊙ e_in)·σ_W) ⊙ e_out. The weights of a
        convolution are formed for each row: they are few, and used at all positions.
        """

        def linear(layer: tuple[Weighted, Weighted, Array, Array], x: Features) -> Array:
            mean, std, e_in, e_out = layer
            if isinstance(mean, Linear) and isinstance(std, Linear):
                return mean(x) + std(x * e_in) * e_out
            return jax.vmap(lambda a, b, x: _perturbed(mean, std, a, b)(x))(e_in, e_out, x)

        return networks.forward(_factors(law, self.f), x.features, linear)[None]


class Factorised(Foldable[FactorisedLaw, Theta]):
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
        factors = _factors(law, _noise(law, 1, key))
        return tuple(_perturbed(mean, std, a[0], b[0]) for mean, std, a, b in factors)

    def apply(self, law: FactorisedLaw, draw: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(draw, x.features)

    def mean(self, law: FactorisedLaw, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law.mean, x.features)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        return single(self.law(phi).mean)

    def sample_rows(
        self, law: FactorisedLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[FactorisedLaw]:
        rows = FactorRows(_noise(law, row_count(ids), key))
        return Paired(rows) if self.paired else rows

    def validate(self, spec: Spec) -> None:
        check_layers(self, spec, "with noise for their inputs and outputs")


def _perturbed(
    mean: Weighted, std: Weighted, e_in: Float[Array, " inputs"], e_out: Float[Array, " outputs"]
) -> Weighted:
    """Return a layer with the given noise for its inputs and outputs."""
    weight = mean.weight + std.weight * e_in[:, None] * e_out[None, :]
    bias = mean.bias + std.bias * e_out
    return jax.tree.unflatten(jax.tree.structure(mean), [weight, bias])


def _sizes(law: FactorisedLaw) -> list[int]:
    """Return the numbers of inputs and outputs of each weight matrix in turn."""
    return [size for layer in law.mean for size in layer.weight.shape]


def _noise(law: FactorisedLaw, n: int, key: Key) -> Float[Array, "n factors"]:
    """Return n rows of f(ε) for every input and output of every layer."""
    epsilon = noise.normal(key, (n, sum(_sizes(law))))
    return epsilon / jnp.sqrt(jnp.abs(epsilon))  # sign(ε)·√|ε|; `noise.normal` is never 0


def _factors(
    law: FactorisedLaw, f: Float[Array, "n factors"]
) -> list[tuple[Weighted, Weighted, Array, Array]]:
    """Return each layer's means and standard deviations, and its rows of f(ε_in) and f(ε_out)."""
    parts = jnp.split(f, list(accumulate(_sizes(law)[:-1])), axis=1)
    return list(zip(law.mean, law.std, parts[::2], parts[1::2], strict=True))
