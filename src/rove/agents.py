"""The named agents: each is one composition of a return family and a parameter family, but for
the two tabular ones that they are measured by."""

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
    """What every agent that is a return family and a parameter family can be told."""

    lr: float = 1e-3
    """α, the learning rate of Adam."""
    gamma: float = 0.99
    """γ, the discount."""
    resample: Literal["step", "episode"] | int = "step"
    """When a new θ is drawn for control: every step (the paper), every so many, or episode."""
    epsilon: float = 0.0
    """Probability of a random action, once its schedule has ended."""
    epsilon_start: float = 1.0
    """The same at step 0."""
    epsilon_steps: int = 0
    """Steps over which it falls from epsilon-start to epsilon; 0: constant."""
    batch_size: int = 64
    """N, transitions in a minibatch."""
    buffer_size: int = 50_000
    """Transitions the replay buffer holds."""
    learning_starts: int = 500
    """The step of the first update."""
    target_period: int = 100
    """τ, steps between copies of φ to φ⁻."""
    hidden: tuple[int, ...] = (100, 100)
    """Widths of the hidden layers."""

    def shared(self) -> dict[str, Any]:
        """The fields that go to `Agent` as they are."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(NetworkSettings)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DQN(NetworkSettings):
    """DQN: Gaussian return, σ → 0; all mass on one θ; ε-greedy (Section 5.2)."""

    name: ClassVar[str] = "dqn"
    label: ClassVar[str] = "DQN"
    epsilon: float = 0.1
    """Probability of a random action, once its schedule has ended."""

    double: bool = False
    """Double Q-learning: the action of a target is chosen by φ, and valued by φ⁻."""

    def compose(self) -> Agent:
        return Agent(Gaussian(0.0), Dirac(), double=self.double, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class C51(NetworkSettings):
    """C51: categorical return; all mass on one θ; ε-greedy (Section 5.3)."""

    name: ClassVar[str] = "c51"
    label: ClassVar[str] = "C51"
    epsilon: float = 0.1
    """Probability of a random action, once its schedule has ended."""
    atoms: int = 51
    """Points of the support."""
    low: float = -1.0
    """The least return on the support."""
    high: float = 12.0
    """The greatest return on the support."""

    def compose(self) -> Agent:
        returns = Categorical(atoms=self.atoms, low=self.low, high=self.high)
        return Agent(returns, Dirac(), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class QRDQN(NetworkSettings):
    """QR-DQN: quantiles of the return; all mass on one θ; ε-greedy."""

    name: ClassVar[str] = "qr_dqn"
    label: ClassVar[str] = "QR-DQN"
    epsilon: float = 0.1
    """Probability of a random action, once its schedule has ended."""
    quantiles: int = 32
    """How many."""
    kappa: float = 1.0
    """κ, where the Huber loss goes from square to linear."""

    def compose(self) -> Agent:
        returns = Quantile(quantiles=self.quantiles, kappa=self.kappa)
        return Agent(returns, Dirac(), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisyNet(NetworkSettings):
    """NoisyNet: Gaussian return, σ → 0; Gaussian noise on every parameter (Section 5.2)."""

    name: ClassVar[str] = "noisynet"
    label: ClassVar[str] = "NoisyNet"
    rho: float = -4.0
    """ρ at the start: the noise of a parameter is softplus(ρ)."""
    noise: Literal["independent", "factorised"] = "independent"
    """A draw for each weight, or one for each input and output, multiplied."""

    def compose(self) -> Agent:
        check_choice("noise", self.noise, ("independent", "factorised"))
        posterior = {"independent": MeanField, "factorised": Factorised}[self.noise]
        return Agent(Gaussian(0.0), posterior(self.rho), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class GaussSettings(NetworkSettings):
    """What GE, VDQN and BBQ have in common."""

    rho: float = -4.0
    """ρ at the start: the standard deviation of a parameter is softplus(ρ)."""
    sigma: float = 1e-3
    """σ of the return. The larger it is, the more the entropy of q_φ weighs against the data."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GE(GaussSettings):
    """GE, Gauss Exploration: Gaussian return, mean-field Gaussian posterior (Algorithm 2)."""

    name: ClassVar[str] = "ge"
    label: ClassVar[str] = "GE"
    prior_std: float | None = 1.0
    """Standard deviation that a parameter tends to where no data inform it, as a multiple of
    1/√inputs of its layer; None: it grows without end (the paper)."""

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior_std=self.prior_std)
        return Agent(noisy(self.sigma), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class VDQN(GE):
    """Variational DQN: GE whose targets are means of the return, not draws (Section 5.2)."""

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
    """Standard deviation of the prior."""
    bonus: float | None = None
    """η of an intrinsic reward: η times the standard deviation of Q over θ; None: without."""

    def compose(self) -> Agent:
        posterior = MeanField(self.rho, prior=self.prior)
        returns = noisy(self.sigma, draw="mean")
        return Agent(returns, posterior, bonus=self.bonus, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class BayesianDQN(NetworkSettings):
    """Bayesian DQN: Gaussian return; Bayesian regression on the last layer (Section 5.2)."""

    name: ClassVar[str] = "bayesian_dqn"
    label: ClassVar[str] = "Bayesian DQN"
    resample: Literal["step", "episode"] | int = "episode"
    """When a new θ is drawn for control: every step, every so many, or episode."""
    sigma: float = 0.1
    """σ of a target around its value."""
    prior: float = 1.0
    """Standard deviation of a weight of the last layer before there are data."""
    period: int = 1000
    """Steps between regressions."""

    def compose(self) -> Agent:
        returns = Gaussian(self.sigma, draw="mean")
        posterior = LastLayer(prior=self.prior, period=self.period)
        return Agent(returns, posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class RLSVI(BayesianDQN):
    """RLSVI: Bayesian regression on the observation itself, a draw an episode."""

    name: ClassVar[str] = "rlsvi"
    label: ClassVar[str] = "RLSVI"
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers: none, the value is linear."""
    period: int = 100
    """Steps between regressions."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BootstrappedDQN(NetworkSettings):
    """Bootstrapped DQN: Gaussian return, σ → 0; an ensemble, with or without prior functions."""

    name: ClassVar[str] = "bootstrapped_dqn"
    label: ClassVar[str] = "Bootstrapped DQN"
    resample: Literal["step", "episode"] | int = "episode"
    """When a new member is drawn for control: every step, every so many, or episode."""
    size: int = 10
    """K, the number of members."""
    prior: float | None = 3.0
    """β, the scale of each member's prior function; None: without."""
    mask: float = 0.5
    """Probability that a member learns from a transition."""

    def compose(self) -> Agent:
        posterior = Ensemble(self.size, mask=self.mask, prior=self.prior)
        return Agent(Gaussian(0.0), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParameterNoiseDQN(NetworkSettings):
    """Parameter noise: DQN that acts on perturbed weights, by a scale that adapts."""

    name: ClassVar[str] = "parameter_noise"
    label: ClassVar[str] = "Parameter noise"
    resample: Literal["step", "episode"] | int = "episode"
    """When a new θ is drawn for control: every step, every so many, or episode."""
    std: float = 0.05
    """Standard deviation of the noise at the start."""
    distance: float = 0.5
    """How far perturbed values are kept from the unperturbed."""

    def compose(self) -> Agent:
        posterior = ParameterNoise(self.std, self.distance)
        return Agent(Gaussian(0.0), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoubleUncertain(NetworkSettings):
    """Double uncertain value networks: a Gaussian return of learned variance; dropout."""

    name: ClassVar[str] = "double_uncertain"
    label: ClassVar[str] = "Double uncertain"
    rate: float = 0.1
    """Probability that a hidden unit is left out."""

    def compose(self) -> Agent:
        return Agent(LearnedGaussian(), Dropout(self.rate), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Thompson(NetworkSettings):
    """Thompson sampling, for bandits: Gaussian return; conjugate posterior (Section 5.1)."""

    name: ClassVar[str] = "thompson"
    label: ClassVar[str] = "Thompson sampling"
    hidden: tuple[int, ...] = ()
    """Widths of the hidden layers: there can be none."""
    buffer_size: int = 10_000
    """Transitions the posterior is computed from: the last so many."""
    learning_starts: int = 1
    """The step of the first update."""
    batch_size: int = 1
    """Nothing is left to a minibatch."""
    sigma: float = 1.0
    """σ of a reward around its arm's mean."""
    prior: float = 1.0
    """Standard deviation of an arm's mean before it is pulled."""
    period: int = 1
    """Steps between updates of the posterior."""

    def compose(self) -> Agent:
        posterior = Conjugate(prior=self.prior, period=self.period)
        return Agent(Gaussian(self.sigma, draw="mean"), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class IGE(NetworkSettings):
    """Index GE, beyond the paper: a low-rank posterior whose index drives prior functions too."""

    name: ClassVar[str] = "ige"
    label: ClassVar[str] = "Index GE"
    resample: Literal["step", "episode"] | int = "episode"
    """When a new index is drawn for control: every step, every so many, or episode."""
    rank: int = 4
    """M, the length of the index."""
    draws: int = 20
    """Indices drawn for each transition of an update."""
    prior: float | None = 3.0
    """β, the scale of the prior functions; None: without."""
    paired: bool = True
    """Whether a transition's target takes the index of its Q."""
    rho: float | None = None
    """ρ at the start, of a diagonal part of the last layer; None: without."""
    sigma: float = 1e-4
    """σ of the return. The larger it is, the more the entropy of q_φ weighs against the data."""
    prior_std: float | None = 1.0
    """Standard deviation that a weight of the last layer tends to where no data inform it, as a
    multiple of 1/√inputs; None: it grows without end."""

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
    """PSRL, a tabular gold standard: acts in an MDP drawn from its posterior every episode."""

    name: ClassVar[str] = "psrl"
    label: ClassVar[str] = "PSRL"
    gamma: float = 0.99
    """γ, the discount."""
    concentration: float = 0.01
    """Sum of the parameters of the Dirichlet prior over next states, which are all alike."""
    reward_std: float = 0.3
    """Standard deviation of a mean reward before it is seen."""
    noise_std: float = 0.03
    """Standard deviation of a reward about its mean, taken as known."""
    sweeps: int = 150
    """Sweeps of value iteration: how many steps ahead it looks."""

    def compose(self) -> Learner:
        return PosteriorSampling(**dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True, kw_only=True)
class BayesianQLearning(Settings):
    """Bayesian Q-learning, a tabular gold standard: a normal-gamma law of each pair's return."""

    name: ClassVar[str] = "bayesian_q_learning"
    label: ClassVar[str] = "Bayesian Q-learning"
    gamma: float = 0.99
    """γ, the discount."""
    mu: float = 0.0
    """μ₀, the mean of a value before it is seen."""
    lam: float = 0.1
    """λ, how many returns that is worth."""
    alpha: float = 2.0
    """α, half as many returns as the prior of their precision is worth."""
    beta: float = 0.1
    """β: the variance of a return is about β/(α − 1) before any is seen."""

    def compose(self) -> Learner:
        return QValueSampling(**dataclasses.asdict(self))


_ALL = (
    DQN, C51, QRDQN, NoisyNet, GE, VDQN, BBQ, BayesianDQN, BootstrappedDQN, ParameterNoiseDQN,
    DoubleUncertain, Thompson, RLSVI, IGE, PSRL, BayesianQLearning, *ACTOR_CRITICS,
)  # fmt: skip
AGENTS: dict[str, type[Settings]] = {kind.name: kind for kind in _ALL}


def label_of(name: str) -> str:
    """How to call an agent in a picture: its label, or the name it has."""
    return AGENTS[name].label if name in AGENTS else name


def settings_of(name: str) -> type[Settings]:
    """The settings class of a named agent."""
    if name not in AGENTS:
        raise ConfigError("agent", name, "one of " + ", ".join(AGENTS) + did_you_mean(name, AGENTS))
    return AGENTS[name]


def fitting(continuous: bool) -> list[str]:
    """The named agents for continuous actions, or for discrete ones."""
    return [name for name, kind in AGENTS.items() if kind().compose().continuous == continuous]
