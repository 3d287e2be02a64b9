"""rove: exploration in reinforcement learning. Any return distribution Z_θ, any q_φ(θ)."""

from rove import posteriors, report, returns
from rove.agents import AGENTS, Settings
from rove.agents.actor_critic import DDPG, DDPGGE, TD3, DDPGNoisyNet
from rove.agents.paper import BBQ, C51, DQN, GE, VDQN, BayesianDQN, NoisyNet, Thompson
from rove.agents.related import (
    IGE,
    PSRL,
    QRDQN,
    RLSVI,
    BayesianQLearning,
    BootstrappedDQN,
    DoubleUncertain,
    ParameterNoiseDQN,
)
from rove.agents.tabular import PosteriorSampling, QValueSampling
from rove.core.actor_critic import ActorCritic
from rove.core.algorithm import Agent
from rove.core.learner import AgentState, Learner
from rove.environments import (
    ENVIRONMENTS,
    Acrobot,
    Bandit,
    CartPole,
    Chain,
    DeepSea,
    Environment,
    LinearQuadratic,
    MountainCar,
    Sparse,
    adopt,
)
from rove.environments.gymnasium import SparseReward, register
from rove.errors import ConfigError, LaneError, RoveError, RunFolderError
from rove.parts import platform
from rove.posteriors import *  # noqa: F403
from rove.returns import *  # noqa: F403
from rove.runs.result import Run
from rove.runs.train import load, train
from rove.search.sweep import sweep
from rove.search.sweep_result import Sweep

__version__ = "0.1.0"

platform.set_correct_sums()
register()

__all__ = [
    "AGENTS",
    "BBQ",
    "C51",
    "DDPG",
    "DDPGGE",
    "DQN",
    "ENVIRONMENTS",
    "GE",
    "IGE",
    "PSRL",
    "QRDQN",
    "RLSVI",
    "TD3",
    "VDQN",
    "Acrobot",
    "ActorCritic",
    "Agent",
    "AgentState",
    "Bandit",
    "BayesianDQN",
    "BayesianQLearning",
    "BootstrappedDQN",
    "CartPole",
    "Chain",
    "ConfigError",
    "DDPGNoisyNet",
    "DeepSea",
    "DoubleUncertain",
    "Environment",
    "LaneError",
    "Learner",
    "LinearQuadratic",
    "MountainCar",
    "NoisyNet",
    "ParameterNoiseDQN",
    "PosteriorSampling",
    "QValueSampling",
    "RoveError",
    "Run",
    "RunFolderError",
    "Settings",
    "Sparse",
    "SparseReward",
    "Sweep",
    "Thompson",
    "adopt",
    "load",
    "register",
    "report",
    "sweep",
    "train",
]
__all__ += posteriors.__all__
__all__ += returns.__all__
