"""The randomised critic of Section 4.4: a policy that climbs Q_θ̂ with θ̂ ~ q_φ(θ), for any return
distribution Z_θ and any q_φ. Comments marked 2.k carry out line k of Algorithm 2."""

from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import noise, replay
from rove.errors import ConfigError, check_hidden, check_integer, check_number
from rove.learner import (
    DRAWS,
    AgentState,
    Beliefs,
    Learner,
    Memory,
    check_resample,
    memory_of,
    redraw_due,
)
from rove.networks import Theta
from rove.noise import Key
from rove.objective import descended, init_optimiser, means, objective, stds, targets
from rove.policy import followed, fresh, joined, policy
from rove.posteriors.base import Draw, Law, Phi, Posterior
from rove.replay import Transition
from rove.returns.base import Return

# What a step's key is folded with, so that no two draws of a step share one.
(
    _RESAMPLE, _NOISE, _RANDOM, _MINIBATCH, _THETA, _TARGET_THETA, _TARGET, _SMOOTHING, _REFIT,
    _THETA_HAT,
) = range(10)  # fmt: skip


class Actor(NamedTuple):
    """The policy's side."""

    psi: Theta
    """ψ, the parameters of the policy π_ψ (the paper's θ_p)."""
    psi_target: Theta
    """ψ⁻."""
    noise: Float[Array, " k"]
    """What is added to the action at hand."""


