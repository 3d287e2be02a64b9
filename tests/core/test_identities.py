"""Section 5 of the paper as identities: each test carries the sentence that it proves.

The closed forms of Thompson sampling and of Bayesian DQN are in posteriors/test_conjugate.py and
posteriors/test_last_layer.py; the exact mean-field posterior is in test_algorithm.py.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special, stats

from helpers import in_buffer, in_numpy, objective, rows
from helpers import targets as targets_at
from rove import BBQ, C51, DQN, GE, VDQN, Agent, NoisyNet
from rove.parts import noise
from rove.parts.networks import Linear
from rove.parts.replay import Transition
from rove.posteriors import Dirac, MeanField, Phi
from rove.posteriors.mean_field import MeanFieldLearned
from rove.returns import Bernoulli, Gaussian, Laplace, LearnedGaussian

N, FEATURES, ACTIONS, HIDDEN = 16, 3, 4, (7, 5)
SMALL = {"hidden": HIDDEN, "batch_size": N, "buffer_size": N, "gamma": 0.9}

objective, target = jax.jit(objective), jax.jit(targets_at)
init = jax.jit(Agent.init, static_argnums=(1, 2))


@jax.jit
def gradient(agent: Agent, phi: Phi, batch: Transition, x, key):
    """Of the objective, by what is learned."""
    return jax.grad(lambda p: objective(agent, phi._replace(learned=p), batch, x, key)[0])(
        phi.learned
    )


@pytest.fixture(scope="module")
def batch() -> Transition:
    rng = np.random.default_rng(0)
    of = Transition(
        observation=jnp.asarray(rng.normal(size=(N, FEATURES)), jnp.float32),
        action=jnp.asarray(rng.integers(ACTIONS, size=N), jnp.int32),
        reward=jnp.asarray(rng.normal(size=N), jnp.float32),
        next_observation=jnp.asarray(rng.normal(size=(N, FEATURES)), jnp.float32),
        terminated=jnp.asarray(np.arange(N) % 4 == 0),
    )
    return in_buffer(of)


def state(agent: Agent, seed: int = 1):
    return init(agent, FEATURES, ACTIONS, noise.root(seed))


def laws(agent: Agent):
    """q_φ, and a q_φ⁻ that differs from it."""
    return (agent.posterior.law(state(agent, seed).phi) for seed in (1, 2))


def targets(agent: Agent, batch: Transition):
    return target(agent, *laws(agent), batch, noise.root(5), noise.root(6))


def same(a, b, **limits) -> None:
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(one, other, **limits)


def test_the_objective_is_kl_to_the_posterior_up_to_a_constant():
    """Section 4.1: "(4) is equivalent to min_φ KL[q_φ(θ)||p(θ|{x_i})]". For a line through 16
    points both are known: the posterior of slope and intercept under a flat prior is N(β̂,
    σ²(XᵀX)⁻¹), and q is a diagonal Gaussian. N/σ² times the objective minus the KL is then the
    same number for every φ."""
    rng, sigma = np.random.default_rng(3), 0.7
    s = rng.normal(size=N)
    x = 0.5 * s - 0.3 + sigma * rng.normal(size=N)
    design = np.stack([s, np.ones(N)], axis=1)
    covariance = sigma**2 * np.linalg.inv(design.T @ design)
    centre = np.linalg.lstsq(design, x, rcond=None)[0]

    def kl(mean: np.ndarray, std: np.ndarray) -> float:
        precision, apart = np.linalg.inv(covariance), mean - centre
        return 0.5 * (
            np.trace(precision @ np.diag(std**2))
            + apart @ precision @ apart
            - 2
            + np.linalg.slogdet(covariance)[1]
            - 2 * np.sum(np.log(std))
        )

    agent = Agent(Gaussian(sigma), MeanField(-1.0), hidden=(), batch_size=N, buffer_size=N)
    zeros = jnp.zeros((N, 1))
    data = Transition(
        jnp.asarray(s[:, None], jnp.float32), jnp.zeros(N, jnp.int32), jnp.asarray(x, jnp.float32),
        zeros, jnp.ones(N, bool),
    )  # fmt: skip
    data = in_buffer(data)
    keys = noise.folds(noise.root(4), 50_000)

    @jax.jit
    def objectives(phi: Phi):
        """At every key. All transitions are last ones, so that x is the reward."""
        value = lambda key: objective(agent, phi, data, data.reward[None], key)[0]  # noqa: E731
        return jax.vmap(value)(keys)

    differences, errors = [], []
    points = (((0.5, -0.3), (0.2, 0.2)), ((0.0, 0.0), (0.5, 0.1)), ((1.0, 0.4), (0.1, 0.7)))
    for mean, std in points:
        rho = np.log(np.expm1(np.array(std)))
        mu, rho = (
            (Linear(jnp.full((1, 1), v[0], jnp.float32), jnp.full(1, v[1], jnp.float32)),)
            for v in (mean, rho)
        )
        values = np.asarray(objectives(Phi(MeanFieldLearned(mu, rho))), np.float64) * N / sigma**2
        differences.append(values.mean() - kl(np.array(mean), np.array(std)))
        errors.append(values.std() / np.sqrt(len(values)))
    for i in (1, 2):
        z = (differences[i] - differences[0]) / np.hypot(errors[i], errors[0])
        assert abs(z) < stats.norm.isf(0.5e-4 / 2), differences
    assert max(errors) < 0.05


def test_ge_without_sigma_is_noisynet(batch):
    """Section 5.2: "To recover NoisyNet from (7), we can properly scale the objective (by
    multiplying (7) by σ²) and let σ → 0": objective and gradient go to NoisyNet's, on the same
    draws. At σ = 1e-6 they are there; at 1 they are not."""
    noisy = NoisyNet(rho=-2.0, **SMALL).compose()
    phi, key, x = state(noisy).phi, noise.root(7), targets(noisy, batch)
    # NoisyNet's loss: half the mean squared Bellman error of one draw of the network.
    draws = rows(noisy.posterior, noisy.posterior.law(phi), batch.observation, key)[0]
    q = np.take_along_axis(np.asarray(draws), np.asarray(batch.action_index)[:, None], 1)[:, 0]
    loss = np.mean((q - np.asarray(x[0])) ** 2) / 2
    assert float(objective(noisy, phi, batch, x, key)[0]) == pytest.approx(loss, rel=1e-5)
    limit = gradient(noisy, phi, batch, x, key)
    for sigma, near in ((1e-6, True), (1.0, False)):
        ge = GE(rho=-2.0, sigma=sigma, **SMALL).compose()
        close = np.isclose(float(objective(ge, phi, batch, x, key)[0]), loss, rtol=1e-5)
        assert close == near
        slopes = gradient(ge, phi, batch, x, key)
        leaves = zip(jax.tree.leaves(slopes.rho), jax.tree.leaves(limit.rho), strict=True)
        assert all(np.allclose(a, b, atol=1e-6) for a, b in leaves) == near
        for a, b in zip(*(jax.tree.leaves(each.mu) for each in (slopes, limit)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)  # the entropy knows no μ
        # The targets differ by their noise alone, γσξ.
        apart = np.abs(targets(ge, batch) - targets(noisy, batch))
        assert (np.max(apart) < 1e-5) == near


def test_ge_with_a_dirac_is_dqn(batch):
    """Section 5.2: "To further recover the objective of DQN, we set q_φ(θ) = δ(θ − φ)": value and
    gradient of DQN's loss, written with optax's l2_loss on a network of its own."""
    dqn = DQN(**SMALL).compose()
    phi, phi_target = state(dqn, 1).phi, state(dqn, 2).phi

    def network(theta, x):
        for weight, bias in theta[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        return x @ theta[-1].weight + theta[-1].bias

    def loss(theta):
        q = network(theta, batch.observation)[jnp.arange(N), batch.action_index]
        bootstrap = jnp.max(network(phi_target.learned, batch.next_observation), axis=1)
        return jnp.mean(optax.l2_loss(q, batch.reward + 0.9 * (~batch.terminated) * bootstrap))

    x, key = targets(dqn, batch), noise.root(7)
    assert float(objective(dqn, phi, batch, x, key)[0]) == pytest.approx(
        float(loss(phi.learned)), rel=1e-5
    )
    same(gradient(dqn, phi, batch, x, key), jax.grad(loss)(phi.learned), rtol=1e-4, atol=1e-6)
    # A Gaussian of σ > 0 with a Dirac has the same gradient: its entropy is a constant.
    ge = Agent(Gaussian(0.5), Dirac(), **SMALL)
    same(gradient(ge, phi, batch, x, key), jax.grad(loss)(phi.learned), rtol=1e-4, atol=1e-6)


def test_categorical_with_a_dirac_is_c51(batch):
    """Section 5.3: "Algorithm 1 recovers the exact objective of distributional RL from (4) by
    setting q_φ(θ) = δ(θ − φ) and letting Z_θ(s, a) be categorical distributions": the loss is
    optax's cross-entropy from the projected target, and so is its gradient."""
    atoms, low, high = 11, -2.0, 3.0
    c51 = C51(atoms=atoms, low=low, high=high, **SMALL).compose()
    phi, phi_target = state(c51, 1).phi, state(c51, 2).phi
    support, gap = np.linspace(low, high, atoms), (high - low) / (atoms - 1)

    def logits(theta, x):
        for weight, bias in theta[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        return (x @ theta[-1].weight + theta[-1].bias).reshape(N, ACTIONS, atoms)

    probabilities = np.asarray(jax.nn.softmax(logits(phi_target.learned, batch.next_observation)))
    projected = np.zeros((N, atoms))
    for row in range(N):  # Algorithm 1 of Bellemare et al. 2017
        p = probabilities[row, np.argmax(probabilities[row] @ support)]
        for j in range(atoms):
            discount = 0.0 if batch.terminated[row] else 0.9
            place = (np.clip(batch.reward[row] + discount * support[j], low, high) - low) / gap
            below, above = int(np.floor(place)), int(np.ceil(place))
            projected[row, below] += p[j] * (above - place if above > below else 1.0)
            projected[row, above] += p[j] * (place - below)

    def loss(theta):
        z = logits(theta, batch.observation)[jnp.arange(N), batch.action_index]
        return jnp.mean(optax.softmax_cross_entropy(z, jnp.asarray(projected)))

    x, key = targets(c51, batch), noise.root(7)
    np.testing.assert_allclose(x[0], projected, atol=2e-5)
    assert float(objective(c51, phi, batch, x, key)[0]) == pytest.approx(
        float(loss(phi.learned)), rel=1e-4
    )
    same(gradient(c51, phi, batch, x, key), jax.grad(loss)(phi.learned), rtol=1e-3, atol=1e-5)


def test_vdqn_differs_from_ge_by_the_target_draw_alone(batch):
    """Section 5.2: "Algorithm 2 has very similar objective as Variational DQN": the same
    composition but for `draw`, and targets that differ by γσξ."""
    ge, vdqn = (kind(rho=-2.0, sigma=0.5, **SMALL).compose() for kind in (GE, VDQN))
    assert eqx.tree_equal(eqx.tree_at(lambda a: a.returns, ge, Gaussian(0.5, draw="mean")), vdqn)
    xi = jax.vmap(noise.normal)(noise.folds(noise.root(6), N))
    apart = np.asarray(targets(ge, batch) - targets(vdqn, batch))[0]
    expected = np.where(batch.terminated, 0.0, 0.9 * 0.5 * np.asarray(xi))
    np.testing.assert_allclose(apart, expected, atol=1e-5)


def test_vdqn_minimises_the_loss_of_variational_dqn(batch):
    """Section 5.2: "Variational DQN and BBQ apply variational inference to minimize the
    divergence". Tang and Kucukelbir (2017) minimise Σ_j (Q_θ(s_j, a_j) − d_j)²/2σ² − H(q_φ) under a
    flat prior, with d_j = r_j + γ·max_a Q_θ⁻(s′_j, a), without noise of the return. Here this is in
    NumPy, for the same θ and θ⁻, and so are its slopes, by central differences."""
    sigma, keys = 0.5, [noise.root(i) for i in range(3)]
    vdqn = VDQN(rho=-2.0, sigma=sigma, prior_std=None, **SMALL).compose()
    rng = np.random.default_rng(8)
    moved = lambda x: x + jnp.asarray(0.3 * rng.normal(size=x.shape), x.dtype)  # noqa: E731
    phi, minus = (Phi(jax.tree.map(moved, state(vdqn, seed).phi.learned)) for seed in (1, 2))
    law, law_minus = vdqn.posterior.law(phi), vdqn.posterior.law(minus)
    numbered = batch._replace(number=jnp.arange(N))
    theta, theta_minus = vdqn.draw(law, law_minus, numbered, *keys[:2])

    @jax.jit
    @jax.value_and_grad
    def ours(learned):
        """N/σ² times the objective: a constant factor does not move the minimum."""
        x = vdqn.lookahead((), law, law_minus, theta_minus, numbered, keys[2])
        return N / sigma**2 * vdqn.objective(Phi(learned), theta, numbered, x)[0]

    def published(learned) -> float:
        q = in_numpy(learned, batch.observation, theta.epsilon)[np.arange(N), batch.action_index]
        best = in_numpy(minus.learned, batch.next_observation, theta_minus.epsilon).max(axis=1)
        d = np.asarray(batch.reward) + np.where(batch.terminated, 0.0, 0.9 * best)
        stds = [np.logaddexp(0.0, np.ravel(rho)) for rho in jax.tree.leaves(learned.rho)]
        return np.sum((q - d) ** 2) / (2 * sigma**2) - np.sum(np.log(np.concatenate(stds)))

    value, slope = ours(phi.learned)
    wide = jax.tree.map(lambda x: np.asarray(x, np.float64), phi.learned)
    assert float(value) == pytest.approx(published(wide), rel=1e-5)
    for _ in range(5):
        way, h = jax.tree.map(lambda x: rng.normal(size=x.shape), wide), 1e-6
        ahead, back = (jax.tree.map(lambda x, w, h=h: x + h * w, wide, way) for h in (h, -h))
        pairs = zip(jax.tree.leaves(slope), jax.tree.leaves(way), strict=True)
        along = sum(float(np.vdot(g, w)) for g, w in pairs)
        assert along == pytest.approx((published(ahead) - published(back)) / (2 * h), rel=1e-3)


@pytest.mark.parametrize(
    ("returns", "log_density"),
    [
        (LearnedGaussian(0.05, 1.0), lambda z, x: stats.norm.logpdf(x, z[0], _scale(z))),
        (Laplace(0.05, 1.0), lambda z, x: stats.laplace.logpdf(x, z[0], _scale(z))),
        (Bernoulli(1.0), lambda z, x: stats.bernoulli.logpmf(x, special.expit(z[0]))),
    ],
    ids=["LearnedGaussian", "Laplace", "Bernoulli"],
)
def test_with_another_likelihood_the_objective_is_that_of_its_posterior(returns, log_density):
    """Section 5.2: "Algorithm 1 generalizes these variants of DQN by allowing for other parametric
    likelihood models Z_θ(s, a)". The returns of an arm are numbers x_i, and θ has a parameter for
    each output. (4), E_θ[−Σ log Z_θ(x_i)] − H(q_φ), is computed with SciPy's densities and by
    quadrature. It is N times the objective, in the mean over samples of θ, for three φ."""
    rng, d = np.random.default_rng(5), returns.outputs
    agent = Agent(returns, MeanField(-1.0), hidden=(), batch_size=N, buffer_size=N)
    x = np.arange(N) % 3 == 0 if returns.binary else rng.normal(0.4, 0.8, size=N)
    zeros = jnp.zeros((N, 1))  # the arm has no features, so that θ is the bias
    data = in_buffer(
        Transition(zeros, jnp.zeros(N, jnp.int32), jnp.zeros(N), zeros, jnp.ones(N, bool))
    )
    number, key = jnp.asarray(x, jnp.float32), noise.root(0)
    point = jax.vmap(lambda r: returns.target(jnp.zeros(d), r, jnp.zeros(()), key))(number)[None]
    keys = noise.folds(noise.root(4), 20_000)

    @jax.jit
    def objectives(phi: Phi):
        return jax.vmap(lambda key: N * objective(agent, phi, data, point, key)[0])(keys)

    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for mean, std in (
        ((0.4, 0.2), (0.2, 0.3)),
        ((-0.5, 1.0), (0.4, 0.1)),
        ((0.0, 0.0), (0.6, 0.6)),
    ):
        mean, std = np.array(mean[:d]), np.array(std[:d])
        rho = np.log(np.expm1(std))
        bias = [Linear(jnp.zeros((1, d)), jnp.asarray(v, jnp.float32)) for v in (mean, rho)]
        values = np.asarray(objectives(Phi(MeanFieldLearned((bias[0],), (bias[1],)))), np.float64)
        grid = np.stack(np.meshgrid(*[nodes] * d, indexing="ij")).reshape(d, -1)
        mass = np.prod(np.stack(np.meshgrid(*[weights] * d, indexing="ij")), axis=0).ravel()
        z = mean[:, None] + std[:, None] * grid
        loss = -sum(log_density(z, each) for each in x)
        weight_entropy = d * np.log(np.log(2.0))  # of the weights, whose ρ is 0
        exact = mass @ loss / mass.sum() - np.sum(np.log(std)) - weight_entropy
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - exact) < 5 * error + 1e-3 * abs(exact)


