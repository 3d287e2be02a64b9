"""The named agents. Each combines a return family with a parameter family, except for two tabular
baselines."""

import dataclasses
from typing import Any, ClassVar, Literal

from rove.actor_critic_agents import ACTOR_CRITICS
from rove.core.algorithm import Agent
from rove.core.learner import Learner
from rove.errors import ConfigError, check_choice, did_you_mean
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
)
from rove.returns import Categorical, Gaussian, LearnedGaussian, Quantile
from rove.settings import Settings, noisy
from rove.tabular import PosteriorSampling, QValueSampling


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkSettings(Settings):
    """Settings shared by all agents that combine a return family with a parameter family."""

    lr: float = 1e-3
    """Learning rate α of Adam."""
    gamma: float = 0.99
    """Discount factor γ."""
    resample: Literal["step", "episode"] | int = "step"
    """When to resample θ for acting: every step (the paper), every episode, or every N steps."""
    epsilon: float = 0.0
    """Final probability ε of a random action."""
    epsilon_start: float = 1.0
    """Probability of a random action at step 0, if epsilon-steps is above 0."""
    epsilon_steps: int = 0
    """Number of steps over which ε falls from epsilon-start to epsilon; 0: constant."""
    batch_size: int = 64
    """Number of transitions N in a minibatch."""
    buffer_size: int = 50_000
    """Capacity of the replay buffer, in transitions."""
    learning_starts: int = 500
    """Step of the first update."""
    target_period: int = 100
    """Number of steps τ between updates of the target parameters, φ⁻ ← φ."""
    hidden: tuple[int, ...] = (100, 100)
    """Widths of the hidden layers."""

    def shared(self) -> dict[str, Any]:
        """Return the settings that are passed to `Agent` unchanged."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(NetworkSettings)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DQN(NetworkSettings):
    """DQN: Gaussian return with σ → 0, point estimate of θ, ε-greedy (Section 5.2)."""

    name: ClassVar[str] = "dqn"
    label: ClassVar[str] = "DQN"
    epsilon: float = 0.1
    """Final probability ε of a random action."""

    double: bool = False
    """Use double Q-learning: φ chooses the action of a target and φ⁻ evaluates it."""

    def compose(self) -> Agent:
        return Agent(Gaussian(0.0), Dirac(), double=self.double, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class C51(NetworkSettings):
    """C51: categorical return, point estimate of θ, ε-greedy (Section 5.3)."""

    name: ClassVar[str] = "c51"
    label: ClassVar[str] = "C51"
    epsilon: float = 0.1
    """Final probability ε of a random action."""
    atoms: int = 51
    """Number of atoms of the support."""
    low: float = -1.0
    """Lowest return of the support."""
    high: float = 12.0
    """Highest return of the support."""

    def compose(self) -> Agent:
        returns = Categorical(atoms=self.atoms, low=self.low, high=self.high)
        return Agent(returns, Dirac(), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class QRDQN(NetworkSettings):
    """QR-DQN: quantiles of the return, point estimate of θ, ε-greedy."""

    name: ClassVar[str] = "qr_dqn"
    label: ClassVar[str] = "QR-DQN"
    epsilon: float = 0.1
    """Final probability ε of a random action."""
    quantiles: int = 32
    """Number of quantiles."""
    kappa: float = 1.0
    """Threshold κ at which the Huber loss turns from quadratic to linear."""

    def compose(self) -> Agent:
        returns = Quantile(quantiles=self.quantiles, kappa=self.kappa)
        return Agent(returns, Dirac(), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisyNet(NetworkSettings):
    """NoisyNet: Gaussian return with σ → 0, Gaussian noise on every parameter (Section 5.2)."""

    name: ClassVar[str] = "noisynet"
    label: ClassVar[str] = "NoisyNet"
    rho: float = -4.0
    """Initial ρ; the noise on a parameter has standard deviation softplus(ρ)."""
    noise: Literal["independent", "factorised"] = "independent"
    """One draw per weight (independent), or a product of one per input and one per output."""

    def compose(self) -> Agent:
        check_choice("noise", self.noise, ("independent", "factorised"))
        posterior = {"independent": MeanField, "factorised": Factorised}[self.noise]
        return Agent(Gaussian(0.0), posterior(self.rho), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class GaussSettings(NetworkSettings):
    """Settings shared by GE, VDQN and BBQ."""

    rho: float = -4.0
    """Initial ρ; the standard deviation of a parameter is softplus(ρ)."""
    sigma: float = 1e-3
    """Standard deviation σ of the return; a larger σ gives the entropy of q_φ more weight."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GE(GaussSettings):
    """GE (Gauss Exploration): Gaussian return, mean-field Gaussian posterior (Algorithm 2)."""

    name: ClassVar[str] = "ge"
    label: ClassVar[str] = "GE"
    prior_std: float | None = 1.0
    """Standard deviation without data, as a multiple of 1/√inputs; None: no limit (the paper)."""

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior_std=self.prior_std)
        return Agent(noisy(self.sigma), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class VDQN(GE):
    """Variational DQN: GE whose targets are the mean of the return, not a sample (Section 5.2)."""

    name: ClassVar[str] = "vdqn"
    label: ClassVar[str] = "VDQN"

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior_std=self.prior_std)
        return Agent(noisy(self.sigma, draw="mean"), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class BBQ(GaussSettings):
    """BBQ: Variational DQN with a Gaussian prior on every parameter (Section 5.2)."""

    name: ClassVar[str] = "bbq"
    label: ClassVar[str] = "BBQ"
    prior: float = 1.0
    """Standard deviation of the Gaussian prior on every parameter."""
    bonus: float | None = None
    """Weight η of an intrinsic reward, the standard deviation of Q over θ; None: no bonus."""

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior=self.prior)
        returns = noisy(self.sigma, draw="mean")
        return Agent(returns, posterior, bonus=self.bonus, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class BayesianDQN(NetworkSettings):
    """Bayesian DQN: Gaussian return, Bayesian linear regression in the last layer (Section 5.2)."""

    name: ClassVar[str] = "bayesian_dqn"
    label: ClassVar[str] = "Bayesian DQN"
    resample: Literal["step", "episode"] | int = "episode"
    """When to resample θ for acting: every step, every episode, or every N steps."""
    sigma: float = 0.1
    """Standard deviation σ of a target around its value."""
    prior: float = 1.0
    """Prior standard deviation of a weight in the last layer."""
    period: int = 1000
    """Number of steps between regressions."""

    def compose(self) -> Agent:
        returns = Gaussian(self.sigma, draw="mean")
        posterior = LastLayer(prior=self.prior, period=self.period)
        return Agent(returns, posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class RLSVI(BayesianDQN):
    """RLSVI: Bayesian linear regression on the observation, θ resampled every episode."""

    name: ClassVar[str] = "rlsvi"
    label: ClassVar[str] = "RLSVI"
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers; without any, Q is linear in the observation."""
    period: int = 100
    """Number of steps between regressions."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BootstrappedDQN(NetworkSettings):
    """Bootstrapped DQN: Gaussian return with σ → 0, ensemble with optional prior functions."""

    name: ClassVar[str] = "bootstrapped_dqn"
    label: ClassVar[str] = "Bootstrapped DQN"
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParameterNoiseDQN(NetworkSettings):
    """Parameter noise: DQN that acts with perturbed weights, with an adaptive noise scale."""

    name: ClassVar[str] = "parameter_noise"
    label: ClassVar[str] = "Parameter noise"
    resample: Literal["step", "episode"] | int = "episode"
    """When to resample θ for acting: every step, every episode, or every N steps."""
    std: float = 0.05
    """Initial standard deviation of the noise."""
    distance: float = 0.5
    """Target distance between the Q-values of perturbed and unperturbed weights."""

    def compose(self) -> Agent:
        posterior = ParameterNoise(self.std, self.distance)
        return Agent(Gaussian(0.0), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoubleUncertain(NetworkSettings):
    """Double uncertain value networks: Gaussian return with learned variance, dropout."""

    name: ClassVar[str] = "double_uncertain"
    label: ClassVar[str] = "Double uncertain"
    rate: float = 0.1
    """Dropout probability of a hidden unit."""

    def compose(self) -> Agent:
        return Agent(LearnedGaussian(), Dropout(self.rate), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Thompson(NetworkSettings):
    """Thompson sampling, for bandits: Gaussian return, conjugate posterior (Section 5.1)."""

    name: ClassVar[str] = "thompson"
    label: ClassVar[str] = "Thompson sampling"
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers; must be empty."""
    buffer_size: int = 10_000
    """Number of most recent transitions that the posterior is computed from."""
    learning_starts: int = 1
    """Step of the first update."""
    batch_size: int = 1
    """Number of transitions in a minibatch; has no effect on the exact posterior."""
    sigma: float = 1.0
    """Standard deviation σ of a reward around the mean of its arm."""
    prior: float = 1.0
    """Prior standard deviation of the mean of an arm."""
    period: int = 1
    """Number of steps between updates of the posterior."""

    def compose(self) -> Agent:
        posterior = Conjugate(prior=self.prior, period=self.period)
        return Agent(Gaussian(self.sigma, draw="mean"), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class IGE(NetworkSettings):
    """Index GE (not in the paper): low-rank posterior whose index also drives prior functions."""

    name: ClassVar[str] = "ige"
    label: ClassVar[str] = "Index GE"
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
    """Last-layer standard deviation without data, as a multiple of 1/√inputs; None: no limit."""

    def compose(self) -> Agent:
        posterior = LowRank(
            self.rank,
            prior=self.prior,
            rho=self.rho,
            draws=self.draws,
            prior_std=self.prior_std,
            paired=self.paired,
        )
        return Agent(noisy(self.sigma), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class PSRL(Settings):
    """PSRL (tabular baseline): acts in an MDP that is resampled every episode."""

    name: ClassVar[str] = "psrl"
    label: ClassVar[str] = "PSRL"
    gamma: float = 0.99
    """Discount factor γ."""
    concentration: float = 0.01
    """Sum of the parameters of the symmetric Dirichlet prior over next states."""
    reward_std: float = 0.3
    """Prior standard deviation of a mean reward."""
    noise_std: float = 0.03
    """Standard deviation of a reward around its mean, assumed to be known."""
    sweeps: int = 150
    """Number of sweeps of value iteration, which is the planning horizon in steps."""

    def compose(self) -> Learner:
        return PosteriorSampling(**dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class BayesianQLearning(Settings):
    """Bayesian Q-learning (tabular baseline): normal-gamma posterior for every state and action."""

    name: ClassVar[str] = "bayesian_q_learning"
    label: ClassVar[str] = "Bayesian Q-learning"
    gamma: float = 0.99
    """Discount factor γ."""
    mu: float = 0.0
    """Prior mean μ₀ of a value."""
    lam: float = 0.1
    """Weight λ of the prior mean, as a number of returns."""
    alpha: float = 2.0
    """Shape α of the prior on the precision of a return; worth 2α returns."""
    beta: float = 0.1
    """Rate β of that prior; the prior variance of a return is about β/(α − 1)."""

    def compose(self) -> Learner:
        return QValueSampling(**dataclasses.asdict(self))


_ALL = (
    DQN, C51, QRDQN, NoisyNet, GE, VDQN, BBQ, BayesianDQN, BootstrappedDQN, ParameterNoiseDQN,
    DoubleUncertain, Thompson, RLSVI, IGE, PSRL, BayesianQLearning, *ACTOR_CRITICS,
)  # fmt: skip
AGENTS: dict[str, type[Settings]] = {kind.name: kind for kind in _ALL}


def label_of(name: str) -> str:
    """Return the display name of an agent; an unknown name is returned unchanged."""
    return AGENTS[name].label if name in AGENTS else name


def settings_of(name: str) -> type[Settings]:
    """Return the settings class of a named agent."""
    if name not in AGENTS:
        known = f"one of the {len(AGENTS)} agents that `rove list` shows"
        raise ConfigError("agent", name, known + did_you_mean(name, AGENTS))
    return AGENTS[name]


def fitting(continuous: bool) -> list[str]:
    """Return the names of the agents for continuous or for discrete actions."""
    return [name for name, kind in AGENTS.items() if kind().compose().continuous == continuous]
