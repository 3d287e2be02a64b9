"""Algorithm 1 against NumPy, finite differences, a closed form, and Algorithm 2 as printed."""

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import optax
import pytest
from scipy import stats

import rove
from helpers import in_buffer, rows, targets, targets_of_one
from rove.core import algorithm, control
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import noise, replay
from rove.parts.networks import Linear
from rove.parts.replay import Transition
from rove.posteriors import Dirac, Ensemble, Factorised, MeanField, Phi, factorised
from rove.posteriors.mean_field import MeanFieldLaw, MeanFieldLearned
from rove.posteriors.priors import Input
from rove.returns import Gaussian

FEATURES, ACTIONS, HIDDEN, N = 3, 4, (6, 5), 8
SIZES = (FEATURES, *HIDDEN, ACTIONS)


def loss_of(learner, learned, phi_target, batch, key):
    """Lines 9–11 of Algorithm 2 for a minibatch, with a step's key: targets, then objective."""
    k_theta, k_target_theta, k_target = (
        noise.fold(key, use)
        for use in (algorithm._THETA, algorithm._TARGET_THETA, algorithm._TARGET)
    )
    phi = Phi(learned)
    law = learner.posterior.law(phi)
    batch = batch._replace(number=jnp.arange(batch.reward.shape[0]))
    theta, theta_minus = learner.draw(law, phi_target, batch, k_theta, k_target_theta)
    x = learner.lookahead((), law, phi_target, theta_minus, batch, k_target)
    return learner.objective(phi, theta, batch, jax.lax.stop_gradient(x))


objective = jax.jit(loss_of)
value_and_gradient = jax.jit(jax.value_and_grad(loss_of, argnums=1, has_aux=True))
init = jax.jit(Agent.init, static_argnums=(1, 2))
observe = jax.jit(Agent.observe)
learn = jax.jit(Agent.learn)
act = jax.jit(Agent.act)
greedy = jax.jit(Agent.greedy)
resample_theta = jax.jit(Agent.resample_theta)
target = jax.jit(targets)
normal = jax.jit(noise.normal, static_argnums=1)
minibatch = jax.jit(replay.sample, static_argnums=2)
sample = jax.jit(lambda posterior, phi, key: posterior.sample(posterior.law(phi), key))
rows_forward = jax.jit(lambda posterior, law, xs, key: rows(posterior, law, xs, key)[0])


def agent(posterior=None, sigma: float = 0.5, **settings) -> Agent:
    """Gauss Exploration, small."""
    settings = {"hidden": HIDDEN, "batch_size": N, "buffer_size": 64, "gamma": 0.9, **settings}
    return Agent(Gaussian(sigma), MeanField(-1.0) if posterior is None else posterior, **settings)


def layers(rng, scale: float = 1.0, shift: float = 0.0) -> tuple[Linear, ...]:
    """Normal numbers in the shape of θ."""
    return tuple(
        Linear(
            jnp.asarray(shift + scale * rng.normal(size=(i, o)), jnp.float32),
            jnp.asarray(shift + scale * rng.normal(size=o), jnp.float32),
        )
        for i, o in pairwise(SIZES)
    )


def problem(seed: int) -> tuple[MeanFieldLearned, MeanFieldLaw, Transition]:
    """φ and q_φ⁻ that differ, and a minibatch in which some transitions end the task."""
    rng = np.random.default_rng(seed)
    phi = MeanFieldLearned(layers(rng, 0.7), layers(rng, 0.3, -1.0))
    phi_target = MeanFieldLaw(layers(rng, 0.7), jax.tree.map(jnp.square, layers(rng, 0.2, 0.4)))
    batch = Transition(
        observation=jnp.asarray(rng.normal(size=(N, FEATURES)), jnp.float32),
        action=jnp.asarray(rng.integers(ACTIONS, size=N), jnp.int32),
        reward=jnp.asarray(rng.normal(size=N), jnp.float32),
        next_observation=jnp.asarray(rng.normal(size=(N, FEATURES)), jnp.float32),
        terminated=jnp.asarray(np.arange(N) % 3 == 0),
    )
    return phi, phi_target, in_buffer(batch)


