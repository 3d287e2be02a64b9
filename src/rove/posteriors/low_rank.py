"""q_φ(θ): a low-rank Gaussian for the last layer, with an optional diagonal and prior functions."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.errors import ConfigError, check_integer, check_number
from rove.parts import networks, noise
from rove.parts.networks import Linear, Network, Theta
from rove.parts.noise import Key
from rove.posteriors.base import (
    Density,
    Foldable,
    OneTheta,
    Paired,
    Phi,
    Rows,
    Spec,
    Stack,
    check_layers,
    single,
)
from rove.posteriors.mean_field import (
    check_prior_std,
    check_rho,
    log_normal,
    prior_penalty,
    softplus,
)
from rove.posteriors.priors import Input


class LowRankLearned(NamedTuple):
    """The parameters that are trained by gradient descent."""

    body: Theta
    """All layers except the last."""
    head: Linear
    """Mean W₀ of the last layer."""
    factors: Linear
    """Factors W_1, …, W_M of its covariance, stacked along the first axis."""
    rho: Any
    """ρ of the diagonal part, shaped like the last layer; () without a diagonal part."""


class LowRankLaw(NamedTuple):
    """As `LowRankLearned`, with variances in place of ρ."""

    body: Theta
    head: Linear
    factors: Linear
    variance: Any


class Draw(NamedTuple):
    """A sample of θ."""

    index: Float[Array, " rank"]
    """The index z."""
    diagonal: Any
    """Noise that the diagonal part adds to the last layer; () without a diagonal part."""


class IndexRows(Rows[LowRankLaw]):
    """Samples that consist of an index z and, with a diagonal part, noise for the outputs."""

    index: Float[Array, "draws n rank"]
    diagonal: Float[Array, "draws n outputs"] | None
    prior: float | Array | None
    """`LowRank.prior`, the scale β."""

    def __call__(self, law: LowRankLaw, x: Input) -> Float[Array, "draws n outputs"]:
        h, y = indexed(law, x, self.index, self.prior)
        if self.diagonal is None:
            return y
        return y + jnp.sqrt(networks.affine(law.variance, h**2)) * self.diagonal


def indexed(
    law: LowRankLaw, x: Input, z: Float[Array, "*draws_n rank"], prior: float | Array | None
) -> tuple[Float[Array, "n hidden"], Float[Array, "*draws n outputs"]]:
    """Return the last hidden layer, and the outputs for an index z without diagonal noise.

    z is either a single index for all rows, or an index for each sample and row.
    """
    h = jnp.asarray(networks.trunk(law.body, x.features))
    parts = jnp.einsum("nh,mho->nmo", h, law.factors.weight) + law.factors.bias
    if prior is not None:
        parts += prior * x.priors
    varied = jnp.sum(z[..., None] * parts, axis=-2)
    return h, networks.affine(law.head, h) + varied


class LowRank(Foldable[LowRankLaw, Draw], Density[LowRankLaw, Draw]):
    """A low-rank Gaussian: the last layer is W₀ + Σ_m z_m·W_m with an index z ~ N(0, I/M).

    The index is shared by all outputs. With `rho`, each weight also has independent noise of
    standard deviation softplus(ρ). With `prior`, the index also multiplies prior functions g_m,
    which are fixed random networks: f_θ(x) = W₀ᵀh(x) + Σ_m z_m·(W_mᵀh(x) + β·g_m(x)). W_m learns to
    cancel g_m where there are data; elsewhere, g_m remains as uncertainty.
    """

    rank: int = eqx.field(default=4, static=True)
    """M, the rank of the covariance and the length of the index z."""
    prior: float | Array | None = None
    """Scale β of the prior functions g_m; None: no prior functions."""
    rho: float | Array | None = None
    """Initial ρ of the diagonal part; None: no diagonal part."""
    draws: int = eqx.field(default=1, static=True)
    """Number of samples of θ for each transition of an update. More samples reduce the variance of
    the gradient at a low cost, since they share the hidden layers and the prior functions."""
    prior_std: float | Array | None = eqx.field(default=None, kw_only=True)
    """As `MeanField.prior_std`, for the weights of the last layer; None: no such prior."""
    paired: bool = eqx.field(default=True, static=True, kw_only=True)
    """Whether the target of a transition uses the same z for θ⁻ as for θ. With `rho`, it also uses
    the same noise of the outputs, which is not that of the same weights in another state."""

    def __check_init__(self) -> None:
        check_integer("rank", self.rank, at_least=1, at_most=10_000)
        check_integer("draws", self.draws, at_least=1, at_most=10_000)
        if self.prior is not None:
            check_number("prior", self.prior, at_least=0.0)
        if self.rho is not None:
            check_rho(self.rho)
        if self.prior_std is not None:
            check_prior_std(self.prior_std)

    def init(self, network: Network, key: Key) -> Phi:
        if self.rho is None and self.rank > (most := network.head.inputs * network.outputs):
            allowed = f"at most {most}, the number of weights of the last layer"
            hint = ". Set rho to add a diagonal part, which allows any rank"
            raise ConfigError.must_be("rank", self.rank, allowed, hint)
        k_network, k_factors, k_priors = (noise.fold(key, i) for i in range(3))
        theta: Any = network.init(k_network)
        *body, head = theta
        factors: Any = network.head.init_many(k_factors, self.rank)[0]
        rho = () if self.rho is None else jax.tree.map(lambda x: jnp.full_like(x, self.rho), head)
        learned = LowRankLearned(tuple(body), head, factors, rho)
        if self.prior is None:
            return Phi(learned)
        return Phi(learned, priors=network.init_many(k_priors, self.rank))

    def law(self, phi: Phi) -> LowRankLaw:
        body, head, factors, rho = phi.learned
        variance = jax.tree.map(lambda rho: softplus(rho) ** 2, rho)
        return LowRankLaw(body, head, factors, variance)

    def sample(self, law: LowRankLaw, key: Key) -> Draw:
        k_index, *k_diagonal = (noise.fold(key, i) for i in range(3))
        diagonal: Any = ()
        if self.rho is not None:
            pairs = zip(k_diagonal, law.variance, strict=True)
            diagonal = Linear(*(jnp.sqrt(v) * noise.normal(k, v.shape) for k, v in pairs))
        return Draw(self._index(k_index), diagonal)

    def apply(self, law: LowRankLaw, draw: Draw, x: Input) -> Float[Array, " outputs"]:
        x = jax.tree.map(lambda leaf: leaf[None], x)
        h, y = indexed(law, x, draw.index, self.prior)
        return (y if self.rho is None else y + networks.affine(draw.diagonal, h))[0]

    def mean(self, law: LowRankLaw, x: Input) -> Float[Array, " outputs"]:
        return networks.forward((*law.body, law.head), x.features)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        return single((*phi.learned.body, phi.learned.head))

    def sample_rows(
        self, law: LowRankLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[LowRankLaw]:
        if ids is None:
            return OneTheta(self, key)
        k_index, k_diagonal = (noise.fold(key, i) for i in range(2))
        shape, diagonal = (self.draws, ids.shape[0]), None
        if self.rho is not None:
            diagonal = noise.normal(k_diagonal, (*shape, law.head.bias.shape[0]))
        rows = IndexRows(self._index(k_index, *shape), diagonal, self.prior)
        return Paired(rows) if self.paired else rows

    def entropy(self, law: LowRankLaw) -> Float[Array, ""]:
        """Return ½·log det(D + F·Fᵀ), where F contains the factors divided by √M.

        It equals ½·(Σ log d + log det(I + Fᵀ·D⁻¹·F)), a determinant of M rows. Without a diagonal
        part, q_φ has a density only on the subspace spanned by the factors, with entropy
        ½·log det(Fᵀ·F).

        With `prior_std`, this is −KL to a prior N(W₀, s²·I), which subtracts the sum of the
        variances divided by 2s². Without a diagonal part, the prior is restricted to the subspace
        and scaled to keep its total variance: s² per weight, divided among M directions.
        """
        total = self._log_volume(law)
        if self.prior_std is None:
            return total
        variance = jax.tree.map(lambda f: jnp.sum(f**2, axis=0) / self.rank, law.factors)
        if self.rho is not None:
            variance = jax.tree.map(jnp.add, variance, law.variance)
            return total - prior_penalty(variance, self.prior_std)
        weights = sum(part.size for part in law.head)
        return total - prior_penalty(variance, self.prior_std) * self.rank / weights

    def log_density(
        self, law: LowRankLaw, draw: Draw
    ) -> tuple[Float[Array, ""], Float[Array, " outputs"]]:
        """Return the density of the diagonal part; that of the index does not depend on φ."""
        if self.rho is None:
            return jnp.zeros(()), jnp.zeros(law.head.bias.shape)
        std = jax.tree.map(jnp.sqrt, law.variance)
        logs = jax.tree.map(lambda x, s: log_normal(x, 0.0, s), draw.diagonal, std)
        return jnp.zeros(()), jnp.sum(logs.weight, axis=0) + logs.bias

    def validate(self, spec: Spec) -> None:
        check_layers(self, spec, "of which the last one is linear")

    def _log_volume(self, law: LowRankLaw) -> Float[Array, ""]:
        """Return ½·log det from the diagonal of a triangle U with UᵀU = FᵀF or I + FᵀD⁻¹F.

        U comes from a QR decomposition. Forming the products would square the condition number,
        which is too inaccurate in float32.
        """
        f = jnp.concatenate([w.reshape(self.rank, -1) for w in law.factors], axis=1).T
        f /= self.rank**0.5
        total = jnp.zeros(())
        if self.rho is not None:
            std = jnp.sqrt(jnp.concatenate([v.ravel() for v in law.variance]))
            total += jnp.sum(jnp.log(std))
            f = jnp.concatenate([jnp.eye(self.rank), f / std[:, None]])
        triangle = jnp.linalg.qr(f, mode="r")
        return total + jnp.sum(jnp.log(jnp.abs(jnp.diagonal(triangle))))

    def _index(self, key: Key, *shape: int) -> Float[Array, "*shape rank"]:
        """Sample indices z ~ N(0, I/M)."""
        return noise.normal(key, (*shape, self.rank)) / self.rank**0.5
