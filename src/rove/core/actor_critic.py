"""The randomised critic of Section 4.4: a policy that climbs Q_θ̂ with θ̂ ~ q_φ(θ), for any return
distribution Z_θ and any q_φ. Comments marked 2.k carry out line k of Algorithm 2."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float

from rove.core import checks, control
from rove.core.critic import CriticLearner, adam_step, init_optimiser
from rove.core.diagnostics import Beliefs, beliefs_at
from rove.core.learner import AgentState
from rove.core.policy import followed, fresh, joined, policy
from rove.parts import noise, replay
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.parts.replay import Transition
from rove.posteriors.base import Pairs, Phi, Rows, apply_all
from rove.posteriors.priors import inputs
from rove.returns.base import means

# What a step's key is folded with, so that no two draws of a step share one.
(
    _RESAMPLE, _NOISE, _RANDOM, _MINIBATCH, _THETA, _TARGET_THETA, _TARGET, _SMOOTHING, _REFIT,
    _THETA_HAT,
) = range(10)  # fmt: skip


class Actor(NamedTuple):
    """The policy's part of the state."""

    psi: Theta
    """ψ, the parameters of the policy π_ψ (the paper's θ_p)."""
    psi_target: Theta
    """ψ⁻."""
    noise: Float[Array, " k"]
    """Noise that is added to the next action."""


