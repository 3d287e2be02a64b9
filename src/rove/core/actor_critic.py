"""The randomised critic of Section 4.4, for any return distribution Z_θ and any q_φ(θ).

A policy is trained by the gradient of Q_θ̂ with θ̂ ~ q_φ(θ). The marks 2.k refer to line k of
Algorithm 2. `law` is q_φ as returned by `Posterior.law`.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float

from rove.core import checks, control
from rove.core.critic import CriticLearner
from rove.core.diagnostics import Beliefs, Inspected, beliefs_at, unit_bounds
from rove.core.folding import Folded
from rove.core.learner import AgentState
from rove.core.optimiser import adam_step, first_moments, init_optimiser
from rove.core.policy import critic_input, init_policy, policy, soft_update
from rove.parts import noise, replay
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.parts.onehot import VECTORS, Form, Observation
from rove.parts.replay import Transition
from rove.posteriors.base import Pairs, Phi, Rows, apply_all, single
from rove.posteriors.priors import inputs
from rove.returns.base import values

# Indices of the random streams of a step.
(
    _RESAMPLE, _NOISE, _RANDOM, _MINIBATCH, _THETA, _TARGET_THETA, _TARGET, _SMOOTHING, _REFIT,
    _THETA_HAT, _BONUS, _STEP,
) = range(12)  # fmt: skip


class Actor(NamedTuple):
    """The policy's part of the agent's state."""

    psi: Theta
    """Parameters ψ of the policy π_ψ (θ_p in the paper)."""
    psi_target: Theta
    """Parameters ψ⁻ of the target policy."""


class ActorCritic(CriticLearner):
    """An actor–critic for continuous actions: DDPG whose critic consists of Z_θ and q_φ(θ).

    The critic's network takes (s, a) as its input and returns the parameters of Z_θ(s, a). φ is
    updated as in Algorithm 2, with a′ = π_ψ⁻(s′) in place of the greedy action. The policy is
    updated by the gradient of E[Z_θ̂(s, π_ψ(s))], with one θ̂ ~ q_φ for the whole minibatch.

    As in DDPG, and unlike in the paper, φ⁻ and ψ⁻ move towards φ and ψ by a fraction τ in each
    update, and a′ is that of ψ⁻: φ⁻ ← (1 − τ)·φ⁻ + τ·φ. τ = 1 with a `target_period` gives the
    periodic copies of Algorithm 2. The policy ends in a tanh, and noise can be added to its
    actions. Two `critics` and target smoothing give TD3.
    """

    random_actions = ("noise_std", "random_steps")
    learning_rates = ("actor_lr", "critic_lr")
    target_period: int | Array = 1
    """Number of steps between updates of φ⁻ and ψ⁻."""
    hidden: tuple[int, ...] = eqx.field(default=(64, 64), static=True)
    """Widths of the hidden layers of the policy and of the critics."""
    critics: int = eqx.field(default=1, static=True)
    """Number of critics. Targets use the one with the lowest mean, and θ̂ belongs to the first. All
    critics share random numbers, so that noise does not decide which one is lowest."""
    noise_std: float | Array = 0.0
    """Scale σ of the action noise x ← (1 − κ)·x + σ·ξ, which is reset in every episode."""
    noise_reversion: float | Array = 0.15
    """Mean reversion κ of the action noise: 1 for independent Gaussian noise, less for an
    Ornstein–Uhlenbeck process."""
    random_steps: int | Array = 0
    """Number of initial steps in which actions are uniform on [−1, 1]^k."""
    actor_lr: float | Array = 1e-4
    """Learning rate of the policy."""
    critic_lr: float | Array = 1e-3
    """Learning rate α of the critics."""
    tau: float | Array = 0.005
    """Fraction τ by which the targets move towards φ and ψ in each update. What moves is φ⁻ itself:
    for a mean-field Gaussian μ_θ and ρ_θ, and not the variances that follow from ρ_θ."""
    policy_period: int | Array = 1
    """Number of steps between updates of the policy (TD3's policy delay)."""
    smoothing_std: float | Array = 0.0
    """Standard deviation of the noise added to a′ (TD3's target smoothing)."""
    smoothing_clip: float | Array = 0.5
    """Bound on the noise added to a′."""

    def __check_init__(self) -> None:
        checks.check_actor_critic(self)

    @property
    def name(self) -> str:
        return f"policy, {super().name}"

    @property
    def continuous(self) -> bool:
        return True

    def init(self, features: int, actions: int, key: Key, form: Form = VECTORS) -> AgentState:
        """2.2: initialise φ, φ⁻ ← φ, ψ, ψ⁻ ← ψ, an empty replay buffer B, and counter ← 0."""
        k_phi, k_theta, k_psi, k_noise, k_bonus = (noise.fold(key, i) for i in range(5))
        network = self.network_for(features + actions, self.returns.outputs)
        keys = (noise.fold(k_phi, i) for i in range(self.critics))
        phis = tuple(self.posterior.init(network, k) for k in keys)
        law, psi = self.posterior.law(phis[0]), init_policy(features, self.hidden, actions, k_psi)
        return AgentState(
            phi=phis,
            phi_target=without_priors(phis),
            theta=control.first_theta(self.posterior, self.resample, law, k_theta),
            optimiser=(
                first_moments(self.posterior, tuple(phi.learned for phi in phis)),
                init_optimiser(psi),
            ),
            replay=self.empty_buffer(features, actions, form),
            counter=jnp.zeros((), jnp.int32),
            actor=Actor(psi, psi),
            random=self.noise_std * noise.normal(k_noise, (actions,)),
            bonus=self.bonus.init(features, form.coded, k_bonus),
            reward_scale=self.reward_scale.init(),
        )

    def laws(self, phis: tuple[Phi, ...]) -> tuple[Any, ...]:
        """Return the law of q_φ of each critic."""
        return tuple(self.posterior.law(phi) for phi in phis)

    # Control

    def resample_theta(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """Draw the noise of the next action, and θ̂ ~ q_φ if it is used for more than one step."""
        x = jnp.where(begins, 0.0, (1.0 - self.noise_reversion) * state.random)
        x += self.noise_std * noise.normal(noise.fold(key, _NOISE), x.shape)
        k, first = noise.fold(key, _RESAMPLE), state._replace(phi=state.phi[0])
        theta = control.next_theta(self.posterior, self.resample, first, begins, k)
        return state._replace(theta=theta, random=x)

    def act(self, state: AgentState, observation: Observation, key: Key) -> Float[Array, " k"]:
        """Return π_ψ(s) plus noise or, in the first `random_steps`, a random action."""
        noisy = jnp.clip(policy(state.actor.psi, observation) + state.random, -1.0, 1.0)
        uniform = 2.0 * noise.uniform(noise.fold(key, _RANDOM), noisy.shape) - 1.0
        return jnp.where(state.counter < self.random_steps, uniform, noisy)

    def greedy(self, state: AgentState, observation: Observation) -> Float[Array, " k"]:
        """Return π_ψ(s)."""
        return policy(state.actor.psi, observation)

    # Training

    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """2.5, 2.8: increment the counter and save {s, a, r, s′} to B.

        `where`: False leaves the buffer's rows unchanged.
        """
        bonus, step = self.bonus.observe(state.bonus, transition)
        scale = self.reward_scale.observe(state.reward_scale, transition, self.gamma)
        buffer = replay.add(state.replay, step, where)
        state = state._replace(replay=buffer, bonus=bonus, reward_scale=scale)
        return state._replace(counter=state.counter + 1)

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """2.9–2.15: update φ, then ψ with the new critic, then φ⁻ and ψ⁻. Also return the loss."""
        k, actor = partial(noise.fold, key), state.actor
        first, laws_minus = self.posterior.law(state.phi[0]), self.laws(state.phi_target)
        reward = partial(self.reward, state, state.phi[0].priors, first, k(_BONUS))
        batch = self.minibatch(state.replay, reward, k(_MINIBATCH))  # 2.9
        theta, theta_minus = self.draw(  # 2.9, 2.11
            first, laws_minus[0], batch, k(_THETA), k(_TARGET_THETA)
        )
        priors = tuple(phi.priors for phi in state.phi)
        lookahead = partial(self.lookahead, priors, laws_minus, actor.psi_target)
        x = lookahead(theta_minus, batch, key)  # 2.10
        moments, psi_moments = state.optimiser
        phis, moments, (loss, errors) = self.descend(  # 2.11–2.12
            state.phi, moments, self.critic_lr, theta, batch, x, k(_STEP)
        )
        phis = tuple(self.refit(state, phi, lookahead, reward, k(_REFIT)) for phi in phis)
        buffer = replay.reprioritised(state.replay, batch, errors, self.prioritised)

        def updated_policy() -> tuple[Theta, Any]:
            law, theta_hat = self.posterior.law(phis[0]), state.theta
            if self.resample == "step":
                theta_hat = self.posterior.sample(law, k(_THETA_HAT))
            critic = law, phis[0].priors, theta_hat
            gradient = jax.grad(self.cost)(actor.psi, *critic, batch.observation)
            return adam_step(actor.psi, gradient, psi_moments, self.actor_lr)

        psi, psi_moments = lax.cond(
            state.counter % self.policy_period == 0,
            updated_policy,
            lambda: (actor.psi, psi_moments),
        )
        due = state.counter % self.target_period == 0
        phi_target, psi_target = soft_update(  # 2.13–2.14
            (state.phi_target, actor.psi_target),
            (without_priors(phis), psi),
            jnp.where(due, self.tau, 0.0),
        )
        state = state._replace(
            phi=phis,
            phi_target=phi_target,
            optimiser=(moments, psi_moments),
            replay=buffer,
            actor=actor._replace(psi=psi, psi_target=psi_target),
            bonus=self.bonus.update(state.bonus, batch),
        )
        return state, loss

    def cost(
        self, psi: Theta, law: Any, priors: Any, theta: Any, states: Observation
    ) -> Float[Array, ""]:
        """Return the mean of −E[Z_θ̂(s, π_ψ(s))] over states; (8) is minus its gradient.

        With a risk measure, that of Z_θ̂ takes the place of its mean.
        """
        return -jnp.mean(self.values(law, priors, theta, critic_input(states, policy(psi, states))))

    def values(
        self, law: Any, priors: Any, theta: Any, pairs: Float[Array, "n inputs"]
    ) -> Float[Array, " n"]:
        """Return E[Z_θ(s, a)], or its risk measure, of a batch of pairs, for a single θ."""
        z = apply_all(self.posterior, law, theta, inputs(priors, pairs))
        return values(self.returns, z)

    def lookahead(
        self,
        priors: tuple[Any, ...],
        laws_minus: tuple[Any, ...],
        psi_target: Theta,
        theta_minus: Rows,
        batch: Transition,
        key: Key,
    ) -> Array:
        """2.10: sample x ~ r + γ·Z_θ⁻(s′, a′), where a′ = π_ψ⁻(s′) plus smoothing noise.

        With several critics, Z_θ⁻ is that of the critic with the lowest value at (s′, a′).
        """
        actions = policy(psi_target, batch.next_observation)
        smoothing = self.smoothing_std * noise.normal(noise.fold(key, _SMOOTHING), actions.shape)
        smoothing = jnp.clip(smoothing, -self.smoothing_clip, self.smoothing_clip)
        pairs = critic_input(batch.next_observation, jnp.clip(actions + smoothing, -1.0, 1.0))
        critics = zip(laws_minus, priors, strict=True)
        z = jnp.stack([theta_minus(law, inputs(prior, pairs)) for law, prior in critics])
        lowest = jnp.argmin(values(self.returns, z), axis=0)
        z = jnp.take_along_axis(z, lowest[None, :, :, None], axis=0)[0]
        return self.targets(z, batch, noise.fold(key, _TARGET))

    def pairs(self, priors: Any, batch: Transition) -> Pairs:
        """Return (s, a) as inputs of the critic's network, whose outputs describe one action."""
        x = inputs(priors, critic_input(batch.observation, batch.action))
        return Pairs(x, jnp.zeros(batch.reward.shape, jnp.int32))

    def beliefs(self, state: AgentState, xs: Observation, key: Key) -> Beliefs:
        """Return diagnostics of the first critic in given states, for the policy's actions."""
        phi, pairs = state.phi[0], critic_input(xs, policy(state.actor.psi, xs))
        law, x = self.posterior.law(phi), inputs(phi.priors, pairs)
        scale = self.reward_scale.value(state.reward_scale)
        return beliefs_at(self.returns, self.posterior, law, x, scale, key)

    def inspect(self, state: AgentState, xs: Observation) -> Inspected:
        phi, actions = state.phi[0], policy(state.actor.psi, xs)
        s = inputs(phi.priors, critic_input(xs, actions))
        z = jax.vmap(self.posterior.mean, (None, 0))(self.posterior.law(phi), s)
        q = self.reward_scale.value(state.reward_scale) * values(self.returns, z)
        units = unit_bounds(self.posterior, phi, s.features)
        expected = not self.intrinsic and self.returns.risk is None
        return Inspected(actions, q, jnp.zeros_like(q), units, self.gamma, expected)

    def folded(self, state: AgentState) -> Folded:
        return Folded(single(state.actor.psi), squashed=True)


def without_priors(phis: tuple[Phi, ...]) -> tuple[Phi, ...]:
    """Return what moves of each φ: all except its prior functions, which φ⁻ shares with it."""
    return tuple(phi._replace(priors=()) for phi in phis)
