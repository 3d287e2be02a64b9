"""The learned Gaussian with full covariance, against closed forms in NumPy's float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

import rove
from helpers import in_buffer
from rove import Agent, Categorical, FullCovariance, Gaussian, MeanField
from rove.parts import networks, noise
from rove.parts.replay import Transition
from rove.posteriors import Phi
from rove.posteriors.full_covariance import FullCovarianceLearned
from rove.posteriors.last_layer import LastLayerRows
from rove.posteriors.mean_field import NoiseRows
from rove.training.solving import episodes_to_solve

N, SIGMA = 24, 0.5


@functools.cache
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strongly correlated features, two actions, and targets."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=(N, 2)) @ np.array([[1.0, 0.9], [0.0, 0.4]])
    return s, np.arange(N) % 2, s @ np.array([0.5, -0.4]) + 0.2 + SIGMA * rng.normal(size=N)


def exact(action: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and precision of an action's weights and bias under a flat prior."""
    s, taken, x = problem()
    design = np.concatenate([s, np.ones((N, 1))], axis=1)[taken == action]
    precision = design.T @ design / SIGMA**2
    return np.linalg.solve(precision, design.T @ x[taken == action]) / SIGMA**2, precision


@functools.partial(jax.jit, static_argnums=(0, 1))
def minimiser(posterior, rows, steps: int = 3000):
    """φ that minimises the objective in expectation: the loss is a quadratic of the noise ε, whose
    mean over ±1 is that over N(0, 1)."""
    s, taken, x = problem()
    batch = in_buffer(
        Transition(
            jnp.asarray(s, jnp.float32), jnp.asarray(taken), jnp.asarray(x, jnp.float32),
            jnp.zeros((N, 2)), jnp.ones(N, bool),
        )
    )  # fmt: skip
    agent = Agent(Gaussian(SIGMA), posterior, hidden=(), batch_size=N, buffer_size=N)
    phi = posterior.init(networks.mlp(2, 2), noise.root(0))
    adam = optax.adam(optax.cosine_decay_schedule(0.02, steps))

    def value(learned):
        return sum(
            agent.objective(Phi(learned), rows(e * jnp.ones((N, 2))), batch, batch.reward[None])[0]
            for e in (-1.0, 1.0)
        )

    def step(carry, _):
        learned, state = carry
        update, state = adam.update(jax.grad(value)(learned), state)
        return (optax.apply_updates(learned, update), state), None

    (learned, _), _ = jax.lax.scan(step, (phi.learned, adam.init(phi.learned)), None, steps)
    return posterior.law(Phi(learned))


def test_the_minimiser_is_the_exact_posterior_which_mean_field_misses():
    """Of (4) on a linear Gaussian model: mean P⁻¹·b and covariance P⁻¹. The best independent
    Gaussians have variances 1/P_ii, a fraction of the true ones."""
    full = minimiser(FullCovariance(-1.0), LastLayerRows).head
    field = minimiser(MeanField(-1.0), NoiseRows)
    for action in range(2):
        mean, precision = exact(action)
        covariance = np.linalg.inv(precision)
        root = np.asarray(full.root[action], np.float64)
        np.testing.assert_allclose(full.mean[action], mean, atol=2e-3)
        np.testing.assert_allclose(root @ root.T, covariance, rtol=0.02, atol=2e-4)
        layer = field.std[0]
        found = np.append(layer.weight[:, action], layer.bias[action]) ** 2
        np.testing.assert_allclose(found, 1.0 / np.diag(precision), rtol=0.02)
        assert np.all(found[:2] < 0.5 * np.diag(covariance)[:2])
        assert np.max(np.abs(covariance - np.diag(np.diag(covariance)))) > 0.01


def some_law(prior_std=None):
    rng = np.random.default_rng(1)
    posterior = FullCovariance(-1.0, prior_std=prior_std)
    phi = posterior.init(networks.mlp(3, 4, 2), noise.root(0))
    learned = jax.tree.map(lambda x: x + rng.normal(size=x.shape).astype(np.float32), phi.learned)
    return posterior, posterior.law(Phi(learned))


def test_the_entropy_is_scipys_and_with_a_prior_minus_the_divergence():
    posterior, law = some_law()
    constant = 5 * 0.5 * np.log(2 * np.pi * np.e)
    covariances = [np.asarray(r, np.float64) @ np.asarray(r, np.float64).T for r in law.head.root]
    entropy = sum(stats.multivariate_normal(cov=c).entropy() - constant for c in covariances)
    assert float(posterior.entropy(law)) == pytest.approx(entropy, rel=1e-5)
    width = 0.6 / np.sqrt(4)
    kl = [
        0.5 * (np.trace(c) / width**2 - 5 + 10 * np.log(width) - np.linalg.slogdet(c)[1])
        for c in covariances
    ]
    found = float(FullCovariance(-1.0, prior_std=0.6).entropy(law))
    assert found == pytest.approx(-sum(kl) - 5 + 10 * np.log(width), rel=1e-5)


def test_l_is_lower_triangular_with_a_positive_diagonal():
    _, law = some_law()
    root = np.asarray(law.head.root)
    assert not np.any(np.triu(root, 1))
    assert np.all(np.diagonal(root, axis1=1, axis2=2) > 0)
    assert np.any(np.tril(root, -1))


def test_it_works_with_returns_of_several_outputs():
    """Five atoms for each of two actions: ten Gaussians."""
    agent = Agent(Categorical(5), FullCovariance(), hidden=(4,), batch_size=4, buffer_size=8)
    phi = agent.init(3, 2, noise.root(0)).phi
    assert isinstance(phi.learned, FullCovarianceLearned)
    assert agent.posterior.law(phi).head.root.shape == (10, 5, 5)


@pytest.mark.slow
def test_full_covariance_solves_a_short_chain():
    """Ten optimal episodes in a row; an agent that does not learn repeats its first policy."""
    agent = rove.FullCovarianceGE(hidden=(32, 32), target_period=25)
    run = rove.train(agent, "chain-20", seeds=2, episodes=150, until_solved=True)
    assert sum(episodes_to_solve(o.scores, 11.0) is not None for o in run.outcomes) == 2


@pytest.mark.slow
def test_its_samples_explore_a_permuted_chain():
    """Ten optimal episodes in a row, on at least four of eight seeds; six solve it. An agent that
    acts on the mean solves none: no single action is right in every state."""
    agent = rove.FullCovarianceGE(
        hidden=(32,), rho=-2.0, lr=3e-3, batch_size=32, learning_starts=50, target_period=25
    )
    run = rove.train(agent, "permuted-chain-8", seeds=8, episodes=150, until_solved=True)
    assert sum(episodes_to_solve(o.scores, 11.0) is not None for o in run.outcomes) >= 4
