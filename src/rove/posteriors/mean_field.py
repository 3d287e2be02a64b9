"""q_φ(θ) = Π N(θ; μ_θ, softplus(ρ_θ)²): every weight and bias has its own μ and ρ."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove import networks, noise
from rove.errors import check_number
from rove.networks import Linear, Theta
from rove.noise import Key
from rove.posteriors.base import Posterior


class Phi(NamedTuple):
    mu: Theta
    rho: Theta


class Law(NamedTuple):
    """Means and standard deviations, shaped like θ."""

    mean: Theta
    std: Theta


class MeanField(Posterior):
    """Independent Gaussians. Every ρ_θ starts at `rho` and is learned."""

    rho: float | Array

    def __check_init__(self) -> None:
        check_number("rho", self.rho, at_least=-30.0, at_most=10.0)

    def init(self, network: Theta) -> Phi:
        return Phi(network, jax.tree.map(lambda x: jnp.full_like(x, self.rho), network))

    def law(self, phi: Phi) -> Law:
        return Law(phi.mu, jax.tree.map(jax.nn.softplus, phi.rho))

    def sample(self, law: Law, key: Key) -> Theta:
        """θ = μ_θ + σ_θ·ε."""
        means, treedef = jax.tree.flatten(law.mean)
        stds = treedef.flatten_up_to(law.std)
        return treedef.unflatten(
            m + s * noise.normal(noise.fold(key, i), m.shape)
            for i, (m, s) in enumerate(zip(means, stds, strict=True))
        )

    def forward(self, law: Law, x: Float[Array, " features"], key: Key) -> Float[Array, " outputs"]:
        """Given its input, a layer's pre-activations are independent Gaussians of mean
        x·μ_W + μ_b and variance x²·σ_W² + σ_b²: draw those (local reparameterisation)."""

        def linear(layer: tuple[int, Linear, Linear], x: Array) -> Array:
            i, mean, std = layer
            variance = x**2 @ std.weight**2 + std.bias**2
            epsilon = noise.normal(noise.fold(key, i), variance.shape)
            return networks.affine(mean, x) + jnp.sqrt(variance) * epsilon

        layers = [(i, *pair) for i, pair in enumerate(zip(law.mean, law.std, strict=True))]
        return networks.forward(layers, x, linear)

    def mean(self, law: Law) -> Theta:
        return law.mean

    def entropy(self, law: Law) -> Float[Array, ""]:
        """Σ log σ_θ, leaving out ½·log 2πe for each parameter."""
        return sum((jnp.sum(jnp.log(s)) for s in jax.tree.leaves(law.std)), jnp.zeros(()))
