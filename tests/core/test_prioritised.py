"""Prioritised replay: errors of every family, weights and new priorities, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import rove
from rove.core.actor_critic import ActorCritic
from rove.core.algorithm import Agent
from rove.core.objectives import importance_weights
from rove.parts import noise, replay
from rove.parts.replay import Transition
from rove.posteriors import Dirac, Ensemble
from rove.returns import Categorical, Gaussian, LearnedGaussian, Mixture, Quantile

FEATURES, ACTIONS, N = 3, 2, 16
STATES = np.float32(np.random.default_rng(0).normal(size=(N + 1, FEATURES)))
REWARDS = np.float32(np.random.default_rng(1).normal(size=N))
SETTINGS = {
    "hidden": (), "batch_size": 6, "buffer_size": N, "gamma": 0.5, "prioritised": 0.6,
    "learning_starts": 1, "target_period": 1000,
}  # fmt: skip

learn = jax.jit(lambda agent, state, key: agent.learn(state, key))
minibatch = jax.jit(lambda agent, buffer, key: agent.minibatch(buffer, replay.stored_reward, key))


def stored(agent, actions=lambda i: jnp.int32(i % ACTIONS)):
    """The agent's state after N steps."""
    state = jax.jit(agent.init, static_argnums=(0, 1))(FEATURES, ACTIONS, noise.root(1))
    observe = jax.jit(agent.observe)
    for i in range(N):
        end = jnp.asarray(i % 5 == 4)
        step = Transition(STATES[i], actions(i), jnp.asarray(REWARDS[i]), STATES[i + 1], end)
        state = observe(state, step)
    return state


def leaves(state) -> np.ndarray:
    return np.asarray(state.replay.priorities.levels[0]).reshape(-1)[:N]


def z_of(returns, seed: int):
    return jnp.asarray(np.random.default_rng(seed).normal(size=returns.outputs), jnp.float32)


# Errors


@pytest.mark.parametrize("returns", [Gaussian(0.3), LearnedGaussian(), Mixture(3)], ids=type)
def test_the_error_of_a_density_is_the_absolute_td_error(returns):
    z, x = z_of(returns, 0), jnp.float32(1.7)
    assert float(returns.error(z, x)) == pytest.approx(abs(float(returns.mean(z)) - 1.7), rel=1e-5)
    assert float(returns.error(z, returns.mean(z))) == 0.0


def test_the_error_of_a_categorical_is_the_divergence():
    """KL(x ‖ Z), by SciPy; a probability of 0 counts nothing, and it is 0 at Z itself."""
    returns = Categorical(5, low=-1.0, high=1.0)
    z, x = z_of(returns, 1), jnp.array([0.0, 0.1, 0.2, 0.3, 0.4])
    p = np.exp(np.asarray(z, np.float64))
    expected = stats.entropy(np.asarray(x, np.float64), p / p.sum())
    assert float(returns.error(z, x)) == pytest.approx(expected, rel=1e-5)
    assert float(returns.error(z, jax.nn.softmax(z))) == pytest.approx(0.0, abs=1e-6)


def test_the_error_of_quantiles_is_their_wasserstein_distance():
    """By SciPy; the order of the outputs does not matter."""
    returns = Quantile(9)
    z, x = z_of(returns, 2), z_of(returns, 3)
    expected = stats.wasserstein_distance(np.asarray(z), np.asarray(x))
    assert float(returns.error(z, x)) == pytest.approx(expected, rel=1e-5)
    assert float(returns.error(z, z[::-1])) == 0.0


def test_a_family_of_ones_own_has_the_absolute_loss():
    class Shifted(Gaussian):
        def loss(self, z, target):
            return 0.5 * (z[0] - target) ** 2 - 3.0

        error = rove.Return.error

    z = jnp.array([1.0])
    assert float(Shifted(0.1).error(z, jnp.float32(2.0))) == 2.5


# Weights


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_weights_by_hand(beta):
    """(N·P)^−β over their mean, with P = p/Σp of a buffer of priorities 1, 2, 4, 1."""
    priority = np.array([4.0, 1.0, 2.0, 1.0])
    raw = (4 * priority / 8.0) ** -beta
    batch = Transition(*[jnp.zeros(4)] * 5, priority=jnp.asarray(priority, jnp.float32))
    np.testing.assert_allclose(importance_weights(batch, beta), raw / raw.mean(), rtol=1e-6)


