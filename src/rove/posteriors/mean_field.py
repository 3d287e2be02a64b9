"""q_φ(θ) = Π N(θ; μ_θ, softplus(ρ_θ)²): independent Gaussians for all weights and biases."""

from functools import partial
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.errors import ConfigError, check_choice, check_number
from rove.parts import networks, noise
from rove.parts.architectures import is_function
from rove.parts.networks import Layer, Linear, Network, Theta
from rove.parts.noise import Key
from rove.parts.onehot import Features
from rove.posteriors.base import (
    Density,
    Foldable,
    OneTheta,
    Paired,
    Phi,
    Rows,
    Spec,
    Stack,
    row_count,
    single,
)
from rove.posteriors.priors import Input

Draws: TypeAlias = Literal["row", "minibatch"]


class MeanFieldLearned(NamedTuple):
    """μ_θ and ρ_θ of every parameter, each in the structure of θ."""

    mu: Theta
    rho: Theta


class MeanFieldLaw(NamedTuple):
    """Means and variances of every parameter, each in the structure of θ."""

    mean: Theta
    variance: Theta

    @property
    def std(self) -> Theta:
        """Standard deviations of every parameter."""
        return jax.tree.map(jnp.sqrt, self.variance)


class NoiseRows(Rows[MeanFieldLaw]):
    """Samples that consist of standard normal noise for every layer, from which the
    pre-activations, or the parameters, of each row are computed.

    Given its input x, the pre-activations of a fully connected layer are independent Gaussians with
    mean x·μ_W + μ_b and variance x²·σ_W² + σ_b². Sampling them instead of weights is the local
    reparameterisation trick (Kingma et al. 2015). Those of a convolution are not independent,
    because all positions share its weights; the weights are sampled instead, which takes fewer
    random numbers and half the work. Either way, the outputs of a row have exactly the law of
    f_θ(x) with θ ~ q_φ.
    """

    epsilon: Float[Array, "n numbers"]

    def __call__(self, law: MeanFieldLaw, x: Input) -> Float[Array, "1 n outputs"]:
        def linear(layer: tuple[Layer, Layer, Array], x: Features) -> Array:
            mean, variance, epsilon = layer
            if isinstance(mean, Linear):
                spread = jnp.sqrt(networks.affine(variance, x**2))
                return networks.affine(mean, x) + spread * epsilon
            std = jax.tree.map(jnp.sqrt, variance)
            return jax.vmap(lambda epsilon, x: _perturbed(mean, std, epsilon)(x))(epsilon, x)

        ends = list(accumulate(_counts(law)[:-1]))
        epsilons = jnp.split(self.epsilon, ends, axis=1)
        layers = list(zip(law.mean, law.variance, epsilons, strict=True))
        return networks.forward(layers, x.features, linear)[None]


def _counts(law: MeanFieldLaw) -> list[int]:
    """Return the number of random numbers that each layer needs for a row: one for each unit of a
    fully connected layer, and one for each parameter of others."""
    return [
        layer.outputs
        if isinstance(layer, Linear)
        else sum(leaf.size for leaf in jax.tree.leaves(layer))
        for layer in law.mean
    ]


def _perturbed(mean: Layer, std: Layer, epsilon: Float[Array, " parameters"]) -> Layer:
    """Return the parameters μ_θ + σ_θ·ε of a layer."""
    means, structure = jax.tree.flatten(mean)
    parts = jnp.split(epsilon, list(accumulate(leaf.size for leaf in means[:-1])))
    leaves = zip(means, jax.tree.leaves(std), parts, strict=True)
    return structure.unflatten(m + s * e.reshape(m.shape) for m, s, e in leaves)


