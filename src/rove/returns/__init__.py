"""Families of return distributions Z_θ, and risk measures of them."""

from rove.returns.base import Return
from rove.returns.bernoulli import Bernoulli
from rove.returns.categorical import Categorical
from rove.returns.gaussian import Gaussian
from rove.returns.laplace import Laplace
from rove.returns.learned_gaussian import LearnedGaussian
from rove.returns.mixture import Mixture
from rove.returns.quantile import Quantile
from rove.returns.risk import CVaR, Risk, ValueAtRisk
from rove.returns.skewed_laplace import SkewedLaplace

__all__ = [
    "Bernoulli",
    "CVaR",
    "Categorical",
    "Gaussian",
    "Laplace",
    "LearnedGaussian",
    "Mixture",
    "Quantile",
    "Return",
    "Risk",
    "SkewedLaplace",
    "ValueAtRisk",
]
