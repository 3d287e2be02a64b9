"""Refits of the fitted part of φ every few steps, for families that compute it from the buffer."""

from collections.abc import Callable
from typing import Any

from jax import Array, lax

from rove.posteriors.base import Data, Phi


def refitted(phi: Phi, data: Data, period: int | Array, fit: Callable[[Phi, Data], Any]) -> Phi:
    """Return φ with a new `Phi.fitted` if `period` divides the number of steps, else φ itself.

    `fit` returns the new part. It is evaluated only when a refit is due.
    """
    due = data.counter % period == 0
    return phi._replace(fitted=lax.cond(due, lambda: fit(phi, data), lambda: phi.fitted))
