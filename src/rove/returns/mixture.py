"""Z_θ(s, a) = Σ_k w_k·N(m_k, s_k²): a mixture of Gaussians."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from rove.errors import check_choice, check_integer, check_number
from rove.parts import noise
from rove.parts.noise import Key
from rove.returns.base import GRID, Return, check_weight, log_density, normal_shortfall, visible

BISECTIONS = 30
"""Number of halvings of the interval that contains a quantile; a float32 has 24 binary digits."""


class Mixture(Return):
    """A mixture of K Gaussians, whose parameters are outputs of the network.

    z consists of K logits, K means and K values ϱ. The weights are softmax(logits), and the
    standard deviations softplus(ϱ) + `floor`. The loss is −log density.
    """

    components: int = eqx.field(default=3, static=True)
    """Number K of components."""
    floor: float | Array = 1e-2
    """Minimum standard deviation of a component."""
    weight: float | Array = 1e-4
    """Weight c of the entropy of q_φ (see `Return.scale`)."""
    draw: Literal["sample", "mean"] = eqx.field(default="sample", static=True)
    """Targets: samples of r + γZ, or its mean."""

    def __check_init__(self) -> None:
        check_integer("components", self.components, at_least=1, at_most=2**16)
        check_number("floor", self.floor, at_least=1e-6)
        check_weight("weight", self.weight)
        check_choice("draw", self.draw, ("sample", "mean"))

    @property
    def outputs(self) -> int:
        return 3 * self.components

    @property
    def scale(self) -> float | Array:
        return self.weight

    def parts(
        self, z: Float[Array, " outputs"]
    ) -> tuple[Float[Array, " k"], Float[Array, " k"], Float[Array, " k"]]:
        """Return the log-weights, means and standard deviations of the components."""
        logits, means, raw = z.reshape(3, self.components)
        return jax.nn.log_softmax(logits), means, jax.nn.softplus(raw) + self.floor

    def mean(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        log_weights, means, _ = self.parts(z)
        return jnp.sum(jnp.exp(log_weights) * means)

    def std(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        log_weights, means, stds = self.parts(z)
        squares = stds**2 + (means - self.mean(z)) ** 2
        return jnp.sqrt(jnp.sum(jnp.exp(log_weights) * squares))

    def quantile(self, z: Float[Array, " outputs"], level: float | Array) -> Float[Array, ""]:
        """Return the quantile, by bisection between the lowest and the highest quantile of a
        component and a final step of Newton's method, through which it is differentiated."""
        log_weights, means, stds = self.parts(z)
        quantiles = means + stds * jax.scipy.special.ndtri(level)

        def below(x: Array) -> Array:
            return jnp.sum(jnp.exp(log_weights) * jax.scipy.special.ndtr((x - means) / stds))

        def halved(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            middle = 0.5 * (ends[0] + ends[1])
            low = below(middle) < level
            return jnp.where(low, middle, ends[0]), jnp.where(low, ends[1], middle)

        ends = jnp.min(quantiles), jnp.max(quantiles)
        x = lax.stop_gradient(lax.fori_loop(0, BISECTIONS, halved, ends)[1])
        slope = lax.stop_gradient(jnp.exp(-self.loss(z, x)))
        return jnp.clip(x - (below(x) - level) / jnp.maximum(slope, 1e-30), *ends)

    def shortfall(
        self, z: Float[Array, " outputs"], threshold: Float[Array, ""]
    ) -> Float[Array, ""]:
        log_weights, means, stds = self.parts(z)
        return jnp.sum(jnp.exp(log_weights) * normal_shortfall(threshold - means, stds))

    def density(
        self, z: Float[Array, " outputs"]
    ) -> tuple[Float[Array, " 101"], Float[Array, " 101"]]:
        mean = self.mean(z)
        points = mean + visible(mean, self.std(z)) * GRID
        return points, jnp.exp(jax.vmap(lambda x: -self.loss(z, x))(points))

    def target(
        self,
        z: Float[Array, " outputs"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, ""]:
        if self.draw == "mean":
            return reward + discount * self.mean(z)
        log_weights, means, stds = self.parts(z)
        u, xi = noise.normal(key, (2,))
        # Inverse transform sampling: Φ(u) is uniform, and k is the first component at which the
        # cumulative sum of the weights reaches it.
        k = jnp.sum(jax.scipy.special.ndtr(u) > jnp.cumsum(jnp.exp(log_weights))[:-1])
        return reward + discount * (means[k] + stds[k] * xi)

    def loss(self, z: Float[Array, " outputs"], target: Float[Array, ""]) -> Float[Array, ""]:
        log_weights, means, stds = self.parts(z)
        return -jax.scipy.special.logsumexp(log_weights + log_density(target - means, stds))

    def error(self, z: Float[Array, " outputs"], target: Float[Array, ""]) -> Float[Array, ""]:
        """Return |E[Z_θ(s, a)] − x|, the absolute TD error."""
        return jnp.abs(self.mean(z) - target)
