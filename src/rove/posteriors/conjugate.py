"""q_φ(θ): a table of independent Gaussians with exact updates (bandits, small problems)."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int

from rove import noise, replay
from rove.errors import ConfigError, check_integer, check_number
from rove.noise import Key
from rove.posteriors.base import Phi, Posterior, Target
from rove.posteriors.last_layer import check_conjugate
from rove.replay import Replay


class Table(NamedTuple):
    mean: Float[Array, "features actions"]
    variance: Float[Array, "features actions"]


class Conjugate(Posterior):
    """f_θ(x) = x·θ with one number for each feature and action, for observations that hold a
    single 1: then the posterior of each number is the normal-normal closed form. Every `period`
    steps it is computed from all that the replay buffer holds. Nothing is left to the gradient."""

    prior: float | Array = 1.0
    """Standard deviation of every number before there are data; its mean is 0."""
    period: int | Array = 1
    """Steps between refits."""

    def __check_init__(self) -> None:
        check_number("prior", self.prior, above=0.0)
        check_integer("period", self.period, at_least=1)

    def needs(self, observation: np.ndarray) -> str | None:
        fits = np.sum(observation != 0) == 1 and observation.max() == 1
        return None if fits else "observations that hold a single 1, such as those of bandit-10"

    def check(self, exact: bool, scale: float | Array, hidden: tuple[int, ...]) -> None:
        check_conjugate(self, exact, scale)
        if hidden:
            raise ConfigError("hidden", hidden, "(), for Conjugate is a table")

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        shape = (sizes[0], sizes[-1])
        return Phi((), Table(jnp.zeros(shape), jnp.full(shape, self.prior**2)))

    def law(self, phi: Phi) -> Table:
        return phi.held

    def sample(self, law: Table, key: Key) -> Float[Array, "features actions"]:
        return law.mean + jnp.sqrt(law.variance) * noise.normal(key, law.mean.shape)

    def apply(
        self, law: Table, draw: Float[Array, "features actions"], x: Float[Array, " features"]
    ) -> Float[Array, " actions"]:
        return x @ draw

    def forward_all(
        self, law: Table, xs: Float[Array, "n features"], key: Key
    ) -> Float[Array, "1 n actions"]:
        spread = jnp.sqrt(xs**2 @ law.variance)
        return (xs @ law.mean + spread * noise.normal(key, spread.shape))[None]

    def mean(self, law: Table, x: Float[Array, " features"]) -> Float[Array, " actions"]:
        return x @ law.mean

    def refit(
        self,
        phi: Phi,
        scale: float | Array,
        counter: Int[Array, ""],
        replay: Replay,
        target: Target,
        key: Key,
    ) -> Table:
        return lax.cond(
            counter % self.period == 0,
            lambda: self._update(phi, scale, replay, target, key),
            lambda: phi.held,
        )

    def _update(
        self,
        phi: Phi,
        scale: float | Array,
        memory: Replay,
        target: Target,
        key: Key,
    ) -> Table:
        """Precision 1/prior² + n/σ², mean Σx/σ² over the precision, n and Σ of each cell."""
        transitions, held = replay.everything(memory)
        actions = jnp.arange(phi.held.mean.shape[1])
        taken = (transitions.action[:, None] == actions) & held[:, None]
        x = jnp.where(held, target(transitions, key, 0), 0.0)
        count = transitions.observation.T @ taken
        total = transitions.observation.T @ (taken * x[:, None])
        precision = 1.0 / self.prior**2 + count / scale
        return Table(total / scale / precision, 1.0 / precision)