def _scale(z):
    """softplus(z₂) and the floor: a scale that is learned."""
    return np.logaddexp(0.0, z[1]) + 0.05


def test_bbq_differs_from_vdqn_by_the_prior_alone(batch):
    """Section 5.2: "Variational DQN and BBQ apply variational inference to minimize the
    divergence", to posteriors of different priors: the same composition but for `prior`; the
    objectives differ by σ²/N times Σ(μ² + σ_θ²)/2s², the cross-entropy to N(0, s²) up to a
    constant."""
    settings = {"rho": -2.0, "sigma": 0.5, **SMALL}
    vdqn = VDQN(prior_std=None, **settings).compose()
    bbq = BBQ(prior=0.3, **settings).compose()
    assert eqx.tree_equal(eqx.tree_at(lambda a: a.posterior, vdqn, MeanField(-2.0, 0.3)), bbq)
    assert np.array_equal(targets(vdqn, batch), targets(bbq, batch))
    phi, x, key = state(vdqn).phi, targets(vdqn, batch), noise.root(7)
    mean, variance = vdqn.posterior.law(phi)
    squares = sum(float(jnp.sum(m**2)) for m in jax.tree.leaves(mean))
    squares += sum(float(jnp.sum(v)) for v in jax.tree.leaves(variance))
    apart = objective(bbq, phi, batch, x, key)[0] - objective(vdqn, phi, batch, x, key)[0]
    assert float(apart) == pytest.approx(0.5**2 / N * squares / (2 * 0.3**2), rel=1e-4)
