"""Families of return distributions Z_θ."""

from rove.returns.base import Return
from rove.returns.categorical import Categorical
from rove.returns.gaussian import Gaussian
from rove.returns.learned_gaussian import LearnedGaussian
from rove.returns.mixture import Mixture
from rove.returns.quantile import Quantile

__all__ = ["Categorical", "Gaussian", "LearnedGaussian", "Mixture", "Quantile", "Return"]
