"""The table of Beta distributions: exact posteriors, and Thompson's sampling of 1933."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import rove
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.replay import Transition
from rove.posteriors import Beta, Phi
from rove.posteriors.beta import Pseudocounts
from rove.posteriors.priors import Input
from rove.returns import Bernoulli, Gaussian

ARMS, CAPACITY, DRAWS = 3, 16, 40_000
STATE = jnp.ones(1)

init = jax.jit(Agent.init, static_argnums=(1, 2))
observe, learn, act = jax.jit(Agent.observe), jax.jit(Agent.learn), jax.jit(Agent.act)


def agent() -> Agent:
    shape = {"hidden": (), "batch_size": 1, "buffer_size": CAPACITY, "learning_starts": 1}
    return Agent(Bernoulli(), Beta(ones=2.0, zeros=0.5), **shape)


def test_after_every_pull_it_is_the_beta_posterior():
    """40 pulls chosen by the agent itself; the buffer holds the last 16. Counts are exact."""
    rng, thompson = np.random.default_rng(0), agent()
    state = init(thompson, 1, ARMS, noise.root(0))
    pulls = []
    for step in range(40):
        key = noise.fold(noise.root(1), step)
        arm = int(act(thompson, state, STATE, noise.fold(key, 0)))
        reward = np.float32(rng.random() < [0.3, 0.5, 0.6][arm])
        pulls = [*pulls, (arm, reward)][-CAPACITY:]
        pull = Transition(STATE, jnp.int32(arm), jnp.asarray(reward), STATE, jnp.asarray(True))
        state, _ = learn(thompson, observe(thompson, state, pull), noise.fold(key, 1))
        counts = [
            [sum(a == arm and r == x for a, r in pulls) for arm in range(ARMS)] for x in (1, 0)
        ]
        assert np.array_equal(state.phi.fitted.ones[0], 2.0 + np.array(counts[0]))
        assert np.array_equal(state.phi.fitted.zeros[0], 0.5 + np.array(counts[1]))
    assert len({arm for arm, _ in pulls}) > 1
    mean = thompson.posterior.mean(state.phi.fitted, Input(STATE))
    ones, zeros = (np.asarray(x[0], float) for x in state.phi.fitted)
    np.testing.assert_allclose(thompson.means(mean), ones / (ones + zeros), rtol=1e-5)


LAW = Pseudocounts(jnp.array([[2.0, 0.5, 30.0]]), jnp.array([[3.0, 0.5, 11.0]]))


@pytest.mark.parametrize("rows", [True, False], ids=["rows", "draws"])
def test_samples_have_scipys_law(rows):
    """Probabilities of the logits, of each arm; Kolmogorov and Smirnov at 1e-4 / 3."""
    posterior, x = Beta(), Input(jnp.ones((DRAWS, 1)))
    if rows:
        z = posterior.sample_rows(LAW, jnp.arange(DRAWS), noise.root(0))(LAW, x)[0]
    else:
        keys = noise.folds(noise.root(1), DRAWS)
        z = jax.jit(jax.vmap(lambda key: posterior.sample(LAW, key)[0]))(keys)
    p = special.expit(np.asarray(z, float))
    for arm in range(ARMS):
        law = stats.beta(float(LAW.ones[0, arm]), float(LAW.zeros[0, arm]))
        assert stats.kstest(p[:, arm], law.cdf).pvalue > 1e-4 / ARMS


def test_an_arm_is_pulled_as_often_as_it_is_the_best():
    """P(arm = argmax p) by numerical integration; to within 4.5 standard errors."""
    thompson = agent()
    state = init(thompson, 1, 2, noise.root(0))
    law = Pseudocounts(jnp.array([[3.0, 5.0]]), jnp.array([[2.0, 6.0]]))
    state = state._replace(phi=Phi((), law))
    keys = noise.folds(noise.root(2), DRAWS)
    arms = jax.jit(jax.vmap(lambda key: thompson.act(state, STATE, key)))(keys)
    first, second = stats.beta(3, 2), stats.beta(5, 6)
    exact = integrate.quad(lambda p: second.pdf(p) * first.cdf(p), 0, 1)[0]
    error = np.sqrt(exact * (1 - exact) / DRAWS)
    assert abs(np.mean(np.asarray(arms)) - exact) < 4.5 * error


def test_the_table_is_by_state():
    """Three states: a state's row is its own Beta."""
    law = Pseudocounts(jnp.array([[1.0], [8.0], [2.0]]), jnp.array([[1.0], [2.0], [6.0]]))
    for s, expected in enumerate((0.5, 0.8, 0.25)):
        mean = Beta().mean(law, Input(jnp.eye(3)[s]))
        assert float(Bernoulli().mean(mean)) == pytest.approx(expected)
    phi = Beta().init(networks.mlp(3, 2), noise.root(0))
    assert phi.fitted.ones.shape == (3, 2)


def test_what_it_cannot_work_with_is_refused():
    with pytest.raises(ConfigError, match="Bernoulli × Beta works"):
        Agent(Gaussian(0.1), Beta(), hidden=())
    with pytest.raises(ConfigError, match="hidden must be"):
        Agent(Bernoulli(), Beta(), hidden=(8,))
    with pytest.raises(ConfigError, match="one-hot observations"):
        rove.train("thompson_beta", "chain-5", episodes=1)
    for ones in (0.0, 1e-40):  # float32 rounds the second to 0
        with pytest.raises(ConfigError, match="ones"):
            Beta(ones=ones)
