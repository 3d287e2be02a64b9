"""q_φ(θ) = Π N(θ; μ_θ, softplus(ρ_θ)²): every weight and bias has its own μ and ρ."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.errors import ConfigError, check_number
from rove.parts import networks, noise
from rove.parts.networks import Linear, Theta
from rove.parts.noise import Key
from rove.posteriors.base import Phi, Posterior, Rows, row_count
from rove.posteriors.priors import Input


class MeanFieldLearned(NamedTuple):
    """Shaped like θ, both."""

    mu: Theta
    rho: Theta


class MeanFieldLaw(NamedTuple):
    """Means and variances, shaped like θ."""

    mean: Theta
    variance: Theta


class NoiseRows(Rows[MeanFieldLaw]):
    """Standard normal noise for the pre-activations of every layer, one row per transition.

    Given its input, a layer's pre-activations are independent Gaussians of mean x·μ_W + μ_b and
    variance x²·σ_W² + σ_b²: drawing those (local reparameterisation) needs no weights per row.
    """

    epsilon: Float[Array, "n units"]
    paired: bool = eqx.field(default=False, static=True)

    def __call__(self, law: MeanFieldLaw, x: Input) -> Float[Array, "1 n outputs"]:
        def linear(layer: tuple[Linear, Linear, Array], x: Array) -> Array:
            mean, variance, epsilon = layer
            spread = jnp.sqrt(networks.affine(variance, x**2))
            return networks.affine(mean, x) + spread * epsilon

        ends = list(accumulate(_widths(law)[:-1]))
        epsilons = jnp.split(self.epsilon, ends, axis=1)
        layers = list(zip(law.mean, law.variance, epsilons, strict=True))
        return networks.forward(layers, x.features, linear)[None]


def _widths(law: MeanFieldLaw) -> list[int]:
    """Number of units of each layer."""
    return [layer.bias.shape[0] for layer in law.mean]


class MeanField(Posterior[MeanFieldLaw, Theta]):
    """Independent Gaussians. Every ρ_θ starts at `rho` and is learned.

    The prior of a parameter is uniform (the paper's), N(0, `prior`²) (BBQ's) or N(μ_θ, s²) with
    s = `prior_std`/√inputs, which has a width and no location of its own. Under the uniform one the
    objective has no minimum in a network: σ_θ of a weight that no data inform grows for as long as
    training lasts, and it pays without limit to switch hidden units off.
    """

    rho: float | Array
    prior: float | Array | None = None
    """Standard deviation of a Gaussian prior of mean 0; None: no such prior."""
    prior_std: float | Array | None = eqx.field(default=None, kw_only=True)
    """What σ_θ tends to where no data inform θ, as a multiple of 1/√inputs, the standard deviation
    of a new network's weights; None: it grows without end."""
    paired: bool = eqx.field(default=False, static=True, kw_only=True)
    """Whether θ⁻ uses the noise of θ in the target of a transition."""

    def __check_init__(self) -> None:
        check_rho(self.rho)
        if self.prior is not None:
            check_number("prior", self.prior, at_least=1e-6, at_most=1e6)
        if self.prior_std is not None:
            check_prior_std(self.prior_std)
            if self.prior is not None:
                what = "None where prior is set: a parameter has one prior"
                raise ConfigError("prior_std", self.prior_std, what)

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        return centred(sizes, self.rho, key)

    def law(self, phi: Phi) -> MeanFieldLaw:
        mu, rho = phi.learned
        return MeanFieldLaw(mu, jax.tree.map(lambda rho: softplus(rho) ** 2, rho))

    def sample(self, law: MeanFieldLaw, key: Key) -> Theta:
        """θ = μ_θ + σ_θ·ε."""
        means, treedef = jax.tree.flatten(law.mean)
        variances = treedef.flatten_up_to(law.variance)
        return treedef.unflatten(
            m + jnp.sqrt(v) * noise.normal(noise.fold(key, i), m.shape)
            for i, (m, v) in enumerate(zip(means, variances, strict=True))
        )

    def apply(self, law: MeanFieldLaw, draw: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(draw, x.features)

    def mean(self, law: MeanFieldLaw, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law.mean, x.features)

    def sample_rows(self, law: MeanFieldLaw, ids: Int[Array, " n"] | None, key: Key) -> NoiseRows:
        return NoiseRows(noise.normal(key, (row_count(ids), sum(_widths(law)))), self.paired)

    def entropy(self, law: MeanFieldLaw) -> Float[Array, ""]:
        """Σ log σ_θ, leaving out ½·log 2πe for each parameter. With a prior it is −KL, leaving out
        ½ − log s for each: Σ log σ_θ − (μ_θ² + σ_θ²)/2s² for N(0, s²), and without μ_θ² for
        N(μ_θ, s²)."""
        total = jnp.zeros(())
        for v in jax.tree.leaves(law.variance):
            total += 0.5 * jnp.sum(jnp.log(v))
        if self.prior is not None:
            squares = [jnp.sum(m**2) for m in jax.tree.leaves(law.mean)]
            squares += [jnp.sum(v) for v in jax.tree.leaves(law.variance)]
            total -= sum(squares) / (2.0 * self.prior**2)
        if self.prior_std is not None:
            total -= sum(prior_penalty(v, self.prior_std) for v in law.variance)
        return total


def prior_penalty(variance: Linear, prior_std: float | Array) -> Float[Array, ""]:
    """Σ σ_θ²/2s² over a layer, with s = prior_std/√inputs: what a prior N(μ_θ, s²) takes off its
    entropy."""
    inputs = variance.weight.shape[-2]
    total = jnp.sum(variance.weight) + jnp.sum(variance.bias)
    return total * inputs / (2.0 * prior_std**2)


def check_prior_std(prior_std: float | Array) -> None:
    check_number("prior_std", prior_std, at_least=1e-6, at_most=1e6)


def check_rho(rho: float | Array) -> None:
    check_number("rho", rho, at_least=-30.0, at_most=10.0)


def centred(sizes: Sequence[int], rho: float | Array, key: Key) -> Phi:
    """φ with means at a fresh network, and every ρ_θ the same."""
    network = networks.init(key, sizes)
    return Phi(MeanFieldLearned(network, jax.tree.map(lambda x: jnp.full_like(x, rho), network)))


@jax.custom_jvp
def softplus(rho: Array) -> Array:
    """log(1 + exp ρ), for half the price of the library's: it is taken of every ρ_θ in every
    update. With e = exp(−|ρ|) and s = e/(2 + e), log(1 + e) = 2·(s + s³/3 + s⁵/5 + …), s ≤ ⅓.
    The 2e-19 on top keeps its square, the logarithm and the slope of the root finite."""
    return _softplus(rho)


@partial(jax.jit, inline=True)
def _softplus(rho: Array) -> Array:
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
