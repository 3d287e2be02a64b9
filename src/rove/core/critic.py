"""The critic that Algorithm 2 and Section 4.4 share: Z_θ and q_φ(θ), trained by equation (4).

Equations and sections are those of the paper. The marks 2.k refer to line k of Algorithm 2.
"""

import abc
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from rove.bonuses.base import Bonus, NoBonus
from rove.core import checks
from rove.core.control import Resample
from rove.core.diagnostics import density_curves
from rove.core.families import check_bonus, check_posterior, check_returns
from rove.core.learner import AgentState, Learner, Memory
from rove.core.objectives import (
    Gradient,
    alpha_loss,
    importance_weights,
    mean_errors,
    with_scores,
)
from rove.core.optimiser import posterior_step
from rove.core.reward_scale import ConstantScale, RewardScale
from rove.parts import noise, replay
from rove.parts.architectures import Architecture, build
from rove.parts.images import Image
from rove.parts.networks import Network
from rove.parts.noise import Key
from rove.parts.onehot import VECTORS, Form
from rove.parts.replay import Replay, Reward, Transition
from rove.posteriors import Dirac
from rove.posteriors.base import Data, Density, OneTheta, Pairs, Phi, Posterior, Rows, apply_all
from rove.posteriors.several import Thetas, matched, several
from rove.returns.base import Return, by_action, means, of_action, values

Lookahead: TypeAlias = Callable[[Rows, Transition, Key], Array]
"""Samples targets x for transitions, given θ⁻ and a key for all other randomness."""


