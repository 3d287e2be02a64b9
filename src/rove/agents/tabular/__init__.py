"""Tabular agents with exact posteriors, as reference points for the other agents."""

from rove.agents.tabular.bayesian_q_learning import QValueSampling
from rove.agents.tabular.psrl import PosteriorSampling

__all__ = ["PosteriorSampling", "QValueSampling"]
