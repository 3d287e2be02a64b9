"""rove: exploration in reinforcement learning. Any return distribution Z_θ, any q_φ(θ)."""

import importlib
from typing import TYPE_CHECKING, Any

from rove import posteriors, returns
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

if TYPE_CHECKING:
    from rove import report
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

_LAZY = {
    "report": "rove.report",
    "sweep": "rove.search.sweep:sweep",
    "Sweep": "rove.search.sweep_result:Sweep",
}
"""What is imported when it is first used, to keep `import rove` fast."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'rove' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    loaded = importlib.import_module(module)
    value = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
