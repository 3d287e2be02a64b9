"""Algorithm 1 of the paper, once: any return distribution Z_θ with any q_φ(θ).

Comments marked 1.k and 2.k carry out line k of Algorithm 1 and of Algorithm 2.
"""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import networks, noise, replay
from rove.errors import ConfigError, check_choice, check_hidden, check_integer, check_number
from rove.networks import Theta
from rove.noise import Key
from rove.posteriors.base import Law, Phi, Posterior
from rove.replay import Replay, Transition
from rove.returns.base import Return

# What a step's key is folded with, so that no two draws of a step share one.
_RESAMPLE, _EXPLORE, _MINIBATCH, _THETA, _TARGET_THETA, _TARGET = range(6)

_adam = optax.scale_by_adam()


class AgentState(NamedTuple):
    """Everything an agent knows. It holds no key: those come with each call."""

    phi: Phi
    phi_target: Law
    """q_φ⁻, in the form its draws use."""
    theta: Theta | None
    """The θ being acted on, where it is held for an episode."""
    optimiser: Any
    """Adam's moments; None once a lane has finished."""
    replay: Replay
    counter: Int[Array, ""]


class Agent(eqx.Module):
    """A return family, a parameter family, and how to act and learn with them.

    Numbers are pytree leaves: one compiled program serves every value of them. Shapes and
    choices are static.
    """

    returns: Return
    posterior: Posterior
    resample: Literal["step", "episode"] = eqx.field(default="step", static=True)
    """When a new θ ~ q_φ is drawn for control: at every step (the paper) or episode."""
    epsilon: float | Array = 0.0
    """Probability of a uniformly random action, once the schedule has ended."""
    epsilon_start: float | Array = 1.0
    """The same at step 0; it falls linearly to `epsilon`."""
    epsilon_steps: int | Array = 0
    """How many steps that takes; 0: `epsilon` from the start."""
    lr: float | Array = 1e-3
    gamma: float | Array = 0.99
    target_period: int | Array = 100
    learning_starts: int | Array = 500
    batch_size: int = eqx.field(default=64, static=True)
    buffer_size: int = eqx.field(default=50_000, static=True)
    hidden: tuple[int, ...] = eqx.field(default=(100, 100), static=True)

    def __check_init__(self) -> None:
        for field, family in (("returns", Return), ("posterior", Posterior)):
            if not isinstance(getattr(self, field), family):
                raise ConfigError(field, getattr(self, field), f"a rove.{family.__name__}")
        check_choice("resample", self.resample, ("step", "episode"))
        check_number("epsilon", self.epsilon, at_least=0.0, at_most=1.0)
        check_number("epsilon_start", self.epsilon_start, at_least=0.0, at_most=1.0)
        check_integer("epsilon_steps", self.epsilon_steps, at_least=0)
        check_number("lr", self.lr, above=0.0)
        check_number("gamma", self.gamma, at_least=0.0, at_most=1.0)
        check_integer("target_period", self.target_period, at_least=1)
        check_integer("buffer_size", self.buffer_size, at_least=1)
        check_integer("batch_size", self.batch_size, at_least=1, at_most=2**16)
        if self.batch_size > self.buffer_size:
            raise ConfigError(
                "batch_size", self.batch_size, f"at most buffer_size, which is {self.buffer_size}"
            )
        check_integer("learning_starts", self.learning_starts, at_least=1)
        check_hidden("hidden", self.hidden)

    def init(self, features: int, actions: int, key: Key) -> AgentState:
        """2.2: φ and φ⁻ alike, an empty buffer, a counter at 0."""
        sizes = (features, *self.hidden, actions * self.returns.outputs)
        phi = self.posterior.init(networks.init(key, sizes))
        law = self.posterior.law(phi)
        return AgentState(
            phi=phi,
            phi_target=law,
            theta=self.posterior.mean(law) if self.resample == "episode" else None,
            optimiser=_adam.init(phi),
            replay=replay.init(self.buffer_size, features),
            counter=jnp.zeros((), jnp.int32),
        )

    # Control

    def begin_episode(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """1.4 for a θ held during an episode: sample θ ~ q_φ(θ) where one begins."""
        if self.resample == "step":
            return state
        theta = lax.cond(
            begins,
            lambda: self.posterior.sample(
                self.posterior.law(state.phi), noise.fold(key, _RESAMPLE)
            ),
            lambda: state.theta,
        )
        return state._replace(theta=theta)

    def act(
        self, state: AgentState, observation: Float[Array, " features"], key: Key
    ) -> Int[Array, ""]:
        """1.4–1.5: a = argmax_a E[Z_θ(s, a)] with θ ~ q_φ(θ), or, rarely, any action."""
        if self.resample == "episode":
            assert state.theta is not None
            z = networks.forward(state.theta, observation)
        else:
            law = self.posterior.law(state.phi)
            z = self.posterior.forward(law, observation, noise.fold(key, _RESAMPLE))
        q = self.means(z)
        k_random, k_action = (noise.fold(key, _EXPLORE, i) for i in range(2))
        anything = noise.integers(k_action, (), q.shape[0])
        explore = noise.uniform(k_random) < self.exploration(state.counter)
        return jnp.where(explore, anything, jnp.argmax(q))

    def exploration(self, counter: Int[Array, ""]) -> Float[Array, ""]:
        """ε at a step: linear from `epsilon_start` to `epsilon` over `epsilon_steps`."""
        left = jnp.clip(1.0 - counter / jnp.maximum(self.epsilon_steps, 1), 0.0, 1.0)
        left = jnp.where(self.epsilon_steps > 0, left, 0.0)
        return self.epsilon + left * (self.epsilon_start - self.epsilon)

    def greedy(self, state: AgentState, observation: Float[Array, " features"]) -> Int[Array, ""]:
        """For evaluation: greedy on the posterior mean of θ, without noise."""
        theta = self.posterior.mean(self.posterior.law(state.phi))
        return jnp.argmax(self.means(networks.forward(theta, observation)))

    def means(self, z: Float[Array, " outputs"]) -> Float[Array, " actions"]:
        """E[Z_θ(s, ·)] of every action, from the network's output."""
        return jax.vmap(self.returns.mean)(z.reshape(-1, self.returns.outputs))

    # Training

    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """2.5, 2.8: count the step and save {s, a, r, s′} to B (`where` as in `replay.add`)."""
        return state._replace(
            replay=replay.add(state.replay, transition, where), counter=state.counter + 1
        )

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """2.9–2.15: one update of φ, and of φ⁻ every `target_period` steps. Also the loss."""
        # 2.13–2.14 of the step before: q_φ is written out once, for acting, learning and φ⁻.
        copy = (state.counter - 1) % self.target_period == 0
        phi_target = jax.tree.map(
            lambda new, old: jnp.where(copy, new, old),
            self.posterior.law(state.phi),
            state.phi_target,
        )
        batch = replay.sample(state.replay, noise.fold(key, _MINIBATCH), self.batch_size)
        gradient, loss = jax.grad(self.objective, has_aux=True)(state.phi, phi_target, batch, key)
        direction, optimiser = _adam.update(gradient, state.optimiser)
        phi = jax.tree.map(lambda p, d: p - self.lr * d, state.phi, direction)  # 2.12
        return state._replace(phi=phi, phi_target=phi_target, optimiser=optimiser), loss

    def objective(
        self, phi: Phi, phi_target: Law, batch: Transition, key: Key
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """c/N times E_θ[−Σ log Z_θ(x_j)] − H(q_φ): (4), (7) for a Gaussian. Also its first term.

        c is the return's `scale`; c/N leaves the minimiser where it is. The expectation takes a
        draw of θ for every term of the sum, which has less variance than one draw for all.
        """
        law = self.posterior.law(phi)
        n = batch.reward.shape[0]
        k_theta, k_target_theta, k_target = (
            noise.rows(noise.fold(key, use), n) for use in (_THETA, _TARGET_THETA, _TARGET)
        )
        x = jax.vmap(self.target, (None, 0, 0, 0))(phi_target, batch, k_target_theta, k_target)

        def discrepancy(transition: Transition, x: Array, key: Key) -> Array:
            z = self.posterior.forward(law, transition.observation, key)
            return self.returns.loss(z.reshape(-1, self.returns.outputs)[transition.action], x)

        loss = jnp.mean(jax.vmap(discrepancy)(batch, x, k_theta))
        return loss - self.returns.scale / n * self.posterior.entropy(law), loss

    def target(self, phi_target: Law, transition: Transition, k_theta: Key, k_draw: Key) -> Array:
        """1.7–1.8, 2.9–2.10: x ~ r + γ·Z_θ⁻(s′, a′), a′ greedy, with a θ⁻ ~ q_φ⁻ of its own."""
        z = self.posterior.forward(phi_target, transition.next_observation, k_theta)
        best = jnp.argmax(self.means(z))
        discount = self.gamma * (1.0 - transition.terminated)
        z_best = z.reshape(-1, self.returns.outputs)[best]
        return self.returns.target(z_best, transition.reward, discount, k_draw)
