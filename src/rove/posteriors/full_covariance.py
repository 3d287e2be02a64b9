"""q_φ(θ): a Gaussian with full covariance for the last layer, learned by the objective."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.parts import noise
from rove.parts.networks import Linear, Network, Theta
from rove.parts.noise import Key
from rove.posteriors.base import (
    Density,
    Paired,
    Phi,
    Rows,
    Spec,
    Stack,
    check_layers,
    single,
)
from rove.posteriors.last_layer import GaussianHead, Head, LastLayerLaw, LastLayerRows
from rove.posteriors.mean_field import check_prior_std, check_rho, softplus


class FullCovarianceLearned(NamedTuple):
    """The parameters that are trained by gradient descent."""

    body: Theta
    """All layers except the last."""
    head: Linear
    """Mean of the last layer."""
    rho: Float[Array, "outputs weights"]
    """ρ of the diagonal of the Cholesky factor L, which is softplus(ρ)."""
    lower: Float[Array, "outputs weights weights"]
    """L below its diagonal; other entries have no effect."""


class FullCovariance(GaussianHead, Density[LastLayerLaw, Array]):
    """A point estimate of the hidden layers, and a Gaussian for the last layer: the weights of an
    output, and its bias, are N(m, L·Lᵀ) with a Cholesky factor L that is learned.

    Outputs are independent of each other. For a Gaussian return, the posterior of the last layer is
    of this form, so that the minimiser of the objective is exact for given hidden layers, whereas
    `MeanField` loses the correlations. `LastLayer` solves for it in closed form from the whole
    replay buffer; here it is learned from minibatches, and works with every return family.
    """

    rho: float | Array = -4.0
    """Initial value of every ρ; L is diagonal at first."""
    prior_std: float | Array | None = eqx.field(default=None, kw_only=True)
    """As `MeanField.prior_std`, for the weights of the last layer; None: no such prior."""
    paired: bool = eqx.field(default=False, static=True, kw_only=True)
    """Whether the target of a transition uses the same noise for θ⁻ as for θ."""

    def __check_init__(self) -> None:
        check_rho(self.rho)
        if self.prior_std is not None:
            check_prior_std(self.prior_std)

    def init(self, network: Network, key: Key) -> Phi:
        theta: Any = network.init(key)
        *body, head = theta
        shape = network.outputs, network.head.inputs + 1
        rho, lower = jnp.full(shape, self.rho), jnp.zeros((*shape, shape[1]))
        return Phi(FullCovarianceLearned(tuple(body), head, rho, lower))

    def law(self, phi: Phi) -> LastLayerLaw:
        body, head, rho, lower = phi.learned
        diagonal = softplus(rho)[:, :, None] * jnp.eye(rho.shape[1])
        mean = jnp.concatenate([head.weight.T, head.bias[:, None]], axis=1)
        return LastLayerLaw(body, Head(mean, jnp.tril(lower, -1) + diagonal))

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        return single((*phi.learned.body, phi.learned.head))

    def sample_rows(
        self, law: LastLayerLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[LastLayerLaw]:
        if ids is None or self.paired:
            rows = super().sample_rows(law, ids, key)
            return Paired(rows) if self.paired else rows
        return LastLayerRows(noise.normal(key, (ids.shape[0], law.head.mean.shape[0])))

    def entropy(self, law: LastLayerLaw) -> Float[Array, ""]:
        """Return Σ log L_ii, which is ½·log det(L·Lᵀ).

        With `prior_std`, this is −KL to a prior N(m, s²·I) up to a constant, which subtracts the
        sum of the variances divided by 2s², with s = prior_std/√inputs.
        """
        root = law.head.root
        total = jnp.sum(jnp.log(jnp.diagonal(root, axis1=1, axis2=2)))
        if self.prior_std is None:
            return total
        inputs = root.shape[1] - 1
        return total - jnp.sum(root**2) * inputs / (2.0 * self.prior_std**2)

    def log_density(
        self, law: LastLayerLaw, draw: Float[Array, "outputs weights"]
    ) -> tuple[Float[Array, ""], Float[Array, " outputs"]]:
        difference = (draw - law.head.mean)[:, :, None]
        whitened = jax.scipy.linalg.solve_triangular(law.head.root, difference, lower=True)
        logs = jnp.log(jnp.diagonal(law.head.root, axis1=1, axis2=2))
        return jnp.zeros(()), -0.5 * jnp.sum(whitened**2, axis=(1, 2)) - jnp.sum(logs, axis=1)

    def validate(self, spec: Spec) -> None:
        check_layers(self, spec, "of which the last one is linear")