class MeanField(Foldable[MeanFieldLaw, Theta], Density[MeanFieldLaw, Theta]):
    """Independent Gaussians for all parameters, with learned means and standard deviations.

    The prior of a parameter is uniform (as in the paper), N(0, `prior`²) (as in BBQ), or N(μ_θ, s²)
    with s = `prior_std`/√inputs, which constrains σ_θ but not μ_θ. For neural networks, a uniform
    prior leaves the objective without a minimum: where the data do not determine a weight, its σ_θ
    grows throughout training, and switching hidden units off lowers the objective without bound.
    """

    rho: float | Array
    """Initial value of every ρ_θ."""
    prior: float | Array | None = None
    """Standard deviation of a Gaussian prior with mean 0; None: no such prior."""
    prior_std: float | Array | None = eqx.field(default=None, kw_only=True)
    """Value of σ_θ where the data do not determine θ, as a multiple of 1/√inputs, the standard
    deviation of a weight at initialisation; None: it grows without bound."""
    paired: bool = eqx.field(default=False, static=True, kw_only=True)
    """Whether the target of a transition uses the same noise for θ⁻ as for θ. The noise is then
    drawn for the weights, not for the units, which takes more time."""
    draws: Draws = eqx.field(default="row", static=True, kw_only=True)
    """Samples per update: "row", a θ and a θ⁻ for each transition of a minibatch, or "minibatch", a
    θ and a θ⁻ for all, which takes about 0.7 of the time, with a noisier gradient."""

    def __check_init__(self) -> None:
        check_rho(self.rho)
        check_choice("draws", self.draws, get_args(Draws))
        if self.prior is not None:
            check_number("prior", self.prior, at_least=1e-6, at_most=1e6)
        if self.prior_std is not None:
            check_prior_std(self.prior_std)
            if self.prior is not None:
                hint = ". A parameter has only one prior"
                raise ConfigError.must_be("prior_std", self.prior_std, "None if prior is set", hint)

    def init(self, network: Network, key: Key) -> Phi:
        return centred(network, self.rho, key)

    def law(self, phi: Phi) -> MeanFieldLaw:
        mu, rho = phi.learned
        return MeanFieldLaw(mu, jax.tree.map(lambda x: softplus(x) ** 2, rho))

    def sample(self, law: MeanFieldLaw, key: Key) -> Theta:
        """Sample θ = μ_θ + σ_θ·ε."""
        means, treedef = jax.tree.flatten(law.mean)
        epsilons = noise.normals(key, [m.shape for m in means])
        parts = zip(means, jax.tree.leaves(law.std), epsilons, strict=True)
        return treedef.unflatten(mean + std * epsilon for mean, std, epsilon in parts)

    def apply(self, law: MeanFieldLaw, draw: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(draw, x.features)

    def mean(self, law: MeanFieldLaw, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law.mean, x.features)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        return single(phi.learned.mu)

    def sample_rows(
        self, law: MeanFieldLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[MeanFieldLaw]:
        if ids is not None and self.draws == "minibatch":
            rows = OneTheta(self, key)
        elif self.paired:
            rows = super().sample_rows(law, ids, key)
        else:
            rows = NoiseRows(noise.normal(key, (row_count(ids), sum(_counts(law)))))
        return Paired(rows) if self.paired else rows

    def entropy(self, law: MeanFieldLaw) -> Float[Array, ""]:
        """Return Σ log σ_θ, which is the entropy without ½·log 2πe for each parameter.

        With a prior, this is −KL up to the constant ½ − log s per parameter:
        Σ log σ_θ − (μ_θ² + σ_θ²)/2s² for N(0, s²), and the same without μ_θ² for N(μ_θ, s²).
        """
        total = jnp.zeros(())
        for variance in jax.tree.leaves(law.variance):
            total += 0.5 * jnp.sum(jnp.log(variance))
        if self.prior is not None:
            squares = [jnp.sum(x**2) for x in jax.tree.leaves(law.mean)]
            squares += [jnp.sum(x) for x in jax.tree.leaves(law.variance)]
            total -= sum(squares) / (2.0 * self.prior**2)
        if self.prior_std is not None:
            total -= sum(prior_penalty(layer, self.prior_std) for layer in law.variance)
        return total

    def log_density(
        self, law: MeanFieldLaw, draw: Theta
    ) -> tuple[Float[Array, ""], Float[Array, " outputs"]]:
        logs = jax.tree.map(log_normal, draw, law.mean, law.std)
        by_output = jnp.zeros(0)
        if isinstance(logs, tuple) and isinstance(logs[-1], Linear):
            *logs, head = logs
            by_output = jnp.sum(head.weight, axis=0) + head.bias
        return sum((jnp.sum(x) for x in jax.tree.leaves(logs)), jnp.zeros(())), by_output

    def validate(self, spec: Spec) -> None:
        if self.prior_std is not None and is_function(spec.network):
            hint = (
                ": it depends on the number of inputs of each parameter, which rove does not know"
            )
            allowed = "None for a custom network function"
            raise ConfigError.must_be("prior_std", self.prior_std, allowed, hint)


def log_normal(
    x: Float[Array, "*n"], mean: float | Float[Array, "*n"], std: Float[Array, "*n"]
) -> Float[Array, "*n"]:
    """Return log N(x; mean, std²), without the constant."""
    return -0.5 * ((x - mean) / std) ** 2 - jnp.log(std)


def prior_penalty(variance: Any, prior_std: float | Array) -> Float[Array, ""]:
    """Return Σ σ_θ²/2s² of a layer, with s = prior_std/√inputs.

    A prior N(μ_θ, s²) subtracts this from the layer's entropy. The inputs of a convolution are the
    entries of a patch.
    """
    inputs = variance.weight.shape[-2]
    total = jnp.sum(variance.weight) + jnp.sum(variance.bias)
    return total * inputs / (2.0 * prior_std**2)


def check_prior_std(prior_std: float | Array) -> None:
    check_number("prior_std", prior_std, at_least=1e-6, at_most=1e6)


def check_rho(rho: float | Array) -> None:
    check_number("rho", rho, at_least=-30.0, at_most=10.0)


def centred(network: Network, rho: float | Array, key: Key) -> Phi:
    """Return φ with the means of a newly initialised network, and the same ρ_θ everywhere."""
    mu = network.init(key)
    return Phi(MeanFieldLearned(mu, jax.tree.map(lambda x: jnp.full_like(x, rho), mu)))


@jax.custom_jvp
def softplus(rho: Array) -> Array:
    """Return log(1 + exp ρ), at half the cost of `jax.nn.softplus`.

    It is computed for every ρ_θ in every update. With e = exp(−|ρ|) and s = e/(2 + e) ≤ ⅓,
    log(1 + e) = 2·(s + s³/3 + s⁵/5 + …). Adding 2e-19 keeps the square above 0 in float32, and so
    its logarithm and the derivative of its root finite.
    """
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
    """Differentiate softplus: its derivative is the logistic function."""
    (rho,), (tangent,) = primals, tangents
    e = jnp.exp(-jnp.abs(rho))
    return softplus(rho), tangent * jnp.where(rho > 0.0, 1.0, e) / (1.0 + e)
