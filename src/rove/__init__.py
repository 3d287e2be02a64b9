"""rove: exploration in reinforcement learning. Any return distribution Z_θ, any q_φ(θ)."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from rove import agents, bonuses, posteriors, returns
from rove.agents import *  # noqa: F403
from rove.agents.tabular import PosteriorSampling, QValueSampling, ReturnParticles
from rove.bonuses import *  # noqa: F403
from rove.core.actor_critic import ActorCritic
from rove.core.algorithm import Agent
from rove.core.families import check_bonus, check_posterior, check_returns
from rove.core.learner import AgentState, Learner
from rove.core.reward_scale import ConstantScale, LargestReturn, RewardScale
from rove.environments import (
    ENVIRONMENTS,
    Acrobot,
    Bandit,
    BernoulliBandit,
    CartPole,
    Chain,
    Cliff,
    DeepSea,
    Environment,
    FrameStack,
    LinearBandit,
    LinearQuadratic,
    MiniGridDoorKey,
    MiniGridEmpty,
    MiniGridFourRooms,
    MiniGridMultiRoom,
    MiniGridUnlock,
    MountainCar,
    PointRooms,
    Sparse,
    SwingUp,
    adopt,
    adopt_gymnax,
    make,
)
from rove.environments.gymnasium import SparseReward, register
from rove.errors import (
    ConfigError,
    LaneError,
    RoveError,
    RoveWarning,
    RunFolderError,
    no_attribute,
)
from rove.parts import platform
from rove.parts.architectures import ConvNet
from rove.posteriors import *  # noqa: F403
from rove.returns import *  # noqa: F403
from rove.runs import advice
from rove.runs.result import Run
from rove.runs.train import load, train

if TYPE_CHECKING:
    from rove.reporting import report
    from rove.reporting.video import watch
    from rove.runs.compare import compare, difference
    from rove.runs.exporting import export
    from rove.search.sweep import sweep
    from rove.search.sweep_result import Sweep

__version__ = "0.1.0"

platform.set_correct_sums()
register()

__all__ = [
    "ENVIRONMENTS",
    "Acrobot",
    "ActorCritic",
    "Agent",
    "AgentState",
    "Bandit",
    "BernoulliBandit",
    "CartPole",
    "Chain",
    "Cliff",
    "ConfigError",
    "ConstantScale",
    "ConvNet",
    "DeepSea",
    "Environment",
    "FrameStack",
    "LaneError",
    "LargestReturn",
    "Learner",
    "LinearBandit",
    "LinearQuadratic",
    "MiniGridDoorKey",
    "MiniGridEmpty",
    "MiniGridFourRooms",
    "MiniGridMultiRoom",
    "MiniGridUnlock",
    "MountainCar",
    "PointRooms",
    "PosteriorSampling",
    "QValueSampling",
    "ReturnParticles",
    "RewardScale",
    "RoveError",
    "RoveWarning",
    "Run",
    "RunFolderError",
    "Sparse",
    "SparseReward",
    "Sweep",
    "SwingUp",
    "adopt",
    "adopt_gymnax",
    "check_bonus",
    "check_posterior",
    "check_returns",
    "compare",
    "difference",
    "export",
    "load",
    "make",
    "register",
    "report",
    "sweep",
    "train",
    "watch",
]
__all__ += agents.__all__
__all__ += bonuses.__all__
__all__ += posteriors.__all__
__all__ += returns.__all__

_LAZY = {
    "compare": "rove.runs.compare:compare",
    "difference": "rove.runs.compare:difference",
    "export": "rove.runs.exporting:export",
    "report": "rove.reporting:report",
    "sweep": "rove.search.sweep:sweep",
    "Sweep": "rove.search.sweep_result:Sweep",
    "watch": "rove.reporting.video:watch",
}
"""Names that are imported when first used, to keep `import rove` fast."""


def __getattr__(name: str) -> Any:
    if name in advice.ROVE:
        raise no_attribute(sys.modules[__name__], name, advice.ROVE)
    if name not in _LAZY:
        raise AttributeError(f"module 'rove' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
