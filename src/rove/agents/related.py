"""Agents of related work, and two tabular baselines."""

import dataclasses
from typing import Any, Literal

from rove.agents.paper import DQN, BayesianDQN
from rove.agents.settings import (
    BonusName,
    DistributionalSettings,
    NetworkSettings,
    ScaleName,
    Settings,
    gaussian_with_entropy,
    risk_measure,
)
from rove.agents.tabular import PosteriorSampling, QValueSampling
from rove.core.algorithm import Agent
from rove.core.learner import Learner
from rove.posteriors import (
    Dirac,
    Dropout,
    Ensemble,
    FullCovariance,
    Langevin,
    LowRank,
    MeanField,
    ParameterNoise,
)
from rove.returns import Gaussian, LearnedGaussian, Quantile

# Their attributes are the default values of their fields.
_AGENT: Any = Agent
_PSRL: Any = PosteriorSampling
_Q_SAMPLING: Any = QValueSampling
_QUANTILE: Any = Quantile


class Auto(DQN, name="auto", label="Auto"):
    """Auto: DQN with visit counts and repeated random actions, for tasks without tuned settings.

    On tasks with continuous actions, the name stands for td3.
    """

    epsilon: float = 0.02
    """Final probability ε of a random action."""
    epsilon_steps: int = 15_000
    """Number of steps over which ε falls from epsilon-start to epsilon; 0: constant."""
    repeat: int = 100
    """Maximum duration of a random action, in steps; in half of the episodes, it lasts at least n
    steps with probability 1/n."""
    n_step: int = 5
    """Number of rewards in a target; above 1, sparse rewards travel faster."""
    bonus: BonusName = "counts"
    """Intrinsic reward: disagreement (the spread of Q over θ), counts (of visits to states), or rnd
    (random network distillation)."""
    bonus_weight: float = 0.1
    """Weight η of the intrinsic reward; only with a bonus."""
    reward_scale: float | ScaleName = "growing"
    """What rewards are divided by: a number; running: the largest return so far; growing: the same,
    but at least 1."""


class QRDQN(DistributionalSettings, name="qr_dqn", label="QR-DQN"):
    """QR-DQN: quantiles of the return, point estimate of θ, ε-greedy."""

    quantiles: int = _QUANTILE.quantiles
    """Number of quantiles."""
    kappa: float = _QUANTILE.kappa
    """Threshold κ at which the Huber loss turns from quadratic to linear."""

    def compose(self) -> Agent:
        risk = risk_measure(self.risk, self.risk_level)
        returns = Quantile(quantiles=self.quantiles, kappa=self.kappa, risk=risk)
        return Agent(returns, Dirac(), **self.shared())


class RLSVI(BayesianDQN, name="rlsvi", label="RLSVI"):
    """RLSVI: Bayesian linear regression on the observation, θ resampled every episode."""

    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers; without any, Q is linear in the observation."""
    period: int = 100
    """Number of steps between regressions."""


class BootstrappedDQN(NetworkSettings, name="bootstrapped_dqn", label="Bootstrapped DQN"):
    """Bootstrapped DQN: Gaussian return with σ → 0, ensemble with optional prior functions."""

    resample: Literal["step", "episode"] | int = "episode"
    """When to draw a new member for acting: every step, every episode, or every N steps."""
    size: int = 10
    """Number of ensemble members K."""
    prior: float | None = 3.0
    """Scale β of each member's prior function; None: no prior functions."""
    mask: float = 0.5
    """Probability that a member learns from a given transition."""

    def compose(self) -> Agent:
        posterior = Ensemble(self.size, mask=self.mask, prior=self.prior)
        return Agent(Gaussian(0.0), posterior, **self.shared())


class ParameterNoiseDQN(NetworkSettings, name="parameter_noise", label="Parameter noise"):
    """Parameter noise: DQN that acts with perturbed weights, with an adaptive noise scale."""

    resample: Literal["step", "episode"] | int = "episode"
    """When to resample θ for acting: every step, every episode, or every N steps."""
    std: float = 0.05
    """Initial standard deviation of the noise."""
    distance: float = 0.5
    """Target distance between the Q-values of perturbed and unperturbed weights."""

    def compose(self) -> Agent:
        posterior = ParameterNoise(self.std, self.distance)
        return Agent(Gaussian(0.0), posterior, **self.shared())


class DoubleUncertain(NetworkSettings, name="double_uncertain", label="Double uncertain"):
    """Double uncertain value networks: Gaussian return with learned variance, dropout."""

    rate: float = 0.1
    """Dropout probability of a hidden unit."""

    def compose(self) -> Agent:
        return Agent(LearnedGaussian(), Dropout(self.rate), **self.shared())


