"""rove: exploration in reinforcement learning. Any return distribution Z_θ, any q_φ(θ)."""

from rove import platform, posteriors, report, returns
from rove.actor_critic_agents import DDPG, DDPGGE, TD3, DDPGNoisyNet
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
from rove.posteriors import *  # noqa: F403
from rove.returns import *  # noqa: F403
from rove.run import Run
from rove.runner import load, train
from rove.sweeps import Sweep, sweep
from rove.tabular import PosteriorSampling, QValueSampling

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
