"""The grid: every return family with every parameter family, and which pairs make an agent."""

from rove.algorithm import Agent
from rove.errors import ConfigError
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

RETURNS: dict[str, Return] = {
    "Gaussian": Gaussian(0.1),
    "LearnedGaussian": LearnedGaussian(),
    "Categorical": Categorical(low=-1.0, high=12.0),
    "Quantile": Quantile(),
    "Mixture": Mixture(),
}
POSTERIORS: dict[str, Posterior] = {
    "Dirac": Dirac(),
    "MeanField": MeanField(-4.0),
    "MeanField, Gaussian prior": MeanField(-4.0, prior=1.0),
    "Factorised": Factorised(-4.0),
    "Ensemble": Ensemble(3, mask=0.5),
    "Ensemble, prior functions": Ensemble(3, prior=1.0),
    "LowRank": LowRank(2, rho=-4.0),
    "LowRank, prior functions": LowRank(2, prior=1.0, draws=2),
    "LastLayer": LastLayer(period=20),
    "Conjugate": Conjugate(),
    "Dropout": Dropout(),
    "ParameterNoise": ParameterNoise(),
}


_TABLES = ("Conjugate",)


def working() -> dict[tuple[str, str], Agent | ConfigError]:
    """By the names of its families, every pair's agent, a small one, or why there is none."""
    return {
        (r, p): _pair(returns, posterior, () if p in _TABLES else (8,))
        for p, posterior in POSTERIORS.items()
        for r, returns in RETURNS.items()
    }


def _pair(returns: Return, posterior: Posterior, hidden: tuple[int, ...]) -> Agent | ConfigError:
    small = {"batch_size": 8, "buffer_size": 64, "learning_starts": 8}
    try:
        return Agent(returns, posterior, hidden=hidden, **small)
    except ConfigError as error:
        return error


def place(agent: Agent) -> tuple[str, str]:
    """Where on the grid an agent is."""
    posterior = type(agent.posterior).__name__
    alike = [name for name in POSTERIORS if name.split(",")[0] == posterior]
    with_prior = getattr(agent.posterior, "prior", None) is not None
    return type(agent.returns).__name__, alike[-1] if with_prior else alike[0]
