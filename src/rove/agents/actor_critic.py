"""The named actor–critics: DDPG with four kinds of critic (Section 4.4 of the paper), and TD3."""

import dataclasses
from typing import Any, Literal

from rove.agents.settings import (
    BONUS_WEIGHT,
    BonusName,
    ScaleName,
    Settings,
    gaussian_with_entropy,
    scale_of_rewards,
    with_bonus,
)
from rove.core.actor_critic import ActorCritic
from rove.errors import ConfigError, check_choice
from rove.posteriors import Dirac, Dropout, MeanField
from rove.returns import Gaussian

_AGENT: Any = ActorCritic  # its attributes are the default values of its fields


class ActorCriticSettings(Settings):
    """Settings shared by all actor–critics."""

    actor_lr: float = _AGENT.actor_lr
    """Learning rate of Adam for the policy."""
    critic_lr: float = _AGENT.critic_lr
    """Learning rate α of Adam for the critic."""
    gamma: float = _AGENT.gamma
    """Discount factor γ."""
    n_step: int = _AGENT.n_step
    """Number of rewards in a target; above 1, sparse rewards travel faster."""
    one_step: float = _AGENT.one_step
    """Fraction of targets with a single reward; only with n-step above 1."""
    tau: float = _AGENT.tau
    """Fraction τ by which the targets φ⁻ and ψ⁻ move towards φ and ψ; 1: they are copied."""
    target_period: int = _AGENT.target_period
    """Number of steps between updates of the targets φ⁻ and ψ⁻."""
    resample: Literal["step", "episode"] | int = _AGENT.resample
    """When to resample θ for the policy's update: every step, every episode, or every N steps."""
    noise: Literal["ou", "gaussian"] = "ou"
    """Action noise: an Ornstein–Uhlenbeck process, or independent Gaussian noise."""
    noise_std: float = _AGENT.noise_std
    """Standard deviation of the action noise; with noise ou, of its increment per step."""
    noise_reversion: float = _AGENT.noise_reversion
    """Fraction by which the action noise decays per step; only for noise ou."""
    random_steps: int = 500
    """Number of initial steps with uniformly random actions."""
    batch_size: int = _AGENT.batch_size
    """Number of transitions N in a minibatch."""
    buffer_size: int = _AGENT.buffer_size
    """Capacity of the replay buffer, in transitions."""
    prioritised: float | None = _AGENT.prioritised
    """Exponent α of prioritised replay, such as 0.6; None: uniform sampling."""
    importance: float = _AGENT.importance
    """Exponent β of the importance weights of prioritised replay; only with prioritised."""
    learning_starts: int = _AGENT.learning_starts
    """Step of the first update."""
    hidden: tuple[int, ...] = _AGENT.hidden
    """Widths of the hidden layers of the policy and of the critic."""
    bonus: BonusName = "none"
    """Intrinsic reward: disagreement (the spread of Q over θ), counts (of visits to states), or rnd
    (random network distillation)."""
    bonus_weight: float = BONUS_WEIGHT
    """Weight η of the intrinsic reward; only with a bonus."""
    reward_scale: float | ScaleName = 1.0
    """What rewards are divided by: a number; running: the largest return so far; growing: the same,
    but at least 1."""

    def shared(self) -> dict[str, Any]:
        """Return the arguments of `ActorCritic`, including `noise_reversion` for the chosen kind of
        noise, the `Bonus` and the `RewardScale`."""
        check_choice("noise", self.noise, ("ou", "gaussian"))
        fields = dataclasses.fields(ActorCriticSettings)
        shared = {f.name: getattr(self, f.name) for f in fields if f.name != "noise"}
        shared = with_bonus(shared) | {"reward_scale": scale_of_rewards(self.reward_scale)}
        if self.noise == "ou":
            return shared
        if self.noise_reversion != ActorCriticSettings.noise_reversion:
            reason = "has no effect with noise='gaussian': remove it, or set noise='ou'"
            raise ConfigError("noise_reversion", self.noise_reversion, reason)
        return shared | {"noise_reversion": 1.0}


class DDPG(ActorCriticSettings, name="ddpg", label="DDPG"):
    """DDPG: critic with a point estimate of θ, action noise (Section 4.4)."""

    resample: Literal["step", "episode"] | int = _AGENT.resample
    """No effect: the critic of this agent does not sample θ."""
    noise_std: float = 0.1
    """Standard deviation of the action noise; with noise ou, of its increment per step."""

    def compose(self) -> ActorCritic:
        return ActorCritic(Gaussian(0.0), Dirac(), **self.shared())


