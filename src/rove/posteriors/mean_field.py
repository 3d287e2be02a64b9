"""q_φ(θ) = Π N(θ; μ_θ, softplus(ρ_θ)²): every weight and bias has its own μ and ρ."""

from itertools import accumulate
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
    """Means and variances, shaped like θ."""

    mean: Theta
    variance: Theta


class MeanField(Posterior):
    """Independent Gaussians. Every ρ_θ starts at `rho` and is learned."""

    rho: float | Array

    def __check_init__(self) -> None:
        check_rho(self.rho)

    def init(self, network: Theta) -> Phi:
        return centred(network, self.rho)

    def law(self, phi: Phi) -> Law:
        return Law(phi.mu, jax.tree.map(lambda rho: softplus(rho) ** 2, phi.rho))

    def sample(self, law: Law, key: Key) -> Theta:
        """θ = μ_θ + σ_θ·ε."""
        means, treedef = jax.tree.flatten(law.mean)
        variances = treedef.flatten_up_to(law.variance)
        return treedef.unflatten(
            m + jnp.sqrt(v) * noise.normal(noise.fold(key, i), m.shape)
            for i, (m, v) in enumerate(zip(means, variances, strict=True))
        )

    def forward(self, law: Law, x: Float[Array, " features"], key: Key) -> Float[Array, " outputs"]:
        """Given its input, a layer's pre-activations are independent Gaussians of mean
        x·μ_W + μ_b and variance x²·σ_W² + σ_b²: draw those (local reparameterisation)."""
        widths = [layer.bias.shape[0] for layer in law.mean]
        epsilons = jnp.split(noise.normal(key, (sum(widths),)), list(accumulate(widths[:-1])))

        def linear(layer: tuple[Linear, Linear, Array], x: Array) -> Array:
            mean, variance, epsilon = layer
            spread = jnp.sqrt(networks.affine(variance, x**2))
            return networks.affine(mean, x) + spread * epsilon

        layers = list(zip(law.mean, law.variance, epsilons, strict=True))
        return networks.forward(layers, x, linear)

    def mean(self, law: Law) -> Theta:
        return law.mean

    def entropy(self, law: Law) -> Float[Array, ""]:
        """Σ log σ_θ, leaving out ½·log 2πe for each parameter."""
        logs = (0.5 * jnp.sum(jnp.log(v)) for v in jax.tree.leaves(law.variance))
        return sum(logs, jnp.zeros(()))


def check_rho(rho: float | Array) -> None:
    check_number("rho", rho, at_least=-30.0, at_most=10.0)


def centred(network: Theta, rho: float | Array) -> Phi:
    """φ with means at a network, and every ρ_θ the same."""
    return Phi(network, jax.tree.map(lambda x: jnp.full_like(x, rho), network))


@jax.custom_jvp
def softplus(rho: Array) -> Array:
    """log(1 + exp ρ), for half the price of the library's: it is taken of every ρ_θ in every
    update. With e = exp(−|ρ|) and s = e/(2 + e), log(1 + e) = 2·(s + s³/3 + s⁵/5 + …), s ≤ ⅓.
    The 2e-19 on top keeps its square, the logarithm and the slope of the root finite."""
    e = jnp.exp(-jnp.abs(rho))
    s = e / (2.0 + e)
    series = jnp.zeros_like(s)
    for power in (13, 11, 9, 7, 5, 3, 1):
        series = series * s**2 + 1.0 / power
    return jnp.maximum(rho, 0.0) + 2.0 * s * series + 2e-19


@softplus.defjvp
def _softplus_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The derivative of softplus is the logistic function."""
    (rho,), (tangent,) = primals, tangents
    e = jnp.exp(-jnp.abs(rho))
    return softplus(rho), tangent * jnp.where(rho > 0.0, 1.0, e) / (1.0 + e)
