"""rove: exploration in reinforcement learning. Any return distribution Z_θ, any q_φ(θ)."""

from rove.agents import AGENTS, DQN, GE, NoisyNet, Settings
from rove.algorithm import Agent, AgentState
from rove.environments import ENVIRONMENTS, Chain, Environment
from rove.environments.gymnasium import register
from rove.errors import ConfigError, LaneError, RoveError, RunFolderError
from rove.posteriors import Dirac, Factorised, MeanField, Posterior
from rove.returns import Gaussian, Return
from rove.runner import Run, load, train

__version__ = "0.1.0"

register()

__all__ = [
    "AGENTS",
    "DQN",
    "ENVIRONMENTS",
    "GE",
    "Agent",
    "AgentState",
    "Chain",
    "ConfigError",
    "Dirac",
    "Environment",
    "Factorised",
    "Gaussian",
    "LaneError",
    "MeanField",
    "NoisyNet",
    "Posterior",
    "Return",
    "RoveError",
    "Run",
    "RunFolderError",
    "Settings",
    "load",
    "register",
    "train",
]
