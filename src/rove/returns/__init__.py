"""Families of return distributions Z_θ."""

from rove.returns.base import Return
from rove.returns.gaussian import Gaussian

__all__ = ["Gaussian", "Return"]
