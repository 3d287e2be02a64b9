"""NoisyNet's factorised noise: one draw an input and one an output, multiplied for each weight."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove import networks, noise
from rove.errors import check_number
from rove.networks import Linear, Theta
from rove.noise import Key
from rove.posteriors.base import Posterior
from rove.posteriors.mean_field import Law, Phi


class Factorised(Posterior):
    """θ = μ_θ + σ_θ·f(ε_in)·f(ε_out), with f(ε) = sign(ε)·√|ε| and σ_θ = softplus(ρ_θ).

    The noise of a layer has rank one, so q_φ has no density: its entropy is taken as 0, as in
    NoisyNet. The independent form of NoisyNet's noise is `MeanField`.
    """

    rho: float | Array

    def __check_init__(self) -> None:
        check_number("rho", self.rho, at_least=-30.0, at_most=10.0)

    def init(self, network: Theta) -> Phi:
        return Phi(network, jax.tree.map(lambda x: jnp.full_like(x, self.rho), network))

    def law(self, phi: Phi) -> Law:
        return Law(phi.mu, jax.tree.map(jax.nn.softplus, phi.rho))

    def sample(self, law: Law, key: Key) -> Theta:
        layers = []
        for i, (mean, std) in enumerate(zip(law.mean, law.std, strict=True)):
            e_in, e_out = _factors(noise.fold(key, i), mean)
            weight = mean.weight + std.weight * e_in[:, None] * e_out[None, :]
            layers.append(Linear(weight, mean.bias + std.bias * e_out))
        return tuple(layers)

    def forward(self, law: Law, x: Float[Array, " features"], key: Key) -> Float[Array, " outputs"]:
        """x·(σ_W ⊙ e_in e_outᵀ) = ((x ⊙ e_in)·σ_W) ⊙ e_out: a draw of all weights for one x,
        without writing them out."""

        def linear(layer: tuple[int, Linear, Linear], x: Array) -> Array:
            i, mean, std = layer
            e_in, e_out = _factors(noise.fold(key, i), mean)
            return networks.affine(mean, x) + networks.affine(std, x * e_in) * e_out

        layers = [(i, *pair) for i, pair in enumerate(zip(law.mean, law.std, strict=True))]
        return networks.forward(layers, x, linear)

    def mean(self, law: Law) -> Theta:
        return law.mean

    def entropy(self, law: Law) -> Float[Array, ""]:
        return jnp.zeros(())


def _factors(key: Key, layer: Linear) -> tuple[Array, Array]:
    """f(ε_in), f(ε_out) of one layer."""
    inputs, outputs = layer.weight.shape
    epsilon = noise.normal(key, (inputs + outputs,))
    f = epsilon / jnp.sqrt(jnp.abs(epsilon))  # sign(ε)·√|ε|; a draw is never 0
    return f[:inputs], f[inputs:]
