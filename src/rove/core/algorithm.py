"""Algorithms 1 and 2 of the paper, for any return distribution Z_θ and any distribution q_φ(θ).

The marks 1.k and 2.k refer to line k of Algorithm 1 and of Algorithm 2. The loops over episodes
and steps (1.2, 2.3–2.4) are in `rove.training`; updates begin at step `learning_starts`. `law` is
q_φ in the form that sampling needs, and φ⁻ is stored in this form. The counter (2.5) is incremented
when the transition is saved (2.8), to the same effect. z is what the network puts out for (s, ·).
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.core import checks, control
from rove.core.control import EpsilonGreedy
from rove.core.critic import CriticLearner
from rove.core.diagnostics import Beliefs, Inspected, beliefs_at, gap, unit_bounds
from rove.core.folding import Folded, folded_values
from rove.core.learner import AgentState
from rove.core.optimiser import first_moments
from rove.parts import noise, replay
from rove.parts.masks import allowed_actions
from rove.parts.noise import Key
from rove.parts.onehot import VECTORS, Form, Observation
from rove.parts.replay import Transition
from rove.posteriors.base import Pairs, Rows
from rove.posteriors.priors import cache_size, inputs, tabulated, with_cache
from rove.returns.base import by_action, of_action

# Indices of the random streams of a step.
(
    _RESAMPLE, _EXPLORE, _MINIBATCH, _THETA, _TARGET_THETA, _TARGET, _REFIT, _BONUS, _STEP, _REPEAT,
) = range(10)  # fmt: skip


class Agent(EpsilonGreedy, CriticLearner):
    """A return distribution Z_θ, a distribution q_φ(θ), and how to act and learn (1.1, 2.1)."""

    lr: float | Array = 1e-3
    """Learning rate α."""
    double: bool = eqx.field(default=False, static=True)
    """Whether a′ is greedy with respect to q_φ instead of q_φ⁻ (double Q-learning)."""

    def __check_init__(self) -> None:
        checks.check_agent(self)

    def init(self, features: int, actions: int, key: Key, form: Form = VECTORS) -> AgentState:
        """2.2: initialise φ and φ⁻ ← φ, an empty replay buffer B, and counter ← 0."""
        network = self.network_for(features, actions * self.returns.outputs, form.image)
        phi = self.posterior.init(network, noise.fold(key, 0))
        phi = phi._replace(priors=tabulated(phi.priors, form.coded))
        law, cached = self.posterior.law(phi), cache_size(phi.priors, features, form.coded)
        return AgentState(
            phi=phi,
            phi_target=law,
            theta=control.first_theta(self.posterior, self.resample, law, noise.fold(key, 1)),
            optimiser=first_moments(self.posterior, (phi.learned,)),
            replay=self.empty_buffer(features, 1, form, cached, actions * form.masked),
            counter=jnp.zeros((), jnp.int32),
            random=self.first_random(),
            bonus=self.bonus.init(features, form.coded, noise.fold(key, 2)),
            reward_scale=self.reward_scale.init(),
        )

    # Control

    def resample_theta(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """1.4, 2.6: sample θ at the start of an episode, or every `resample` steps. With "step", as
        in the paper, `act` samples it. Random actions that last for several steps begin here."""
        k = partial(noise.fold, key)
        theta = control.next_theta(self.posterior, self.resample, state, begins, k(_RESAMPLE))
        random = self.next_random(state, begins, k(_REPEAT))
        return state._replace(theta=theta, random=random)

    def act(self, state: AgentState, observation: Observation, key: Key) -> Int[Array, ""]:
        """1.4–1.5, 2.6–2.7: return argmax_a E[Z_θ(s, a)], or a random action with probability ε."""
        law, s = self.posterior.law(state.phi), inputs(state.phi.priors, observation)
        k = partial(noise.fold, key)
        z = control.outputs(self.posterior, self.resample, law, state.theta, s, k(_RESAMPLE))
        return self.epsilon_greedy(self.action_values(z), observation, state, k(_EXPLORE))

    def greedy(self, state: AgentState, observation: Observation) -> Int[Array, ""]:
        """Return the action for evaluation: greedy with respect to the posterior mean."""
        s = inputs(state.phi.priors, observation)
        q = self.action_values(self.posterior.mean(self.posterior.law(state.phi), s))
        return control.best_action(q, observation)

    # Training

    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """2.5, 2.8: increment the counter and save {s, a, r, s′} to B, with values of the priors.

        `where`: False leaves the buffer's rows unchanged.
        """
        bonus, step = self.bonus.observe(state.bonus, transition)
        scale = self.reward_scale.observe(state.reward_scale, transition, self.gamma)
        buffer = replay.add(state.replay, with_cache(state.phi.priors, step), where)
        state = state._replace(replay=buffer, bonus=bonus, reward_scale=scale)
        return state._replace(counter=state.counter + 1)

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """1.7–1.8, 2.9–2.15: update φ, and φ⁻ every `target_period` steps. Also return the loss."""
        phi, law_minus = state.phi, state.phi_target
        law, k = self.posterior.law(phi), partial(noise.fold, key)
        reward = partial(self.reward, state, phi.priors, law, k(_BONUS))
        batch = self.minibatch(state.replay, reward, k(_MINIBATCH))  # 2.9
        theta, theta_minus = self.draw(law, law_minus, batch, k(_THETA), k(_TARGET_THETA))  # 2.9
        lookahead = partial(self.lookahead, phi.priors, law, law_minus)
        x = lookahead(theta_minus, batch, k(_TARGET))  # 2.10
        (phi,), moments, (loss, errors) = self.descend(  # 2.11–2.12
            (phi,), state.optimiser, self.lr, theta, batch, x, k(_STEP)
        )
        phi = self.refit(state, phi, lookahead, reward, k(_REFIT))  # the exact minimiser, if known
        buffer = replay.reprioritised(state.replay, batch, errors, self.prioritised)
        due = state.counter % self.target_period == 0
        law_minus = lax.cond(due, lambda: self.posterior.law(phi), lambda: law_minus)  # 2.13–2.14
        state = state._replace(replay=buffer, bonus=self.bonus.update(state.bonus, batch))
        return state._replace(phi=phi, phi_target=law_minus, optimiser=moments), loss

    def lookahead(
        self, priors: Any, law: Any, law_minus: Any, theta_minus: Rows, batch: Transition, key: Key
    ) -> Array:
        """1.7–1.8, 2.10: sample x ~ r + γ·Z_θ⁻(s′, a′), where a′ = argmax_a E[Z_θ⁻(s′, a)].

        With `double`, a′ is greedy under q_φ.
        """
        s_next = inputs(priors, batch.next_observation, batch.next_priors)
        z = theta_minus(law_minus, s_next)
        q = self.action_values(theta_minus(law, s_next) if self.double else z)
        best = control.best_action(q, batch.next_observation)
        return self.targets(of_action(by_action(self.returns, z), best), batch, key)

    def pairs(self, priors: Any, batch: Transition) -> Pairs:
        """Return the network's inputs for s, and the indices of a."""
        return Pairs(inputs(priors, batch.observation, batch.priors), batch.action_index)

    def beliefs(self, state: AgentState, xs: Observation, key: Key) -> Beliefs:
        """Return diagnostics of q_φ and Z_θ in given states."""
        law, s = self.posterior.law(state.phi), inputs(state.phi.priors, xs)
        scale = self.reward_scale.value(state.reward_scale)
        return beliefs_at(self.returns, self.posterior, law, s, scale, key)

    def inspect(self, state: AgentState, xs: Observation) -> Inspected:
        phi, s = state.phi, inputs(state.phi.priors, xs)
        z = jax.vmap(self.posterior.mean, (None, 0))(self.posterior.law(phi), s)
        q = self.reward_scale.value(state.reward_scale) * self.action_values(z)
        actions, units = control.best_action(q, xs), unit_bounds(self.posterior, phi, s.features)
        best = jnp.take_along_axis(q, actions[:, None], axis=1)[:, 0]
        gaps = gap(q, allowed_actions(xs))
        expected = not self.intrinsic and self.returns.risk is None
        return Inspected(actions, best, gaps, units, self.gamma, expected)

    def folded(self, state: AgentState) -> Folded | None:
        scale = self.reward_scale.value(state.reward_scale)
        return folded_values(self.returns, self.posterior, state.phi, scale)