class IGE(NetworkSettings, name="ige", label="Index GE"):
    """Index GE (not in the paper): low-rank posterior whose index also drives prior functions."""

    resample: Literal["step", "episode"] | int = "episode"
    """When to resample the index for acting: every step, every episode, or every N steps."""
    rank: int = 4
    """Length M of the index."""
    draws: int = 20
    """Number of indices drawn per transition of an update."""
    prior: float | None = 3.0
    """Scale β of the prior functions; None: no prior functions."""
    paired: bool = True
    """Use the same index for the Q-value of a transition and for its target."""
    rho: float | None = None
    """Initial ρ of a diagonal term in the last layer; None: no diagonal term."""
    sigma: float = 1e-4
    """Standard deviation σ of the return; a larger σ gives the entropy of q_φ more weight."""
    prior_std: float | None = 1.0
    """Standard deviation that a weight of the last layer tends to without data, as a multiple of
    1/√n for n inputs of the layer; None: it grows without bound."""

    def compose(self) -> Agent:
        posterior = LowRank(
            self.rank,
            prior=self.prior,
            rho=self.rho,
            draws=self.draws,
            prior_std=self.prior_std,
            paired=self.paired,
        )
        return Agent(gaussian_with_entropy(self.sigma), posterior, **self.shared())


class AdamLMC(NetworkSettings, name="adam_lmc", label="Adam LMC"):
    """Adam LMC: Gaussian return, θ follows Langevin dynamics with Adam's direction in its drift."""

    resample: Literal["step", "episode"] | int = _AGENT.resample
    """When acting takes over the current state of the chain: every step, every episode, or every N
    steps."""
    sigma: float = 0.5
    """Standard deviation σ of the return; the noise of an update is proportional to it."""
    adam: float | None = 1.0
    """Weight a of Adam's direction in the drift; None: plain Langevin Monte Carlo (LMC)."""
    temperature: float = 1.0
    """Factor of the variance of the noise. At 1, the chain samples the posterior if its steps are
    small."""

    def compose(self) -> Agent:
        posterior = Langevin(self.adam, temperature=self.temperature)
        return Agent(gaussian_with_entropy(self.sigma, "mean"), posterior, **self.shared())


class FullCovarianceGE(NetworkSettings, name="full_covariance", label="Full-covariance GE"):
    """Full-covariance GE: Gaussian return, Gaussian with full covariance over the last layer."""

    resample: Literal["step", "episode"] | int = "episode"
    """When to resample θ for acting: every step, every episode, or every N steps."""
    rho: float = -4.0
    """Initial ρ; the standard deviation of a weight of the last layer is softplus(ρ) at first."""
    sigma: float = 1e-2
    """Standard deviation σ of the return; a larger σ gives the entropy of q_φ more weight."""
    prior_std: float | None = 1.0
    """Standard deviation that a weight of the last layer tends to without data, as a multiple of
    1/√n for n inputs of the layer; None: it grows without bound."""

    def compose(self) -> Agent:
        posterior = FullCovariance(self.rho, prior_std=self.prior_std)
        return Agent(gaussian_with_entropy(self.sigma), posterior, **self.shared())


class BBVI(NetworkSettings, name="bbvi", label="Black-box VI"):
    """Black-box variational inference: GE whose gradient is estimated by scores, ∇ log q_φ(θ)."""

    resample: Literal["step", "episode"] | int = "episode"
    """When to resample θ for acting: every step, every episode, or every N steps."""
    hidden: tuple[int, ...] = (32,)
    """Widths of the hidden layers; the variance of the gradient grows with the parameters."""
    rho: float = -3.0
    """Initial ρ; the standard deviation of a parameter is softplus(ρ)."""
    sigma: float = 1e-2
    """Standard deviation σ of the return; a larger σ gives the entropy of q_φ more weight."""
    prior_std: float | None = 1.0
    """Standard deviation that a weight tends to without data, as a multiple of 1/√n for a layer
    with n inputs; None: it grows without bound."""
    draws: int = 64
    """Number of samples of θ per update."""

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior_std=self.prior_std)
        estimator: dict[str, Any] = {"draws": self.draws, "gradient": "score"}
        return Agent(gaussian_with_entropy(self.sigma), posterior, **estimator, **self.shared())


class PSRL(Settings, name="psrl", label="PSRL"):
    """PSRL (tabular baseline): acts in an MDP that is resampled every episode."""

    gamma: float = _PSRL.gamma
    """Discount factor γ."""
    concentration: float = _PSRL.concentration
    """Sum of the parameters of the symmetric Dirichlet prior over next states."""
    reward_std: float = _PSRL.reward_std
    """Prior standard deviation of a mean reward."""
    noise_std: float = _PSRL.noise_std
    """Standard deviation of a reward around its mean, assumed to be known."""
    sweeps: int = _PSRL.sweeps
    """Number of sweeps of value iteration, which is the planning horizon in steps."""

    def compose(self) -> Learner:
        return PosteriorSampling(**dataclasses.asdict(self))


class BayesianQLearning(Settings, name="bayesian_q_learning", label="Bayesian Q-learning"):
    """Bayesian Q-learning (tabular baseline): normal-gamma posterior for every state and action."""

    gamma: float = _Q_SAMPLING.gamma
    """Discount factor γ."""
    mu: float = _Q_SAMPLING.mu
    """Prior mean μ₀ of a value."""
    lam: float = _Q_SAMPLING.lam
    """Weight λ of the prior mean, as a number of returns."""
    alpha: float = _Q_SAMPLING.alpha
    """Shape α of the prior on the precision of a return; worth 2α returns."""
    beta: float = _Q_SAMPLING.beta
    """Rate β of the prior on the precision; the prior variance of a return is about β/(α − 1)."""

    def compose(self) -> Learner:
        return QValueSampling(**dataclasses.asdict(self))
