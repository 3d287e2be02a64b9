"""q_φ(θ): a table of independent Beta distributions, for Bernoulli returns (Thompson 1933)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int, UInt32

from rove.errors import ConfigError, check_integer, check_number
from rove.parts import noise
from rove.parts.networks import Linear, Network
from rove.parts.noise import Key
from rove.posteriors.base import Data, Foldable, OneTheta, Phi, Rows, Spec, Stack, single
from rove.posteriors.conjugate import check_table, tallies
from rove.posteriors.priors import Input
from rove.posteriors.refitting import refitted


class Pseudocounts(NamedTuple):
    """The parameters of the Beta distributions of all features and actions."""

    ones: Float[Array, "features actions"]
    """α: the number of ones, with those of the prior."""
    zeros: Float[Array, "features actions"]
    """β: the number of zeros, with those of the prior."""


class BetaRows(Rows[Pseudocounts]):
    """Samples that consist of a key for each row."""

    keys: UInt32[Array, "n 2"]

    def __call__(self, law: Pseudocounts, x: Input) -> Float[Array, "1 n actions"]:
        at = Pseudocounts(x.features @ law.ones, x.features @ law.zeros)
        return jax.vmap(sampled_logits)(at, self.keys)[None]


class Beta(Foldable[Pseudocounts, Array]):
    """The exact posterior of the probability of a 1, for each state and action.

    Outputs are logits log p/(1 − p) of p ~ Beta(α, β), as `Bernoulli` returns take them; the mean
    is the logit of E[p] = α/(α + β). Every `period` steps, α and β are computed from the whole
    replay buffer. No parameters are trained by gradient descent. Observations must be one-hot.
    """

    ones: float | Array = 1.0
    """Prior α, as a number of ones. With α = β = 1, the prior is uniform."""
    zeros: float | Array = 1.0
    """Prior β, as a number of zeros."""
    period: int | Array = 1
    """Number of steps between refits."""

    def __check_init__(self) -> None:
        check_number("ones", self.ones, at_least=1e-6)
        check_number("zeros", self.zeros, at_least=1e-6)
        check_integer("period", self.period, at_least=1)

    def init(self, network: Network, key: Key) -> Phi:
        shape = (network.inputs, network.outputs)
        prior = (jnp.full(shape, jnp.float32(count)) for count in (self.ones, self.zeros))
        return Phi((), Pseudocounts(*prior))

    def law(self, phi: Phi) -> Pseudocounts:
        return phi.fitted

    def sample(self, law: Pseudocounts, key: Key) -> Float[Array, "features actions"]:
        """Sample the logits of all probabilities."""
        return sampled_logits(law, key)

    def apply(
        self, law: Pseudocounts, draw: Float[Array, "features actions"], x: Input
    ) -> Float[Array, " actions"]:
        return x.features @ draw

    def mean(self, law: Pseudocounts, x: Input) -> Float[Array, " actions"]:
        return x.features @ jnp.log(law.ones / law.zeros)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        table = jnp.log(phi.fitted.ones / phi.fitted.zeros)
        return single((Linear(table, jnp.zeros(table.shape[1])),))

    def sample_rows(
        self, law: Pseudocounts, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[Pseudocounts]:
        return OneTheta(self, key) if ids is None else BetaRows(noise.folds(key, ids.shape[0]))

    def refit(self, phi: Phi, data: Data) -> Phi:
        """Count ones and zeros in the whole replay buffer, every `period` steps.

        A target x between 0 and 1, which is a probability, counts as x ones and 1 − x zeros.
        """
        return refitted(phi, data, self.period, self._counted)

    def validate(self, spec: Spec) -> None:
        if not spec.binary:
            reason = "Beta requires a Bernoulli return: Bernoulli × Beta works"
            raise ConfigError("posterior", "Beta", reason, reason)
        check_table(self, spec)

    def _counted(self, phi: Phi, data: Data) -> Pseudocounts:
        """Return the prior's numbers of ones and zeros plus those in the whole replay buffer."""
        count, total = tallies(phi, data, phi.fitted.ones)
        return Pseudocounts(self.ones + total, self.zeros + count - total)


def sampled_logits(law: Pseudocounts, key: Key) -> Float[Array, "..."]:
    """Draw log p/(1 − p) of p ~ Beta(α, β): the difference of the logarithms of two gammas."""
    shapes = jnp.stack(law)
    ones, zeros = noise.log_gamma(key, shapes)
    return ones - zeros
