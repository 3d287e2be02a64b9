"""Exact tables, as gold standards to measure the other agents by."""

from rove.tabular.bayesian_q_learning import QValueSampling
from rove.tabular.psrl import PosteriorSampling

__all__ = ["PosteriorSampling", "QValueSampling"]