class ActorCritic(Learner):
    """DDPG whose critic is a return family and a parameter family. The critic's network takes s
    and a as one input, and puts out what describes Z_θ(s, a).

    An update of φ is Algorithm 2's with a′ = π_ψ⁻(s′) in place of the greedy action. The policy's
    is the gradient of E[Z_θ̂(s, π_ψ(s))] through one θ̂ ~ q_φ for the whole minibatch. The paper
    says no more; the rest is as in DDPG: φ⁻ and ψ⁻ follow φ and ψ by a part τ at each update
    (τ = 1 and a `target_period` are the copies of Algorithm 2), the policy ends in a tanh, and
    noise on its actions is there to be had. With `critics` of 2 and a smoothed target it is TD3.
    """

    returns: Return
    posterior: Posterior
    resample: Literal["step", "episode"] | int = eqx.field(default="step", static=True)
    """When a new θ̂ is drawn for the policy's gradient: at every update (the paper), every so many
    steps, or every episode."""
    critics: int = eqx.field(default=1, static=True)
    """How many there are. A target takes the one whose mean is least; θ̂ is drawn from the first.
    All use the same random numbers, so that the least is not least by its noise alone."""
    noise_std: float | Array = 0.0
    """σ of the noise on actions, x ← (1 − κ)·x + σ·ξ, which starts anew with each episode."""
    noise_reversion: float | Array = 0.15
    """κ: 1 makes the noise independent (Gaussian), less an Ornstein–Uhlenbeck process."""
    random_steps: int | Array = 0
    """So many first actions are uniform on [−1, 1]^k."""
    actor_lr: float | Array = 1e-4
    critic_lr: float | Array = 1e-3
    gamma: float | Array = 0.99
    tau: float | Array = 0.005
    """How far φ⁻ and ψ⁻ move towards φ and ψ. For φ⁻ it is q_φ as written out by `law` that moves:
    a Gaussian's means and variances."""
    target_period: int | Array = 1
    """Steps between such moves."""
    policy_period: int | Array = 1
    """Steps between updates of the policy (TD3's delay)."""
    smoothing_std: float | Array = 0.0
    """Standard deviation of noise on a′ (TD3's smoothing)."""
    smoothing_clip: float | Array = 0.5
    """The most of it."""
    learning_starts: int | Array = 500
    batch_size: int = eqx.field(default=64, static=True)
    buffer_size: int = eqx.field(default=50_000, static=True)
    hidden: tuple[int, ...] = eqx.field(default=(64, 64), static=True)

    def __check_init__(self) -> None:
        for field, family in (("returns", Return), ("posterior", Posterior)):
            if not isinstance(getattr(self, field), family):
                raise ConfigError(field, getattr(self, field), f"a rove.{family.__name__}")
        check_resample(self.resample)
        check_integer("critics", self.critics, at_least=1, at_most=100)
        check_number("noise_std", self.noise_std, at_least=0.0)
        check_number("noise_reversion", self.noise_reversion, above=0.0, at_most=1.0)
        check_integer("random_steps", self.random_steps, at_least=0)
        check_number("actor_lr", self.actor_lr, above=0.0)
        check_number("critic_lr", self.critic_lr, above=0.0)
        check_number("gamma", self.gamma, at_least=0.0, at_most=1.0)
        check_number("tau", self.tau, above=0.0, at_most=1.0)
        check_integer("target_period", self.target_period, at_least=1)
        check_integer("policy_period", self.policy_period, at_least=1)
        check_number("smoothing_std", self.smoothing_std, at_least=0.0)
        check_number("smoothing_clip", self.smoothing_clip, at_least=0.0)
        check_integer("learning_starts", self.learning_starts, at_least=1)
        check_integer("buffer_size", self.buffer_size, at_least=1)
        check_integer("batch_size", self.batch_size, at_least=1, at_most=2**16)
        if self.batch_size > self.buffer_size:
            raise ConfigError(
                "batch_size", self.batch_size, f"at most buffer_size, which is {self.buffer_size}"
            )
        check_hidden("hidden", self.hidden)
        if self.posterior.needs(np.full(2, 0.5)):
            name = type(self.posterior).__name__
            what = "a critic's input is no row of a table; MeanField, LastLayer and others work"
            raise ConfigError("posterior", name, what)
        self.posterior.check(self.returns.exact, self.returns.scale, self.hidden)

    @property
    def name(self) -> str:
        return f"policy, {type(self.returns).__name__} × {type(self.posterior).__name__}"

    @property
    def continuous(self) -> bool:
        return True

    def memory(self, features: int, actions: int) -> Memory:
        return memory_of(self, features, actions, self.buffer_size, self.hidden)

    def init(self, features: int, actions: int, key: Key) -> AgentState:
        """2.2: φ and φ⁻, ψ and ψ⁻ alike, an empty buffer, a counter at 0."""
        k_phi, k_theta, k_psi, k_noise = (noise.fold(key, i) for i in range(4))
        sizes = (features + actions, *self.hidden, self.returns.outputs)
        each = [self.posterior.init(sizes, noise.fold(k_phi, i)) for i in range(self.critics)]
        phi = Phi(tuple(p.learned for p in each), tuple(p.held for p in each))
        laws = self.laws(phi)
        psi = fresh(features, self.hidden, actions, k_psi)
        return AgentState(
            phi=phi,
            phi_target=laws,
            theta=() if self.resample == "step" else self.posterior.sample(laws[0], k_theta),
            optimiser=(init_optimiser(phi.learned), init_optimiser(psi)),
            replay=replay.init(self.buffer_size, features + actions),
            counter=jnp.zeros((), jnp.int32),
            actor=Actor(psi, psi, self.noise_std * noise.normal(k_noise, (actions,))),
        )

    # Control

    def redraw(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """The noise of the next action; and, where θ̂ is held, θ̂ ~ q_φ when it is time."""
        x = jnp.where(begins, 0.0, (1.0 - self.noise_reversion) * state.actor.noise)
        x += self.noise_std * noise.normal(noise.fold(key, _NOISE), x.shape)
        theta = state.theta
        if self.resample != "step":
            theta = lax.cond(
                redraw_due(self.resample, state.counter, begins),
                lambda: self.posterior.sample(self.laws(state.phi)[0], noise.fold(key, _RESAMPLE)),
                lambda: state.theta,
            )
        return state._replace(theta=theta, actor=state.actor._replace(noise=x))

    def act(
        self, state: AgentState, observation: Float[Array, " features"], key: Key
    ) -> Float[Array, " k"]:
        """π_ψ(s) and the noise at hand; at first, any action."""
        noisy = jnp.clip(policy(state.actor.psi, observation) + state.actor.noise, -1.0, 1.0)
        anything = 2.0 * noise.uniform(noise.fold(key, _RANDOM), noisy.shape) - 1.0
        return jnp.where(state.counter < self.random_steps, anything, noisy)

    def greedy(
        self, state: AgentState, observation: Float[Array, " features"]
    ) -> Float[Array, " k"]:
        return policy(state.actor.psi, observation)

    def beliefs(self, state: AgentState, xs: Float[Array, "n features"], key: Key) -> Beliefs:
        """For diagnostics: what the first critic says of some states and the policy's actions."""
        law, held = self.laws(state.phi)[0], state.phi.held[0]
        pairs = joined(xs, policy(state.actor.psi, xs))

        def values(key: Key) -> Array:
            return self.values(law, held, self.posterior.sample(law, key), pairs)[:, None]

        inputs = self.posterior.inputs(held, pairs)
        outputs = jax.vmap(self.posterior.mean, (None, 0))(law, inputs)
        spread = stds(self.returns, outputs)[:, None]
        return Beliefs(jax.vmap(values)(noise.folds(key, DRAWS)), outputs, spread)

    @property
    def discrete(self) -> bool:
        return self.returns.discrete

    def pictures(self, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
        return [self.returns.picture(outputs)]

    # Training

    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """2.5, 2.8: count the step and save {s, a, r, s′} to B. A row holds what the critic takes
        for an observation, s and a; and s′ with nothing for its action, which is the policy's."""
        s, a, r, s_next, terminated = transition
        pair, next_pair = joined(s, a), joined(s_next, jnp.zeros_like(a))
        row = Transition(pair, jnp.zeros((), jnp.int32), r, next_pair, terminated)
        return state._replace(
            replay=replay.add(state.replay, row, where), counter=state.counter + 1
        )

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """2.9–2.15: an update of φ, one of ψ by the critic as it then is, and of φ⁻ and ψ⁻. Also
        the critics' loss."""
        batch, ids = replay.sample(state.replay, noise.fold(key, _MINIBATCH), self.batch_size)
        phi, moments, loss = self._criticised(state, batch, ids, key)
        laws, actor = self.laws(phi), state.actor

        def climbed() -> tuple[Theta, Any]:
            theta = state.theta
            if self.resample == "step":
                theta = self.posterior.sample(laws[0], noise.fold(key, _THETA_HAT))
            states = batch.observation[:, : -actor.noise.shape[0]]
            gradient = jax.grad(self.cost)(actor.psi, laws[0], phi.held[0], theta, states)
            return descended(actor.psi, gradient, state.optimiser[1], self.actor_lr)

        psi, psi_moments = lax.cond(
            state.counter % self.policy_period == 0,
            climbed,
            lambda: (actor.psi, state.optimiser[1]),
        )
        due = state.counter % self.target_period == 0
        phi_target, psi_target = followed(
            (state.phi_target, actor.psi_target), (laws, psi), jnp.where(due, self.tau, 0.0)
        )
        state = state._replace(
            phi=phi,
            phi_target=phi_target,
            optimiser=(moments, psi_moments),
            actor=actor._replace(psi=psi, psi_target=psi_target),
        )
        return state, loss

    def cost(
        self, psi: Theta, law: Law, held: Any, theta: Draw, states: Float[Array, "n features"]
    ) -> Float[Array, ""]:
        """−E[Z_θ̂(s, π_ψ(s))], mean over states. Its gradient is that of (8)."""
        return -jnp.mean(self.values(law, held, theta, joined(states, policy(psi, states))))

    def target(
        self,
        phi_target: tuple[Law, ...],
        held: tuple[Any, ...],
        psi_target: Theta,
        batch: Transition,
        k_theta: Key,
        k_draw: Key,
        k_smoothing: Key,
        one_theta: bool = False,
    ) -> Array:
        """2.9–2.10: x ~ r + γ·Z_θ⁻(s′, a′) with a′ = π_ψ⁻(s′), smoothed, and a θ⁻ ~ q_φ⁻ of its
        own, or `one_theta` for all; of several critics, the one whose mean there is least."""
        k = psi_target[-1].bias.shape[0]
        states = batch.next_observation[:, :-k]
        actions = policy(psi_target, states)
        blur = self.smoothing_std * noise.normal(k_smoothing, actions.shape)
        blur = jnp.clip(blur, -self.smoothing_clip, self.smoothing_clip)
        pairs = joined(states, jnp.clip(actions + blur, -1.0, 1.0))
        forward = self._of_one if one_theta else self.posterior.forward_all
        each = zip(phi_target, held, strict=True)
        z = jnp.stack([forward(law, self.posterior.inputs(h, pairs), k_theta) for law, h in each])
        least = jnp.argmin(means(self.returns, z), axis=0)
        z = jnp.take_along_axis(z, least[None, :, :, None], axis=0)[0]
        return targets(self.returns, z, batch.reward, batch.terminated, self.gamma, k_draw)

    def _target_of_one(
        self,
        phi_target: tuple[Law, ...],
        held: tuple[Any, ...],
        psi_target: Theta,
        batch: Transition,
        key: Key,
        part: int | Array,
    ) -> Float[Array, " n"]:
        k_theta, *others = noise.fold(key, 0), noise.fold(key, 1, part), noise.fold(key, 2, part)
        fixed = phi_target, held, psi_target
        return self.target(*fixed, batch, k_theta, *others, one_theta=True)[0]

    def _of_one(
        self, law: Law, inputs: Float[Array, "n inputs"], key: Key
    ) -> Float[Array, "1 n outputs"]:
        """As the posterior's `forward_all`, with one θ for all rows."""
        theta = self.posterior.sample(law, key)
        return jax.vmap(self.posterior.apply, (None, None, 0))(law, theta, inputs)[None]

    def values(
        self, law: Law, held: Any, theta: Draw, pairs: Float[Array, "n features"]
    ) -> Float[Array, " n"]:
        """E[Z_θ(s, a)] of some pairs, for one θ."""
        inputs = self.posterior.inputs(held, pairs)
        z = jax.vmap(self.posterior.apply, (None, None, 0))(law, theta, inputs)
        return means(self.returns, z)

    def laws(self, phi: Phi) -> tuple[Law, ...]:
        """q_φ of each critic, written out."""
        parts = zip(phi.learned, phi.held, strict=True)
        return tuple(self.posterior.law(Phi(learned, held)) for learned, held in parts)

    def _criticised(
        self, state: AgentState, batch: Transition, ids: Int[Array, " n"], key: Key
    ) -> tuple[Phi, Any, Float[Array, ""]]:
        """2.9–2.12 for every critic: φ and Adam's moments after an update, and the mean loss."""
        k_theta, k_target = noise.fold(key, _THETA), noise.fold(key, _TARGET)
        k_target_theta = k_theta if self.posterior.paired else noise.fold(key, _TARGET_THETA)
        fixed = state.phi_target, state.phi.held, state.actor.psi_target
        x = self.target(*fixed, batch, k_target_theta, k_target, noise.fold(key, _SMOOTHING))

        def of_learned(learned: Any) -> tuple[Array, Array]:
            both = []
            laws = self.laws(state.phi._replace(learned=learned))
            for law, held in zip(laws, state.phi.held, strict=True):
                weights = self.posterior.weights(law, ids, k_theta)
                inputs = self.posterior.inputs(held, batch.observation)
                z = self.posterior.forward_all(law, inputs, k_theta)
                both.append(objective(self.returns, self.posterior, law, z, weights, x))
            total, losses = zip(*both, strict=True)
            return sum(total, jnp.zeros(())), sum(losses, jnp.zeros(())) / self.critics

        gradient, loss = jax.grad(of_learned, has_aux=True)(state.phi.learned)
        learned, moments = descended(
            state.phi.learned, gradient, state.optimiser[0], self.critic_lr, self.returns.scale
        )
        held = tuple(
            self.posterior.refit(
                Phi(learned[i], state.phi.held[i]),
                self.returns.scale,
                state.counter,
                state.replay,
                partial(self._target_of_one, *fixed),
                noise.fold(key, _REFIT),
            )
            for i in range(self.critics)
        )
        return Phi(learned, held), moments, loss
