"""GE's entropy acts at every σ of the paper's range, in float32, in every family that has one."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import rove
from rove import ActorCritic, Agent, Gaussian, LowRank, MeanField
from rove.core.optimiser import adam_step, init_optimiser
from rove.parts import noise
from rove.parts.replay import Transition

SIGMAS = [10.0**-k for k in range(1, 9)]
FEATURES, UNSEEN, RATE, STEPS = 4, 3, 1e-3, 300
SMALL = {"batch_size": 64, "buffer_size": 128, "learning_starts": 1}


def data(kind, reward: float, seed: int = 0) -> list[Transition]:
    """Transitions in which one feature is always 0; some end the task."""
    rng = np.random.default_rng(seed)

    def observation() -> jnp.ndarray:
        return jnp.asarray(rng.normal(size=FEATURES) * (np.arange(FEATURES) != UNSEEN), jnp.float32)

    def action() -> jnp.ndarray:
        if kind is ActorCritic:
            return jnp.asarray(rng.uniform(-1, 1, size=2), jnp.float32)
        return jnp.asarray(rng.integers(2), jnp.int32)

    return [
        Transition(
            observation(),
            action(),
            jnp.float32(reward * rng.normal()),
            observation(),
            jnp.asarray(i % 5 == 0),
        )
        for i in range(128)
    ]


@partial(jax.jit, static_argnums=2)
def trained(agent, rows: Transition, steps: int):
    """The agent's state at the start, and after so many updates."""
    start = agent.init(FEATURES, 2, noise.root(0))

    def saved(state, row):
        return agent.observe(state, row), None

    def learned(state, step):
        return agent.learn(state, noise.fold(noise.root(1), step))

    full, _ = jax.lax.scan(saved, start, rows)
    state, losses = jax.lax.scan(learned, full, jnp.arange(steps))
    return start, state, losses


def after(agent, reward: float = 1.0, steps: int = STEPS):
    rows = data(type(agent), reward)
    return trained(agent, jax.tree.map(lambda *x: jnp.stack(x), *rows), steps)


def ge(sigma: float, posterior) -> Agent:
    return Agent(Gaussian(sigma), posterior, hidden=(16,), lr=RATE, **SMALL)


def unseen(state) -> np.ndarray:
    """ρ of the first layer's weights from the feature that is never seen."""
    phi = state.phi if isinstance(state.phi, rove.Phi) else state.phi[0]  # of several critics
    learned = phi.learned
    layer = learned.rho if hasattr(learned.rho, "weight") else learned.rho[0]
    return np.asarray(layer.weight)[UNSEEN]


AGENTS = {
    "GE": lambda sigma: ge(sigma, MeanField(-6.0)),
    "GE, prior": lambda sigma: ge(sigma, MeanField(-6.0, prior_std=1.0)),
    "BBQ": lambda sigma: ge(sigma, MeanField(-6.0, prior=1.0)),
    "low rank": lambda sigma: Agent(
        Gaussian(sigma), LowRank(2, rho=-8.0), hidden=(), lr=RATE, **SMALL
    ),
    "critic": lambda sigma: ActorCritic(
        Gaussian(sigma), MeanField(-6.0), hidden=(16,), critic_lr=RATE, **SMALL
    ),
}


@pytest.mark.fast_cases("GE")
@pytest.mark.parametrize("name", AGENTS)
def test_rho_of_a_feature_without_data_grows_at_the_full_rate_at_every_sigma(name):
    """Adam moves a parameter whose gradient has one sign by its learning rate in every step: 0.3 in
    300 steps. With ε = 1e-8 and the objective times σ²/N it was 0.298, 0.182, 0.005 and 0.0001 at
    σ = 1e-2, 1e-3, 1e-4 and 1e-5."""
    steps = 20 if name == "low rank" else STEPS  # its factors grow too, and the slope of ρ falls
    for sigma in SIGMAS:
        start, end, _ = after(AGENTS[name](sigma), steps=steps)
        np.testing.assert_allclose(unseen(end) - unseen(start), RATE * steps, rtol=0.01)


def test_a_parameter_without_data_tends_to_the_width_of_its_prior():
    """σ_θ tends to prior_std/√inputs, from below, and from above if it starts there."""
    for rho in (-3.0, -1.0):
        agent = Agent(Gaussian(1e-4), MeanField(rho, prior_std=0.5), hidden=(16,), lr=0.01, **SMALL)
        end = after(agent, steps=800)[1]
        np.testing.assert_allclose(
            np.log1p(np.exp(unseen(end))), 0.5 / np.sqrt(FEATURES), rtol=0.02
        )


@pytest.mark.parametrize("reward", [1e-3, 1.0, 1e3])
def test_nothing_overflows_or_vanishes_over_the_range_of_sigma(reward):
    """Adam's second moments are normal float32 numbers, from the entropy's square, the least, to
    that of errors of 1e3, the greatest."""
    tiny = np.finfo(np.float32).tiny
    for sigma in SIGMAS:
        _, end, losses = after(ge(sigma, MeanField(-6.0)), reward, steps=20)
        assert np.all(np.isfinite(losses))
        (moments,) = end.optimiser.nu
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(moments))
        assert all(np.all(x >= tiny) for x in jax.tree.leaves(moments.rho)), "every ρ has entropy"
        assert np.all(np.isfinite(jnp.concatenate([x.ravel() for x in jax.tree.leaves(end.phi)])))


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_a_step_does_not_depend_on_the_size_of_the_gradient(size):
    """Against optax's Adam on the gradient itself, and whatever c it is divided by the root of."""
    gradient = jnp.array([1.0, -0.3, 0.02, 0.0])
    adam = optax.adam(0.1, eps=1e-30)
    expected, state = jnp.zeros(4), adam.init(jnp.zeros(4))
    found, moments = jnp.zeros(4), init_optimiser(jnp.zeros(4))
    for factor in (1.0, 2.0, -0.5):
        update, state = adam.update(factor * gradient, state)
        expected += update
        found, moments = adam_step(found, factor * size * gradient, moments, 0.1, size**0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_gradient_too_large_to_be_squared_ends_the_run(tmp_path):
    """Adam's second moment is infinite then, and its parameter would never move again."""
    small = {"hidden": (100,), "learning_starts": 20, "batch_size": 2, "prior_std": 1e-6}
    with pytest.raises(rove.LaneError, match="the square of a gradient overflowed"):
        rove.train("ge", "chain-5", episodes=20, rho=9.0, sigma=1e6, lr=1e-9, **small)
