"""Algorithm 1 of the paper, once: any return distribution Z_θ with any q_φ(θ).

Comments marked 1.k and 2.k carry out line k of Algorithm 1 and of Algorithm 2.
"""

from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import noise, replay
from rove.errors import ConfigError, check_flag, check_hidden, check_integer, check_number
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
from rove.noise import Key
from rove.objective import descended, init_optimiser, means, objective, stds, targets
from rove.posteriors.base import Law, Phi, Posterior
from rove.replay import Transition
from rove.returns.base import Return

# What a step's key is folded with, so that no two draws of a step share one.
_RESAMPLE, _EXPLORE, _MINIBATCH, _THETA, _TARGET_THETA, _TARGET, _REFIT, _BONUS = range(8)

CARRIED = 64
"""So many numbers more than an observation has, or as many as it has, may be kept with it."""


class Agent(Learner):
    """A return family, a parameter family, and how to act and learn with them."""

    returns: Return
    posterior: Posterior
    resample: Literal["step", "episode"] | int = eqx.field(default="step", static=True)
    """When a new θ ~ q_φ is drawn for control: at every step (the paper), every so many steps,
    or every episode."""
    double: bool = eqx.field(default=False, static=True)
    """Whether a′ of the target is greedy on q_φ instead of q_φ⁻ (double Q-learning)."""
    bonus: float | Array | None = None
    """η of an intrinsic reward, η times the standard deviation of Q_θ(s, a) over θ ~ q_φ; none:
    without."""
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
        check_resample(self.resample)
        check_flag("double", self.double)
        if self.bonus is not None:
            check_number("bonus", self.bonus, at_least=0.0)
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
        self.posterior.check(self.returns.exact, self.returns.scale, self.hidden)

    @property
    def name(self) -> str:
        return f"{type(self.returns).__name__} × {type(self.posterior).__name__}"

    def memory(self, features: int, actions: int) -> Memory:
        return memory_of(self, features, actions, self.buffer_size, self.hidden)

    def init(self, features: int, actions: int, key: Key) -> AgentState:
        """2.2: φ and φ⁻ alike, an empty buffer, a counter at 0."""
        sizes = (features, *self.hidden, actions * self.returns.outputs)
        k_phi, k_theta = (noise.fold(key, i) for i in range(2))
        phi = self.posterior.init(sizes, k_phi)
        law = self.posterior.law(phi)
        return AgentState(
            phi=phi,
            phi_target=law,
            theta=() if self.resample == "step" else self.posterior.sample(law, k_theta),
            optimiser=init_optimiser(phi.learned),
            replay=replay.init(self.buffer_size, self._width(phi.held, features)),
            counter=jnp.zeros((), jnp.int32),
        )

    def _width(self, held: Any, features: int) -> int:
        """How many numbers of an observation the buffer keeps: all that the network takes, unless
        these are far more than the observation's own."""
        shape = jax.ShapeDtypeStruct((features,), jnp.float32)
        inputs = jax.eval_shape(self.posterior.inputs, held, shape).shape[0]
        return inputs if inputs - features <= max(features, CARRIED) else features

    def taken(self, held: Any, batch: Transition) -> Transition:
        """Transitions of the buffer, as the network takes them."""
        s, s_next = (
            self.posterior.inputs(held, x) for x in (batch.observation, batch.next_observation)
        )
        return batch._replace(observation=s, next_observation=s_next)

    # Control

    def redraw(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """1.4 for a θ that is held: sample θ ~ q_φ(θ) where an episode begins, or its time is
        over."""
        if self.resample == "step":
            return state
        theta = lax.cond(
            redraw_due(self.resample, state.counter, begins),
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
        law = self.posterior.law(state.phi)
        x = self.posterior.inputs(state.phi.held, observation)
        if self.resample == "step":
            z = self.posterior.forward(law, x, noise.fold(key, _RESAMPLE))
        else:
            z = self.posterior.apply(law, state.theta, x)
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
        """For evaluation: greedy on the posterior mean, without noise."""
        x = self.posterior.inputs(state.phi.held, observation)
        z = self.posterior.mean(self.posterior.law(state.phi), x)
        return jnp.argmax(self.means(z))

    def by_action(self, z: Float[Array, "*n outputs"]) -> Float[Array, "*n actions each"]:
        """The network's output as one row for each action."""
        return z.reshape(*z.shape[:-1], -1, self.returns.outputs)

    def means(self, z: Float[Array, "*n outputs"]) -> Float[Array, "*n actions"]:
        """E[Z_θ(s, ·)] of every action, from the network's output."""
        return means(self.returns, self.by_action(z))

    def beliefs(self, state: AgentState, xs: Float[Array, "n features"], key: Key) -> Beliefs:
        """For diagnostics: what q_φ and Z say of some states."""
        law, xs = self.posterior.law(state.phi), self.posterior.inputs(state.phi.held, xs)

        def values(key: Key) -> Array:
            theta = self.posterior.sample(law, key)
            return self.means(jax.vmap(self.posterior.apply, (None, None, 0))(law, theta, xs))

        outputs = jax.vmap(self.posterior.mean, (None, 0))(law, xs)
        spread = stds(self.returns, self.by_action(outputs))
        return Beliefs(jax.vmap(values)(noise.folds(key, DRAWS)), outputs, spread)

    @property
    def discrete(self) -> bool:
        return self.returns.discrete

    def needs(self, observation: np.ndarray) -> str | None:
        return self.posterior.needs(observation)

    def pictures(self, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
        return [self.returns.picture(z) for z in self.by_action(outputs)]

    # Training

    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """2.5, 2.8: count the step and save {s, a, r, s′} to B (`where` as in `replay.add`)."""
        both = jnp.stack([transition.observation, transition.next_observation])
        width = self._width(state.phi.held, both.shape[1])
        s, s_next = self.posterior.inputs(state.phi.held, both)[:, :width]
        row = transition._replace(observation=s, next_observation=s_next)
        return state._replace(
            replay=replay.add(state.replay, row, where), counter=state.counter + 1
        )

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """2.9–2.15: one update of φ, and of φ⁻ every `target_period` steps. Also the loss."""
        # 2.13–2.14 of the step before: q_φ is written out once, for acting, learning and φ⁻.
        law = self.posterior.law(state.phi)
        copy = (state.counter - 1) % self.target_period == 0
        phi_target = jax.tree.map(lambda new, old: jnp.where(copy, new, old), law, state.phi_target)
        batch, ids = replay.sample(state.replay, noise.fold(key, _MINIBATCH), self.batch_size)
        k_theta, k_target = noise.fold(key, _THETA), noise.fold(key, _TARGET)
        k_target_theta = k_theta if self.posterior.paired else noise.fold(key, _TARGET_THETA)
        batch = self.curiosity(law, self.taken(state.phi.held, batch), key)
        weights = self.posterior.weights(law, ids, k_theta)
        x = self.target(law, phi_target, batch, weights, k_target_theta, k_target)

        def of_learned(learned: Any) -> tuple[Array, Array]:
            return self.objective(state.phi._replace(learned=learned), batch, weights, x, k_theta)

        gradient, loss = jax.grad(of_learned, has_aux=True)(state.phi.learned)
        learned, optimiser = descended(  # 2.12
            state.phi.learned, gradient, state.optimiser, self.lr, self.returns.scale
        )
        phi = state.phi._replace(learned=learned)
        held = self.posterior.refit(
            phi,
            self.returns.scale,
            state.counter,
            state.replay,
            partial(self.target_of_one, law, phi_target, state.phi.held),
            noise.fold(key, _REFIT),
        )
        phi = phi._replace(held=held)
        return state._replace(phi=phi, phi_target=phi_target, optimiser=optimiser), loss

    def curiosity(self, law: Law, batch: Transition, key: Key) -> Transition:
        """Transitions whose reward has η·std Q_θ(s, a) on top, without bias for a Gaussian: √π/2
        times the distance of two draws of θ."""
        if self.bonus is None:
            return batch

        def values(i: int) -> Array:
            theta = self.posterior.sample(law, noise.fold(key, _BONUS, i))
            each = jax.vmap(self.posterior.apply, (None, None, 0))
            q = self.means(each(law, theta, batch.observation))
            return jnp.take_along_axis(q, batch.action[:, None], axis=1)[:, 0]

        std = np.float32(np.sqrt(np.pi) / 2) * jnp.abs(values(0) - values(1))
        return batch._replace(reward=batch.reward + self.bonus * std)

    def objective(
        self, phi: Phi, batch: Transition, weights: Float[Array, "draws_ n_"], x: Array, key: Key
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """`objective.objective` of a minibatch: (4), (7) for a Gaussian. Also its first term."""
        law = self.posterior.law(phi)
        z = self.by_action(self.posterior.forward_learned(law, batch.observation, weights, key))
        z = jnp.take_along_axis(z, batch.action[None, :, None, None], axis=2)[:, :, 0]
        return objective(self.returns, self.posterior, law, z, weights, x)

    def target(
        self,
        law: Law,
        phi_target: Law,
        batch: Transition,
        weights: Float[Array, "draws_ n_"],
        k_theta: Key,
        k_draw: Key,
    ) -> Array:
        """1.7–1.8, 2.9–2.10: x ~ r + γ·Z_θ⁻(s′, a′), a′ greedy, with a θ⁻ ~ q_φ⁻ of its own."""

        def outputs(law: Law) -> Array:
            return self.posterior.forward_learned(law, batch.next_observation, weights, k_theta)

        z = outputs(phi_target)
        return self.backup(z, outputs(law) if self.double else z, batch, k_draw)

    def target_of_one(
        self, law: Law, phi_target: Law, held: Any, batch: Transition, key: Key, part: int | Array
    ) -> Float[Array, " n"]:
        """The same with one θ⁻ for all transitions: for an exact fit to many, in which what θ⁻
        is uncertain of would average out if each had its own."""
        k_theta, k_draw = noise.fold(key, 0), noise.fold(key, 1, part)
        batch = self.curiosity(law, self.taken(held, batch), noise.fold(key, 2, part))

        def outputs(law: Law) -> Array:
            theta = self.posterior.sample(law, k_theta)
            each = jax.vmap(self.posterior.apply, (None, None, 0))
            return each(law, theta, batch.next_observation)[None]

        z = outputs(phi_target)
        return self.backup(z, outputs(law) if self.double else z, batch, k_draw)[0]

    def backup(
        self,
        z: Float[Array, "draws n outputs"],
        judge: Float[Array, "draws n outputs"],
        batch: Transition,
        k_draw: Key,
    ) -> Array:
        """r + γ·Z(s′, a′) for each draw and transition, from what the network puts out for s′;
        a′ is greedy on `judge`."""
        best = jnp.argmax(self.means(judge), axis=-1)
        z_best = jnp.take_along_axis(self.by_action(z), best[..., None, None], axis=2)[:, :, 0]
        return targets(self.returns, z_best, batch.reward, batch.terminated, self.gamma, k_draw)
