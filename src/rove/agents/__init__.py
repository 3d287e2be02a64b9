"""The named agents. Each combines a return family with a posterior, except for three tabular
baselines."""

from rove.agents.actor_critic import DDPG, DDPGGE, TD3, DDPGDropout, DDPGNoisyNet
from rove.agents.bandits import ThompsonBeta, ThompsonLinear
from rove.agents.paper import BBQ, C51, DQN, GE, VDQN, BayesianDQN, NoisyNet, Thompson
from rove.agents.related import (
    BBVI,
    IGE,
    PSRL,
    QRDQN,
    RLSVI,
    AdamLMC,
    Auto,
    BayesianQLearning,
    BootstrappedDQN,
    DoubleUncertain,
    FullCovarianceGE,
    ParameterNoiseDQN,
)
from rove.agents.return_densities import Particles, ReturnDensity
from rove.agents.settings import Settings
from rove.errors import ConfigError, unknown_name

__all__ = [
    "AGENTS",
    "BBQ",
    "BBVI",
    "C51",
    "DDPG",
    "DDPGGE",
    "DQN",
    "GE",
    "IGE",
    "PSRL",
    "QRDQN",
    "RLSVI",
    "TD3",
    "VDQN",
    "AdamLMC",
    "Auto",
    "BayesianDQN",
    "BayesianQLearning",
    "BootstrappedDQN",
    "DDPGDropout",
    "DDPGNoisyNet",
    "DoubleUncertain",
    "FullCovarianceGE",
    "NoisyNet",
    "ParameterNoiseDQN",
    "Particles",
    "ReturnDensity",
    "Settings",
    "Thompson",
    "ThompsonBeta",
    "ThompsonLinear",
]

_ALL = (
    Auto, DQN, C51, QRDQN, NoisyNet, GE, VDQN, BBQ, BayesianDQN, BootstrappedDQN, ParameterNoiseDQN,
    DoubleUncertain, Thompson, RLSVI, IGE, PSRL, BayesianQLearning, DDPG, DDPGNoisyNet, DDPGGE, TD3,
    ReturnDensity, ThompsonBeta, ThompsonLinear, Particles,
    AdamLMC, FullCovarianceGE, BBVI, DDPGDropout,
)  # fmt: skip
AGENTS: dict[str, type[Settings]] = {kind.name: kind for kind in _ALL}


def label_of(name: str) -> str:
    """Return the display name of an agent; an unknown name is returned unchanged."""
    return AGENTS[name].label if name in AGENTS else name


def settings_of(name: str) -> type[Settings]:
    """Return the settings class of a named agent; hyphens may replace underscores."""
    name = name.replace("-", "_")
    if name not in AGENTS:
        message = unknown_name("agent", name, AGENTS, listed_by="rove list")
        raise ConfigError("agent", name, "one of " + ", ".join(AGENTS), message)
    return AGENTS[name]


def names_for(continuous: bool) -> list[str]:
    """Return the names of the agents for continuous or for discrete actions."""
    return [name for name, kind in AGENTS.items() if kind().compose().continuous == continuous]