# The same in NumPy, in float64, row by row. Only the random numbers are rove's.


def f64(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def np_forward(mean, variance, x, epsilons):
    """A draw of each layer's pre-activations, which are Gaussian given its input. `epsilons` are
    the draws of all layers in a row."""
    at = 0
    for i, ((weight, bias), (v, v_bias)) in enumerate(zip(mean, variance, strict=True)):
        centre = bias + np.array([np.sum(x * weight[:, j]) for j in range(len(bias))])
        spread = [np.sum(x**2 * v[:, j]) + v_bias[j] for j in range(len(bias))]
        x = centre + np.sqrt(spread) * epsilons[at : at + len(bias)]
        at += len(bias)
        if i < len(mean) - 1:
            x = np.where(x > 0, x, 0.0)
    return x


class Draws(NamedTuple):
    """The numbers an update draws with a step's key, a row for each transition."""

    theta: np.ndarray
    target_theta: np.ndarray
    target: np.ndarray


@jax.jit
def all_draws(key) -> Draws:
    def of(use):
        return noise.normal(noise.fold(key, use), (N, sum(SIZES[1:])))

    keys = noise.folds(noise.fold(key, algorithm._TARGET), N)
    return Draws(of(algorithm._THETA), of(algorithm._TARGET_THETA), jax.vmap(noise.normal)(keys))


def np_targets(draws: Draws, phi_target, batch, gamma: float, sigma: float) -> list[float]:
    phi_target, batch = f64(phi_target), f64(batch)
    xs = []
    for row in range(N):
        q = np_forward(*phi_target, batch.next_observation[row], draws.target_theta[row])
        z = max(q) + sigma * draws.target[row]
        xs.append(batch.reward[row] + (0.0 if batch.terminated[row] else gamma * z))
    return xs


def np_objective(draws: Draws, mu, rho, xs, batch, sigma: float) -> float:
    """σ²/N times Σ(Q − x)²/2σ² − H, H = Σ log σ_θ, of (7), with a θ for each term."""
    stds = [np.logaddexp(0.0, r) for r in rho]
    variances = [std**2 for std in stds]
    mean, variance = (list(zip(flat[::2], flat[1::2], strict=True)) for flat in (mu, variances))
    total = 0.0
    for row in range(N):
        x = np.asarray(batch.observation[row], np.float64)
        q = np_forward(mean, variance, x, draws.theta[row])
        total += (q[int(batch.action_index[row])] - xs[row]) ** 2 / 2
    return total / N - sigma**2 / N * sum(np.sum(np.log(s)) for s in stds)


@pytest.fixture(scope="module")
def draws():
    return {seed: f64(all_draws(noise.root(seed))) for seed in (0, 1)}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("sigma", [0.0, 0.5, 2.0])
def test_objective_is_numpys(draws, seed, sigma):
    phi, phi_target, batch = problem(seed)
    value = float(objective(agent(sigma=sigma), phi, phi_target, batch, noise.root(seed))[0])
    xs = np_targets(draws[seed], phi_target, batch, 0.9, sigma)
    mu, rho = (jax.tree.leaves(f64(part)) for part in phi)
    assert value == pytest.approx(np_objective(draws[seed], mu, rho, xs, batch, sigma), rel=2e-5)


def test_gradient_is_that_of_finite_differences(draws):
    """Central differences in float64 of the NumPy objective, over every μ and ρ."""
    phi, phi_target, batch = problem(1)
    sigma, h = 0.5, 1e-5
    _, gradient = value_and_gradient(agent(sigma=sigma), phi, phi_target, batch, noise.root(1))
    xs = np_targets(draws[1], phi_target, batch, 0.9, sigma)
    parts = [jax.tree.leaves(f64(part)) for part in phi]
    exact = [jax.tree.leaves(f64(part)) for part in gradient]
    checked = 0
    for part in range(2):
        for leaf, array in enumerate(parts[part]):
            for index in np.ndindex(array.shape):
                at, values = array[index], []
                for step in (h, -h):
                    array[index] = at + step
                    values.append(np_objective(draws[1], *parts, xs, batch, sigma))
                array[index] = at
                slope = (values[0] - values[1]) / (2 * h)
                assert exact[part][leaf][index] == pytest.approx(slope, rel=1e-3, abs=2e-5)
                checked += 1
    assert checked == 2 * (3 * 6 + 6 + 6 * 5 + 5 + 5 * 4 + 4)


def test_limits_of_sigma_0_are_noisynet_and_dqn():
    """Section 5.2: no σ in the loss, which is ½·mean (Q_θ − r − γ·max Q_θ⁻)².

    NoisyNet with either noise, DQN with none. And the objective tends to it as σ does to 0.
    """
    phi, law, batch = problem(2)
    key = noise.root(2)
    rewards, terminated = np.asarray(batch.reward), np.asarray(batch.terminated)
    for posterior, p, p_target in (
        (MeanField(-1.0), phi, law),
        (Factorised(-1.0), phi, factorised.FactorisedLaw(*law)),
        (Dirac(), phi.mu, law.mean),
    ):
        k_theta, k_target = (
            noise.fold(key, use) for use in (algorithm._THETA, algorithm._TARGET_THETA)
        )
        q = rows_forward(posterior, posterior.law(Phi(p)), batch.observation, k_theta)
        q_next = rows_forward(posterior, p_target, batch.next_observation, k_target)
        q, q_next = np.asarray(q, np.float64), np.asarray(q_next, np.float64)
        loss = 0.0
        for row in range(N):
            x = rewards[row] + (0.0 if terminated[row] else 0.9 * q_next[row].max())
            loss += (q[row, int(batch.action_index[row])] - x) ** 2 / 2 / N

        def at(sigma, key=key, posterior=posterior, p=p, p_target=p_target):
            return float(objective(agent(posterior, sigma), p, p_target, batch, key)[0])

        zero = at(0.0)
        assert zero == pytest.approx(loss, rel=2e-5)
        if isinstance(posterior, Dirac):  # whatever the key
            assert zero == at(0.0, noise.root(9))
        gaps = [abs(at(sigma) - zero) for sigma in (1e-1, 1e-2, 1e-3)]
        # The target's noise makes the gap linear in σ: it falls by about ten each time.
        assert gaps[0] > 5 * gaps[1] > 25 * gaps[2] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "bound"), [(None, None), (0.1, None), (None, 0.2)])
