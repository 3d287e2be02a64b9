"""Disagreement: the spread of Q over θ, against its law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from helpers import in_buffer
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.replay import Transition


def linear_agent(**changes):
    """A mean-field posterior over a linear value: Q's law is known."""
    returns = rove.Gaussian(1e-3, draw="mean")
    settings = {"hidden": (), "batch_size": 2, "buffer_size": 4, **changes}
    return Agent(returns, rove.MeanField(-1.0), **settings)


def alike(n):
    """The same transition, n times."""
    x = jnp.tile(jnp.array([1.0, 2.0]), (n, 1))
    action, zeros = jnp.zeros(n, jnp.int32), jnp.zeros(n)
    return Transition(x, action, zeros, x, zeros.astype(bool))


def bonus_of(agent, draws=20_000):
    """What the bonus adds to the reward of a transition, for many keys."""
    state = agent.init(2, 3, noise.root(0))
    law = agent.posterior.law(state.phi)
    batch = in_buffer(alike(1))
    one = jax.jit(jax.vmap(lambda key: agent.reward(state, (), law, key, batch)))
    return np.asarray(one(noise.folds(noise.root(1), draws)))


@pytest.mark.slow
def test_the_bonus_is_the_standard_deviation_of_q():
    """With weights of standard deviation s, std Q = s·√(1² + 2² + 1) at x = (1, 2) and a bias.
    Of two members of an ensemble it is the distance, half of the time."""
    got = bonus_of(linear_agent(bonus=rove.Disagreement(0.5)))
    hand = 0.5 * np.log1p(np.exp(-1.0)) * np.sqrt(1.0 + 4.0 + 1.0)
    assert got.mean() == pytest.approx(hand, abs=4 * got.std() / np.sqrt(len(got)))
    pair = Agent(rove.Gaussian(0.0), rove.Ensemble(2), bonus=rove.Disagreement(1.0), hidden=())
    got = bonus_of(pair)
    assert np.unique(got).size == 2
    assert np.mean(got > 0) == pytest.approx(0.5, abs=0.02)


def test_the_bonus_moves_the_update():
    key, learn = noise.root(5), jax.jit(Agent.learn)
    learned = []
    for bonus in (rove.NoBonus(), rove.Disagreement(0.0), rove.Disagreement(10.0)):
        agent = linear_agent(bonus=bonus)
        state = agent.init(2, 3, noise.root(0))
        for i in range(30):
            state = agent.observe(state, jax.tree.map(lambda leaf: leaf[0], alike(1)))
            state, _ = learn(agent, state, noise.fold(key, i))
        learned.append(jax.tree.leaves(state.phi.learned))
    none, nought, ten = (np.concatenate([np.ravel(x) for x in leaves]) for leaves in learned)
    np.testing.assert_allclose(none, nought, rtol=1e-5)
    assert np.abs(none - ten).max() > 1e-3


def test_a_point_has_no_spread_and_is_refused():
    with pytest.raises(ConfigError, match=r"Disagreement has no effect.*Counts or RND"):
        rove.DQN(bonus="disagreement")
