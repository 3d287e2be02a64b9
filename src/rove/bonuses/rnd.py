"""Random network distillation (Burda et al. 2019): the error of a network that learns to predict
the outputs of a random one."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.bonuses.base import Bonus, Spread
from rove.errors import check_hidden, check_integer, check_number
from rove.parts import networks, noise
from rove.parts.masks import unmasked
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.parts.normalising import Statistics
from rove.parts.onehot import Features
from rove.parts.replay import Transition


class Distillation(NamedTuple):
    """The two networks, and the statistics that normalise the predictor's inputs and errors."""

    target: Theta
    """Parameters of the random network f, which never change."""
    predictor: Theta
    """Parameters of the network f̂ that is trained to predict f."""
    moments: Any
    """Adam's moments of the predictor."""
    observations: Statistics | None
    """Statistics of the observations s′ so far; None for codes, which are not normalised."""
    discounted: Float[Array, ""]
    """Discounted sum of the errors so far, error + γ·(sum before), across episodes."""
    sums: Statistics
    """Statistics of the discounted sums so far."""


class RND(Bonus[Distillation]):
    """i = |f̂(s′) − f(s′)|² divided by the running standard deviation of its discounted sums.

    f is a random network that never changes. f̂ is trained on the states s′ of each minibatch to
    predict f(s′), and so its error is small where the agent has been often. Observations are
    normalised by their running mean and standard deviation and clipped; codes are not changed.
    """

    weight: float | Array = 1.0
    """Weight η of the intrinsic reward."""
    lr: float | Array = 1e-5
    """Learning rate of Adam for f̂. It is small because each step is sampled many times: with 1e-3,
    f̂ knows a state before Q has learned to return to it."""
    gamma: float | Array = 0.99
    """Discount factor of the sums that errors are scaled by."""
    clip: float | Array = 5.0
    """Bound on normalised observations, in standard deviations."""
    hidden: tuple[int, ...] = eqx.field(default=(64, 64), static=True)
    """Widths of the hidden layers of f; f̂ has one more, as wide as the last."""
    outputs: int = eqx.field(default=32, static=True)
    """Number of outputs of f and f̂."""

    def __check_init__(self) -> None:
        check_number("weight", self.weight, at_least=0.0)
        check_number("lr", self.lr, above=0.0)
        check_number("gamma", self.gamma, at_least=0.0, at_most=1.0)
        check_number("clip", self.clip, above=0.0)
        check_hidden("hidden", self.hidden)
        check_integer("outputs", self.outputs, at_least=1)

    def init(self, features: int, coded: bool, key: Key) -> Distillation:
        network = networks.mlp(features, *self.hidden, self.outputs)
        deeper = networks.mlp(features, *self.hidden, *self.hidden[-1:], self.outputs)
        predictor = deeper.init(noise.fold(key, 1))
        return Distillation(
            target=network.init(noise.fold(key, 0)),
            predictor=predictor,
            moments=_adam().init(predictor),
            observations=None if coded else Statistics.of_shape(features),
            discounted=jnp.zeros(()),
            sums=Statistics.of_shape(),
        )

    def observe(
        self, state: Distillation, transition: Transition
    ) -> tuple[Distillation, Transition]:
        """Update the statistics of observations and of discounted sums."""
        x, statistics = unmasked(transition.next_observation), state.observations
        state = state._replace(observations=statistics and statistics.updated(jnp.asarray(x)))
        discounted = self.gamma * state.discounted + self.error(state, state.predictor, x)
        sums = state.sums.updated(discounted)
        return state._replace(discounted=discounted, sums=sums), transition

    def update(self, state: Distillation, batch: Transition) -> Distillation:
        """Take a step of Adam on the mean error of a minibatch."""

        def loss(predictor: Theta) -> Float[Array, ""]:
            return jnp.mean(self.error(state, predictor, unmasked(batch.next_observation)))

        direction, moments = _adam().update(jax.grad(loss)(state.predictor), state.moments)
        predictor = jax.tree.map(lambda p, d: p - self.lr * d, state.predictor, direction)
        return state._replace(predictor=predictor, moments=moments)

    def reward(self, state: Distillation, steps: Transition, spread: Spread) -> Float[Array, " n"]:
        error = self.error(state, state.predictor, unmasked(steps.next_observation))
        scale = jnp.where(state.sums.count > 1.0, state.sums.std, 1.0)
        return steps.reward + self.weight * error / scale

    def error(self, state: Distillation, predictor: Theta, x: Features) -> Float[Array, "*n"]:
        """Return the mean square of f̂(x) − f(x) over the outputs."""
        if state.observations is not None:
            x = state.observations.normalised(jnp.asarray(x), self.clip)
        difference = networks.forward(predictor, x) - networks.forward(state.target, x)
        return jnp.mean(difference**2, axis=-1)


def _adam() -> Any:
    import optax  # imported here because it is slow to import

    return optax.scale_by_adam()
