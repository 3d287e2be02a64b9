"""The agents of the paper's Sections 4 and 5, except the actor–critics."""

from typing import Any, Literal

from rove.agents.settings import (
    DistributionalSettings,
    NetworkSettings,
    PointEstimateSettings,
    gaussian_with_entropy,
    risk_measure,
)
from rove.core.algorithm import Agent
from rove.errors import check_choice
from rove.posteriors import (
    Conjugate,
    Dirac,
    Factorised,
    LastLayer,
    MeanField,
)
from rove.posteriors.mean_field import Draws
from rove.returns import Categorical, Gaussian

_AGENT: Any = Agent  # its attributes are the default values of its fields


class DQN(PointEstimateSettings, name="dqn", label="DQN"):
    """DQN: Gaussian return with σ → 0, point estimate of θ, ε-greedy (Section 5.2)."""

    double: bool = False
    """Use double Q-learning: φ chooses the action of a target and φ⁻ evaluates it."""

    def compose(self) -> Agent:
        return Agent(Gaussian(0.0), Dirac(), double=self.double, **self.shared())


class C51(DistributionalSettings, name="c51", label="C51"):
    """C51: categorical return, point estimate of θ, ε-greedy (Section 5.3)."""

    atoms: int = 51
    """Number of atoms of the support."""
    low: float = -1.0
    """Lowest return of the support."""
    high: float = 12.0
    """Highest return of the support."""

    def compose(self) -> Agent:
        risk = risk_measure(self.risk, self.risk_level)
        returns = Categorical(atoms=self.atoms, low=self.low, high=self.high, risk=risk)
        return Agent(returns, Dirac(), **self.shared())


class NoisyNet(NetworkSettings, name="noisynet", label="NoisyNet"):
    """NoisyNet: Gaussian return with σ → 0, Gaussian noise on every parameter (Section 5.2)."""

    rho: float = -4.0
    """Initial ρ; the noise on a parameter has standard deviation softplus(ρ)."""
    noise: Literal["independent", "factorised"] = "independent"
    """independent: one draw per weight; factorised: products of a draw per input and per output."""

    def compose(self) -> Agent:
        check_choice("noise", self.noise, ("independent", "factorised"))
        posterior = {"independent": MeanField, "factorised": Factorised}[self.noise]
        return Agent(Gaussian(0.0), posterior(self.rho), **self.shared())


class GaussSettings(NetworkSettings):
    """Settings shared by GE, VDQN and BBQ."""

    rho: float = -4.0
    """Initial ρ; the standard deviation of a parameter is softplus(ρ)."""
    sigma: float = 1e-3
    """Standard deviation σ of the return; a larger σ gives the entropy of q_φ more weight."""
    draws: Draws = "row"
    """Samples of θ per update: one per row of the minibatch, or one for the whole minibatch."""


class GE(GaussSettings, name="ge", label="GE"):
    """GE (Gauss Exploration): Gaussian return, mean-field Gaussian posterior (Algorithm 2).

    The default `prior_std` bounds the widths of q_φ. Without it, the entropy is the paper's.
    """

    prior_std: float | None = 1.0
    """Standard deviation that a weight tends to without data, as a multiple of 1/√n for a layer
    with n inputs; None: it grows without bound."""

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior_std=self.prior_std, draws=self.draws)
        return Agent(gaussian_with_entropy(self.sigma), posterior, **self.shared())


class VDQN(GE, name="vdqn", label="VDQN"):
    """Variational DQN: GE whose targets are the mean of the return, not a sample (Section 5.2)."""

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior_std=self.prior_std, draws=self.draws)
        return Agent(gaussian_with_entropy(self.sigma, draw="mean"), posterior, **self.shared())


class BBQ(GaussSettings, name="bbq", label="BBQ"):
    """BBQ: Variational DQN with a Gaussian prior on every parameter (Section 5.2)."""

    prior: float = 1.0
    """Standard deviation of the zero-mean Gaussian prior on every parameter."""

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior=self.prior, draws=self.draws)
        returns = gaussian_with_entropy(self.sigma, draw="mean")
        return Agent(returns, posterior, **self.shared())


class BayesianDQN(NetworkSettings, name="bayesian_dqn", label="Bayesian DQN"):
    """Bayesian DQN: Gaussian return, Bayesian linear regression in the last layer (Section 5.2)."""

    resample: Literal["step", "episode"] | int = "episode"
    """When to resample θ for acting: every step, every episode, or every N steps."""
    sigma: float = 0.1
    """Standard deviation σ of a target around Q(s, a)."""
    prior: float = 1.0
    """Prior standard deviation of a weight in the last layer."""
    period: int = 1000
    """Number of steps between regressions."""

    def compose(self) -> Agent:
        returns = Gaussian(self.sigma, draw="mean")
        posterior = LastLayer(prior=self.prior, period=self.period)
        return Agent(returns, posterior, **self.shared())


class BanditSettings(NetworkSettings):
    """Settings shared by the agents for bandits, whose posteriors are exact."""

    lr: float = _AGENT.lr
    """No effect: the posterior is exact."""
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers; must be empty."""
    buffer_size: int = 10_000
    """Capacity of the replay buffer; the posterior is computed from all transitions in it."""
    learning_starts: int = 1
    """Step of the first update."""
    batch_size: int = 1
    """No effect: the posterior is computed from all stored transitions."""
    period: int = 1
    """Number of steps between updates of the posterior."""


class Thompson(BanditSettings, name="thompson", label="Thompson sampling"):
    """Thompson sampling, for bandits: Gaussian return, conjugate posterior (Section 5.1)."""

    sigma: float = 1.0
    """Standard deviation σ of a reward around the mean of its arm."""
    prior: float = 1.0
    """Prior standard deviation of the mean of an arm."""

    def compose(self) -> Agent:
        posterior = Conjugate(prior=self.prior, period=self.period)
        return Agent(Gaussian(self.sigma, draw="mean"), posterior, **self.shared())
