"""Targets of several steps, for every return family and kind of posterior, by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from helpers import refit
from rove.core.actor_critic import ActorCritic
from rove.core.algorithm import Agent
from rove.parts import noise, replay
from rove.parts.replay import Transition
from rove.posteriors import Conjugate, Dirac, Ensemble, LastLayer, LowRank
from rove.posteriors.priors import inputs
from rove.returns import Categorical, Gaussian, LearnedGaussian, Mixture, Quantile
from rove.training.compiled import run
from rove.training.lane import start

GAMMA, FEATURES, ACTIONS = 0.5, 3, 2
REWARDS = np.float32([1, 2, 4, 8, 16, 32, 64, 128]) / 16
TERMINATED, TRUNCATED = np.arange(8) == 2, np.arange(8) == 4
RETURNS = np.float32([3, 4, 4, 16, 16, 96, 128, 128]) / 16
"""r₀ + r₁/2 + r₂/4, within the episodes of steps 0 to 2, 3 to 4, and 5 to 7."""
STEPS = np.array([3, 2, 1, 2, 1, 3, 2, 1])
LAST = np.array([2, 2, 2, 4, 4, 7, 7, 7])
"""The last of the steps that each transition consists of."""
DISCOUNTS = np.where(LAST == 2, 0.0, GAMMA**STEPS)
"""γᵏ, and 0 in the episode that terminates."""
STATES = np.float32(np.random.default_rng(0).normal(size=(9, FEATURES)))
SMALL = {"hidden": (), "batch_size": 4, "buffer_size": 8, "gamma": GAMMA, "n_step": 3}


def stored(agent, actions=lambda i: jnp.int32(i % ACTIONS)):
    """The agent's state after the eight steps, and all transitions that its buffer yields."""
    state = jax.jit(agent.init, static_argnums=(0, 1))(FEATURES, ACTIONS, noise.root(1))
    observe = jax.jit(agent.observe)
    for i in range(8):
        flags = jnp.asarray(TERMINATED[i]), None, None, jnp.asarray(TRUNCATED[i])
        reward = jnp.asarray(REWARDS[i])
        state = observe(state, Transition(STATES[i], actions(i), reward, STATES[i + 1], *flags))
    batch, held = jax.jit(replay.everything)(state.replay, agent.gamma)
    assert bool(jnp.all(held))
    return state, batch


def targets(agent, state, batch):
    """θ and the targets x of all transitions."""

    @jax.jit
    def compute(state, batch):
        law, batch = agent.posterior.law(state.phi), batch._replace(number=jnp.arange(8))
        theta, theta_minus = agent.draw(law, law, batch, noise.root(2), noise.root(3))
        lookahead = partial(agent.lookahead, state.phi.priors, law, law)
        return theta, lookahead(theta_minus, batch, noise.root(4))

    return compute(state, batch)


def linear(state) -> np.ndarray:
    """[8, outputs]: the outputs of the agent's linear network at the last s′ of each transition."""
    (layer,) = state.phi.learned
    return STATES[LAST + 1] @ np.asarray(layer.weight) + np.asarray(layer.bias)


@pytest.mark.parametrize(
    "returns",
    [
        Gaussian(0.1, draw="mean"),
        LearnedGaussian(draw="mean"),
        Mixture(2, draw="mean"),
        Quantile(5),
        Categorical(81, low=-20.0, high=20.0),
    ],
    ids=lambda returns: type(returns).__name__,
)
def test_targets_of_every_return_family(returns):
    """The mean of x is R + γᵏ·max_a Q(s′, a), where Q is computed here from the family's
    definition; the projection on atoms keeps the mean. Quantiles shift one by one."""
    agent = Agent(returns, Dirac(), **SMALL)
    state, batch = stored(agent)
    z = linear(state).reshape(8, ACTIONS, returns.outputs).astype(np.float64)
    softmax = np.exp(z) / np.exp(z).sum(axis=2, keepdims=True)
    mixed = np.exp(z[..., :2]) / np.exp(z[..., :2]).sum(axis=2, keepdims=True)
    q = {
        "Gaussian": z[..., 0],
        "LearnedGaussian": z[..., 0],
        "Mixture": np.sum(mixed * z[..., 2:4], axis=2) if returns.outputs > 3 else None,
        "Quantile": z.mean(axis=2),
        "Categorical": np.sum(softmax * np.linspace(-20, 20, returns.outputs), axis=2),
    }[type(returns).__name__]
    _, x = targets(agent, state, batch)
    expected = RETURNS + DISCOUNTS * q.max(axis=1)
    x = np.asarray(x[0])
    if isinstance(returns, Quantile):
        best = z[np.arange(8), q.argmax(axis=1)]
        np.testing.assert_allclose(x, RETURNS[:, None] + DISCOUNTS[:, None] * best, rtol=1e-5)
        return
    means = x @ np.linspace(-20, 20, returns.outputs) if isinstance(returns, Categorical) else x
    np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-4)


