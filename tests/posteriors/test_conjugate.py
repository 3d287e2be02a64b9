"""The table of Gaussians: normal-normal posteriors, and Thompson sampling that is exact."""

import functools

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import integrate, stats

from helpers import refit as refitted
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import networks, noise, replay
from rove.parts.replay import Transition
from rove.posteriors import Conjugate, Phi
from rove.posteriors.conjugate import Table
from rove.returns import Categorical, Gaussian, LearnedGaussian, Mixture, Quantile

ARMS, SIGMA, PRIOR, CAPACITY = 3, 0.7, 1.3, 16
STATE = jnp.ones(1)


def agent(**settings) -> Agent:
    posterior = Conjugate(PRIOR, **settings)
    shape = {"hidden": (), "batch_size": 1, "buffer_size": CAPACITY, "learning_starts": 1}
    return Agent(Gaussian(SIGMA, draw="mean"), posterior, **shape)


NETWORK = networks.mlp(4, 2)
init = jax.jit(Agent.init, static_argnums=(1, 2))
observe, learn, act = jax.jit(Agent.observe), jax.jit(Agent.learn), jax.jit(Agent.act)
add = jax.jit(replay.add)


def normal_normal(rewards, sigma: float = SIGMA, prior: float = PRIOR) -> tuple[float, float]:
    """One reward after another: the posterior of one is the prior of the next."""
    mean, variance = 0.0, prior**2
    for x in rewards:
        gain = variance / (variance + sigma**2)
        mean, variance = mean + gain * (float(x) - mean), (1 - gain) * variance
    return mean, variance


