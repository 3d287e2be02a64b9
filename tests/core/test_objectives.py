"""α-divergences and the score-function estimator, against closed forms of the linear Gaussian
model.

Statistical limits: a chance of 1e-4 for all values of a test together; seeds are fixed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import rove
from helpers import in_buffer
from rove import (
    Agent,
    Categorical,
    Dropout,
    Ensemble,
    Factorised,
    FullCovariance,
    Gaussian,
    LearnedGaussian,
    LowRank,
    MeanField,
)
from rove.core.objectives import alpha_loss, controlled, scores
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.networks import Linear
from rove.parts.replay import Transition
from rove.posteriors import Phi
from rove.posteriors.mean_field import MeanFieldLearned
from rove.posteriors.several import Thetas, matched, several
from rove.training.solving import episodes_to_solve

N, SIGMA, ACTIONS = 12, 0.5, 2


def limit(several: int) -> float:
    return stats.norm.isf(0.5e-4 / several)


def some_batch() -> Transition:
    """All transitions end the task: x is the reward."""
    rng = np.random.default_rng(0)
    batch = in_buffer(
        Transition(
            jnp.asarray(rng.normal(size=(N, 3)), jnp.float32), jnp.asarray(rng.integers(2, size=N)),
            jnp.asarray(rng.normal(size=N), jnp.float32), jnp.zeros((N, 3)), jnp.ones(N, bool),
        )
    )  # fmt: skip
    return batch._replace(number=jnp.arange(N))


BATCH = some_batch()
POSTERIORS = {
    "mean field": (MeanField(-1.0, prior_std=1.0), (4,)),
    "mean field, linear": (MeanField(-1.0), ()),
    "full covariance": (FullCovariance(-1.0, prior_std=1.0), (4,)),
    "low rank": (LowRank(2, rho=-1.0, paired=False), (4,)),
}


def made(posterior, hidden=(), returns=None, **options) -> tuple[Agent, Phi]:
    returns = returns or Gaussian(SIGMA)
    agent = Agent(returns, posterior, hidden=hidden, batch_size=N, buffer_size=N, **options)
    phi, rng = agent.init(3, ACTIONS, noise.root(0)).phi, np.random.default_rng(1)
    learned = jax.tree.map(lambda w: w + 0.2 * jnp.asarray(rng.normal(size=w.shape)), phi.learned)
    return agent, phi._replace(learned=jax.tree.map(jnp.float32, learned))


def gradients(agent: Agent, phi: Phi, keys) -> np.ndarray:
    """[keys, parameters]: the gradient of the objective, as an update estimates it."""

    @jax.jit
    def at(agent, phi, key):
        law = agent.posterior.law(phi)
        theta, _ = agent.draw(law, law, BATCH, key, noise.root(9))

        def objective(learned):
            now = phi._replace(learned=learned)
            return agent.objective(now, theta, BATCH, BATCH.reward[None])[0]

        return jax.flatten_util.ravel_pytree(jax.grad(objective)(phi.learned))[0]

    return np.asarray(jax.lax.map(lambda key: at(agent, phi, key), keys), np.float64)


# Scores


@pytest.mark.fast_cases("mean field, linear")
@pytest.mark.parametrize("name", POSTERIORS)
def test_both_estimators_have_the_same_mean(name):
    posterior, hidden = POSTERIORS[name]
    keys = noise.folds(noise.root(3), 1500)
    agent, phi = made(posterior, hidden)
    path = gradients(agent, phi, keys)
    agent, _ = made(posterior, hidden, draws=4, gradient="score")
    score = gradients(agent, phi, keys)
    error = np.sqrt((path.var(axis=0) + score.var(axis=0)) / len(keys))
    z = (path.mean(axis=0) - score.mean(axis=0)) / np.maximum(error, 1e-9)
    assert np.max(np.abs(z[error > 1e-9])) < limit(len(z))
    assert np.all(np.abs((path - score).mean(axis=0)[error <= 1e-9]) < 1e-5)


def one_weight(mu: float, sigma: float) -> Phi:
    """Two actions with a bias each, and a feature that is always 0."""
    rho = np.log(np.expm1(sigma))
    layer = [Linear(jnp.zeros((1, 2)), jnp.full(2, v, jnp.float32)) for v in (mu, rho)]
    return Phi(MeanFieldLearned((layer[0],), (layer[1],)))


def draws_of(posterior, phi: Phi, draws: int, blanket: bool, repeats: int = 20_000):
    """f and h of the mean of the first action's value, which is θ = μ + σ·ε, with losses
    ½(θ − x)² of three rows of each action; and what they are averaged to, without and with a."""
    x, action = jnp.array([1.0, 0.5, 2.0, -1.0, 0.0, 0.3]), jnp.array([0, 0, 0, 1, 1, 1])

    @jax.jit
    def one(key):
        theta = Thetas(posterior, noise.folds(key, draws))
        values = theta.samples(posterior.law(phi))[0].bias  # [draws, actions]
        losses = 0.5 * (values[:, action] - x) ** 2 / 6
        terms = scores(theta, phi, losses, action if blanket else None, 1)
        f, h = (part.mu[0].bias[:, 0] for part in terms)
        means = [controlled(terms, control).mu[0].bias[0] for control in (False, True)]
        return f, h, jnp.stack(means)

    return jax.vmap(one)(noise.folds(noise.root(5), repeats))


def test_the_control_variate_lowers_the_variance_by_the_predicted_factor():
    """θ ~ N(μ, σ²), ℓ = Σ ½(θ − x)²/6 over three rows, f = ε·ℓ/σ and h = ε/σ. With ℓ = A + B·ε +
    C·ε², the moments of ε give Var f = (A² + 3·(B² + 2AC) + 15·C² − B²)/σ² and
    Cov(f, h) = (A + 3C)/σ²; what a control leaves is 1 − Cov²/(Var f·Var h), and a itself is
    estimated from the other 199 draws."""
    mu, sigma, x = 0.4, 0.8, np.array([1.0, 0.5, 2.0])
    a, b, c = np.sum((mu - x) ** 2) / 12, sigma * np.sum(mu - x) / 6, 3 * sigma**2 / 12
    variance = (a**2 + 3 * (b**2 + 2 * a * c) + 15 * c**2 - b**2) / sigma**2
    left = 1.0 - ((a + 3 * c) / sigma**2) ** 2 / (variance / sigma**2)
    assert left < 0.6
    f, h, means = draws_of(MeanField(-1.0), one_weight(mu, sigma), 200, True, 4000)
    assert float(jnp.var(f)) == pytest.approx(variance, rel=0.03)
    assert float(jnp.var(h)) == pytest.approx(1 / sigma**2, rel=0.02)
    plain, controlled_ = np.asarray(means, np.float64).T
    assert np.var(plain) == pytest.approx(variance / 200, rel=0.1)
    assert np.var(controlled_) / np.var(plain) == pytest.approx(left, rel=0.12)
    exact = np.sum(mu - x) / 6  # ∇_μ E[ℓ]
    for mean in (plain, controlled_):
        assert abs(mean.mean() - exact) / (mean.std() / len(mean) ** 0.5) < limit(2)


def test_rao_blackwellisation_leaves_out_the_rows_of_other_actions():
    """Their losses add E[h²]·E[ℓ²] to the variance, and nothing to the mean."""
    phi = one_weight(0.4, 0.8)
    whole, part = (draws_of(MeanField(-1.0), phi, 2, b, 20_000)[0].ravel() for b in (False, True))
    others = np.array([-1.0, 0.0, 0.3])
    b, c = 0.8 * np.sum(0.4 - others) / 6, 3 * 0.8**2 / 12
    a = np.sum((0.4 - others) ** 2) / 12
    first = np.sum((0.4 - np.array([1.0, 0.5, 2.0])) ** 2) / 12
    square = (a**2 + b**2 + 2 * a * c + 3 * c**2) / 0.8**2  # E[h²]·E[ℓ²] of the other rows
    cross = 2 * (first + 3 * c) * (a + c) / 0.8**2  # 2·E[h²·ℓ]·E[ℓ of the others]
    assert float(whole.var() - part.var()) == pytest.approx(square + cross, rel=0.1)
    error = np.sqrt((whole.var() + part.var()) / len(whole))
    assert abs(float(whole.mean() - part.mean())) / error < limit(1)


def test_scores_need_a_density():
    for posterior in (Dropout(), Factorised(-1.0), Ensemble(3)):
        with pytest.raises(ConfigError, match="needs a posterior with a density"):
            Agent(Gaussian(0.1), posterior, gradient="score")


def test_bbvi_solves_a_short_chain():
    """Ten optimal episodes in a row; without the scores, it never does."""
    agent = rove.BBVI(hidden=(), draws=32, lr=3e-3, target_period=25)
    run = rove.train(agent, "chain-10", seeds=range(200, 202), episodes=120, until_solved=True)
    assert all(episodes_to_solve(o.scores, 11.0) is not None for o in run.outcomes)


@pytest.mark.parametrize(("draws", "own"), [(1, 3), (3, 2), (4, 2)])
def test_every_sample_has_a_target_whatever_their_numbers(draws, own):
    x = matched(jnp.arange(own)[:, None], draws)
    np.testing.assert_array_equal(x[:, 0], [i % own for i in range(draws)])
    agent = Agent(
        Gaussian(0.1), LowRank(2, rho=-1.0, draws=own), gradient="score", draws=draws,
        hidden=(), batch_size=4, buffer_size=8, learning_starts=1,
    )  # fmt: skip
    jax.eval_shape(lambda key: agent.learn(agent.init(3, 2, key), key), noise.root(0))


# α-divergences


def test_an_alpha_of_nearly_zero_is_the_mean_and_of_one_the_marginal_likelihood():
    """By NumPy: log-mean-exp over draws, rows weighted by their masks; no draw counts as 0."""
    rng = np.random.default_rng(2)
    losses, c = rng.uniform(0.0, 3.0, size=(6, 4)), 0.7
    mask = (rng.uniform(size=(6, 4)) < 0.6).astype(float)
    mask[:, 2] = 0.0
    found = alpha_loss(jnp.asarray(losses), jnp.asarray(mask), 1e-3, c)
    np.testing.assert_allclose(found, (mask * losses).mean(axis=0), rtol=2e-3, atol=2e-3)
    for alpha in (0.5, 1.0):
        found = np.asarray(alpha_loss(jnp.asarray(losses), jnp.asarray(mask), alpha, c))
        for row in range(4):
            kept = losses[mask[:, row] > 0, row]
            value = -c / alpha * np.log(np.mean(np.exp(-alpha / c * kept))) if len(kept) else 0.0
            assert found[row] == pytest.approx(mask[:, row].mean() * value, rel=1e-4, abs=1e-5)


def test_alpha_of_one_is_the_marginal_likelihood_of_a_categorical():
    """−log of the mean probability of an atom over the samples of θ, at any entropy weight."""
    returns = Categorical(5, low=-1.0, high=1.0, weight=1e-4)
    logits = np.random.default_rng(6).normal(size=(8, 5))
    atom = jnp.asarray([0.0, 0.0, 0.0, 1.0, 0.0])
    losses = jax.vmap(lambda z: returns.loss(z, atom))(jnp.asarray(logits, jnp.float32))
    p = np.exp(logits)[:, 3] / np.exp(logits).sum(axis=1)
    (value,) = alpha_loss(losses[:, None], jnp.ones((1, 1)), 1.0, returns.unit)
    assert float(value) == pytest.approx(-np.log(p.mean()), rel=1e-5)


@pytest.mark.fast_cases("posterior1")
@pytest.mark.parametrize("posterior", [MeanField(-1.0), FullCovariance(-1.0)])
def test_alpha_of_one_is_the_marginal_likelihood_of_the_linear_gaussian_model(posterior):
    """θ ~ N(m, S) gives x ~ N(h·m, σ² + h·S·h); 4,000 draws. σ² times −log N, without log σ."""
    agent, phi = made(posterior, alpha=1.0, draws=4000)
    law = posterior.law(phi)
    theta = several(posterior, law, BATCH.action_index, noise.root(4), 4000)
    value = agent.objective(phi, theta, BATCH, BATCH.reward[None])[0]
    value += agent.entropy_weight / N * posterior.entropy(law)
    s = np.concatenate([BATCH.observation, np.ones((N, 1))], axis=1).astype(np.float64)
    action, total = np.asarray(BATCH.action_index), 0.0
    for row in range(N):
        if isinstance(posterior, MeanField):
            mean = np.append(law.mean[0].weight[:, action[row]], law.mean[0].bias[action[row]])
            root = np.append(law.std[0].weight[:, action[row]], law.std[0].bias[action[row]])
            root = np.diag(root)
        else:
            mean, root = law.head.mean[action[row]], law.head.root[action[row]]
        variance = SIGMA**2 + np.sum((s[row] @ np.asarray(root, np.float64)) ** 2)
        error = float(BATCH.reward[row]) - s[row] @ np.asarray(mean, np.float64)
        total += 0.5 * error**2 / variance + 0.5 * np.log(variance / SIGMA**2)
    assert float(value) == pytest.approx(SIGMA**2 * total / N, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "posterior",
    [Dropout(0.3), Ensemble(3, mask=0.5), MeanField(-1.0), LowRank(2, draws=3)],
    ids=lambda posterior: type(posterior).__name__,
)
def test_alpha_tends_to_the_elbo_in_value_and_gradient(posterior):
    """With the same samples of θ, for families with several draws and weights of their own."""
    hidden, keys = (5,), noise.folds(noise.root(6), 2)
    agent, phi = made(posterior, hidden, draws=4)
    near, _ = made(posterior, hidden, draws=4, alpha=1e-4)
    far, _ = made(posterior, hidden, draws=4, alpha=1.0)
    elbo, limit_, other = (gradients(a, phi, keys) for a in (agent, near, far))
    np.testing.assert_allclose(limit_, elbo, rtol=0.01, atol=0.01 * np.abs(elbo).max())
    assert np.max(np.abs(other - elbo)) > 0.05 * np.abs(elbo).max()


def test_the_gradient_of_alpha_prefers_the_draws_that_explain_the_target():
    """At α → ∞ only the best of K draws learns."""
    losses = jnp.array([[0.5], [2.0], [4.0]])
    for alpha, weights in ((1e-4, np.full(3, 1 / 3)), (50.0, np.array([1.0, 0.0, 0.0]))):
        slope = jax.grad(lambda x, a=alpha: jnp.sum(alpha_loss(x, jnp.ones((1, 1)), a, 1.0)))
        np.testing.assert_allclose(slope(losses)[:, 0], weights, atol=1e-3)


def test_alpha_needs_a_width_and_the_gradient_through_samples():
    with pytest.raises(ConfigError, match=r"alpha=0\.5 needs a return with a standard deviation"):
        Agent(Gaussian(0.0), Dropout(), alpha=0.5)
    for options in ({"alpha": 0.5, "gradient": "score"}, {"alpha": 0.0}, {"alpha": 1e-40}):
        with pytest.raises(ConfigError, match="alpha"):
            Agent(Gaussian(0.1), MeanField(-1.0), **options)
    Agent(LearnedGaussian(), Dropout(), alpha=0.5, draws=3)


@pytest.mark.slow
def test_several_draws_are_independent_and_share_a_target():
    agent, phi = made(Dropout(0.5), (6,), draws=3)
    law = agent.posterior.law(phi)
    theta, theta_minus = agent.draw(law, law, BATCH, noise.root(1), noise.root(2))
    z = theta(law, rove.posteriors.priors.Input(BATCH.observation))
    assert z.shape == (3, N, ACTIONS)
    assert not np.array_equal(z[0], z[1])
    assert theta_minus(law, rove.posteriors.priors.Input(BATCH.observation)).shape[0] == 1
