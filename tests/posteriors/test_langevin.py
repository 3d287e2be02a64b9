"""Langevin Monte Carlo, against the exact posterior of a linear Gaussian model, and Adam LMC."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import rove
from helpers import in_buffer
from rove import ActorCritic, Agent, Disagreement, Gaussian, Langevin
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.networks import Linear
from rove.parts.replay import Transition
from rove.posteriors import Phi
from rove.training.solving import episodes_to_solve

N, SIGMA, LR, CHAINS, PRIOR = 24, 0.5, 0.03, 4000, 0.8


@functools.cache
def problem() -> tuple[np.ndarray, np.ndarray]:
    """Correlated features, and targets."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=(N, 2)) @ np.array([[1.0, 0.4], [0.0, 0.9]])
    return s, s @ np.array([0.5, -0.4]) + 0.2 + SIGMA * rng.normal(size=N)


def exact(prior: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the weights and the bias, by the inverse of the precision."""
    s, x = problem()
    design = np.concatenate([s, np.ones((N, 1))], axis=1)
    precision = design.T @ design / SIGMA**2
    if prior is not None:
        precision += np.eye(3) / prior**2
    covariance = np.linalg.inv(precision)
    return covariance @ design.T @ x / SIGMA**2, covariance


def as_batch() -> Transition:
    s, x = problem()
    return in_buffer(
        Transition(
            jnp.asarray(s, jnp.float32), jnp.zeros(N, jnp.int32), jnp.asarray(x, jnp.float32),
            jnp.zeros((N, 2)), jnp.ones(N, bool),
        )
    )  # fmt: skip


@functools.partial(jax.jit, static_argnums=1)
def chain_ends(posterior: Langevin, steps: int, lr: float):
    """The last states of independent chains, which take steps on the agent's own objective at all
    of the data, with the temperature that `CriticLearner.descend` gives them."""
    agent = Agent(Gaussian(SIGMA), posterior, hidden=(), batch_size=N, buffer_size=N)
    batch = as_batch()

    def objective(learned):
        rows = posterior.sample_rows(learned, batch.action_index, noise.root(0))
        return agent.objective(Phi(learned), rows, batch, batch.reward[None])[0]

    def chain(key):
        def step(carry, i):
            learned, moments = carry
            gradient = jax.grad(objective)(learned)
            k = noise.fold(key, i)
            return posterior.step(learned, gradient, moments, lr, SIGMA**2 / N, k), None

        start = (Linear(jnp.zeros((2, 1)), jnp.zeros(1)),)
        ((layer,), _), _ = jax.lax.scan(step, (start, posterior.start(start)), jnp.arange(steps))
        return jnp.concatenate([layer.weight[:, 0], layer.bias])

    return jax.vmap(chain)(noise.folds(noise.root(1), CHAINS))


def z_scores(ends, mean, covariance) -> np.ndarray:
    """Of the means and of the second moments, from independent chains."""
    apart = np.asarray(ends, np.float64) - mean
    i, j = np.triu_indices(3)
    products = apart[:, i] * apart[:, j] - covariance[i, j]
    both = np.concatenate([apart, products], axis=1)
    return both.mean(axis=0) / (both.std(axis=0) / np.sqrt(len(both)))


@pytest.mark.fast_cases("None")
@pytest.mark.parametrize("prior", [None, PRIOR])
def test_the_stationary_law_is_the_posterior_of_the_linear_gaussian_model(prior):
    """A step of length α on a quadratic with Hessian H has the stationary covariance
    T·(H·(1 − αH/2))⁻¹, which is the posterior's T·H⁻¹ up to α. The Monte Carlo error of 4,000
    chains is 2.2% of a variance; the bias of α at most 1.3%."""
    mean, covariance = exact(prior)
    ends = chain_ends(Langevin(prior=prior), 1500, LR)
    hessian = SIGMA**2 / N * np.linalg.inv(covariance)
    step = SIGMA**2 / N * np.linalg.inv(hessian @ (np.eye(3) - LR * hessian / 2))
    assert np.max(np.abs(step / covariance - 1.0)) < 0.02
    assert np.max(np.abs(z_scores(ends, mean, step))) < 4.5
    np.testing.assert_allclose(np.cov(np.asarray(ends).T), covariance, rtol=0.15, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_wrong_noise_misses_the_posterior_by_its_factor(temperature):
    mean, covariance = exact(None)
    ends = chain_ends(Langevin(temperature=temperature), 1500, LR)
    assert np.max(np.abs(z_scores(ends, mean, covariance))) > 15.0
    found = np.linalg.slogdet(np.cov(np.asarray(ends).T))[1] - np.linalg.slogdet(covariance)[1]
    assert found == pytest.approx(3 * np.log(temperature), abs=0.25)


def test_the_noise_of_an_update_has_the_weight_of_the_entropy():
    """An agent's own update: θ − (θ at σ → 0) is √(2α·σ²/N)·ε, new at every step and key."""
    s = {"hidden": (30,), "lr": 0.01, "batch_size": N, "buffer_size": N, "gamma": 0.0}
    moved = {}
    for sigma in (0.0, 0.3):
        agent = Agent(Gaussian(sigma, "mean"), Langevin(), **s)
        state = jax.jit(agent.init, static_argnums=(0, 1))(2, 1, noise.root(0))
        observe, batch = jax.jit(agent.observe), jax.tree.map(np.asarray, as_batch())
        for i in range(N):
            row = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
            state = observe(state, row._replace(action=np.int32(0)))
        ends = [jax.jit(agent.learn)(state, noise.root(seed))[0] for seed in (1, 1, 2)]
        flat = [jnp.concatenate([x.ravel() for x in jax.tree.leaves(e.phi.learned)]) for e in ends]
        assert np.array_equal(flat[0], flat[1])
        moved[sigma] = flat[0]
        if sigma > 0.0:
            assert not np.array_equal(flat[0], flat[2])
    z = (moved[0.3] - moved[0.0]) / np.sqrt(2 * 0.01 * 0.3**2 / N)
    assert abs(float(z.std()) - 1.0) < 4 / np.sqrt(2 * z.size)
    assert abs(float(z.mean())) < 4 / np.sqrt(z.size)


def test_adam_lmc_is_the_published_update():
    """θ −= α·(g + a·m̂/(√v̂ + ε)) − √(2αT)·ε against optax's Adam, at T = 0; twice."""
    gradient = (jnp.array([1.0, -0.3, 0.02]), jnp.array([2.0]))
    posterior, adam = Langevin(adam=0.7), optax.adam(1.0)
    theta = expected = jax.tree.map(jnp.zeros_like, gradient)
    moments, state = posterior.start(theta), adam.init(theta)
    for factor in (1.0, -2.0):
        g = jax.tree.map(lambda x, f=factor: f * x, gradient)
        theta, moments = posterior.step(theta, g, moments, 0.1, 0.0, noise.root(0))
        update, state = adam.update(g, state)
        expected = jax.tree.map(lambda t, g, u: t - 0.1 * (g - 0.7 * u), expected, g, update)
    for one, other in zip(jax.tree.leaves(theta), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_draw_is_the_current_state_and_is_kept():
    posterior = Langevin()
    phi = posterior.init(networks.mlp(3, 4, 2), noise.root(0))
    law = posterior.law(phi)
    draw = posterior.sample(law, noise.root(1))
    x = rove.posteriors.priors.Input(jnp.array([0.3, -0.2, 1.0]))
    later = jax.tree.map(lambda w: w + 1.0, law)
    assert np.array_equal(posterior.apply(later, draw, x), posterior.mean(law, x))
    assert not np.array_equal(posterior.mean(later, x), posterior.mean(law, x))


def test_critics_have_noise_of_their_own():
    s = {"hidden": (8,), "batch_size": 4, "buffer_size": 8, "critics": 2}
    agent = ActorCritic(Gaussian(0.5), Langevin(adam=1.0), **s)
    state = jax.jit(agent.init, static_argnums=(0, 1))(2, 1, noise.root(0))
    same = state._replace(phi=(state.phi[0], state.phi[0]))
    row = Transition(jnp.ones(2), jnp.ones(1), jnp.ones(()), jnp.ones(2), jnp.asarray(True))
    after, _ = jax.jit(agent.learn)(jax.jit(agent.observe)(same, row), noise.root(1))
    one, other = (phi.learned[0].weight for phi in after.phi)
    assert not np.array_equal(one, other)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="Disagreement has no effect with the posterior Langevin"):
        Agent(Gaussian(0.1), Langevin(), bonus=Disagreement())
    for field in ("adam", "temperature", "prior"):
        with pytest.raises(ConfigError) as caught:
            Langevin(**{field: -1.0})
        assert caught.value.field == field


@pytest.mark.fast_cases("1.0-3")
@pytest.mark.parametrize(("temperature", "solved"), [(1.0, 3), (0.0, 0)])
def test_the_noise_makes_it_explore_a_short_chain(temperature, solved):
    """Ten optimal episodes in a row. Without noise, the network turns left and stays there."""
    agent = rove.AdamLMC(sigma=2.0, temperature=temperature, hidden=(32,))
    run = rove.train(agent, "chain-10", seeds=3, episodes=150, until_solved=True)
    assert sum(episodes_to_solve(o.scores, 11.0) is not None for o in run.outcomes) == solved