def test_after_every_pull_it_is_the_normal_normal_posterior():
    """40 pulls chosen by the agent itself; the buffer holds the last 16."""
    rng, thompson = np.random.default_rng(0), agent()
    state = init(thompson, 1, ARMS, noise.root(0))
    pulls = []
    for step in range(40):
        key = noise.fold(noise.root(1), step)
        arm = int(act(thompson, state, STATE, noise.fold(key, 0)))
        reward = np.float32([0.0, 0.5, -0.5][arm] + SIGMA * rng.normal())
        pulls = [*pulls, (arm, reward)][-CAPACITY:]
        pull = Transition(STATE, jnp.int32(arm), jnp.asarray(reward), STATE, jnp.asarray(True))
        state = observe(thompson, state, pull)
        state, _ = learn(thompson, state, noise.fold(key, 1))
        exact = [normal_normal([r for a, r in pulls if a == arm]) for arm in range(ARMS)]
        np.testing.assert_allclose(
            state.phi.fitted.mean[0], [m for m, _ in exact], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(state.phi.fitted.variance[0], [v for _, v in exact], rtol=1e-5)
    assert len({arm for arm, _ in pulls}) > 1


def refit(posterior, phi, counter, memory):
    """The table after a refit to rewards."""
    return refitted(posterior, phi, SIGMA**2, counter, memory, noise.root(0)).fitted


@functools.cache
def visits(n: int = 11):
    """Four states, two actions, a buffer not yet full."""
    rng = np.random.default_rng(1)
    memory, kept = replay.init(CAPACITY, 4), []
    for _ in range(n):
        s, a, x = int(rng.integers(4)), int(rng.integers(2)), np.float32(rng.normal() + 1)
        kept.append((s, a, x))
        one_hot = jnp.eye(4)[s]
        transition = Transition(one_hot, jnp.int32(a), jnp.asarray(x), one_hot, jnp.asarray(True))
        memory = add(memory, transition)
    return memory, kept


def test_every_cell_has_its_own_posterior():
    memory, kept = visits()
    posterior = Conjugate(PRIOR)
    phi = posterior.init(NETWORK, noise.root(0))
    table = refit(posterior, phi, jnp.int32(1), memory)
    for s in range(4):
        for a in range(2):
            mean, variance = normal_normal([x for *cell, x in kept if cell == [s, a]])
            assert float(table.mean[s, a]) == pytest.approx(mean, rel=1e-5, abs=1e-6)
            assert float(table.variance[s, a]) == pytest.approx(variance, rel=1e-5)


def test_what_empty_slots_would_give_as_targets_does_not_matter():
    memory, _ = visits()
    posterior = Conjugate(PRIOR)
    phi = posterior.init(NETWORK, noise.root(0))
    poisoned = memory._replace(rows=memory.rows.at[11:].set(jnp.nan).at[11:, :9].set(1.0))
    for clean, other in zip(
        *(refit(posterior, phi, jnp.int32(1), m) for m in (memory, poisoned)), strict=True
    ):
        assert np.array_equal(clean, other)


def test_refit_is_every_period_steps_and_only_then():
    memory, _ = visits()
    posterior = Conjugate(PRIOR, period=4)
    phi = posterior.init(NETWORK, noise.root(0))
    for counter in range(1, 10):
        table = refit(posterior, phi, jnp.int32(counter), memory)
        for now, before in zip(table, phi.fitted, strict=True):
            assert np.array_equal(now, before) == (counter % 4 != 0)


def test_it_starts_at_the_prior_with_nothing_to_learn_by_gradient():
    phi = Conjugate(PRIOR).init(NETWORK, noise.root(0))
    assert phi.learned == ()
    assert not np.any(phi.fitted.mean)
    np.testing.assert_allclose(phi.fitted.variance, PRIOR**2, rtol=1e-6)


def best_probabilities(means, stds) -> list[float]:
    """P(arm k has the largest value) = ∫ N(v; m_k, s_k²)·Π_j Φ((v − m_j)/s_j) dv."""

    def density(v: float, k: int) -> float:
        others = [stats.norm.cdf(v, means[j], stds[j]) for j in range(len(means)) if j != k]
        return stats.norm.pdf(v, means[k], stds[k]) * np.prod(others)

    return [
        integrate.quad(density, means[k] - 10 * stds[k], means[k] + 10 * stds[k], (k,))[0]
        for k in range(len(means))
    ]


@pytest.mark.parametrize("resample", ["step", "episode"])
def test_an_arm_is_pulled_as_often_as_it_is_the_best(resample):
    """50,000 keys against the exact probabilities of three unequal arms: binomial limits at a
    chance of 1e-4."""
    means, stds, n = [0.3, 0.0, -0.4], [0.2, 0.6, 1.1], 50_000
    table = Table(jnp.asarray([means], jnp.float32), jnp.asarray([np.square(stds)], jnp.float32))
    thompson = Agent(
        Gaussian(SIGMA), Conjugate(), hidden=(), batch_size=1, buffer_size=4, resample=resample
    )
    state = init(thompson, 1, ARMS, noise.root(0))._replace(phi=Phi((), table))

    @jax.jit
    def pull(i):
        key = noise.fold(noise.root(3), i)
        begun = thompson.resample_theta(state, jnp.asarray(True), noise.fold(key, 0))
        return thompson.act(begun, STATE, noise.fold(key, 1))

    counts = np.bincount(jax.jit(jax.vmap(pull))(jnp.arange(n)), minlength=ARMS)
    exact = np.array(best_probabilities(means, stds))
    assert exact.sum() == pytest.approx(1.0, abs=1e-6)
    assert exact.min() > 0.1
    z = (counts - n * exact) / np.sqrt(n * exact * (1 - exact))
    assert np.max(np.abs(z)) < stats.norm.isf(0.5e-4 / ARMS)


def test_hidden_layers_are_refused():
    with pytest.raises(ConfigError, match=r"must be \(\) for Conjugate, .* got \(4,\)") as caught:
        Agent(Gaussian(1.0), Conjugate(), hidden=(4,))
    assert caught.value.field == "hidden"


@pytest.mark.parametrize(
    ("field", "settings"),
    [("prior", {"prior": 0.0}), ("prior", {"prior": "wide"}), ("period", {"period": 0})],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        Conjugate(**settings)
    assert caught.value.field == field


@pytest.mark.parametrize("returns", [Categorical(), Quantile(), LearnedGaussian(), Mixture()])
def test_a_return_without_a_closed_form_is_refused(returns):
    with pytest.raises(ConfigError, match="Gaussian × Conjugate works") as caught:
        Agent(returns, Conjugate(), hidden=())
    assert caught.value.field == "posterior"


def test_sigma_0_is_refused():
    with pytest.raises(ConfigError, match="above 0") as caught:
        Agent(Gaussian(0.0), Conjugate(), hidden=())
    assert caught.value.field == "sigma"
