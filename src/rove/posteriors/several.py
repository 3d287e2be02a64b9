"""Several samples θ ~ q_φ for a minibatch, from any family."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, UInt32

from rove.parts import noise
from rove.parts.noise import Key
from rove.posteriors.base import Density, Law, Posterior, Rows, apply_all
from rove.posteriors.priors import Input


class Several(Rows[Law]):
    """Independent samples of a family's `Rows`, stacked along the first axis of its arrays."""

    rows: Rows[Law]

    def __call__(self, law: Law, x: Input) -> Float[Array, "draws n outputs"]:
        z = _map_samples(lambda rows: rows(law, x), self.rows)
        return z.reshape(-1, *z.shape[2:])

    @property
    def weights(self) -> Float[Array, "draws_ n_"]:
        weights = _map_samples(lambda rows: rows.weights, self.rows)
        same_for_all = weights.shape[1:] == (1, 1)
        return weights[0] if same_for_all else weights.reshape(-1, weights.shape[-1])

    def for_target(self, independent: Rows[Law]) -> Rows[Law]:
        return self if self.rows.for_target(independent) is self.rows else independent


class Thetas(Rows[Law]):
    """Independent samples of θ, each for all rows, as constants: gradients of `__call__` flow only
    through the parameters that `Posterior.apply` takes from the law, not through the samples."""

    posterior: Density[Law, Any]
    keys: UInt32[Array, "draws 2"]

    def samples(self, law: Law) -> Any:
        """Return the samples of θ, stacked along the first axis."""
        return jax.vmap(lambda key: self.posterior.sample(law, key))(self.keys)

    def __call__(self, law: Law, x: Input) -> Float[Array, "draws n outputs"]:
        draws = lax.stop_gradient(self.samples(law))
        return jax.vmap(lambda draw: apply_all(self.posterior, law, draw, x))(draws)


def several(
    posterior: Posterior[Law, Any], law: Law, ids: Int[Array, " n"] | None, key: Key, draws: int
) -> Rows[Law]:
    """Return the samples of `Posterior.sample_rows` or, with several draws, of that many calls."""
    if draws == 1:
        return posterior.sample_rows(law, ids, key)
    sample = eqx.filter_vmap(
        lambda key: posterior.sample_rows(law, ids, key), out_axes=eqx.if_array(0)
    )
    return Several(sample(noise.folds(key, draws)))


def matched(x: Array, draws: int) -> Array:
    """Return a target for each sample of θ: those of the samples of θ⁻ in turn. If their numbers
    differ, some are repeated or left out."""
    return x if x.shape[0] == draws else x[np.arange(draws) % x.shape[0]]


def _map_samples(function: Any, rows: Rows[Law]) -> Array:
    """Apply a function to each of several stacked samples."""
    return eqx.filter_vmap(function, in_axes=(eqx.if_array(0),))(rows)
