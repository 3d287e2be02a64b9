"""The bandit: its law, its regret, and what a run counts of it."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import integrate, stats

import rove
from rove.environments.bandit import Bandit
from rove.errors import ConfigError
from rove.parts import noise
from rove.runs.configure import configure

DRAWS = 20_000


@jax.jit
def pull(bandit: Bandit, arm, keys):
    """Pull one arm with each key."""
    state, _ = bandit.reset(noise.root(0))
    return jax.vmap(lambda key: bandit.step(state, arm, key))(keys)


@pytest.mark.parametrize("noise_std", [0.3, 2.0])
def test_rewards_have_the_arms_law(noise_std):
    """Kolmogorov and Smirnov against scipy's normal, for each of four arms, at 1e-4 / 4."""
    bandit = Bandit(4, map_seed=2, noise_std=noise_std)
    means = np.random.default_rng(2).standard_normal(4)
    for arm in range(4):
        keys = noise.folds(noise.fold(noise.root(1), arm), DRAWS)
        step = pull(bandit, jnp.int32(arm), keys)
        law = stats.norm(means[arm], noise_std)
        assert stats.kstest(np.asarray(step.reward, float), law.cdf).pvalue > 1e-4 / 4
        assert np.all(step.terminated)
        assert not np.any(step.truncated)
        assert np.all(np.asarray(step.observation) == 1)
        assert np.all(jax.vmap(bandit.bin)(step.state) == arm)


def test_the_means_are_pinned_and_their_seed_chooses_them():
    assert Bandit(3).means == pytest.approx([0.12573022, -0.13210486, 0.64042265])
    assert len({Bandit(3, map_seed=s).means.tobytes() for s in range(20)}) == 20


def test_regrets_by_hand():
    """Of the means pinned above."""
    assert Bandit(3).regrets == pytest.approx([0.51469243, 0.77252751, 0.0])


@pytest.mark.parametrize("noise_std", [0.5, 1.0])
def test_lai_robbins_is_gap_over_divergence(noise_std):
    """Σ Δ_a / KL(arm a ‖ best arm), the divergence by numerical integration."""
    bandit = Bandit(5, map_seed=7, noise_std=noise_std)
    means = bandit.means
    best = stats.norm(means.max(), noise_std)
    constant = 0.0
    for mean in means:
        arm = stats.norm(mean, noise_std)
        if mean < means.max():

            def integrand(x, arm=arm):
                return arm.pdf(x) * (arm.logpdf(x) - best.logpdf(x))

            span = 10 * noise_std
            divergence = integrate.quad(integrand, mean - span, mean + span)[0]
            constant += (means.max() - mean) / divergence
    assert bandit.lai_robbins == pytest.approx(constant, rel=1e-6)


def test_visits_count_pulls():
    """Without noise a return tells its arm. The cell before a pull is in every episode."""
    bandit = Bandit(4, noise_std=0.0)
    agent = rove.DQN(hidden=(8,), batch_size=4, learning_starts=10, epsilon=1.0)
    run = rove.train(agent, bandit, seeds=2, episodes=60)
    arms = np.argmin(np.abs(run.returns[..., None] - bandit.means), axis=-1)
    np.testing.assert_allclose(run.returns, bandit.means[arms], rtol=1e-6)
    pulls = np.array([np.bincount(row, minlength=4) for row in arms])
    assert np.all(pulls > 0)
    np.testing.assert_allclose(run.visits[:, :4] * 60, pulls)
    assert np.all(run.visits[:, 4] == 1)
    assert np.all(run.lengths == 1)


def test_noise_differs_between_pulls_and_seeds():
    run = rove.train(
        rove.DQN(hidden=(8,), batch_size=4, learning_starts=100), Bandit(2), seeds=2, episodes=50
    )
    assert len(np.unique(run.returns)) == 100


def test_sizes_name_and_probe():
    bandit = Bandit(6)
    assert bandit.name == "bandit-6"
    assert (bandit.observation_size, bandit.num_actions, bandit.bins) == (1, 6, 7)
    assert bandit.optimum is None
    assert {name: np.asarray(x).tolist() for name, x in bandit.probes().items()} == {"start": [1.0]}
    state, observation = bandit.reset(noise.root(0))
    assert int(bandit.bin(state)) == 6
    assert np.asarray(observation).tolist() == [1.0]


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("n", {"n": 1}),
        ("n", {"n": 10_001}),
        ("n", {"n": 3.0}),
        ("map_seed", {"n": 3, "map_seed": -1}),
        ("noise_std", {"n": 3, "noise_std": -0.1}),
        ("noise_std", {"n": 3, "noise_std": float("nan")}),
        ("noise_std", {"n": 3, "noise_std": 1e7}),
        ("noise_std", {"n": 3, "noise_std": "1"}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    """With the run-time check of annotations off, as it is outside tests: it would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        Bandit(**settings)
    assert caught.value.field == field
    assert repr(settings[field]) in str(caught.value)


def test_a_table_refuses_observations_that_are_not_one_hot():
    with pytest.raises(ConfigError, match="needs one-hot observations, such as those of bandit-10"):
        configure("thompson", "chain-10", episodes=1)
    configure("thompson", rove.Chain(10, features="one-hot"), episodes=1)


@pytest.mark.slow
def test_thompson_sampling_stays_within_twice_the_lower_bound():
    """At 10⁴ pulls, mean of five seeds; the curve flattens: the last half of the pulls loses less
    than 0.6 of what the first tenth did. Pulls at random would lose 20 times as much."""
    run = rove.train("thompson", "bandit-10", seeds=5, episodes=10_000)
    bandit = run.config.environment
    regret = bandit.regret(np.stack([outcome.visits for outcome in run.outcomes]))
    assert regret.mean() < 2.0 * bandit.lai_robbins * np.log(10_000)
    start = rove.train("thompson", "bandit-10", seeds=5, episodes=1000)
    half = rove.train("thompson", "bandit-10", seeds=5, episodes=5000)
    first, middle = (
        bandit.regret(np.stack([outcome.visits for outcome in r.outcomes])) for r in (start, half)
    )
    assert regret.mean() - middle.mean() < 0.6 * first.mean()
    uniform = 10_000 * bandit.regrets.mean()
    assert regret.mean() < 0.05 * uniform