def test_the_noise_of_a_sampled_target_is_discounted_by_every_step():
    """x = R + γᵏ·(Q + σ·ξ) with the ξ of the same key at σ = 1 in a program with one step."""
    agent = Agent(Gaussian(1.0), Dirac(), **SMALL)
    state, batch = stored(agent)
    _, x = targets(agent, state, batch)
    _, means = targets(Agent(Gaussian(1.0, draw="mean"), Dirac(), **SMALL), state, batch)
    keys = noise.folds(noise.root(4), 8)
    xi = np.array([noise.normal(key) for key in keys])
    np.testing.assert_allclose(x[0] - means[0], DISCOUNTS * xi, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "posterior", [Ensemble(3, mask=0.5, prior=2.0), LowRank(rank=2, prior=2.0)], ids=["k", "z"]
)
def test_prior_functions_are_those_of_the_last_state(posterior):
    """The cached values at s and at the last s′ are what the prior functions give there."""
    state, batch = stored(Agent(Gaussian(0.1), posterior, **SMALL))
    for cached, states in ((batch.priors, STATES[:8]), (batch.next_priors, STATES[LAST + 1])):
        assert cached.shape[1] > 0
        computed = inputs(state.phi.priors, jnp.asarray(states)).priors
        np.testing.assert_allclose(cached, computed.reshape(8, -1), rtol=1e-5, atol=1e-6)


def test_members_of_an_ensemble_compute_targets_of_several_steps():
    """x of member k: R + γᵏ·max_a (f_k + β·g_k)(s′), for the rows that it learns from, which are
    those of the first step's number."""
    posterior = Ensemble(3, mask=0.5, prior=2.0)
    agent = Agent(Gaussian(0.0), posterior, **SMALL)
    state, batch = stored(agent)
    theta, x = targets(agent, state, batch)
    (member,), (prior,) = state.phi.learned, state.phi.priors
    values = [
        np.einsum("nf,kfa->kna", STATES[LAST + 1], layer.weight) + np.asarray(layer.bias)[:, None]
        for layer in (member, prior)
    ]
    expected = RETURNS + DISCOUNTS * np.max(values[0] + 2.0 * values[1], axis=2)
    first = int(noise.integers(noise.root(2), (), 3))
    masks = posterior.masks(posterior.law(state.phi), jnp.arange(8))
    learned = np.roll(np.asarray(masks & (np.cumsum(masks, axis=1) <= 4)), first, axis=0)
    np.testing.assert_array_equal(theta.weights, learned)
    assert 0 < learned.sum() < learned.size
    rolled = np.roll(expected, first, axis=0)
    np.testing.assert_allclose(np.asarray(x)[learned], rolled[learned], rtol=1e-5)


def test_an_actor_critic_looks_several_steps_ahead():
    """x = R + γᵏ·Q(s′, tanh(s′·w + b)) with linear networks, for a vector of actions."""
    agent = ActorCritic(Gaussian(0.0), Dirac(), **SMALL)
    actions = np.float32(np.random.default_rng(1).uniform(-1, 1, size=(8, ACTIONS)))
    state, batch = stored(agent, lambda i: jnp.asarray(actions[i]))
    np.testing.assert_array_equal(batch.action, actions)
    (critic,), (policy,) = state.phi[0].learned, state.actor.psi
    s = STATES[LAST + 1]
    taken = np.tanh(s @ np.asarray(policy.weight) + np.asarray(policy.bias))
    q = np.concatenate([s, taken], axis=1) @ np.asarray(critic.weight) + np.asarray(critic.bias)

    @jax.jit
    def compute(state, batch):
        laws = agent.laws(state.phi)
        rows = agent.posterior.sample_rows(laws[0], jnp.arange(8), noise.root(2))
        psi = state.actor.psi_target
        return agent.lookahead(((),), laws, psi, rows, batch, noise.root(3))

    expected = RETURNS + DISCOUNTS * q[:, 0]
    np.testing.assert_allclose(compute(state, batch)[0], expected, rtol=1e-5)