class CriticLearner(Learner):
    """A learner whose critic consists of a return distribution Z_θ and a distribution q_φ(θ).

    Subclasses define how actions are chosen, and which action a′ a target uses.
    """

    learning_rates: ClassVar[tuple[str, ...]] = ("lr",)

    returns: Return
    """Return distribution Z_θ."""
    posterior: Posterior
    """Parameter distribution q_φ(θ)."""
    resample: Resample = eqx.field(default="step", static=True)
    """When θ is resampled for control, or for the policy's gradient: "step" (as in the paper),
    "episode", or a number of steps."""
    gamma: float | Array = 0.99
    """Discount factor γ."""
    n_step: int = eqx.field(default=1, static=True)
    """Number n of rewards in a target, r₀ + γ·r₁ + … + γⁿ⁻¹·rₙ₋₁ + γⁿ·Z_θ⁻; fewer where an episode
    ends before. The actions after the first are the recorded ones, without a correction for changes
    of the policy since."""
    one_step: float | Array = 0.0
    """Probability with which the target of a sampled transition has one reward instead of `n_step`.
    Such a target does not depend on the recorded actions that followed."""
    target_period: int | Array = 100
    """Number of steps between updates of φ⁻ (the paper's τ)."""
    learning_starts: int | Array = 500
    """The step of the first update."""
    batch_size: int = eqx.field(default=64, static=True)
    """Number N of transitions in a minibatch."""
    buffer_size: int = eqx.field(default=50_000, static=True)
    """Capacity of the replay buffer, in transitions."""
    prioritised: float | Array | None = None
    """Exponent α of prioritised replay: transitions are sampled in proportion to |error|^α, where
    `Return.error` is the error when they were last sampled. None: uniformly."""
    importance: float | Array = 0.5
    """Exponent β of the importance weights of prioritised replay: 1 compensates for the priorities
    in the objective, and 0 does not. It is constant; Schaul et al. (2016) increase it to 1."""
    hidden: tuple[int, ...] = eqx.field(default=(100, 100), static=True)
    """Widths of the fully connected hidden layers."""
    network: Architecture = eqx.field(default=None, static=True)
    """The network: None for fully connected layers, a `ConvNet`, or a custom function (shape,
    outputs, key) → network, with which `hidden` has no effect."""
    bonus: Bonus = NoBonus()
    """Intrinsic reward that is added to r."""
    reward_scale: RewardScale = ConstantScale()
    """What r is divided by before the intrinsic reward is added."""
    draws: int = eqx.field(default=1, static=True)
    """Number of independent samples of θ for each transition of an update; with gradient="score",
    for the whole minibatch. For the other gradient, it multiplies the posterior's own number, such
    as `LowRank.draws`."""
    alpha: float | Array | None = None
    """α of the divergence that is minimised over several samples of θ: None for objective (4), its
    limit at 0, and 1 for the marginal likelihood (see `alpha_loss`)."""
    gradient: Gradient = eqx.field(default="reparameterised", static=True)
    """How the gradient is estimated: through the samples of θ, or by "score" (black-box variational
    inference), for posteriors with a density."""

    def network_for(self, inputs: int, outputs: int, image: Image | None = None) -> Network:
        """Return the network, given its numbers of inputs and outputs, and the form of images."""
        return build(self.network, inputs, self.hidden, outputs, image)

    def empty_buffer(
        self, features: int, actions: int, form: Form, cached: int = 0, masked: int = 0
    ) -> Replay:
        """2.2: return an empty replay buffer B; see `replay.Layout` for the arguments."""
        shape = self.buffer_size, features, actions, cached, form.coded
        shape = (*shape, self.n_step, self.bonus.uses_cells)
        shape = (*shape, form.copies, masked, self.prioritised is not None)
        return replay.init(*shape, integers=form.integers)

    def minibatch(self, buffer: Replay, reward: Reward, key: Key) -> Transition:
        """2.9: sample a minibatch D from B; `reward` returns the rewards of single steps, with the
        intrinsic reward."""
        return replay.sample(buffer, key, self.batch_size, self.gamma, reward, self.one_step)

    @abc.abstractmethod
    def pairs(self, priors: Any, batch: Transition) -> Pairs:
        """Return (s, a) of transitions as inputs of the critic, given the prior functions."""

    def draw(
        self, law: Any, law_minus: Any, batch: Transition, k_theta: Key, k_target_theta: Key
    ) -> tuple[Rows, Rows]:
        """2.9, 2.11: sample θ⁻ ~ q_φ⁻ for the targets and θ ~ q_φ for the objective, for each row.

        `law` and `law_minus` are q_φ and q_φ⁻ as returned by `Posterior.law`. Families that pair θ
        and θ⁻ use the same samples for both.
        """
        if self.gradient == "score" and isinstance(self.posterior, Density):
            theta = Thetas(self.posterior, noise.folds(k_theta, self.draws))
        else:
            theta = several(self.posterior, law, batch.number, k_theta, self.draws)
        independent = self.posterior.sample_rows(law_minus, batch.number, k_target_theta)
        return theta, theta.for_target(independent)

    def targets(self, z: Float[Array, "draws n outputs"], batch: Transition, key: Key) -> Array:
        """2.10: sample x ~ r + γ·Z_θ⁻(s′, a′) for each θ⁻ and transition; γᵏ after k steps.

        z contains the network's outputs at (s′, a′). If s′ is terminal, x is r.
        """
        draws, n, _ = z.shape
        keys = noise.folds(key, draws * n).reshape(draws, n, 2)
        discount = self.gamma if batch.discount is None else batch.discount
        discount = discount * (1.0 - batch.terminated)
        over_rows = jax.vmap(self.returns.target)
        return jax.vmap(over_rows, (0, None, None, 0))(z, batch.reward, discount, keys)

    def objective(
        self, phi: Phi, theta: Rows, batch: Transition, x: Array
    ) -> tuple[Float[Array, ""], tuple[Float[Array, ""], Float[Array, " n"]]]:
        """2.11: return E_θ[mean_j loss(x_j)] − (c/N)·H(q_φ), and two diagnostics: the weighted mean
        of the loss, and the error of each row.

        c is `Return.scale`. For a Gaussian, c = σ² and the loss is −c·log Z_θ, so that this is (4),
        or (7), times c/N; the factor c/N does not change the minimiser. For the other families c
        weights the entropy only (see `Return.scale`). A posterior with a prior has −KL(q_φ ‖ prior)
        in place of H. `x` contains a target for each sample of θ and each row.
        """
        law, (inputs, action) = self.posterior.law(phi), self.pairs(phi.priors, batch)
        z = of_action(by_action(self.returns, theta(law, inputs)), action)
        x, importance = matched(x, z.shape[0]), importance_weights(batch, self.importance)
        losses, weights = jax.vmap(jax.vmap(self.returns.loss))(z, x), theta.weights * importance
        loss = value = jnp.mean(weights * losses)
        if self.alpha is not None:
            rows = alpha_loss(losses, theta.weights, self.alpha, self.returns.unit)
            value = jnp.mean(importance * rows)
        if isinstance(theta, Thetas):
            shares = weights * losses / z.shape[1]
            value = with_scores(value, theta, phi, shares, action, self.returns.outputs)
        entropy = self.entropy_weight / z.shape[1] * self.posterior.entropy(law)
        mean_loss = loss / jnp.maximum(jnp.mean(weights), 1e-6)
        return value - entropy, (mean_loss, mean_errors(self.returns, theta.weights, z, x))

    @property
    def entropy_weight(self) -> float | Array:
        """c of the objective, or 0 if q_φ has no entropy to weigh against the loss."""
        return self.returns.scale * (type(self.posterior).entropy is not Posterior.entropy)

    def descend(
        self,
        phis: tuple[Phi, ...],
        moments: Any,
        lr: float | Array,
        theta: Rows,
        batch: Transition,
        x: Array,
        key: Key,
    ) -> tuple[tuple[Phi, ...], Any, tuple[Float[Array, ""], Float[Array, " n"]]]:
        """2.11–2.12: φ ← φ − α·Δφ for every critic, with Adam or `Sampler.step`.

        Returns φ and the moments after the step, and the diagnostics of `objective` before it.
        """

        def total_objective(learned: tuple) -> tuple[Array, tuple[Array, Array]]:
            critics = [phi._replace(learned=part) for phi, part in zip(phis, learned, strict=True)]
            pairs = [self.objective(phi, theta, batch, x) for phi in critics]
            objectives, diagnostics = zip(*pairs, strict=True)
            means = jax.tree.map(lambda *critics: sum(critics) / len(phis), *diagnostics)
            return sum(objectives, jnp.zeros(())), means

        learned = tuple(phi.learned for phi in phis)
        gradient, diagnostics = jax.grad(total_objective, has_aux=True)(learned)
        scale = self.entropy_weight, self.returns.scale / batch.reward.shape[0]
        step = learned, gradient, moments, lr, scale, key
        learned, moments = posterior_step(self.posterior, *step)
        updated = [phi._replace(learned=part) for phi, part in zip(phis, learned, strict=True)]
        return tuple(updated), moments, diagnostics

    def refit(
        self, state: AgentState, phi: Phi, lookahead: Lookahead, reward: Reward, key: Key
    ) -> Phi:
        """Return φ after `Posterior.refit`, if the minimiser of the objective has a closed form."""

        def refit_targets(batch: Transition, key: Key, block: int | Array) -> Array:
            """Sample targets with the same θ⁻ for all transitions.

            With a different θ⁻ for each, the uncertainty in θ⁻ would average out. `block` is the
            index of the block of transitions; only θ⁻ is shared between blocks.
            """
            theta_minus = OneTheta(self.posterior, noise.fold(key, 0))
            return lookahead(theta_minus, batch, noise.fold(key, 1, block))[0]

        data = Data(
            scale=self.returns.scale,
            gamma=self.gamma,
            counter=state.counter,
            replay=state.replay,
            reward=reward,
            pairs=self.pairs,
            target=refit_targets,
            key=key,
        )
        return self.posterior.refit(phi, data)

    def reward(
        self, state: AgentState, priors: Any, law: Any, key: Key, steps: Transition
    ) -> Float[Array, " n"]:
        """Return r of single steps, divided by the scale of rewards, plus the intrinsic reward."""
        spread = partial(self.spread, law, self.pairs(priors, steps), key)
        scaled = self.reward_scale.scaled(state.reward_scale, steps)
        return self.bonus.reward(state.bonus, scaled, spread)

    def spread(self, law: Any, pairs: Pairs, key: Key) -> Float[Array, " n"]:
        """Estimate the standard deviation of Q_θ(s, a) over θ ~ q_φ from two samples of θ.

        The estimate is √π/2 times their distance, which is unbiased for a Gaussian.
        """

        def sampled(i: int) -> Array:
            theta = self.posterior.sample(law, noise.fold(key, i))
            q = self.means(apply_all(self.posterior, law, theta, pairs.inputs))
            return jnp.take_along_axis(q, pairs.action[:, None], axis=1)[:, 0]

        return np.float32(np.sqrt(np.pi) / 2) * jnp.abs(sampled(0) - sampled(1))

    def means(self, z: Float[Array, "*n outputs"]) -> Float[Array, "*n actions"]:
        """Return E[Z_θ(s, ·)] of every action, given the network's output."""
        return means(self.returns, by_action(self.returns, z))

    def action_values(self, z: Float[Array, "*n outputs"]) -> Float[Array, "*n actions"]:
        """Return the value of every action that control maximises, given the network's output:
        E[Z_θ(s, ·)], or its risk measure (`Return.value`)."""
        return values(self.returns, by_action(self.returns, z))

    @property
    def samples(self) -> bool:
        return not self.continuous and not isinstance(self.posterior, Dirac)

    @property
    def intrinsic(self) -> bool:
        return not isinstance(self.bonus, NoBonus)

    @property
    def name(self) -> str:
        bonus = f" + {type(self.bonus).__name__}" if self.intrinsic else ""
        return f"{type(self.returns).__name__} × {type(self.posterior).__name__}{bonus}"

    def dry_run(self, features: int, actions: int, form: Form = VECTORS) -> Memory:
        check_returns(self.returns)
        outputs = actions * self.returns.outputs
        check_posterior(self.posterior, self.network_for(features, outputs, form.image))
        check_bonus(self.bonus, features)
        state = jax.eval_shape(lambda: self.init(features, actions, noise.root(0), form))
        return checks.memory_of(state, features, self.buffer_size, self.hidden)

    def validate(self, observation: np.ndarray) -> None:
        self.posterior.validate(checks.spec_of(self, observation))

    def densities(self, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
        return density_curves(self.returns, outputs)
