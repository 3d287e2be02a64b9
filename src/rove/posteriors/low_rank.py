"""q_φ(θ): a Gaussian of low rank, plus a diagonal, over the last layer; with prior functions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.errors import ConfigError, check_integer, check_number
from rove.parts import networks, noise
from rove.parts.networks import Linear, Theta
from rove.parts.noise import Key
from rove.posteriors.base import OneTheta, Phi, Posterior, Rows
from rove.posteriors.mean_field import check_prior_std, check_rho, prior_penalty, softplus
from rove.posteriors.priors import Input


class LowRankLearned(NamedTuple):
    body: Theta
    """All layers but the last."""
    head: Linear
    """The mean of the last layer."""
    factors: Linear
    """M directions in which it varies, stacked."""
    rho: Any
    """ρ of its diagonal part, shaped like it, or nothing."""


class LowRankLaw(NamedTuple):
    body: Theta
    head: Linear
    factors: Linear
    variance: Any


class Draw(NamedTuple):
    index: Float[Array, " rank"]
    """z."""
    diagonal: Any
    """What the diagonal part adds to the last layer, or nothing."""


class IndexRows(Rows[LowRankLaw]):
    """Indices, and noise for the diagonal part if there is one, for each row and draw."""

    index: Float[Array, "draws n rank"]
    diagonal: Float[Array, "draws n outputs"] | None
    prior: float | Array | None
    """β of the family."""
    paired: bool = eqx.field(default=False, static=True)

    def __call__(self, law: LowRankLaw, x: Input) -> Float[Array, "draws n outputs"]:
        h, y = indexed(law, x, self.index, self.prior)
        if self.diagonal is None:
            return y
        return y + jnp.sqrt(networks.affine(law.variance, h**2)) * self.diagonal


def indexed(
    law: LowRankLaw, x: Input, z: Float[Array, "*draws_n rank"], prior: float | Array | None
) -> tuple[Float[Array, "n hidden"], Float[Array, "*draws n outputs"]]:
    """The last hidden layer, and the outputs: for one index, or draws of one for each row."""
    h = x.features
    for layer in law.body:
        h = jax.nn.relu(networks.affine(layer, h))
    parts = jnp.einsum("nh,mho->nmo", h, law.factors.weight) + law.factors.bias
    if prior is not None:
        parts += prior * x.priors
    varied = jnp.sum(z[..., None] * parts, axis=-2)
    return h, networks.affine(law.head, h) + varied


class LowRank(Posterior[LowRankLaw, Draw]):
    """The last layer is W₀ + Σ_m z_m·W_m, with one index z ~ N(0, I/M) for all outputs, and, with
    `rho`, independent noise of softplus(ρ) on each weight. With `prior`, the index also drives
    fixed random networks: f_θ(x) = W₀ᵀh(x) + Σ_m z_m·(W_mᵀh(x) + β·g_m(x)). What W_m learns
    cancels g_m where there are data, and leaves it where there are none."""

    rank: int = eqx.field(default=4, static=True)
    """M, the length of the index z."""
    prior: float | Array | None = None
    """β, the scale of the prior functions g_m; None: without them."""
    rho: float | Array | None = None
    """ρ at the start, for the diagonal part; None: without it."""
    draws: int = eqx.field(default=1, static=True)
    """Number of θ drawn for each transition of an update. More of them give a gradient of less
    variance; all share the networks' work except the last sum."""
    prior_std: float | Array | None = eqx.field(default=None, kw_only=True)
    """As `MeanField.prior_std`, for the weights of the last layer; None: no such prior."""
    paired: bool = eqx.field(default=True, static=True, kw_only=True)
    """Whether θ⁻ uses the index z and the diagonal noise of θ (the default), or its own."""

    def __check_init__(self) -> None:
        check_integer("rank", self.rank, at_least=1, at_most=10_000)
        check_integer("draws", self.draws, at_least=1, at_most=10_000)
        if self.prior is not None:
            check_number("prior", self.prior, at_least=0.0)
        if self.rho is not None:
            check_rho(self.rho)
        if self.prior_std is not None:
            check_prior_std(self.prior_std)

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        if self.rho is None and self.rank > (most := sizes[-2] * sizes[-1]):
            what = f"at most {most}, the weights of the last layer, or a diagonal part (rho)"
            raise ConfigError("rank", self.rank, what)
        k_network, k_factors, k_priors = (noise.fold(key, i) for i in range(3))
        *body, head = networks.init(k_network, sizes)
        (factors,) = networks.init_many(k_factors, sizes[-2:], self.rank)
        rho = () if self.rho is None else jax.tree.map(lambda x: jnp.full_like(x, self.rho), head)
        learned = LowRankLearned(tuple(body), head, factors, rho)
        if self.prior is None:
            return Phi(learned)
        return Phi(learned, priors=networks.init_many(k_priors, sizes, self.rank))

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

    def sample_rows(
        self, law: LowRankLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[LowRankLaw]:
        if ids is None:
            return OneTheta(self, key)
        k_index, k_diagonal = (noise.fold(key, i) for i in range(2))
        shape, diagonal = (self.draws, ids.shape[0]), None
        if self.rho is not None:
            diagonal = noise.normal(k_diagonal, (*shape, law.head.bias.shape[0]))
        return IndexRows(self._index(k_index, *shape), diagonal, self.prior, self.paired)

    def entropy(self, law: LowRankLaw) -> Float[Array, ""]:
        """½·log det(D + F·Fᵀ) = ½·(Σ log d + log det(I + Fᵀ·D⁻¹·F)), with F the factors over √M:
        a determinant of M rows. Without a diagonal it is of the density on the plane that the
        factors span: ½·log det(Fᵀ·F).

        With `prior_std` it is −KL to a prior N(W₀, s²·I), which takes off the sum of the variances
        over 2s². Without a diagonal the prior is on the plane, and has there the variance that it
        has in all: s² for each weight, shared by M directions."""
        total = self._log_volume(law)
        if self.prior_std is None:
            return total
        variance = jax.tree.map(lambda f: jnp.sum(f**2, axis=0) / self.rank, law.factors)
        if self.rho is not None:
            variance = jax.tree.map(jnp.add, variance, law.variance)
            return total - prior_penalty(variance, self.prior_std)
        weights = sum(part.size for part in law.head)
        return total - prior_penalty(variance, self.prior_std) * self.rank / weights

    def _log_volume(self, law: LowRankLaw) -> Float[Array, ""]:
        """½·log det by the diagonal of a triangle U with UᵀU = FᵀF, or I + FᵀD⁻¹F: to form these
        products would square the condition number, which float32 does not bear."""
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
        return noise.normal(key, (*shape, self.rank)) / self.rank**0.5
