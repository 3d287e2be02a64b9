"""Bayesian linear regression on the last layer, against closed forms in NumPy's float64."""

import functools

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from helpers import in_buffer, targets_of_one
from helpers import refit as refitted
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import networks, noise, replay
from rove.parts.replay import Transition
from rove.posteriors import LastLayer, Phi, last_layer
from rove.posteriors.last_layer import Head, hidden, regression
from rove.posteriors.priors import Input
from rove.returns import Categorical, Gaussian, LearnedGaussian, Mixture, Quantile

FEATURES, ACTIONS, CAPACITY, SIGMA, PRIOR = 3, 3, 12, 0.4, 1.5
POSTERIOR = LastLayer(prior=PRIOR, period=3)
NETWORK = networks.mlp(FEATURES, 5, ACTIONS)


@jax.jit
def fitted(h, x, mine, prior, variance):
    """The regression of one action on rows that are given, in blocks, the last cut short."""
    n, size = len(x), min(len(x) // 2 + 1, last_layer.BLOCK)
    blocks = n // size + 1
    rows = np.minimum(np.arange(blocks * size), n - 1).reshape(blocks, size)
    held = np.arange(blocks * size).reshape(blocks, size) < n
    counts = jnp.asarray(held) & jnp.asarray(mine)[rows]

    def block(i):
        own, a, b = counts[i], jnp.asarray(h)[rows][i], jnp.asarray(x)[rows][i]
        a, b = jnp.where(own[:, None], a, 0.0), jnp.where(own, b, 0.0)
        return a[None] / jnp.sqrt(variance), b[None] / jnp.sqrt(variance)

    w = h.shape[1]
    head = regression(block, blocks, prior, Head(jnp.zeros((1, w)), jnp.zeros((1, w, w))))
    return head.mean[0], head.root[0]


add = jax.jit(replay.add)
learn = jax.jit(Agent.learn)
observe = jax.jit(Agent.observe)


def refit(posterior, phi, scale, counter, memory):
    """The head after a refit to rewards."""
    return refitted(posterior, phi, scale, counter, memory, noise.root(0)).fitted


@functools.cache
def problem(n: int = 30, w: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    h = rng.normal(size=(n, w)).astype(np.float32)
    return h, (h @ rng.normal(size=w) + SIGMA * rng.normal(size=n)).astype(np.float32)


def closed_form(h, x, prior_std: float, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance by the inverse of the precision."""
    h, x = np.asarray(h, np.float64), np.asarray(x, np.float64)
    covariance = np.linalg.inv(h.T @ h / sigma**2 + np.eye(h.shape[1]) / prior_std**2)
    return covariance @ h.T @ x / sigma**2, covariance


def np_hidden(body, s) -> np.ndarray:
    h = np.asarray(s, np.float64)
    for weight, bias in body:
        h = np.maximum(h @ np.asarray(weight, np.float64) + np.asarray(bias, np.float64), 0.0)
    return np.concatenate([h, np.ones((len(h), 1))], axis=1)


def covariance_of(root) -> np.ndarray:
    root = np.asarray(root, np.float64)
    return root @ root.swapaxes(-1, -2)


def transition(i: int) -> Transition:
    rng = np.random.default_rng(1000 + i)
    s, s_next = rng.normal(size=(2, FEATURES)).astype(np.float32)
    action = np.array([0, 1, 1, 0, 1][i % 5], np.int32)  # never the last
    return Transition(s, action, np.float32(rng.normal() + 1.0), s_next, np.array(False))


def filled(n: int) -> replay.Replay:
    memory = replay.init(CAPACITY, FEATURES)
    for i in range(n):
        memory = add(memory, transition(i))
    return memory


def some_phi() -> Phi:
    return POSTERIOR.init(NETWORK, noise.root(3))


def same_law(one: Head, other: Head) -> None:
    """A covariance has many roots; which one it is does not depend on rounding."""
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.root, other.root, rtol=1e-4, atol=1e-5)


# The regression


@pytest.mark.parametrize(("prior", "sigma"), [(1.5, 0.4), (0.2, 2.0), (30.0, 0.05)])
def test_regression_is_the_closed_form_and_ridge(prior, sigma):
    """Ridge: least squares with a row √(σ²/prior²)·e_i and target 0 for each weight."""
    h, x = problem()
    mean, root = fitted(h, x, np.ones(30, bool), prior**2, sigma**2)
    assert np.all(np.diag(root) > 0)
    exact, covariance = closed_form(h, x, prior, sigma)
    np.testing.assert_allclose(mean, exact, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        covariance_of(root), covariance, rtol=1e-4, atol=1e-5 * covariance.max()
    )
    rows = np.concatenate([h, sigma / prior * np.eye(4)]).astype(np.float64)
    ridge = np.linalg.lstsq(rows, np.concatenate([x, np.zeros(4)]), rcond=None)[0]
    np.testing.assert_allclose(mean, ridge, rtol=1e-4, atol=1e-5)


def test_only_its_own_rows_count():
    h, x = problem()
    mine = np.arange(30) % 3 == 1
    mean, root = fitted(h, np.where(mine, x, np.nan), mine, PRIOR**2, SIGMA**2)
    exact, covariance = closed_form(h[mine], x[mine], PRIOR, SIGMA)
    np.testing.assert_allclose(mean, exact, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(covariance_of(root), covariance, rtol=1e-4, atol=1e-6)


def test_without_data_it_is_the_prior():
    h, x = problem()
    mean, root = fitted(h, x, np.zeros(30, bool), PRIOR**2, SIGMA**2)
    assert not np.any(mean)
    np.testing.assert_allclose(covariance_of(root), PRIOR**2 * np.eye(4), rtol=1e-5)


def test_many_visits_to_few_states_leave_the_rest_at_the_prior():
    """A 1 in one of 24 places, and a 1 for the bias: 20,000 rows, σ = 0.01, four places never
    seen. hᵀh/σ² is singular and of size 2·10⁸, of which float32 rounds off more than the prior's
    1. In closed form, the value of a place with n_i visits has a mean near x_i and a variance
    σ²/n_i; the bias b and the rest of the weights share what is left."""
    rng = np.random.default_rng(0)
    place = (20 * rng.random(20_000) ** 3).astype(int)
    h = np.concatenate([np.eye(24)[place], np.ones((20_000, 1))], axis=1).astype(np.float32)
    x = (rng.normal(size=24)[place] + 1.0).astype(np.float32)
    mean, root = fitted(h, x, np.ones(20_000, bool), 1.0, 0.01**2)
    # Given b, the weights are independent: w_i = x_i − b where there are data. So b ~ N(0, 1)
    # with 20 observations x_i of variance 1 (and σ²/n_i, which is nothing beside it).
    seen = np.unique(place)
    assert len(seen) == 20
    values = np.array([x[place == i][0] for i in seen], np.float64)
    b = values.sum() / 21
    assert float(mean[-1]) == pytest.approx(b, abs=2e-3)
    np.testing.assert_allclose(mean[seen], values - b, atol=2e-3)
    np.testing.assert_allclose(mean[20:24], 0.0, atol=2e-3)
    covariance = covariance_of(root)
    assert covariance[-1, -1] == pytest.approx(1 / 21, rel=1e-2)
    np.testing.assert_allclose(np.diag(covariance)[20:24], 1.0, rtol=1e-2)
    unseen, each = np.eye(25)[20] + np.eye(25)[24], np.eye(25)[seen] + np.eye(25)[24]
    assert unseen @ covariance @ unseen == pytest.approx(1 + 1 / 21, rel=1e-2)
    count = np.bincount(place)[seen]
    spread = np.einsum("ni,ij,nj->n", each, covariance, each)
    np.testing.assert_allclose(spread, 0.01**2 / count, rtol=2e-2)


def test_nearly_collinear_features_have_a_root():
    """100 hidden units, 40 states, 20,000 visits, the σ of Bayesian DQN: P has no root in
    float32. Predictions at the states against float64 (by the dual form)."""
    rng = np.random.default_rng(1)
    s = np.maximum(rng.normal(size=(40, 3)) @ rng.normal(size=(3, 100)) + 0.3, 0)
    s = np.concatenate([np.maximum(s @ rng.normal(size=(100, 100)) / 5, 0), np.ones((40, 1))], 1)
    s = s.astype(np.float32)
    visits = rng.integers(40, size=20_000)
    x = rng.normal(size=40).astype(np.float32)
    mean, root = fitted(s[visits], x[visits], np.ones(20_000, bool), 1.0, 0.1**2)
    assert np.all(np.isfinite(root))
    s = s.astype(np.float64)
    noise_of_means = 0.1**2 / np.bincount(visits)
    kernel = s @ s.T
    gain = kernel @ np.linalg.inv(kernel + np.diag(noise_of_means))
    # The prior ties the 40 values together but little: each is its own mean of 500 visits.
    np.testing.assert_allclose(s @ np.asarray(mean, np.float64), gain @ x, atol=2e-3)
    exact = np.diag(kernel - gain @ kernel)
    np.testing.assert_allclose(np.diag(s @ covariance_of(root) @ s.T), exact, rtol=1e-2)


def linear_objective(mean, root, h, x, sigma: float, prior: float | None) -> float:
    """(7) of the paper with its expectation taken: w ~ N(m, R·Rᵀ) gives E(h·w − x)² =
    (h·m − x)² + |Rᵀh|², and an entropy of log|det R| up to a constant. With a prior N(0, s²),
    E[−log p(w)] = (|m|² + |R|²)/2s² besides."""
    error = np.sum((h @ mean - x) ** 2) + np.sum((h @ root) ** 2)
    value = error / (2 * sigma**2) - np.linalg.slogdet(root)[1]
    if prior is not None:
        value += (np.sum(mean**2) + np.sum(root**2)) / (2 * prior**2)
    return value


@pytest.mark.parametrize("prior", [1.5, None])
def test_it_minimises_the_objective_of_the_paper(prior):
    """No change of mean or root makes (7) lower. None: the paper's uniform prior, the limit of
    wide ones."""
    h, x = (part.astype(np.float64) for part in problem())
    width = 1e4 if prior is None else prior
    mean, root = fitted(*problem(), np.ones(30, bool), width**2, SIGMA**2)
    mean, root = np.asarray(mean, np.float64), np.asarray(root, np.float64)
    least = linear_objective(mean, root, h, x, SIGMA, prior)
    rng = np.random.default_rng(5)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(200):
            d_mean = size * rng.normal(size=4) * np.sqrt(np.diag(root @ root.T))
            d_root = size * rng.normal(size=(4, 4)) * np.abs(root).max()
            for dm, dr in ((d_mean, 0.0), (0.0, d_root), (d_mean, d_root)):
                assert linear_objective(mean + dm, root + dr, h, x, SIGMA, prior) > least


# The refit


@pytest.mark.parametrize("n", [1, 5, 12, 20])
def test_refit_takes_the_valid_rows_of_each_action(n):
    """A buffer of 12, partly full and wrapped; an empty slot looks like action 0. Action 2 is
    never taken: the prior."""
    phi = some_phi()
    head = refit(POSTERIOR, phi, SIGMA**2, jnp.int32(3), filled(n))
    kept = [transition(i) for i in range(max(0, n - CAPACITY), n)]
    for action in range(ACTIONS):
        own = [t for t in kept if t.action == action]
        h = np_hidden(phi.learned, np.array([t.observation for t in own]).reshape(-1, FEATURES))
        exact, covariance = closed_form(h, np.array([t.reward for t in own]), PRIOR, SIGMA)
        np.testing.assert_allclose(head.mean[action], exact, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(
            covariance_of(head.root[action]), covariance, rtol=1e-3, atol=1e-4
        )


@pytest.mark.slow
def test_a_refit_goes_over_all_of_a_large_buffer(monkeypatch):
    """In blocks of 5, of a buffer of 12: the same head as in one."""
    phi, whole = some_phi(), []
    for size in (1024, 5):
        monkeypatch.setattr(last_layer, "BLOCK", size)
        jax.clear_caches()
        for n in (3, 5, 11, 20):
            whole.append(refit(POSTERIOR, phi, SIGMA**2, jnp.int32(3), filled(n)))
    for one, many in zip(whole[:4], whole[4:], strict=True):
        same_law(one, many)


def test_the_parts_of_a_target_share_a_theta_and_nothing_else():
    """Rows that are alike: with a θ⁻ for all of them x differs by the return's own noise alone,
    which is new in every part."""
    agent = Agent(Gaussian(1e-3), LastLayer(PRIOR, 1), hidden=(5,), gamma=1.0)
    state = agent.init(FEATURES, ACTIONS, noise.root(1))
    law = agent.posterior.law(state.phi)
    rows = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), in_buffer(transition(0)))
    first, second = (targets_of_one(agent, law, law, rows, noise.root(3), i) for i in (0, 1))
    other = targets_of_one(agent, law, law, rows, noise.root(4), 0)
    assert np.ptp(np.concatenate([first, second])) < 0.02 < abs(float(first[0] - other[0]))
    assert len(set(np.concatenate([first, second]).tolist())) == 8


def test_refit_is_every_period_steps_and_only_then():
    phi, memory = some_phi(), filled(5)
    for counter in range(1, 10):
        head = refit(POSTERIOR, phi, SIGMA**2, jnp.int32(counter), memory)
        changed = not np.array_equal(head.mean, phi.fitted.mean)
        assert changed == (counter % 3 == 0)
        assert changed != np.array_equal(head.root, phi.fitted.root)


def test_an_agent_refits_every_period_and_leaves_the_rest_to_the_gradient():
    """Steps 3, 6, 9 change the head; the hidden layers learn the same with and without."""
    settings = {"hidden": (5,), "batch_size": 4, "buffer_size": CAPACITY}
    often = Agent(Gaussian(SIGMA), LastLayer(PRIOR, 3), **settings)
    state = often.init(FEATURES, ACTIONS, noise.root(1))
    for step in range(1, 10):
        state = observe(often, state, transition(step))
        never = Agent(Gaussian(SIGMA), LastLayer(PRIOR, 1000), **settings)
        key = noise.fold(noise.root(2), step)
        (after, _), (without, _) = learn(often, state, key), learn(never, state, key)
        for a, b in zip(*(jax.tree.leaves(s.phi.learned) for s in (after, without)), strict=True):
            assert np.array_equal(a, b)
        assert np.array_equal(without.phi.fitted.mean, state.phi.fitted.mean)
        assert np.array_equal(after.phi.fitted.mean, state.phi.fitted.mean) == (step % 3 != 0)
        state = after


def test_the_targets_of_a_refit_are_the_agents():
    """γ = 0 and draw = "mean": x is the reward, and the head the regression on it."""
    agent = Agent(
        Gaussian(SIGMA, draw="mean"), LastLayer(PRIOR, 1), gamma=0.0,
        hidden=(5,), batch_size=4, buffer_size=CAPACITY,
    )  # fmt: skip
    state = agent.init(FEATURES, ACTIONS, noise.root(1))._replace(replay=filled(20))
    state, _ = learn(agent, state, noise.root(2))
    again = refit(LastLayer(PRIOR, 1), state.phi, SIGMA**2, jnp.int32(1), filled(20))
    same_law(state.phi.fitted, again)


# The network


def test_hidden_is_the_last_hidden_layer_and_a_1():
    body = some_phi().learned
    s = np.random.default_rng(2).normal(size=(7, FEATURES)).astype(np.float32)
    np.testing.assert_allclose(
        hidden(body, jnp.asarray(s)), np_hidden(body, s), rtol=1e-5, atol=1e-6
    )


def test_mean_is_linear_in_the_last_layer():
    rng = np.random.default_rng(4)
    head = Head(
        jnp.asarray(rng.normal(size=(ACTIONS, 6)), jnp.float32),
        jnp.asarray(rng.normal(size=(ACTIONS, 6, 6)), jnp.float32),
    )
    phi = some_phi()._replace(fitted=head)
    x = jnp.array([0.8, -1.5, 0.3])
    exact = np.asarray(head.mean, np.float64) @ np_hidden(phi.learned, x[None])[0]
    np.testing.assert_allclose(POSTERIOR.mean(POSTERIOR.law(phi), Input(x)), exact, rtol=1e-5)


def test_it_starts_at_the_prior():
    head = some_phi().fitted
    assert head.mean.shape == (ACTIONS, 6)
    assert not np.any(head.mean)
    for root in head.root:
        np.testing.assert_allclose(covariance_of(root), PRIOR**2 * np.eye(6), rtol=1e-6)


# What is refused


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("prior", {"prior": 0.0}),
        ("prior", {"prior": float("nan")}),
        ("period", {"period": 0}),
        ("period", {"period": 2.5}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        LastLayer(**settings)
    assert caught.value.field == field


@pytest.mark.parametrize("returns", [Categorical(), Quantile(), LearnedGaussian(), Mixture()])
def test_a_return_without_a_closed_form_is_refused(returns):
    with pytest.raises(ConfigError, match="Gaussian × LastLayer works") as caught:
        Agent(returns, LastLayer())
    assert caught.value.field == "posterior"
    Agent(Gaussian(0.1), LastLayer())


def test_sigma_0_is_refused():
    with pytest.raises(ConfigError, match="above 0") as caught:
        Agent(Gaussian(0.0), LastLayer())
    assert caught.value.field == "sigma"


@pytest.mark.parametrize(
    ("states", "sigma", "prior"), [(5, 0.008, 0.1), (5, 0.07, 1.6), (40, 0.003, 1.6)]
)
def test_few_states_seen_often_have_a_root(states, sigma, prior):
    """100 hidden units, 50,000 visits to a few states: of rank 5 or 40, whatever the scales."""
    rng = np.random.default_rng(states)
    s = np.maximum(rng.normal(size=(states, 3)) @ rng.normal(size=(3, 100)) + 0.3, 0)
    s = 30 * np.maximum(s @ rng.normal(size=(100, 100)) / 5, 0).astype(np.float32)
    visits, x = rng.integers(states, size=50_000), rng.normal(size=states).astype(np.float32)
    mean, root = fitted(s[visits], x[visits], np.ones(50_000, bool), prior**2, sigma**2)
    np.testing.assert_allclose(s @ np.asarray(mean), x, atol=1e-2)
    # What no visit has a part in keeps the prior's deviation.
    unseen = np.linalg.svd(s.astype(np.float64))[2][-1]
    assert np.sqrt(unseen @ covariance_of(root) @ unseen) == pytest.approx(prior, rel=0.05)


def test_the_values_of_rows_have_the_mean_and_the_spread_of_the_closed_form():
    rng = np.random.default_rng(0)
    mean, root = rng.normal(size=(3, 6)), rng.normal(size=(3, 6, 6))
    body, x = networks.mlp(4, 5).init(noise.root(0)), rng.normal(size=(7, 4)).astype(np.float32)
    epsilon = rng.normal(size=(7, 3))
    law = last_layer.LastLayerLaw(body, Head(*(jnp.asarray(a, jnp.float32) for a in (mean, root))))
    rows = last_layer.LastLayerRows(jnp.asarray(epsilon, jnp.float32))
    h = np.asarray(hidden(body, jnp.asarray(x)), float)
    covariance = root @ np.swapaxes(root, 1, 2)
    spread = np.sqrt(np.einsum("nv,avw,nw->na", h, covariance, h))
    actual = rows(law, Input(jnp.asarray(x)))[0]
    np.testing.assert_allclose(actual, h @ mean.T + spread * epsilon, rtol=1e-4, atol=1e-4)
