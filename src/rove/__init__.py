"""rove: exploration in reinforcement learning. Any return distribution Z_θ, any q_φ(θ)."""

from rove.agents import (
    AGENTS,
    BBQ,
    C51,
    DQN,
    GE,
    IGE,
    PSRL,
    QRDQN,
    RLSVI,
    VDQN,
    BayesianDQN,
    BayesianQLearning,
    BootstrappedDQN,
    DoubleUncertain,
    NoisyNet,
    ParameterNoiseDQN,
    Settings,
    Thompson,
)
from rove.algorithm import Agent
from rove.environments import ENVIRONMENTS, Bandit, Chain, DeepSea, Environment
from rove.environments.gymnasium import register
from rove.errors import ConfigError, LaneError, RoveError, RunFolderError
from rove.learner import AgentState, Learner
from rove.posteriors import (
    Conjugate,
    Dirac,
    Dropout,
    Ensemble,
    Factorised,
    LastLayer,
    LowRank,
    MeanField,
    ParameterNoise,
    Posterior,
)
from rove.returns import Categorical, Gaussian, LearnedGaussian, Mixture, Quantile, Return
from rove.runner import Run, load, train
from rove.tabular import PosteriorSampling, QValueSampling

__version__ = "0.1.0"

register()

__all__ = [
    "AGENTS",
    "BBQ",
    "C51",
    "DQN",
    "ENVIRONMENTS",
    "GE",
    "IGE",
    "PSRL",
    "QRDQN",
    "RLSVI",
    "VDQN",
    "Agent",
    "AgentState",
    "Bandit",
    "BayesianDQN",
    "BayesianQLearning",
    "BootstrappedDQN",
    "Categorical",
    "Chain",
    "ConfigError",
    "Conjugate",
    "DeepSea",
    "Dirac",
    "DoubleUncertain",
    "Dropout",
    "Ensemble",
    "Environment",
    "Factorised",
    "Gaussian",
    "LaneError",
    "LastLayer",
    "LearnedGaussian",
    "Learner",
    "LowRank",
    "MeanField",
    "Mixture",
    "NoisyNet",
    "ParameterNoise",
    "ParameterNoiseDQN",
    "Posterior",
    "PosteriorSampling",
    "QValueSampling",
    "Quantile",
    "Return",
    "RoveError",
    "Run",
    "RunFolderError",
    "Settings",
    "Thompson",
    "load",
    "register",
    "train",
]