class ActorCritic(CriticLearner):
    """DDPG whose critic is a return family and a parameter family. The critic's network takes s
    and a as one input, and puts out what describes Z_θ(s, a).

    An update of φ is Algorithm 2's with a′ = π_ψ⁻(s′) in place of the greedy action. The policy's
    is the gradient of E[Z_θ̂(s, π_ψ(s))] through one θ̂ ~ q_φ for the whole minibatch. The paper
    says no more; the rest is as in DDPG: φ⁻ and ψ⁻ move a fraction τ towards φ and ψ at each
    update (τ = 1 and a `target_period` are the copies of Algorithm 2), the policy ends in a tanh,
    and its actions can have noise. With `critics` of 2 and a smoothed target it is TD3.
    """

    target_period: int | Array = 1
    """Number of steps between moves of φ⁻ and ψ⁻."""
    hidden: tuple[int, ...] = eqx.field(default=(64, 64), static=True)
    """Widths of the hidden layers, of the policy and of the critic."""
    critics: int = eqx.field(default=1, static=True)
    """Number of critics. A target takes the one whose mean is least; θ̂ is drawn from the first.
    All use the same random numbers, so that the least is not least by its noise alone."""
    noise_std: float | Array = 0.0
    """σ of the noise on actions, x ← (1 − κ)·x + σ·ξ, which starts anew with each episode."""
    noise_reversion: float | Array = 0.15
    """κ: 1 makes the noise independent (Gaussian), less an Ornstein–Uhlenbeck process."""
    random_steps: int | Array = 0
    """Number of steps at the start whose actions are uniform on [−1, 1]^k."""
    actor_lr: float | Array = 1e-4
    """The learning rate of the policy."""
    critic_lr: float | Array = 1e-3
    """α, the learning rate of the critics."""
    tau: float | Array = 0.005
    """How far φ⁻ and ψ⁻ move towards φ and ψ. For φ⁻ it is q_φ as written out by `law` that moves:
    a Gaussian's means and variances."""
    policy_period: int | Array = 1
    """Number of steps between updates of the policy (TD3's delay)."""
    smoothing_std: float | Array = 0.0
    """Standard deviation of the noise on a′ (TD3's smoothing)."""
    smoothing_clip: float | Array = 0.5
    """Bound on the noise on a′."""

    def __check_init__(self) -> None:
        checks.check_actor_critic(self)

    @property
    def name(self) -> str:
        return f"policy, {type(self.returns).__name__} × {type(self.posterior).__name__}"

    @property
    def continuous(self) -> bool:
        return True

    def init(self, features: int, actions: int, key: Key) -> AgentState:
        """2.2: φ and φ⁻, ψ and ψ⁻ alike, an empty buffer B, a counter at 0."""
        k_phi, k_theta, k_psi, k_noise = (noise.fold(key, i) for i in range(4))
        sizes = (features + actions, *self.hidden, self.returns.outputs)
        keys = (noise.fold(k_phi, i) for i in range(self.critics))
        phis = tuple(self.posterior.init(sizes, k) for k in keys)
        laws = self.laws(phis)
        psi = fresh(features, self.hidden, actions, k_psi)
        return AgentState(
            phi=phis,
            phi_target=laws,
            theta=control.first_theta(self.posterior, self.resample, laws[0], k_theta),
            optimiser=(init_optimiser(tuple(phi.learned for phi in phis)), init_optimiser(psi)),
            replay=replay.init(self.buffer_size, features, actions),
            counter=jnp.zeros((), jnp.int32),
            actor=Actor(psi, psi, self.noise_std * noise.normal(k_noise, (actions,))),
        )

    def laws(self, phis: tuple[Phi, ...]) -> tuple[Any, ...]:
        """q_φ of each critic, written out."""
        return tuple(self.posterior.law(phi) for phi in phis)

    # Control

    def redraw(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """The noise of the next action; and θ̂ ~ q_φ, where it is held for longer than a step."""
        x = jnp.where(begins, 0.0, (1.0 - self.noise_reversion) * state.actor.noise)
        x += self.noise_std * noise.normal(noise.fold(key, _NOISE), x.shape)
        k, now = noise.fold(key, _RESAMPLE), (state.phi[0], state.theta, state.counter)
        theta = control.next_theta(self.posterior, self.resample, *now, begins, k)
        return state._replace(theta=theta, actor=state.actor._replace(noise=x))

    def act(
        self, state: AgentState, observation: Float[Array, " features"], key: Key
    ) -> Float[Array, " k"]:
        """π_ψ(s) and its noise; in the first `random_steps`, any action."""
        noisy = jnp.clip(policy(state.actor.psi, observation) + state.actor.noise, -1.0, 1.0)
        anything = 2.0 * noise.uniform(noise.fold(key, _RANDOM), noisy.shape) - 1.0
        return jnp.where(state.counter < self.random_steps, anything, noisy)

    def greedy(
        self, state: AgentState, observation: Float[Array, " features"]
    ) -> Float[Array, " k"]:
        """π_ψ(s)."""
        return policy(state.actor.psi, observation)

    # Training

    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """2.5, 2.8: count the step and save {s, a, r, s′} to B (`where` as in `replay.add`)."""
        memory = replay.add(state.replay, transition, where)
        return state._replace(replay=memory, counter=state.counter + 1)

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """2.9–2.15: an update of φ, one of ψ by the critic as it then is, and of φ⁻ and ψ⁻. Also
        the critics' loss."""
        k, actor = partial(noise.fold, key), state.actor
        batch, ids = replay.sample(state.replay, k(_MINIBATCH), self.batch_size)  # 2.9
        first, first_minus = self.posterior.law(state.phi[0]), state.phi_target[0]
        theta, theta_minus = self.draw(first, first_minus, ids, k(_THETA), k(_TARGET_THETA))  # 2.9
        priors = tuple(phi.priors for phi in state.phi)
        lookahead = partial(self.lookahead, priors, state.phi_target, actor.psi_target)
        x = lookahead(theta_minus, batch, k(_TARGET), k(_SMOOTHING))  # 2.10
        moments, psi_moments = state.optimiser
        phis, moments, loss = self.descend(  # 2.11–2.12
            state, state.phi, moments, self.critic_lr, theta, batch, x, lookahead, k(_REFIT)
        )
        laws = self.laws(phis)

        def climbed() -> tuple[Theta, Any]:
            theta_hat = state.theta
            if self.resample == "step":
                theta_hat = self.posterior.sample(laws[0], k(_THETA_HAT))
            critic = laws[0], phis[0].priors, theta_hat
            gradient = jax.grad(self.cost)(actor.psi, *critic, batch.observation)
            return adam_step(actor.psi, gradient, psi_moments, self.actor_lr)

        psi, psi_moments = lax.cond(
            state.counter % self.policy_period == 0, climbed, lambda: (actor.psi, psi_moments)
        )
        due = state.counter % self.target_period == 0
        phi_target, psi_target = followed(  # 2.13–2.14
            (state.phi_target, actor.psi_target), (laws, psi), jnp.where(due, self.tau, 0.0)
        )
        state = state._replace(
            phi=phis,
            phi_target=phi_target,
            optimiser=(moments, psi_moments),
            actor=actor._replace(psi=psi, psi_target=psi_target),
        )
        return state, loss

    def cost(
        self, psi: Theta, law: Any, priors: Any, theta: Any, states: Float[Array, "n features"]
    ) -> Float[Array, ""]:
        """−E[Z_θ̂(s, π_ψ(s))], mean over states. Its gradient is that of (8)."""
        return -jnp.mean(self.values(law, priors, theta, joined(states, policy(psi, states))))

    def values(
        self, law: Any, priors: Any, theta: Any, pairs: Float[Array, "n inputs"]
    ) -> Float[Array, " n"]:
        """E[Z_θ(s, a)] of some pairs, for one θ."""
        z = apply_all(self.posterior, law, theta, inputs(priors, pairs))
        return means(self.returns, z)

    def lookahead(
        self,
        priors: tuple[Any, ...],
        laws_minus: tuple[Any, ...],
        psi_target: Theta,
        theta_minus: Rows,
        batch: Transition,
        k_target: Key,
        k_smoothing: Key,
    ) -> Array:
        """2.10: x ~ r + γ·Z_θ⁻(s′, a′) where a′ = π_ψ⁻(s′), smoothed; of several critics, the one
        whose mean there is least."""
        actions = policy(psi_target, batch.next_observation)
        blur = self.smoothing_std * noise.normal(k_smoothing, actions.shape)
        blur = jnp.clip(blur, -self.smoothing_clip, self.smoothing_clip)
        pairs = joined(batch.next_observation, jnp.clip(actions + blur, -1.0, 1.0))
        critics = zip(laws_minus, priors, strict=True)
        z = jnp.stack([theta_minus(law, inputs(prior, pairs)) for law, prior in critics])
        least = jnp.argmin(means(self.returns, z), axis=0)
        z = jnp.take_along_axis(z, least[None, :, :, None], axis=0)[0]
        return self.targets(z, batch.reward, batch, k_target)

    def pairs(self, priors: Any, batch: Transition) -> Pairs:
        x = inputs(priors, joined(batch.observation, batch.action))
        return Pairs(x, jnp.zeros(batch.reward.shape, jnp.int32))

    def beliefs(self, state: AgentState, xs: Float[Array, "n features"], key: Key) -> Beliefs:
        """For diagnostics: what the first critic says of some states and the policy's actions."""
        phi, pairs = state.phi[0], joined(xs, policy(state.actor.psi, xs))
        law, x = self.posterior.law(phi), inputs(phi.priors, pairs)
        return beliefs_at(self.returns, self.posterior, law, x, key)