class DDPGNoisyNet(ActorCriticSettings, name="ddpg_noisynet", label="DDPG, NoisyNet critic"):
    """DDPG with a NoisyNet critic, without action noise (Section 4.4)."""

    rho: float = -4.0
    """Initial ρ; the noise on a parameter of the critic has standard deviation softplus(ρ)."""

    def compose(self) -> ActorCritic:
        return ActorCritic(Gaussian(0.0), MeanField(self.rho), **self.shared())


class DDPGGE(ActorCriticSettings, name="ddpg_ge", label="DDPG, GE critic"):
    """DDPG with a GE critic (Algorithm 2), without action noise (Section 4.4)."""

    rho: float = -4.0
    """Initial ρ; the standard deviation of a parameter of the critic is softplus(ρ)."""
    sigma: float = 1e-3
    """Standard deviation σ of the return; a larger σ gives the entropy of q_φ more weight."""
    prior_std: float | None = 1.0
    """Standard deviation that a weight tends to without data, as a multiple of 1/√n for a layer
    with n inputs; None: it grows without bound."""

    def compose(self) -> ActorCritic:
        posterior = MeanField(self.rho, prior_std=self.prior_std)
        return ActorCritic(gaussian_with_entropy(self.sigma), posterior, **self.shared())


class DDPGDropout(ActorCriticSettings, name="ddpg_dropout", label="DDPG, dropout critic"):
    """DDPG with a dropout critic trained by an α-divergence over several masks."""

    rate: float = 0.05
    """Dropout probability of a hidden unit of the critic."""
    alpha: float | None = 0.5
    """α of the divergence: 1 is the marginal likelihood; None: the mean loss, the limit at 0."""
    draws: int = 10
    """Number of dropout masks for each transition of an update."""
    sigma: float = 1.0
    """Standard deviation σ of a target around Q(s, a)."""

    def compose(self) -> ActorCritic:
        objective = {"alpha": self.alpha, "draws": self.draws}
        returns, posterior = Gaussian(self.sigma, "mean"), Dropout(self.rate)
        return ActorCritic(returns, posterior, **objective, **self.shared())


class TD3(ActorCriticSettings, name="td3", label="TD3"):
    """TD3 (not in the paper): minimum of two critics, smoothed targets, delayed policy updates."""

    noise: Literal["ou", "gaussian"] = "gaussian"
    """Action noise: an Ornstein–Uhlenbeck process, or independent Gaussian noise."""
    noise_std: float = 0.1
    """Standard deviation of the action noise; with noise ou, of its increment per step."""
    target_period: int = 2
    """Number of steps between updates of the targets φ⁻ and ψ⁻."""
    policy_period: int = 2
    """Number of steps between updates of the policy."""
    smoothing_std: float = 0.2
    """Standard deviation of the smoothing noise on the action of a target."""
    smoothing_clip: float = 0.5
    """Bound on the smoothing noise."""
    critic: Literal["dirac", "mean_field"] = "dirac"
    """dirac: point estimate; mean_field: Gaussian, as in NoisyNet (sigma 0) or GE (sigma > 0)."""
    rho: float = -4.0
    """Initial ρ; the standard deviation of a parameter is softplus(ρ). Only for mean_field."""
    sigma: float = 0.0
    """Standard deviation σ of the return; a larger σ gives the entropy of q_φ more weight."""
    prior_std: float | None = 1.0
    """Standard deviation that a weight tends to without data, as a multiple of 1/√n for a layer
    with n inputs; None: it grows without bound. Only for mean_field."""

    def compose(self) -> ActorCritic:
        check_choice("critic", self.critic, ("dirac", "mean_field"))
        posterior = MeanField(self.rho, prior_std=self.prior_std)
        for name in ("rho", "prior_std") if self.critic == "dirac" else ():
            if (value := getattr(self, name)) != getattr(TD3, name):
                reason = "has no effect with critic='dirac': remove it, or set critic='mean_field'"
                raise ConfigError(name, value, reason)
        return ActorCritic(
            Gaussian(self.sigma),
            Dirac() if self.critic == "dirac" else posterior,
            critics=2,
            policy_period=self.policy_period,
            smoothing_std=self.smoothing_std,
            smoothing_clip=self.smoothing_clip,
            **self.shared(),
        )
