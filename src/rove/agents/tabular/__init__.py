"""Tabular agents, as reference points for the other agents."""

from rove.agents.tabular.bayesian_q_learning import QValueSampling
from rove.agents.tabular.psrl import PosteriorSampling
from rove.agents.tabular.return_particles import ReturnParticles

__all__ = ["PosteriorSampling", "QValueSampling", "ReturnParticles"]
