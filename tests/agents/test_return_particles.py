"""Return distributions as particles: one update, exact distributions, and CVaR control."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from environments.test_cliff import planned, walked, way
from rove.environments.base import Environment, Step
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.replay import Transition

GAMMA = 0.6


class Coins(Environment):
    """Two steps with one action: the first pays 0 or 1, the second 0 (0.3) or 2 (0.7)."""

    name = "coins"
    observation_size = 2
    observation_bounds = (0.0, 1.0)
    num_actions = 1
    bins = 2

    def bin(self, state):
        return jnp.minimum(state, 1)

    def reset(self, key):
        return jnp.zeros((), jnp.int32), jax.nn.one_hot(0, 2)

    def step(self, state, action, key):
        u = noise.uniform(key)
        reward = jnp.where(state == 0, u < 0.5, 2.0 * (u < 0.7)).astype(jnp.float32)
        over = state == 1
        return Step(state + 1, jax.nn.one_hot(1, 2), reward, over, jnp.zeros((), bool))


@pytest.mark.slow
def test_the_true_distribution_of_returns():
    """Returns r₀ + 0.6·r₁ of 0, 1, 1.2 and 2.2 with 0.15, 0.15, 0.35 and 0.35. A particle is a
    return that is about 1/α episodes old: the standard deviation of a frequency is at most
    √(α/2)/2 = 0.016 at α = 0.002. Without discounting, or with means as targets, there are other
    values; with one draw for all particles, frequencies are 0 or 1."""
    agent = rove.ReturnParticles(particles=2000, lr=0.002, gamma=GAMMA, epsilon=0.0)
    run = rove.train(agent, Coins(), episodes=4000)
    first, second = np.asarray(run.outcomes[0].lane.agent.phi.fitted)[:, 0]
    for particles, exact in (
        (first, {0.0: 0.15, 1.0: 0.15, 1.2: 0.35, 2.2: 0.35}),
        (second, {0.0: 0.3, 2.0: 0.7}),
    ):
        shares = {x: np.mean(np.isclose(particles, x, atol=1e-5)) for x in exact}
        assert sum(shares.values()) > 0.999
        assert shares == pytest.approx(exact, abs=0.08)
    values = agent.returns.mean(jnp.asarray(first))
    assert float(values) == pytest.approx(0.5 + GAMMA * 1.4, abs=0.08)


def test_one_update_replaces_a_fraction_by_samples_of_the_target():
    """Of 20,000 particles, α = 0.3 by r + γ·(a random particle of the best a′), others stay."""
    agent = rove.ReturnParticles(particles=20_000, lr=0.3, gamma=GAMMA)
    state = agent.init(2, 2, noise.root(0))
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2, 2, 20_000)).astype(np.float32)
    table[1, 1] += 0.5
    table[0, 0] = 50.0
    state = state._replace(phi=state.phi._replace(fitted=jnp.asarray(table)))
    x, y = jnp.eye(2)
    step = Transition(x, jnp.zeros(1), jnp.float32(1.0), y, jnp.asarray(False))
    state, _ = agent.learn(agent.observe(state, step), noise.root(1))
    after = np.asarray(state.phi.fitted)
    new = after[0, 0][after[0, 0] != 50.0]
    assert len(new) == pytest.approx(6000, abs=4.5 * np.sqrt(20_000 * 0.3 * 0.7))
    assert np.all(np.isin(new, np.float32(1.0) + np.float32(GAMMA) * table[1, 1]))
    assert len(np.unique(new)) > 0.8 * len(new)  # picked at random, with replacement
    assert new.mean() == pytest.approx(1.0 + GAMMA * 0.5, abs=5 * GAMMA / np.sqrt(6000))
    np.testing.assert_array_equal(after[1], table[1])
    ended = step._replace(terminated=jnp.asarray(True))
    state, _ = agent.learn(agent.observe(state, ended), noise.root(2))
    assert set(np.unique(np.asarray(state.phi.fitted)[0, 0])) >= {1.0}


@pytest.mark.slow
@pytest.mark.parametrize("risk", [None, rove.CVaR(0.1)], ids=["mean", "cvar"])
def test_control_is_the_exact_policy_of_the_cliff(risk):
    """On the way from the start, that of distributional value iteration for the mean and for the
    CVaR; each would be wrong for the other."""
    agent = rove.ReturnParticles(lr=0.02, gamma=1.0, risk=risk)
    run = rove.train(agent, "cliff", episodes=4000)
    exact, _ = planned(None if risk is None else 0.1)
    state, cliff = run.outcomes[0].lane.agent, run.config.environment
    cells = range(cliff.bins)
    policy = tuple(int(agent.greedy(state, cliff.observe(cell))) for cell in cells)
    lengths, rows = zip(*((len(way(p)), min(way(p))[0]) for p in (policy, exact)), strict=True)
    assert lengths[0] == lengths[1]
    assert rows[0] == rows[1] == (2 if risk is None else 0)
    assert walked(way(policy)[-1]) == (3, 6)


def test_particles_are_drawn_as_they_are():
    run = rove.train(rove.ReturnParticles(particles=5), rove.Chain(4), episodes=3)
    agent, state = run.config.compose(), run.outcomes[0].lane.agent
    beliefs = agent.beliefs(state, jnp.eye(4), noise.root(0))
    (points, heights), _ = agent.densities(beliefs.outputs[0])
    np.testing.assert_array_equal(points, np.sort(np.asarray(state.phi.fitted)[0, 0]))
    np.testing.assert_allclose(heights, 0.2)
    assert beliefs.values.shape[1:] == beliefs.stds.shape == (4, 2)


def test_bad_values_are_refused_and_settings_compose():
    for settings in ({"particles": 0}, {"lr": 0.0}, {"epsilon": 1.5}, {"gamma": 2.0}):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            rove.ReturnParticles(**settings)
    composed = rove.Particles(risk="cvar", risk_level=0.2).compose()
    assert eqx.tree_equal(composed, rove.ReturnParticles(risk=rove.CVaR(0.2)))
