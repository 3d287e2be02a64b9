"""The contextual bandit: its law, its regret, and what a run counts of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import rove
from rove.environments import LinearBandit
from rove.errors import ConfigError
from rove.parts import noise

DRAWS = 20_000


def test_contexts_are_equally_likely():
    bandit = LinearBandit(3, contexts=7)
    state, x = jax.jit(jax.vmap(bandit.reset))(noise.folds(noise.root(0), DRAWS))
    counts = np.bincount(np.asarray(state.context), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-4
    np.testing.assert_allclose(x, bandit.inputs[np.asarray(state.context)], rtol=1e-5)


def test_rewards_are_linear_with_gaussian_noise():
    """Kolmogorov and Smirnov against scipy's normal about x·w_a, at 1e-4."""
    bandit = LinearBandit(3, features=4, noise_std=0.7, map_seed=2)
    state, x = bandit.reset(noise.root(1))
    keys = noise.folds(noise.root(2), DRAWS)
    for arm in range(3):
        step = jax.jit(jax.vmap(lambda key, arm=arm: bandit.step(state, jnp.int32(arm), key)))(keys)
        law = stats.norm(np.asarray(x, float) @ bandit.weights[:, arm], 0.7)
        assert stats.kstest(np.asarray(step.reward, float), law.cdf).pvalue > 1e-4
        assert np.all(step.terminated)
        assert not np.any(step.truncated)


def test_regret_by_hand():
    bandit = LinearBandit(2, features=3, contexts=2)
    means = bandit.inputs @ bandit.weights
    counts = np.zeros((2, 3))
    counts[0, 0], counts[0, 1], counts[1, 0], counts[:, 2] = 4, 1, 2, (5, 2)
    hand = 4 * (means[0].max() - means[0, 0]) + (means[0].max() - means[0, 1])
    hand += 2 * (means[1].max() - means[1, 0])
    assert bandit.regret(counts.ravel()) == pytest.approx(hand)
    assert bandit.regret(np.stack([counts.ravel(), 2 * counts.ravel()])) == pytest.approx(
        [hand, 2 * hand]
    )
    assert bandit.lai_robbins is None


def test_visits_count_pulls_by_context():
    """Without noise, the return of an episode tells the mean of its pull."""
    bandit = LinearBandit(2, contexts=3, noise_std=0.0)
    agent = rove.DQN(hidden=(4,), batch_size=4, learning_starts=40, epsilon=1.0)
    run = rove.train(agent, bandit, episodes=60)
    counts = run.outcomes[0].visits.reshape(3, 3)
    assert counts[:, 2].sum() == 60
    np.testing.assert_array_equal(counts[:, :2].sum(axis=1), counts[:, 2])
    assert np.sum(counts[:, :2] * bandit.means) == pytest.approx(run.returns.sum(), rel=1e-4)
    best = np.sum(counts[:, 2] * bandit.means.max(axis=1))
    assert bandit.regret(run.outcomes[0].visits) == pytest.approx(
        best - run.returns.sum(), rel=1e-4
    )


@pytest.mark.parametrize("field", ["n", "features", "contexts", "map_seed"])
def test_bad_values_are_refused(field):
    with pytest.raises(ConfigError, match=field):
        LinearBandit(**{"n": 3, field: -1})
