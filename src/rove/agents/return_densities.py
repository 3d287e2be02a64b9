"""Agents that estimate the density of the return, and can avoid risk (Morimura et al.)."""

from typing import Any, Literal

from rove.agents.settings import (
    RISK_LEVEL,
    DistributionalSettings,
    RiskName,
    Settings,
    risk_measure,
)
from rove.agents.tabular import ReturnParticles
from rove.core.algorithm import Agent
from rove.core.learner import Learner
from rove.errors import check_choice
from rove.posteriors import Dirac
from rove.returns import Laplace, LearnedGaussian, SkewedLaplace

_PARTICLES: Any = ReturnParticles  # its attributes are the default values of its fields


class ReturnDensity(DistributionalSettings, name="return_density", label="Return density"):
    """Return density estimation: parametric density of the return, fitted by KL, ε-greedy."""

    density: Literal["gaussian", "laplace", "skewed_laplace"] = "gaussian"
    """The family of densities; the skewed Laplace density has a scale for each side."""
    floor: float = 0.01
    """Minimum scale of the density."""
    natural: bool = True
    """Use natural gradients (Morimura et al. 2012) instead of ordinary gradients."""

    def compose(self) -> Agent:
        check_choice("density", self.density, ("gaussian", "laplace", "skewed_laplace"))
        shared: dict[str, Any] = {"floor": self.floor, "natural": self.natural}
        shared["risk"] = risk_measure(self.risk, self.risk_level)
        if self.density == "gaussian":
            returns = LearnedGaussian(draw="distribution", **shared)
        else:
            returns = {"laplace": Laplace, "skewed_laplace": SkewedLaplace}[self.density](**shared)
        return Agent(returns, Dirac(), **self.shared())


class Particles(Settings, name="particles", label="Return particles"):
    """Return particles (tabular baseline): samples of the return for every state and action."""

    gamma: float = _PARTICLES.gamma
    """Discount factor γ."""
    epsilon: float = _PARTICLES.epsilon
    """Probability ε of a random action."""
    particles: int = _PARTICLES.particles
    """Number of particles of each state and action."""
    lr: float = _PARTICLES.lr
    """Probability α that a particle is replaced after a transition."""
    risk: RiskName = "mean"
    """What actions maximise: the mean return, its CVaR (mean of the lowest part), or a quantile."""
    risk_level: float = RISK_LEVEL
    """Level α of the CVaR or the quantile: the fraction of returns that count as the worst."""

    def compose(self) -> Learner:
        return ReturnParticles(
            particles=self.particles,
            lr=self.lr,
            gamma=self.gamma,
            epsilon=self.epsilon,
            risk=risk_measure(self.risk, self.risk_level),
        )
