"""The family of return distributions Z_θ(s, a)."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from rove.errors import ConfigError, check_number
from rove.parts.noise import Key


class Return(eqx.Module):
    """A family Z_θ(s, a), described by the numbers z that the network puts out for one action.

    All methods are for one action and one transition; the algorithm maps them over a batch.
    """

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """How many numbers describe one action's distribution."""

    @property
    @abc.abstractmethod
    def scale(self) -> float | Array:
        """c: the objective is mean(loss) − (c/N)·H(q_φ), over a minibatch of N.

        Where the loss is −c·log Z_θ, as the Gaussian's is with c = σ², that is (4) times c/N.
        Where it is −log Z_θ, or a discrepancy in its place, c is the family's `weight` and
        multiplies the entropy only: q_φ is fitted to a tempered posterior, Π Z_θ(x_j)^(1/c).
        c = 1 takes the minibatch for the whole data set, a smaller c for a sample of a larger
        one, of N/c transitions; c = 0 leaves no entropy.
        """

    @property
    @abc.abstractmethod
    def discrete(self) -> bool:
        """Whether Z_θ has atoms rather than a density."""

    @property
    def exact(self) -> bool:
        """Whether `loss` is ½(z − x)² of one output, so that a Gaussian q_φ over a linear layer
        has a closed form."""
        return False

    @abc.abstractmethod
    def mean(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        """E[Z_θ(s, a)], exact."""

    @abc.abstractmethod
    def std(self, z: Float[Array, " outputs"]) -> Float[Array, ""]:
        """The standard deviation of Z_θ(s, a), exact."""

    @abc.abstractmethod
    def picture(
        self, z: Float[Array, " outputs"]
    ) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
        """Z_θ(s, a) to draw: where, ascending, and how high. Atoms and their probabilities if
        `discrete`; else a density on a `GRID`."""

    @abc.abstractmethod
    def target(
        self,
        z: Float[Array, " outputs"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Array:
        """x ~ r + γ·Z_θ⁻(s′, a′), a draw or the law itself; `discount` is 0 where s′ ends it.
        A draw comes from one call on the key, which is a row's own (see `noise.folds`)."""

    @abc.abstractmethod
    def loss(self, z: Float[Array, " outputs"], target: Array) -> Float[Array, ""]:
        """−log Z_θ(x), up to a constant, or times one (see `scale`); of a law in place of a draw
        x, the family's discrepancy from it."""


LEAST_SCALE = 1e-16
"""The least `scale` above 0, σ² at the low end of the paper's range. Gradients are divided by its
root, and their squares must be within float32."""


def check_weight(field: str, value: float | Array, least: float = LEAST_SCALE) -> None:
    """Refuse a weight of the entropy that is neither 0 nor one that float32 can act on."""
    check_number(field, value, at_least=0.0, at_most=1e6)
    if 0.0 < float(value) < least:
        raise ConfigError(field, value, f"0, or at least {least:g}")


GRID = np.linspace(-4.0, 4.0, 101, dtype=np.float32)
"""Where a density is drawn, in standard deviations from the mean."""


def visible(mean: Float[Array, ""], std: Float[Array, ""]) -> Float[Array, ""]:
    """The unit of `GRID`: the standard deviation, but at least 1e-5·max(1, |mean|), so that
    float32 tells the points apart. A point mass is drawn as a spike that wide."""
    return jnp.maximum(std, 1e-5 * jnp.maximum(1.0, jnp.abs(mean)))


def by_action(returns: Return, z: Float[Array, "*n numbers"]) -> Float[Array, "*n actions outputs"]:
    """A network's output as one row for each action."""
    return z.reshape(*z.shape[:-1], -1, returns.outputs)


def means(returns: Return, z: Float[Array, "*n outputs"]) -> Float[Array, "*n"]:
    """E[Z] of every row of outputs."""
    return jnp.vectorize(returns.mean, signature="(k)->()")(z)


def stds(returns: Return, z: Float[Array, "*n outputs"]) -> Float[Array, "*n"]:
    """The standard deviation of Z, of every row of outputs."""
    return jnp.vectorize(returns.std, signature="(k)->()")(z)
