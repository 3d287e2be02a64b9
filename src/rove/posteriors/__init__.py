"""Families of parameter distributions q_φ."""

from rove.posteriors.base import Posterior
from rove.posteriors.dirac import Dirac
from rove.posteriors.factorised import Factorised
from rove.posteriors.mean_field import MeanField

__all__ = ["Dirac", "Factorised", "MeanField", "Posterior"]
