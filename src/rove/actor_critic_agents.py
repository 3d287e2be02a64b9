"""The named actor–critics: DDPG with each critic of the paper's Section 6, and TD3 with any."""

import dataclasses
from typing import Any, ClassVar, Literal

from rove.core.actor_critic import ActorCritic
from rove.errors import ConfigError, check_choice
from rove.posteriors import Dirac, MeanField
from rove.returns import Gaussian
from rove.settings import Settings, noisy


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActorCriticSettings(Settings):
    """What every actor–critic can be told."""

    actor_lr: float = 1e-4
    """The learning rate of the policy's Adam."""
    critic_lr: float = 1e-3
    """α, the learning rate of the critic's Adam."""
    gamma: float = 0.99
    """γ, the discount."""
    tau: float = 0.005
    """How far φ⁻ and ψ⁻ move towards φ and ψ; 1: copies."""
    target_period: int = 1
    """Steps between such moves."""
    resample: Literal["step", "episode"] | int = "step"
    """When a new θ̂ is drawn for the policy's gradient: every step (the paper), every so many, or
    episode."""
    noise: Literal["ou", "gaussian"] = "ou"
    """Noise on actions: an Ornstein–Uhlenbeck process, or independent."""
    noise_std: float = 0.0
    """Its σ at a step."""
    noise_reversion: float = 0.15
    """How much of an Ornstein–Uhlenbeck process is lost in a step; not for independent noise."""
    random_steps: int = 500
    """So many first actions are uniformly random."""
    batch_size: int = 64
    """N, transitions in a minibatch."""
    buffer_size: int = 50_000
    """Transitions the replay buffer holds."""
    learning_starts: int = 500
    """The step of the first update."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers, of the policy and of the critic."""

    def shared(self) -> dict[str, Any]:
        """The fields that go to `ActorCritic`: as they are, but for the kind of noise."""
        check_choice("noise", self.noise, ("ou", "gaussian"))
        fields = dataclasses.fields(ActorCriticSettings)
        told = {f.name: getattr(self, f.name) for f in fields if f.name != "noise"}
        if self.noise == "ou":
            return told
        if self.noise_reversion != ActorCriticSettings.noise_reversion:
            what = "set with noise = 'ou' alone; here it is 'gaussian', independent at every step"
            raise ConfigError("noise_reversion", self.noise_reversion, what)
        return told | {"noise_reversion": 1.0}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DDPG(ActorCriticSettings):
    """DDPG: a critic with all mass on one θ; noise on actions (Section 4.4)."""

    name: ClassVar[str] = "ddpg"
    label: ClassVar[str] = "DDPG"
    noise_std: float = 0.1
    """Its σ at a step."""

    def compose(self) -> ActorCritic:
        return ActorCritic(Gaussian(0.0), Dirac(), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class DDPGNoisyNet(ActorCriticSettings):
    """DDPG with NoisyNet as its critic; no noise on actions (Section 4.4)."""

    name: ClassVar[str] = "ddpg_noisynet"
    label: ClassVar[str] = "DDPG, NoisyNet critic"
    rho: float = -4.0
    """ρ at the start: the noise of a parameter of the critic is softplus(ρ)."""

    def compose(self) -> ActorCritic:
        return ActorCritic(Gaussian(0.0), MeanField(self.rho), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class DDPGGE(ActorCriticSettings):
    """DDPG with GE as its critic: Algorithm 2; no noise on actions (Section 4.4)."""

    name: ClassVar[str] = "ddpg_ge"
    label: ClassVar[str] = "DDPG, GE critic"
    rho: float = -4.0
    """ρ at the start: the standard deviation of a parameter of the critic is softplus(ρ)."""
    sigma: float = 1e-3
    """σ of the return. The larger it is, the more the entropy of q_φ weighs against the data."""
    prior_std: float | None = 1.0
    """Standard deviation that a parameter tends to where no data inform it, as a multiple of
    1/√inputs of its layer; None: it grows without end (the paper)."""

    def compose(self) -> ActorCritic:
        posterior = MeanField(self.rho, prior_std=self.prior_std)
        return ActorCritic(noisy(self.sigma), posterior, **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class TD3(ActorCriticSettings):
    """TD3, beyond the paper: the lesser of two critics, a smoothed target, a policy that waits."""

    name: ClassVar[str] = "td3"
    label: ClassVar[str] = "TD3"
    noise: Literal["ou", "gaussian"] = "gaussian"
    """Noise on actions: an Ornstein–Uhlenbeck process, or independent."""
    noise_std: float = 0.1
    """Its σ at a step."""
    target_period: int = 2
    """Steps between moves of φ⁻ and ψ⁻."""
    policy_period: int = 2
    """Steps between updates of the policy."""
    smoothing_std: float = 0.2
    """Standard deviation of the noise on the action of a target."""
    smoothing_clip: float = 0.5
    """The most of it."""
    critic: Literal["dirac", "mean_field"] = "dirac"
    """q_φ of the critics: one θ, or a Gaussian for each parameter (NoisyNet; with sigma, GE)."""
    rho: float = -4.0
    """ρ of a mean-field critic at the start."""
    sigma: float = 0.0
    """σ of the return. The larger it is, the more the entropy of q_φ weighs against the data."""
    prior_std: float | None = 1.0
    """Standard deviation that a parameter of a mean-field critic tends to where no data inform it,
    as a multiple of 1/√inputs of its layer; None: it grows without end."""

    def compose(self) -> ActorCritic:
        check_choice("critic", self.critic, ("dirac", "mean_field"))
        posterior = MeanField(self.rho, prior_std=self.prior_std)
        for name in ("rho", "prior_std") if self.critic == "dirac" else ():
            if (value := getattr(self, name)) != getattr(TD3, name):
                raise ConfigError(name, value, "set with critic = 'mean_field' alone")
        return ActorCritic(
            Gaussian(self.sigma),
            Dirac() if self.critic == "dirac" else posterior,
            critics=2,
            policy_period=self.policy_period,
            smoothing_std=self.smoothing_std,
            smoothing_clip=self.smoothing_clip,
            **self.shared(),
        )


ACTOR_CRITICS = (DDPG, DDPGNoisyNet, DDPGGE, TD3)