def test_minimiser_is_the_mean_field_posterior_of_linear_regression(prior, bound):
    """A linear Q and fixed targets: (4) is KL to the posterior N(θ_LS, σ²(XᵀX)⁻¹), whose best
    factorised Gaussian has its mean and its precisions, (XᵀX)_ii/σ². A prior N(0, s²) adds 1/s²
    to the diagonal of the precision XᵀX/σ², which shrinks the mean too; a prior N(μ, s²), of a
    bound, adds as much to the precisions and leaves the mean.

    Adam with averaging of the last half. An average over 64 × 1000 draws leaves an error of
    σ_i/√64000 = 0.004 σ_i: 0.03 is beyond five of its standard errors.
    """
    rng = np.random.default_rng(3)
    rows, sigma = 60, 0.7
    learner = agent(
        MeanField(-1.0, prior, prior_std=bound), sigma, hidden=(), batch_size=rows, gamma=0.9
    )
    x = rng.normal(size=(rows, 2)) * [1.0, 2.0] + [0.5, 0.0]
    action = np.arange(rows) % 2
    reward = x @ [1.0, -0.5] + action * (2.0 + x[:, 0]) + 0.3 * rng.normal(size=rows)
    batch = Transition(
        jnp.asarray(x, jnp.float32),
        jnp.asarray(action, jnp.int32),
        jnp.asarray(reward, jnp.float32),
        jnp.asarray(rng.normal(size=(rows, 2)), jnp.float32),
        jnp.ones(rows, bool),  # so that x_j = r_j, without noise
    )
    batch = in_buffer(batch)
    zero = (Linear(jnp.zeros((2, 2)), jnp.zeros(2)),)
    phi = Phi(MeanFieldLearned(zero, jax.tree.map(lambda x: jnp.full_like(x, -1.0), zero)))
    steps, draws = 2000, 64
    optimiser = optax.adam(optax.cosine_decay_schedule(0.05, steps, alpha=0.02))

    @jax.jit
    def minimise(phi, batch):
        law = learner.posterior.law(phi)

        def loss(phi, t):
            keys = jax.vmap(lambda i: noise.fold(noise.root(3), t, i))(jnp.arange(draws))
            return jax.vmap(lambda key: loss_of(learner, phi.learned, law, batch, key)[0])(
                keys
            ).mean()

        def step(carry, t):
            phi, state = carry
            update, state = optimiser.update(jax.grad(loss)(phi, t), state)
            phi = optax.apply_updates(phi, update)
            return (phi, state), learner.posterior.law(phi)

        _, laws = jax.lax.scan(step, (phi, optimiser.init(phi)), jnp.arange(steps))
        return jax.tree.map(lambda x: x[steps // 2 :].mean(0), laws)

    (mean,), (std,) = f64(minimise(phi, batch))
    for a in range(2):
        design = np.column_stack([x, np.ones(rows)])[action == a]
        precision = design.T @ design / sigma**2 + (0 if prior is None else np.eye(3) / prior**2)
        best = np.linalg.solve(precision, design.T @ reward[action == a] / sigma**2)
        bounded = 0 if bound is None else 2 / bound**2  # 1/s², of a layer with two inputs
        best_std = 1 / np.sqrt(np.diag(precision) + bounded)
        got = np.append(mean.weight[:, a], mean.bias[a])
        got_std = np.append(std.weight[:, a], std.bias[a])
        assert np.max(np.abs(got - best) / best_std) < 0.03
        assert np.max(np.abs(got_std / best_std - 1)) < 0.03


def test_target_bootstraps_unless_terminated_by_hand():
    """Q⁻(s′) = (1·2 − 1, −1·2 + 0.5) = (1, −1.5): greedy is 1. r = 0.25, γ = 0.5.

    A truncated transition is stored as not terminated: 0.25 + 0.5·1 = 0.75; a terminated one
    keeps its reward alone.
    """
    network = (Linear(jnp.array([[1.0, -1.0]]), jnp.array([-1.0, 0.5])),)
    other = (Linear(jnp.array([[-9.0, 9.0]]), jnp.array([8.0, 8.0])),)  # φ, which has no part in it
    learner = agent(Dirac(), 0.0, hidden=(), gamma=0.5)
    batch = Transition(
        observation=jnp.full((2, 1), 7.0),
        action=jnp.ones(2, jnp.int32),
        reward=jnp.full(2, 0.25),
        next_observation=jnp.full((2, 1), 2.0),
        terminated=jnp.array([False, True]),
    )
    drawn = target(learner, other, network, in_buffer(batch), noise.root(0), noise.root(1))
    assert drawn.tolist() == [[0.75, 0.25]]
    # And with σ the target is drawn about it, except where the task has ended.
    noisy = agent(Dirac(), 0.5, hidden=(), gamma=0.5)
    xi = float(noise.normal(noise.fold(noise.root(3), 0)))
    ((goes_on, ended),) = target(
        noisy, other, network, in_buffer(batch), noise.root(0), noise.root(3)
    )
    assert float(ended) == 0.25
    assert float(goes_on) == pytest.approx(0.75 + 0.5 * 0.5 * xi, rel=1e-6)


def test_double_takes_the_action_of_phi_and_the_value_of_phi_minus_by_hand():
    """s′ = 2. Q(s′) = (2 − 2, −2 + 3) = (0, 1), greedy 1; Q⁻(s′) = (1, −1.5), greedy 0.

    With r = 0.25, γ = 0.5: 0.25 + 0.5·1 = 0.75 without, 0.25 − 0.5·1.5 = −0.5 with double. In
    s′ = −1, Q = (−3, 4) and Q⁻ = (−2, 1.5) agree on action 1: 0.25 + 0.5·1.5 = 1 either way.
    """
    online = (Linear(jnp.array([[1.0, -1.0]]), jnp.array([-2.0, 3.0])),)
    network = (Linear(jnp.array([[1.0, -1.0]]), jnp.array([-1.0, 0.5])),)
    batch = Transition(
        observation=jnp.full((3, 1), 7.0),
        action=jnp.zeros(3, jnp.int32),
        reward=jnp.full(3, 0.25),
        next_observation=jnp.array([[2.0], [-1.0], [2.0]]),
        terminated=jnp.array([False, False, True]),
    )
    for double, x in ((False, [0.75, 1.0, 0.25]), (True, [-0.5, 1.0, 0.25])):
        learner = agent(Dirac(), 0.0, hidden=(), gamma=0.5, double=double)
        drawn = target(learner, online, network, in_buffer(batch), noise.root(0), noise.root(1))
        assert drawn.tolist() == [x]


def test_double_reaches_the_update():
    """Algorithm 2's first update has φ⁻ = φ, and the same with double or without; later ones
    differ, for there φ has moved and φ⁻ has not."""
    losses = {}
    for double in (False, True):
        learner = agent(Dirac(), 0.0, lr=0.1, target_period=100, double=double)
        state = init(learner, FEATURES, ACTIONS, noise.root(20))
        losses[double] = []
        for t in range(1, 13):
            state = observe(learner, state, transition_at(t))
            state, loss = learn(learner, state, noise.fold(noise.root(21), t))
            losses[double].append(float(loss))
    assert losses[False][0] == losses[True][0]
    assert losses[False][-1] != losses[True][-1]


@pytest.mark.fast_cases("MeanField")
@pytest.mark.parametrize("family", [MeanField, Factorised])
def test_paired_gives_theta_minus_the_noise_of_theta(family):
    """φ⁻ = φ, s′ = s, one action, γ = 1, r = 0, σ = 0: with the noise of θ, Q_θ(s) − Q_θ⁻(s) is
    0, to rounding. Without, it is the difference of two draws."""
    for paired in (True, False):
        learner = agent(family(-1.0, paired=paired), 0.0, gamma=1.0)
        state = init(learner, FEATURES, 1, noise.root(22))
        for t in range(5):
            s = transition_at(t).observation
            row = Transition(s, jnp.array(0), jnp.array(0.0), s, jnp.array(False))
            state = observe(learner, state, row)._replace(counter=jnp.array(1))
        _, loss = learn(learner, state, noise.root(23))
        assert np.isfinite(loss)
        assert (float(loss) < 1e-12) is paired


def transition_at(t: int) -> Transition:
    rng = np.random.default_rng(t)
    return Transition(
        jnp.asarray(rng.normal(size=FEATURES), jnp.float32),
        jnp.asarray(rng.integers(ACTIONS), jnp.int32),
        jnp.asarray(rng.normal(), jnp.float32),
        jnp.asarray(rng.normal(size=FEATURES), jnp.float32),
        jnp.asarray(bool(rng.random() < 0.2)),
    )


@pytest.mark.parametrize(("period", "starts"), [(4, 1), (1, 1), (5, 8)])
def test_target_network_is_copied_as_algorithm_2_says(period, starts):
    """The reference is Algorithm 2 as printed. Each step starts it from rove's φ, so that two
    programs' roundings cannot add up; φ⁻ is the reference's own throughout."""
    learner = agent(target_period=period, learning_starts=starts, lr=0.01)
    state = init(learner, FEATURES, ACTIONS, noise.root(4))
    law = jax.jit(lambda learned: learner.posterior.law(Phi(learned)))
    adam = optax.adam(0.01)
    phi, optimiser = state.phi.learned, adam.init(state.phi.learned)
    phi_minus, copies = phi, 0
    for t in range(1, 15):  # t is Algorithm 2's counter, line 5
        key = noise.fold(noise.root(5), t)
        state = observe(learner, state, transition_at(t))
        assert int(state.counter) == t
        if t >= starts:
            batch = minibatch(state.replay, noise.fold(key, algorithm._MINIBATCH), N, 0.99)
            (_, (loss, _)), gradient = value_and_gradient(learner, phi, law(phi_minus), batch, key)
            update, optimiser = adam.update(gradient, optimiser)
            phi = optax.apply_updates(phi, update)
            used, expected = state.phi_target, law(phi_minus)
            state, reported = learn(learner, state, key)
            assert float(reported) == pytest.approx(float(loss), rel=1e-5)
            # q_φ⁻ as used in this step: means bit for bit, softplus to a rounding or two.
            for a, b in zip(*map(jax.tree.leaves, (used.mean, expected.mean)), strict=True):
                assert np.array_equal(a, b)
            for a, b in zip(*map(jax.tree.leaves, (used.std, expected.std)), strict=True):
                np.testing.assert_allclose(a, b, rtol=6e-7)
            for a, b in zip(*map(jax.tree.leaves, (state.phi.learned, phi)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
            phi = state.phi.learned
        if t % period == 0:
            phi_minus = phi
            copies += 1
    assert copies == 14 // period
    same = np.allclose(state.phi_target.mean[0].weight, state.phi.learned.mu[0].weight)
    assert same == (14 % period == 0)


def test_epsilon_falls_linearly_and_stays():
    learner = agent(epsilon=0.1, epsilon_start=0.9, epsilon_steps=80)

    @jax.jit
    def schedule(learner, counter):
        ends = learner.epsilon_start, learner.epsilon
        return control.epsilon_at(counter, *ends, learner.epsilon_steps)

    for counter, epsilon in ((0, 0.9), (20, 0.7), (40, 0.5), (79, 0.11), (80, 0.1), (10**6, 0.1)):
        assert float(schedule(learner, jnp.array(counter))) == pytest.approx(epsilon, rel=1e-6)
    for counter in (0, 1, 5000):
        constant = schedule(agent(epsilon=0.1), jnp.array(counter))
        assert float(constant) == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("counter", [0, 30])
def test_actions_follow_epsilon(counter):
    """A greedy action is taken with chance 1 − ε + ε/4, each other with ε/4: χ² at 1e-4."""
    learner = agent(Dirac(), epsilon=0.2, epsilon_start=0.8, epsilon_steps=30)
    state = init(learner, FEATURES, ACTIONS, noise.root(6))._replace(counter=jnp.array(counter))
    observation = jnp.array([0.3, -1.0, 0.7])
    keys = jax.vmap(lambda t: noise.fold(noise.root(7), t))(jnp.arange(40_000))
    actions = jax.jit(jax.vmap(learner.act, (None, None, 0)))(state, observation, keys)
    epsilon = {0: 0.8, 30: 0.2}[counter]
    chances = np.full(ACTIONS, epsilon / ACTIONS)
    chances[int(greedy(learner, state, observation))] += 1 - epsilon
    counts = np.bincount(actions, minlength=ACTIONS)
    assert stats.chisquare(counts, 40_000 * chances).pvalue > 1e-4


def test_act_is_greedy_on_one_draw_and_greedy_on_the_mean():
    """`act` with ε = 0 follows a draw of its own, or the episode's θ; `greedy` follows μ."""
    learner, held = agent(), agent(resample="episode")
    learned, _, batch = problem(8)
    phi = Phi(learned)
    state = init(learner, FEATURES, ACTIONS, noise.root(8))._replace(phi=phi)
    held_state = init(held, FEATURES, ACTIONS, noise.root(8))._replace(phi=phi)
    held_state = resample_theta(held, held_state, jnp.array(True), noise.root(9))
    theta = sample(learner.posterior, phi, noise.fold(noise.root(9), algorithm._RESAMPLE))
    # Where no episode begins, θ stays.
    stays = resample_theta(held, held_state, jnp.array(False), noise.root(10))
    for a, b in zip(jax.tree.leaves(stays.theta), jax.tree.leaves(held_state.theta), strict=True):
        assert np.array_equal(a, b)
    law = f64(learner.posterior.law(phi))
    none, units = jax.tree.map(np.zeros_like, law.variance), sum(SIZES[1:])
    taken = []
    for row in range(N):
        s = batch.observation[row]
        on_mean = np.argmax(np_forward(law.mean, none, f64(s), np.zeros(units)))
        assert int(greedy(learner, state, s)) == on_mean == int(greedy(held, held_state, s))
        held_action = int(act(held, held_state, s, noise.fold(noise.root(11), row)))
        assert held_action == np.argmax(np_forward(f64(theta), none, f64(s), np.zeros(units)))
        for seed in range(3):
            key = noise.root(seed)
            epsilons = normal(noise.fold(key, algorithm._RESAMPLE), (units,))
            on_draw = np.argmax(np_forward(*law, f64(s), np.asarray(epsilons, np.float64)))
            assert int(act(learner, state, s, key)) == on_draw
            taken.append(on_draw == on_mean)
    assert 0 < sum(taken) < len(taken)  # so that the two are told apart


def test_a_held_theta_is_drawn_anew_exactly_every_so_many_steps():
    """After steps 3, 6, …, whatever the episodes do: then from q_φ as it is, with the step's key.
    Until the first of them it is a draw made at the start."""
    learner = agent(resample=3, lr=0.01)
    state = init(learner, FEATURES, ACTIONS, noise.root(14))
    for a, b in zip(*map(jax.tree.leaves, (state.theta, state.phi.learned.mu)), strict=True):
        assert not np.any(np.asarray(a) == np.asarray(b))
    for t in range(1, 14):
        key, before = noise.fold(noise.root(15), t), state.theta
        state = observe(learner, state, transition_at(t))
        state, _ = learn(learner, state, key)
        state = resample_theta(learner, state, jnp.array(t % 4 == 0), key)
        drawn = sample(learner.posterior, state.phi, noise.fold(key, algorithm._RESAMPLE))
        theta = drawn if t % 3 == 0 else before
        for a, b in zip(*map(jax.tree.leaves, (state.theta, theta)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
        for a, b in zip(*map(jax.tree.leaves, (state.theta, before)), strict=True):
            assert np.array_equal(a, b) is (t % 3 != 0)
        # And it is this θ that is acted on.
        s = transition_at(t).observation
        q = learner.means(
            learner.posterior.apply(learner.posterior.law(state.phi), theta, Input(s))
        )
        assert int(act(learner, state, s, noise.root(t))) == int(jnp.argmax(q))


def test_every_1_step_is_like_a_step_in_that_no_theta_is_used_twice():
    learner = agent(resample=1)
    state, seen = init(learner, FEATURES, ACTIONS, noise.root(16)), []
    for t in range(1, 6):
        seen.append(float(state.theta[0].weight[0, 0]))
        state = observe(learner, state, transition_at(t))
        state = resample_theta(learner, state, jnp.array(False), noise.fold(noise.root(17), t))
    assert len(set(seen)) == 5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resample", 0),
        ("resample", -3),
        ("resample", "never"),
        ("resample", 2.0),
        ("resample", True),
        ("double", 1),
        ("double", "yes"),
    ],
)
def test_bad_choices_are_refused_by_name(field, value, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError) as caught:
        agent(**{field: value})
    assert caught.value.field == field
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("posterior", [MeanField(-1.0), Ensemble(size=3, prior=1.0)])
def test_learn_leaves_what_is_held_alone(posterior):
    """By default nothing is refitted: what is learned moves, what is held keeps its bits."""
    learner = agent(posterior, lr=0.01)
    state = init(learner, FEATURES, ACTIONS, noise.root(18))
    held = jnp.array([1.5, -2.0]) if isinstance(state.phi.fitted, tuple) else state.phi.fitted
    before = state._replace(phi=state.phi._replace(fitted=held))
    state = before
    for t in range(1, 6):
        state = observe(learner, state, transition_at(t))
        state, _ = learn(learner, state, noise.fold(noise.root(19), t))
    assert jax.tree.leaves(held)
    unlearned = [(phi.fitted, phi.priors) for phi in (state.phi, before.phi)]
    for a, b in zip(*map(jax.tree.leaves, unlearned), strict=True):
        assert np.array_equal(a, b)
    for a, b in zip(*map(jax.tree.leaves, (state.phi.learned, before.phi.learned)), strict=True):
        assert not np.array_equal(a, b)


def a_few_steps(seed: int):
    learner = agent(lr=0.01)
    key = noise.root(seed)
    state = init(learner, FEATURES, ACTIONS, noise.fold(key, 0))
    actions = []
    for t in range(1, 13):
        k = noise.fold(key, 1, t)
        actions.append(int(act(learner, state, transition_at(t).observation, k)))
        state = observe(learner, state, transition_at(t))
        state, _ = learn(learner, state, k)
    return jax.tree.leaves(state.phi), actions


def test_two_seeds_differ_and_one_agrees_with_itself():
    (a, actions), (again, same_actions), (b, other_actions) = map(a_few_steps, (0, 0, 1))
    assert actions == same_actions
    assert actions != other_actions
    for x, y, z in zip(a, again, b, strict=True):
        assert np.array_equal(x, y)
        assert not np.array_equal(x, z)


def test_numbers_do_not_retrace_and_do_take_effect():
    traces = 0

    @jax.jit
    def program(learner: Agent, state, key):
        nonlocal traces
        traces += 1
        state = learner.observe(state, transition_at(0))
        state, loss = learner.learn(state, key)
        schedule = learner.epsilon_start, learner.epsilon, learner.epsilon_steps
        return loss, control.epsilon_at(state.counter, *schedule), state.phi

    def run(posterior=None, sigma=0.5, **settings):
        learner = agent(posterior, sigma, **{"hidden": (), **settings})  # quick to compile
        state = init(learner, FEATURES, ACTIONS, noise.root(12))
        loss, epsilon, phi = program(learner, state, noise.root(13))
        return float(loss), float(epsilon), float(phi.learned.mu[-1].bias.sum())

    base = run()
    loss, epsilon, weight = range(3)
    for settings, changed in (
        ({"posterior": MeanField(-3.0)}, loss),
        ({"sigma": 0.01}, loss),
        ({"gamma": 0.5}, loss),
        ({"lr": 0.02}, weight),
        ({"epsilon": 0.3}, epsilon),
        ({"epsilon_start": 0.7, "epsilon_steps": 50}, epsilon),
    ):
        assert run(**settings)[changed] != base[changed], settings
    run(target_period=7, learning_starts=3)
    assert traces == 1
    run(batch_size=N + 1)  # a shape does: the count counts
    assert traces == 2


def linear_agent(**changes):
    """A mean-field posterior over a linear value: Q's law is known."""
    returns = Gaussian(1e-3, draw="mean")
    return Agent(returns, MeanField(-1.0), hidden=(), batch_size=2, buffer_size=4, **changes)


def alike(n):
    """The same transition, n times."""
    x = jnp.tile(jnp.array([1.0, 2.0]), (n, 1))
    action, zeros = jnp.zeros(n, jnp.int32), jnp.zeros(n)
    return Transition(x, action, zeros, x, zeros.astype(bool))


def test_an_exact_fit_takes_its_targets_from_one_theta():
    """Alike transitions have one target there, and targets of their own in a minibatch."""
    agent = linear_agent(gamma=0.5)
    law = agent.posterior.law(agent.init(2, 3, noise.root(0)).phi)
    batch = in_buffer(alike(5))
    one = np.asarray(targets_of_one(agent, law, law, batch, noise.root(1), 0))
    own = np.asarray(targets(agent, law, law, batch, noise.root(1), noise.root(2)))[0]
    assert len(set(one.tolist())) == 1
    assert len(set(own.tolist())) == 5
    theta = agent.posterior.sample(law, noise.fold(noise.root(1), 0))
    q = agent.posterior.apply(law, theta, Input(jnp.array([1.0, 2.0])))
    np.testing.assert_allclose(one, 0.5 * np.max(q), rtol=1e-6)


@pytest.mark.parametrize(
    ("returns", "posterior", "field"),
    [("gaussian", rove.Dirac(), "returns"), (rove.Gaussian(0.1), "mean_field", "posterior")],
)
def test_what_is_no_family_is_refused_by_name(returns, posterior, field, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=f"{field} must be a rove"):
        Agent(returns, posterior)