def episodes_that_terminate(agent, observations):
    """The state after two episodes of three steps that terminate."""
    state = jax.jit(agent.init, static_argnums=(0, 1))(FEATURES, ACTIONS, noise.root(1))
    observe = jax.jit(agent.observe)
    for i in range(6):
        s, s_next = observations[i], observations[i + 1]
        action, end = jnp.int32(i % ACTIONS), jnp.asarray(i % 3 == 2)
        state = observe(state, Transition(s, action, jnp.float32(REWARDS[i]), s_next, end))
    return state


def monte_carlo(gamma: float) -> np.ndarray:
    """The discounted returns of the six steps up to the end of their episode."""
    powers, episodes = gamma ** np.arange(3), (REWARDS[:3], REWARDS[3:6])
    return np.array([powers[: 3 - i] @ episode[i:] for episode in episodes for i in range(3)])


EXACT = SMALL | {"batch_size": 1, "learning_starts": 1}


def test_a_regression_uses_targets_of_several_steps():
    """Ridge regression of the Monte Carlo returns, in NumPy; n = 3 reaches every end."""
    agent = Agent(Gaussian(0.5, draw="mean"), LastLayer(prior=2.0, period=1), **EXACT)
    state = episodes_that_terminate(agent, STATES)
    head = refit(agent.posterior, state.phi, 0.25, 6, state.replay, noise.root(7)).fitted
    for action in range(ACTIONS):
        own = np.arange(6) % ACTIONS == action
        a = np.concatenate([STATES[:6][own], np.ones((3, 1))], axis=1).astype(np.float64)
        precision = a.T @ a / 0.25 + np.eye(FEATURES + 1) / 4.0
        mean = np.linalg.solve(precision, a.T @ monte_carlo(0.99)[own] / 0.25)
        np.testing.assert_allclose(head.mean[action], mean, rtol=1e-3, atol=1e-4)


def test_a_conjugate_table_uses_targets_of_several_steps():
    """Means of the Monte Carlo returns of each state and action, shrunk by the prior."""
    observations = np.eye(FEATURES, dtype=np.float32)[[0, 1, 2, 0, 1, 2, 0]]
    agent = Agent(Gaussian(0.5, draw="mean"), Conjugate(prior=2.0), **EXACT)
    state = episodes_that_terminate(agent, observations)
    table = jax.jit(agent.learn)(state, noise.root(7))[0].phi.fitted
    expected = np.zeros((FEATURES, ACTIONS))
    for i in range(6):
        expected[i % 3, i % 2] += monte_carlo(GAMMA)[i] / 0.25 / (1 / 4.0 + 1 / 0.25)
    np.testing.assert_allclose(table.mean, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", [Agent, ActorCritic])
@pytest.mark.parametrize("n_step", [0, -1, 9])
def test_numbers_of_steps_that_are_refused(kind, n_step):
    with pytest.raises(rove.ConfigError, match="n_step must be"):
        kind(Gaussian(0.0), Dirac(), **SMALL | {"n_step": n_step})


@pytest.mark.slow
def test_returns_of_a_run_end_at_the_time_limit_of_the_chain():
    """The lane stores that an episode was truncated: 13 steps of chain-4, and no return of three
    steps goes beyond them."""
    agent, environment = rove.DQN(**SMALL | {"buffer_size": 40}).compose(), rove.Chain(4)
    lane = jax.jit(start)(agent, environment, jnp.int32(0))
    lane = jax.jit(run)(agent, environment, lane, jnp.int32(30), jnp.int32(99))
    batch, held = replay.everything(lane.agent.replay, GAMMA)
    assert int(held.sum()) == 30
    steps = [3] * 11 + [2, 1]
    expected = GAMMA ** np.array([*steps, *steps, 3, 3, 2, 1])
    np.testing.assert_allclose(batch.discount[:30], expected)
    assert not np.any(batch.terminated[:30])
    np.testing.assert_array_equal(batch.truncated[:30].sum(), 6)