def test_weights_multiply_the_loss_and_not_the_entropy():
    """The objective in NumPy: mean(w·½(Q − x)²) − (σ²/N)·H."""
    agent = Agent(Gaussian(0.5), rove.MeanField(-2.0), **SETTINGS)
    plain = Agent(Gaussian(0.5), rove.MeanField(-2.0), **SETTINGS | {"prioritised": None})
    state = stored(agent)
    batch, phi = minibatch(agent, state.replay, noise.root(2)), state.phi
    batch = batch._replace(priority=jnp.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    theta = agent.posterior.sample_rows(agent.posterior.law(phi), batch.number, noise.root(3))
    x = jnp.asarray(REWARDS[None, :6])
    value, (mean, errors) = jax.jit(agent.objective)(phi, theta, batch, x)
    entropy = 0.25 / 6 * float(agent.posterior.entropy(agent.posterior.law(phi)))
    losses = 0.5 * np.asarray(errors) ** 2
    weights = np.arange(1.0, 7.0) ** -0.5
    weights /= weights.mean()
    assert float(value) == pytest.approx(np.mean(weights * losses) - entropy, rel=1e-4)
    assert float(mean) == pytest.approx(np.sum(weights * losses) / weights.sum(), rel=1e-4)
    value, (mean, _) = jax.jit(plain.objective)(phi, theta, batch._replace(priority=None), x)
    assert float(value) == pytest.approx(np.mean(losses) - entropy, rel=1e-4)


def test_the_posterior_is_that_of_uniform_replay():
    """Observations of weight + bias with σ = 1, 32 at a time: in the best mean field, each has a
    standard deviation of 1/√32. Errors, and with them the probabilities of being sampled, differ by
    orders of magnitude."""
    settings = {"hidden": (), "batch_size": 32, "buffer_size": 64, "gamma": 0.0, "lr": 3e-3}
    widths = {}
    for prioritised, importance in ((None, 0.5), (0.6, 1.0)):
        agent = Agent(
            Gaussian(1.0), rove.MeanField(-2.0), prioritised=prioritised, importance=importance,
            learning_starts=1, **settings,
        )  # fmt: skip
        rewards = jnp.asarray(np.random.default_rng(4).normal(size=64), jnp.float32)

        @jax.jit
        def widths_of(agent, rewards):
            def save(i, state):
                step = Transition(
                    jnp.ones(1), jnp.int32(0), rewards[i], jnp.ones(1), jnp.asarray(True)
                )
                return agent.observe(state, step)

            def update(state, t):
                state, _ = agent.learn(state, noise.fold(noise.root(5), t))
                law = agent.posterior.law(state.phi)
                (std,) = law.std
                return state, jnp.sqrt(std.weight[0, 0] ** 2 + std.bias[0] ** 2)

            state = jax.lax.fori_loop(0, 64, save, agent.init(1, 1, noise.root(3)))
            return jax.lax.scan(update, state, jnp.arange(4000))[1]

        widths[prioritised] = float(jnp.mean(widths_of(agent, rewards)[2000:]))
    assert widths[None] == pytest.approx(2**0.5 / 32**0.5, rel=0.1)
    assert widths[0.6] == pytest.approx(widths[None], rel=0.15)


# New priorities


def test_new_transitions_have_the_largest_priority():
    np.testing.assert_array_equal(leaves(stored(Agent(Gaussian(0.0), Dirac(), **SETTINGS))), 1.0)


def test_an_update_gives_its_transitions_new_priorities():
    """(|Q(s, a) − r − γ·max Q(s′, ·)| + 1e-6)^0.6 of those that were sampled, in NumPy; the others
    keep theirs. The buffer's next transition has the largest."""
    agent = Agent(Gaussian(0.0), Dirac(), **SETTINGS)
    state, key = stored(agent), noise.root(5)
    (layer,) = state.phi.learned
    q = STATES @ np.asarray(layer.weight) + np.asarray(layer.bias)
    ended = np.arange(N) % 5 == 4
    x = REWARDS + 0.5 * np.where(ended, 0.0, q[1:].max(axis=1))
    expected = (np.abs(q[np.arange(N), np.arange(N) % 2] - x) + 1e-6) ** 0.6
    after, _ = learn(agent, state, key)
    batch = minibatch(agent, state.replay, noise.fold(key, 2))
    sampled = np.isin(np.arange(N), batch.number)
    assert 0 < sampled.sum() < N
    np.testing.assert_allclose(leaves(after), np.where(sampled, expected, 1.0), rtol=1e-4)
    largest = max(1.0, expected[sampled].max())
    step = Transition(STATES[0], jnp.int32(0), jnp.float32(0), STATES[1], jnp.asarray(False))
    added = jax.jit(agent.observe)(after, step)
    assert leaves(added)[0] == pytest.approx(largest, rel=1e-4)


@pytest.mark.slow
def test_rows_that_no_member_learns_from_keep_their_priority():
    """Of an ensemble of two with masks of ¼: the error is the mean over the members that learn."""
    agent = Agent(Gaussian(0.0), Ensemble(2, mask=0.25), **SETTINGS | {"batch_size": N})
    state = stored(agent)
    after, _ = learn(agent, state, noise.root(5))
    numbers = minibatch(agent, state.replay, noise.fold(noise.root(5), 2)).number
    rows = agent.posterior.sample_rows(agent.posterior.law(state.phi), numbers, noise.root(0))
    learned = np.asarray(rows.weights).any(axis=0)
    once = np.bincount(numbers, minlength=N)[numbers] == 1
    changed = leaves(after)[numbers] != 1.0
    assert 0 < (learned & once).sum() < once.sum()
    np.testing.assert_array_equal(changed[once], learned[once])


def test_critics_share_their_mean_error():
    """Two critics: the priority is that of the mean of |Q₁ − x| and |Q₂ − x|, where x is r, since
    every transition terminates."""
    agent = ActorCritic(Gaussian(0.0), Dirac(), critics=2, **SETTINGS | {"gamma": 0.0})
    actions = np.float32(np.random.default_rng(1).uniform(-1, 1, size=(N, ACTIONS)))
    state = stored(agent, lambda i: jnp.asarray(actions[i]))
    after, _ = learn(agent, state, noise.root(5))
    pairs = np.concatenate([STATES[:N], actions], axis=1)
    layers = [phi.learned[0] for phi in state.phi]
    q = [(pairs @ np.asarray(a.weight) + np.asarray(a.bias))[:, 0] for a in layers]
    expected = (np.mean([np.abs(value - REWARDS) for value in q], axis=0) + 1e-6) ** 0.6
    changed = leaves(after) != 1.0
    assert 0 < changed.sum() <= 6
    np.testing.assert_allclose(leaves(after)[changed], expected[changed], rtol=1e-4)


def test_exponent_0_is_uniform_sampling():
    """χ² over the rows that 300 updates would sample; a two-sided chance of 1e-4."""
    agent = Agent(Gaussian(0.0), Dirac(), **SETTINGS | {"prioritised": 0.0})
    state = stored(agent)
    for t in range(3):
        state, _ = learn(agent, state, noise.root(t))
    np.testing.assert_array_equal(leaves(state), 1.0)
    numbers = [minibatch(agent, state.replay, noise.root(t)).number for t in range(300)]
    counts = np.bincount(np.concatenate(numbers), minlength=N)
    assert 0.5e-4 < stats.chisquare(counts).pvalue < 1 - 0.5e-4


# Settings


@pytest.mark.parametrize("kind", [rove.DQN, rove.DDPG])
@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"prioritised": -0.1}, "prioritised"),
        ({"prioritised": 1.5}, "prioritised"),
        ({"prioritised": 0.6, "importance": 1.5}, "importance"),
        ({"importance": 1.0}, "importance"),
    ],
)
def test_settings_that_are_refused(kind, settings, field):
    with pytest.raises(rove.ConfigError, match=field) as error:
        kind(**settings)
    assert error.value.field == field
