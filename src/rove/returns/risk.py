"""Risk measures: what control maximises in place of the mean of the return."""

import abc
from collections.abc import Callable

import equinox as eqx
from jax import Array, lax
from jaxtyping import Float

from rove.errors import check_number

LEAST_LEVEL = 1e-6 * (1.0 - 1e-7)
"""Minimum level, and minimum difference of a level and 1: 1e-6, with a tolerance for rounding."""


def check_level(field: str, value: float | Array) -> None:
    """Raise `ConfigError` unless a level is between 0 and 1, and remains so in float32."""
    check_number(field, value, at_least=LEAST_LEVEL, at_most=1.0 - LEAST_LEVEL)


class Risk(eqx.Module):
    """A risk measure of a return Z, which depends on the lower tail of Z only."""

    level: float | Array
    """Level α: the fraction of returns that form the tail, from 1e-6 to 1 − 1e-6."""

    def __check_init__(self) -> None:
        check_level("level", self.level)

    @abc.abstractmethod
    def value(
        self,
        quantile: Callable[[float | Array], Float[Array, ""]],
        shortfall: Callable[[Float[Array, ""]], Float[Array, ""]],
    ) -> Float[Array, ""]:
        """Return the risk measure of Z, given `Return.quantile` and `Return.shortfall` of it."""


class ValueAtRisk(Risk):
    """The α-quantile of Z, which returns fall below with probability α."""

    def value(
        self,
        quantile: Callable[[float | Array], Float[Array, ""]],
        shortfall: Callable[[Float[Array, ""]], Float[Array, ""]],
    ) -> Float[Array, ""]:
        return quantile(self.level)


class CVaR(Risk):
    """The conditional value at risk: the mean of Z over the fraction α of its lowest values.

    If q is an α-quantile, this is q − E[(q − Z)⁺]/α (Rockafellar and Uryasev 2000), also where Z
    has atoms. The expression is stationary in q, so that its gradient is that for a fixed q.
    """

    def value(
        self,
        quantile: Callable[[float | Array], Float[Array, ""]],
        shortfall: Callable[[Float[Array, ""]], Float[Array, ""]],
    ) -> Float[Array, ""]:
        q = lax.stop_gradient(quantile(self.level))
        return q - shortfall(q) / self.level
