"""Every pair of a return family and a posterior, and which pairs make an agent."""

from collections.abc import Mapping
from dataclasses import fields

from rove import posteriors as q
from rove import returns as z
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.posteriors import Posterior
from rove.returns import Return

RETURNS: dict[str, Return] = {
    "Gaussian": z.Gaussian(0.1),
    "LearnedGaussian": z.LearnedGaussian(),
    "Categorical": z.Categorical(low=-1.0, high=12.0),
    "Quantile": z.Quantile(),
    "Mixture": z.Mixture(),
    "Laplace": z.Laplace(),
    "SkewedLaplace": z.SkewedLaplace(),
    "Bernoulli": z.Bernoulli(),
}
POSTERIORS: dict[str, Posterior] = {
    "Dirac": q.Dirac(),
    "MeanField": q.MeanField(-4.0),
    "MeanField, Gaussian prior": q.MeanField(-4.0, prior=1.0),
    "Factorised": q.Factorised(-4.0),
    "Ensemble": q.Ensemble(3, mask=0.5),
    "Ensemble, prior functions": q.Ensemble(3, prior=1.0),
    "LowRank": q.LowRank(2, rho=-4.0),
    "LowRank, prior functions": q.LowRank(2, rho=-4.0, prior=1.0, draws=2),
    "LastLayer": q.LastLayer(period=20),
    "Conjugate": q.Conjugate(),
    "Beta": q.Beta(),
    "Dropout": q.Dropout(),
    "ParameterNoise": q.ParameterNoise(),
    "FullCovariance": q.FullCovariance(),
    "Langevin": q.Langevin(adam=1.0),
}


def working() -> dict[tuple[str, str], Agent | ConfigError]:
    """Return, for every pair of family names, a small agent, or the error that rules it out."""
    return {
        (r, p): _pair(returns, posterior)
        for p, posterior in POSTERIORS.items()
        for r, returns in RETURNS.items()
    }


def _pair(
    returns: Return, posterior: Posterior, hidden: tuple[int, ...] = (8,)
) -> Agent | ConfigError:
    """Build the agent with one hidden layer or, if that is refused, without hidden layers."""
    small = {"batch_size": 8, "buffer_size": 64, "learning_starts": 8}
    try:
        return Agent(returns, posterior, hidden=hidden, **small)
    except ConfigError as error:
        return _pair(returns, posterior, ()) if hidden else error


def families_of(agent: Agent) -> tuple[str, str]:
    """Return the names of the return family and the posterior of an agent."""
    return _nearest(RETURNS, agent.returns), _nearest(POSTERIORS, agent.posterior)


def _nearest(families: Mapping[str, Return | Posterior], family: Return | Posterior) -> str:
    """Return the name of the family of the same class whose optional parts differ the least."""
    names = [name for name, other in families.items() if type(other) is type(family)]
    return min(names, key=lambda name: len(_parts(families[name]) ^ _parts(family)))


def _parts(family: Return | Posterior) -> set[str]:
    """Return the names of the fields that are not None."""
    return {f.name for f in fields(family) if getattr(family, f.name) is not None}
