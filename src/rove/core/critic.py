"""What Algorithm 1 and the randomised critic of Section 4.4 share: a critic Z_θ × q_φ, the
objective (4), and one step of descent. Comments marked 2.k carry out line k of Algorithm 2."""

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from jaxtyping import Float, Int

from rove.core import checks
from rove.core.control import Resample
from rove.core.diagnostics import pictures_of
from rove.core.learner import AgentState, Learner, Memory
from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.replay import Transition
from rove.posteriors.base import Data, OneTheta, Pairs, Phi, Posterior, Rows, apply_all
from rove.returns.base import Return, by_action, means

Lookahead: TypeAlias = Callable[[Rows, Transition, Key, Key], Array]
"""Draws x for transitions from θ⁻, a key for the targets, and a key for what else is random."""


class CriticLearner(Learner):
    """A learner whose critic is a return family and a parameter family.

    What makes it an agent is where a′ of a target comes from, and how it acts.
    """

    returns: Return
    posterior: Posterior
    resample: Resample = eqx.field(default="step", static=True)
    """When a new θ is drawn for control, or for the policy's gradient: "step" (the paper),
    "episode", or a number of steps."""
    gamma: float | Array = 0.99
    """γ, the discount."""
    target_period: int | Array = 100
    """τ, the number of steps between updates of φ⁻."""
    learning_starts: int | Array = 500
    """The step of the first update."""
    batch_size: int = eqx.field(default=64, static=True)
    """N, the number of transitions in a minibatch."""
    buffer_size: int = eqx.field(default=50_000, static=True)
    """Number of transitions that the replay buffer holds."""
    hidden: tuple[int, ...] = eqx.field(default=(100, 100), static=True)
    """Widths of the hidden layers."""

    def __check_init__(self) -> None:
        checks.check_critic(self)

    @abc.abstractmethod
    def pairs(self, priors: Any, batch: Transition) -> Pairs:
        """What the critic's network takes for (s, a), given the prior functions."""

    def draw(
        self, law: Any, law_minus: Any, ids: Int[Array, " n"], k_theta: Key, k_target_theta: Key
    ) -> tuple[Rows, Rows]:
        """2.9: a θ ~ q_φ and a θ⁻ ~ q_φ⁻ for each transition; if they are paired, θ⁻ is made of
        the random numbers of θ."""
        theta = self.posterior.sample_rows(law, ids, k_theta)
        if theta.paired:
            return theta, theta
        return theta, self.posterior.sample_rows(law_minus, ids, k_target_theta)

    def targets(
        self,
        z: Float[Array, "draws n outputs"],
        reward: Float[Array, " n"],
        batch: Transition,
        key: Key,
    ) -> Array:
        """2.10: x ~ r + γ·Z_θ⁻(s′, a′) for each draw and transition, from z at (s′, a′).
        Bootstrapped unless `terminated`."""
        draws, n, _ = z.shape
        keys = noise.folds(key, draws * n).reshape(draws, n, 2)
        discount = self.gamma * (1.0 - batch.terminated)
        over_rows = jax.vmap(self.returns.target)
        return jax.vmap(over_rows, (0, None, None, 0))(z, reward, discount, keys)

    def objective(
        self, phi: Phi, theta: Rows, batch: Transition, x: Array
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """c/N times E_θ[−Σ log Z_θ(x_j)] − H(q_φ): (4), (7) for a Gaussian. Also its first term.

        c is the return's `scale`. Where the loss is −c·log Z_θ, as the Gaussian's, the constant
        c/N changes neither the minimiser nor, by `adam_step`, the steps towards it; where it is
        −log Z_θ, c tempers q_φ. The expectation takes draws of θ for every term of the sum, which
        has less variance than one draw for all. `x` holds a target for each draw and term.
        """
        law, (inputs, action) = self.posterior.law(phi), self.pairs(phi.priors, batch)
        z = of_action(by_action(self.returns, theta(law, inputs)), action)
        loss = jnp.mean(theta.weights * jax.vmap(jax.vmap(self.returns.loss))(z, x))
        return loss - self.returns.scale / z.shape[1] * self.posterior.entropy(law), loss

    def descend(
        self,
        state: AgentState,
        phis: tuple[Phi, ...],
        moments: Any,
        lr: float | Array,
        theta: Rows,
        batch: Transition,
        x: Array,
        lookahead: Lookahead,
        k_refit: Key,
    ) -> tuple[tuple[Phi, ...], Any, Float[Array, ""]]:
        """2.11–2.12 for every critic: φ ← φ − α·Δφ, by Adam; then exact minimisation, where the
        posterior has it. Returns φ, Adam's moments and the mean loss."""

        def of_learned(learned: tuple) -> tuple[Array, Array]:
            moved = [phi._replace(learned=part) for phi, part in zip(phis, learned, strict=True)]
            both = [self.objective(phi, theta, batch, x) for phi in moved]
            total, losses = (sum(part, jnp.zeros(())) for part in zip(*both, strict=True))
            return total, losses / len(phis)

        learned = tuple(phi.learned for phi in phis)
        gradient, loss = jax.grad(of_learned, has_aux=True)(learned)
        learned, moments = adam_step(learned, gradient, moments, lr, self.returns.scale)

        def target_of_one(batch: Transition, key: Key, part: int | Array) -> Array:
            """Targets with one θ⁻ for all: what θ⁻ is uncertain of would average out in a fit to
            many if each had its own."""
            theta_minus = OneTheta(self.posterior, noise.fold(key, 0))
            keys = noise.fold(key, 1, part), noise.fold(key, 2, part)
            return lookahead(theta_minus, batch, *keys)[0]

        data = Data(
            self.returns.scale, state.counter, state.replay, self.pairs, target_of_one, k_refit
        )
        moved = [phi._replace(learned=part) for phi, part in zip(phis, learned, strict=True)]
        return tuple(self.posterior.refit(phi, data) for phi in moved), moments, loss

    def spread(self, law: Any, pairs: Pairs, key: Key) -> Float[Array, " n"]:
        """The standard deviation of Q_θ(s, a) over θ ~ q_φ, estimated from two draws of θ: √π/2
        times their distance, which has no bias for a Gaussian."""

        def values(i: int) -> Array:
            theta = self.posterior.sample(law, noise.fold(key, i))
            q = self.means(apply_all(self.posterior, law, theta, pairs.inputs))
            return jnp.take_along_axis(q, pairs.action[:, None], axis=1)[:, 0]

        return np.float32(np.sqrt(np.pi) / 2) * jnp.abs(values(0) - values(1))

    def means(self, z: Float[Array, "*n outputs"]) -> Float[Array, "*n actions"]:
        """E[Z_θ(s, ·)] of every action, from the network's output."""
        return means(self.returns, by_action(self.returns, z))

    # What the training loop asks besides

    @property
    def name(self) -> str:
        return f"{type(self.returns).__name__} × {type(self.posterior).__name__}"

    @property
    def discrete(self) -> bool:
        return self.returns.discrete

    def memory(self, features: int, actions: int) -> Memory:
        return checks.memory_of(self, features, actions, self.buffer_size, self.hidden)

    def validate(self, observation: np.ndarray) -> None:
        self.posterior.validate(checks.spec_of(self, observation))

    def pictures(self, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
        return pictures_of(self.returns, outputs)


def of_action(
    z: Float[Array, "draws n actions outputs"], action: Int[Array, "*draws n"]
) -> Float[Array, "draws n outputs"]:
    """Each row's outputs for its action."""
    if z.shape[2] == 1:
        return jnp.squeeze(z, axis=2)
    action = action.reshape(-1, z.shape[1], 1, 1)
    return jnp.take_along_axis(z, action, axis=2)[:, :, 0]


EPSILON, LEAST_EPSILON = 1e-8, 1e-16
"""Adam's ε, as usual where the objective has no entropy, and where it has one. The second is
negligible beside the entropy's gradient in `adam_step`, which is 1e-10 at σ = 1e-8 and a minibatch
of 64, and above 3e-18, below which the square of a gradient vanishes in float32."""


def init_optimiser(parameters: Any) -> Any:
    """Adam's moments at the start."""
    return optax.scale_by_adam().init(parameters)


def adam_step(
    parameters: Any,
    gradient: Any,
    moments: Any,
    lr: float | Array,
    scale: float | Array = 0.0,
) -> tuple[Any, Any]:
    """A step of Adam: the parameters, and its moments, after it.

    Adam's steps are the same for any positive multiple of the objective, as long as it is one
    multiple in all steps, ε is negligible and squares of gradients are within float32. In the
    objective of `scale` c the data's gradients are of the order of 1 and the entropy's of c/N,
    whose squares vanish where σ is small. Divided by √c, both are safe for σ from 1e-8 to 1: the
    least entropy gradient is 1e-10, and the largest of the data, with errors of 1e3, about 1e14.
    Where c is 0 the gradient is taken as it is.
    """
    factor = lax.rsqrt(jnp.where(scale > 0.0, scale, 1.0))
    gradient = jax.tree.map(lambda g: factor * g, gradient)
    adam = optax.scale_by_adam(eps=jnp.where(scale > 0.0, LEAST_EPSILON, EPSILON))
    direction, moments = adam.update(gradient, moments)
    return jax.tree.map(lambda p, d: p - lr * d, parameters, direction), moments
