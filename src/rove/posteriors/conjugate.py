"""q_φ(θ): a table of independent Gaussians with exact updates, for bandits and small problems."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.errors import ConfigError, check_integer, check_number
from rove.parts import noise, replay
from rove.parts.networks import Linear, Network
from rove.parts.noise import Key
from rove.posteriors.base import (
    Data,
    Foldable,
    OneTheta,
    Phi,
    Posterior,
    Rows,
    Spec,
    Stack,
    single,
)
from rove.posteriors.last_layer import check_conjugate
from rove.posteriors.priors import Input
from rove.posteriors.refitting import refitted


class Table(NamedTuple):
    """Means and variances of the values of all features and actions."""

    mean: Float[Array, "features actions"]
    variance: Float[Array, "features actions"]


class TableRows(Rows[Table]):
    """Samples that consist of standard normal noise for the value of every action."""

    epsilon: Float[Array, "n actions"]

    def __call__(self, law: Table, x: Input) -> Float[Array, "1 n actions"]:
        spread = jnp.sqrt(x.features**2 @ law.variance)
        return (x.features @ law.mean + spread * self.epsilon)[None]


class Conjugate(Foldable[Table, Array]):
    """A linear model f_θ(x) = x·θ of one-hot observations, with the exact Gaussian posterior.

    With one-hot observations, θ is a table with one value per state and action, and each value has
    a normal posterior in closed form. Every `period` steps, the posterior is computed from the
    whole replay buffer. No parameters are trained by gradient descent.
    """

    prior: float | Array = 1.0
    """Prior standard deviation of every value; the prior mean is 0."""
    period: int | Array = 1
    """Number of steps between refits."""

    def __check_init__(self) -> None:
        check_number("prior", self.prior, at_least=1e-6, at_most=1e6)
        check_integer("period", self.period, at_least=1)

    def init(self, network: Network, key: Key) -> Phi:
        shape = (network.inputs, network.outputs)
        return Phi((), Table(jnp.zeros(shape), jnp.full(shape, self.prior**2)))

    def law(self, phi: Phi) -> Table:
        return phi.fitted

    def sample(self, law: Table, key: Key) -> Float[Array, "features actions"]:
        return law.mean + jnp.sqrt(law.variance) * noise.normal(key, law.mean.shape)

    def apply(
        self, law: Table, draw: Float[Array, "features actions"], x: Input
    ) -> Float[Array, " actions"]:
        return x.features @ draw

    def mean(self, law: Table, x: Input) -> Float[Array, " actions"]:
        return x.features @ law.mean

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        table = phi.fitted.mean
        return single((Linear(table, jnp.zeros(table.shape[1])),))

    def sample_rows(self, law: Table, ids: Int[Array, " n"] | None, key: Key) -> Rows[Table]:
        if ids is None:
            return OneTheta(self, key)
        return TableRows(noise.normal(key, (ids.shape[0], law.mean.shape[1])))

    def refit(self, phi: Phi, data: Data) -> Phi:
        """Compute the exact posterior given the whole replay buffer, every `period` steps."""
        return refitted(phi, data, self.period, self._posterior)

    def validate(self, spec: Spec) -> None:
        check_conjugate(self, spec)
        check_table(self, spec)

    def _posterior(self, phi: Phi, data: Data) -> Table:
        """Return the posterior: precision 1/prior² + n/σ², and mean (Σx/σ²)/precision.

        n and Σx are the number and the sum of the targets of a table entry.
        """
        count, total = tallies(phi, data, phi.fitted.mean)
        precision = 1.0 / self.prior**2 + count / data.scale
        return Table(total / data.scale / precision, 1.0 / precision)


def tallies(
    phi: Phi, data: Data, like: Float[Array, "features actions"]
) -> tuple[Float[Array, "features actions"], Float[Array, "features actions"]]:
    """Return the number and the sum of the targets of each entry of a table, in the whole replay
    buffer; `like` is a table of the same shape."""
    transitions, stored = replay.everything(data.replay, data.gamma, data.reward)
    inputs, action = data.pairs(phi.priors, transitions)
    taken = (action[:, None] == jnp.arange(like.shape[1])) & stored[:, None]
    x = jnp.where(stored, data.target(transitions, data.key, 0), 0.0)
    add_up = jax.linear_transpose(lambda table: inputs.features @ table, like)
    (count,), (total,) = add_up(taken.astype(x.dtype)), add_up(taken * x[:, None])
    return count, total


def check_table(posterior: Posterior[Any, Any], spec: Spec) -> None:
    """Raise `ConfigError` unless the network is a table: no hidden layers, one-hot observations."""
    name, x = type(posterior).__name__, spec.observation
    if x is not None and not (np.sum(x != 0) == 1 and x.max() == 1):
        allowed = "one-hot observations, such as those of bandit-10, or of a chain "
        allowed += "with --env.features one-hot"
        message = f"{name} requires {allowed}; the observations of this environment are not one-hot"
        raise ConfigError("observation", x, allowed, message)
    for field, value, needed in (("hidden", spec.hidden, ()), ("network", spec.network, None)):
        if value != needed:
            message = f"{field} must be {needed} for {name}, which is a table, got {value!r}"
            raise ConfigError(field, value, f"{needed}", message)
