"""The interface of return distributions Z_θ(s, a)."""

import abc
import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from rove.errors import ConfigError, check_number
from rove.parts.noise import Key
from rove.returns.risk import Risk


class Return(eqx.Module):
    """A family of return distributions Z_θ(s, a), whose parameters z are outputs of the network.

    All methods take a single action or transition; the algorithm maps them over a batch.
    """

    risk: Risk | None = eqx.field(default=None, kw_only=True)
    """Risk measure that control maximises, such as `CVaR(0.1)`; None: the mean."""

    def __check_init__(self) -> None:
        if self.risk is not None and not isinstance(self.risk, Risk):
            raise ConfigError.must_be("risk", self.risk, "a risk measure such as rove.CVaR(0.1)")

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """Number of network outputs per action: the length of z."""

    @property
    @abc.abstractmethod
    def scale(self) -> float | Array:
        """Weight c of the entropy in the objective, which is mean(loss) − (c/N)·H(q_φ).

        N is the size of the minibatch. If the loss is −c·log Z_θ, as for a Gaussian with c = σ²,
        the objective is (4) of the paper times c/N. If the loss is −log Z_θ or another discrepancy,
        c is the family's setting `weight` and multiplies the entropy only: q_φ approximates a
        tempered posterior, Π Z_θ(x_j)^(1/c). c = 1 treats the minibatch as the whole data set, a
        smaller c as a sample of a data set of N/c transitions, and c = 0 removes the entropy.
        """

    @property
    def unit(self) -> float | Array:
        """The factor c for which `loss` is −c·log Z_θ(x), up to a constant: σ² for a Gaussian, and
        1 for other families."""
        return 1.0

    @property
    def discrete(self) -> bool:
        """Whether Z_θ has atoms rather than a density."""
        return False

    @property
    def exact(self) -> bool:
        """Whether `loss` is ½(z − x)² for a single output z.

        If so, the posterior of a linear layer is Gaussian and has a closed form.
        """
        return False

    @property
    def binary(self) -> bool:
        """Whether Z_θ is 0 or 1, and the single output z the logit of its mean.

        If so, the posterior of a table is a Beta distribution.
        """
        return False

    @abc.abstractmethod
    def mean(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        """Return E[Z_θ(s, a)], exactly."""

    def value(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        """Return the value that control maximises: the mean of Z_θ(s, a), or its risk measure."""
        if self.risk is None:
            return self.mean(z)
        return self.risk.value(partial(self.quantile, z), partial(self.shortfall, z))

    def quantile(self, z: Float[Array, " outputs"], level: float | Array) -> Float[Array, ""]:
        """Return the smallest x with P(Z_θ(s, a) ≤ x) ≥ `level`.

        By default, this is computed from `density`: exactly if Z_θ is `discrete`, and otherwise by
        interpolation.
        """
        points, masses = self._masses(z)
        below = jnp.cumsum(masses)
        if not self.discrete:
            return jnp.interp(jnp.asarray(level), below - 0.5 * masses, points)
        index = jnp.sum(below < level - 1e-6)  # with a tolerance for the rounding of the sum
        return points[jnp.minimum(index, len(points) - 1)]

    def shortfall(
        self, z: Float[Array, " outputs"], threshold: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Return E[(threshold − Z_θ(s, a))⁺], by default from `density`."""
        points, masses = self._masses(z)
        return jnp.sum(masses * jnp.maximum(threshold - points, 0.0))

    def _masses(
        self, z: Float[Array, " outputs"]
    ) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
        """Return the points of `density`, and the probability of each or of its surroundings."""
        points, heights = self.density(z)
        return points, heights / jnp.sum(heights)

    @abc.abstractmethod
    def std(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        """Return the standard deviation of Z_θ(s, a), exactly."""

    def density(
        self, z: Float[Array, " outputs"]
    ) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
        """Return Z_θ(s, a) for plotting: positions in ascending order, and heights.

        These are atoms and their probabilities if `discrete`, and otherwise a density on `GRID`. By
        default, this is the normal density with the mean and standard deviation of Z_θ(s, a).
        """
        return normal_density(self.mean(z), self.std(z))

    @abc.abstractmethod
    def target(
        self,
        z: Float[Array, " outputs"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Array:
        """Return the target x: a sample of r + γ·Z_θ⁻(s′, a′), or that distribution itself.

        `discount` is γ, or γᵏ after k steps (see `CriticLearner.n_step`), or 0 if s′ is terminal.
        The key belongs to this transition (see `noise.folds`), and at most one call of `noise` may
        use it.
        """

    @abc.abstractmethod
    def loss(self, z: Float[Array, " outputs"], target: Array) -> Float[Array, ""]:
        """Return −log Z_θ(x) up to a constant term, or up to a constant factor (see `scale`).

        If the target is a distribution, return the family's discrepancy from it.
        """

    def error(self, z: Float[Array, " outputs"], target: Array) -> Float[Array, ""]:
        """Return how far Z_θ(s, a) is from the target, for prioritised replay; at least 0.

        By default, this is the absolute value of the loss. Families whose loss is not 0 for a
        perfect prediction override it.
        """
        return jnp.abs(self.loss(z, target))


LEAST_SCALE = 1e-16
"""Minimum `scale` above 0: σ² at the lower end of the paper's range. Gradients are divided by its
square root, and their squares must be representable in float32."""


def check_weight(field: str, value: float | Array, least: float = LEAST_SCALE) -> None:
    """Raise `ConfigError` unless a weight of the entropy is 0, or large enough for float32."""
    check_number(field, value, at_least=0.0, at_most=1e6)
    if 0.0 < float(value) < least:
        raise ConfigError.must_be(field, value, f"0, or at least {least:g}")


GRID = np.linspace(-4.0, 4.0, 101, dtype=np.float32)
"""Positions at which densities are plotted, in standard deviations from the mean."""


def visible(mean: Float[Array, ""], std: Float[Array, ""]) -> Float[Array, ""]:
    """Return the unit of `GRID`: the standard deviation, but at least 1e-5·max(1, |mean|).

    The minimum keeps the points distinct in float32. A point mass is plotted as a spike that wide.
    """
    return jnp.maximum(std, 1e-5 * jnp.maximum(1.0, jnp.abs(mean)))


def by_action(returns: Return, z: Float[Array, "*n numbers"]) -> Float[Array, "*n actions outputs"]:
    """Reshape a network's output to one row per action."""
    return z.reshape(*z.shape[:-1], -1, returns.outputs)


def of_action(
    z: Float[Array, "draws n actions outputs"], action: Int[Array, "*draws n"]
) -> Float[Array, "draws n outputs"]:
    """Return each row's outputs for the given action."""
    if z.shape[2] == 1:
        return jnp.squeeze(z, axis=2)
    action = action.reshape(-1, z.shape[1], 1, 1)
    return jnp.take_along_axis(z, action, axis=2)[:, :, 0]


def means(returns: Return, z: Float[Array, "*n outputs"]) -> Float[Array, "*n"]:
    """Return E[Z] of every row of outputs."""
    return jnp.vectorize(returns.mean, signature="(k)->()")(z)


def values(returns: Return, z: Float[Array, "*n outputs"]) -> Float[Array, "*n"]:
    """Return `Return.value` of every row of outputs."""
    return jnp.vectorize(returns.value, signature="(k)->()")(z)


def stds(returns: Return, z: Float[Array, "*n outputs"]) -> Float[Array, "*n"]:
    """Return the standard deviation of Z of every row of outputs."""
    return jnp.vectorize(returns.std, signature="(k)->()")(z)


def log_density(error: Float[Array, "*n"], std: Float[Array, "*#n"]) -> Float[Array, "*n"]:
    """Return log N(x; mean, std²), given the error x − mean."""
    return -0.5 * (error / std) ** 2 - jnp.log(std) - 0.5 * math.log(2.0 * math.pi)


def normal_density(
    mean: Float[Array, ""], std: Float[Array, ""]
) -> tuple[Float[Array, " 101"], Float[Array, " 101"]]:
    """Return the density of N(mean, std²) on a grid, or a narrow spike if std is 0."""
    width = visible(mean, std)
    return mean + width * GRID, jnp.exp(log_density(width * GRID, width))


def normal_shortfall(error: Float[Array, "*n"], std: Float[Array, "*#n"]) -> Float[Array, "*n"]:
    """Return E[(q − X)⁺] of X ~ N(mean, std²), given the error q − mean; std may be 0."""
    t = error / jnp.maximum(std, 1e-30)
    return error * jax.scipy.special.ndtr(t) + std * jnp.exp(-0.5 * t**2) / math.sqrt(2.0 * math.pi)


LEAST_SLOPE = 1e-2
"""Minimum derivative of a scale with respect to its output, as used in natural gradients, which
would otherwise be unbounded."""


def preconditioned(
    z: Float[Array, " outputs"], matrix: Float[Array, "outputs outputs"]
) -> Float[Array, " outputs"]:
    """Return z unchanged, with its gradient multiplied by a symmetric matrix."""
    fixed = lax.stop_gradient(z)
    return fixed + lax.stop_gradient(matrix) @ (z - fixed)


def natural(
    z: Float[Array, " outputs"], inverse: Float[Array, "outputs outputs"]
) -> Float[Array, " outputs"]:
    """Return z unchanged, with its gradient replaced by the natural gradient.

    `inverse` is the inverse of the Fisher information of the location z₀ and of the scales, which
    are softplus(zᵢ) plus a constant.
    """
    slopes = jnp.maximum(jax.nn.sigmoid(z), LEAST_SLOPE).at[0].set(1.0)
    return preconditioned(z, inverse / jnp.outer(slopes, slopes))
