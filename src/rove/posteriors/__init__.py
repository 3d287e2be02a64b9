"""Families of parameter distributions q_φ(θ)."""

from rove.posteriors.base import Phi, Posterior
from rove.posteriors.beta import Beta
from rove.posteriors.conjugate import Conjugate
from rove.posteriors.dirac import Dirac
from rove.posteriors.dropout import Dropout
from rove.posteriors.ensemble import Ensemble
from rove.posteriors.factorised import Factorised
from rove.posteriors.full_covariance import FullCovariance
from rove.posteriors.langevin import Langevin
from rove.posteriors.last_layer import LastLayer
from rove.posteriors.low_rank import LowRank
from rove.posteriors.mean_field import MeanField
from rove.posteriors.parameter_noise import ParameterNoise

__all__ = [
    "Beta",
    "Conjugate",
    "Dirac",
    "Dropout",
    "Ensemble",
    "Factorised",
    "FullCovariance",
    "Langevin",
    "LastLayer",
    "LowRank",
    "MeanField",
    "ParameterNoise",
    "Phi",
    "Posterior",
]
