"""Actor–critics against hand-written updates, finite differences, and Riccati's equation."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import linalg, stats

import rove
from helpers import draw
from rove.agents import grid
from rove.core import actor_critic
from rove.core.actor_critic import ActorCritic
from rove.core.policy import policy, soft_update
from rove.environments.base import Step
from rove.errors import ConfigError, LaneError
from rove.parts import noise, replay
from rove.parts.networks import Linear
from rove.parts.replay import Transition
from rove.posteriors import Conjugate, Dirac, Ensemble, LastLayer, MeanField
from rove.posteriors.mean_field import MeanFieldLearned
from rove.returns import Categorical, Gaussian, Quantile
from rove.runs.configure import configure
from rove.training import outcomes
from rove.training.stepping import complete_step

FEATURES, K, HIDDEN, N = 3, 2, (6, 5), 8
SMALL = {"hidden": HIDDEN, "batch_size": N, "buffer_size": 64, "learning_starts": 8}

init = jax.jit(ActorCritic.init, static_argnums=(1, 2))
observe = jax.jit(ActorCritic.observe)
learn = jax.jit(ActorCritic.learn)
act = jax.jit(ActorCritic.act)
resample_theta = jax.jit(ActorCritic.resample_theta)


@jax.jit
def target(learner, laws, psi, batch, k_theta, key, priors=None):
    """Targets with a θ⁻ for each row; by default of critics without prior functions."""
    priors = ((),) * len(laws) if priors is None else priors
    theta_minus = draw(learner.posterior, laws[0], batch.reward.shape[0], k_theta)
    return learner.lookahead(priors, laws, psi, theta_minus, batch, key)


cost = jax.jit(ActorCritic.cost)
cost_gradient = jax.jit(jax.grad(ActorCritic.cost, argnums=1))


def agent(posterior=None, sigma: float = 0.0, **settings) -> ActorCritic:
    return ActorCritic(Gaussian(sigma), posterior or Dirac(), **{**SMALL, **settings})


def filled(learner: ActorCritic, seed: int = 0, rows: int = 20):
    """A state whose policy is not near 0, whose targets differ, and whose buffer holds some."""
    rng = np.random.default_rng(seed)
    state = init(learner, FEATURES, K, noise.root(seed))
    moved = lambda x: x + jnp.asarray(0.3 * rng.normal(size=x.shape), x.dtype)  # noqa: E731
    psi, psi_target = (jax.tree.map(moved, state.actor.psi) for _ in range(2))
    state = state._replace(actor=state.actor._replace(psi=psi, psi_target=psi_target))
    for i in range(rows):
        state = observe(
            learner,
            state,
            Transition(
                observation=jnp.asarray(rng.normal(size=FEATURES), jnp.float32),
                action=jnp.asarray(rng.uniform(-1, 1, size=K), jnp.float32),
                reward=jnp.float32(rng.normal()),
                next_observation=jnp.asarray(rng.normal(size=FEATURES), jnp.float32),
                terminated=jnp.asarray(i % 3 == 0),
            ),
        )
    return state


def minibatch(learner, state, key):
    k = noise.fold(key, actor_critic._MINIBATCH)
    return jax.jit(replay.sample, static_argnums=2)(state.replay, k, learner.batch_size, 0.99)


# The policy's gradient


@pytest.mark.fast_cases("MeanField")
@pytest.mark.parametrize(
    "posterior", [Dirac(), MeanField(-1.0), Ensemble(3, prior=1.0)], ids=lambda p: type(p).__name__
)
def test_the_policys_gradient_is_that_of_finite_differences_through_the_draw(posterior):
    """Along random directions of ψ, in float64, which steps past few kinks of the ReLUs."""
    learner, rng = agent(posterior, 0.1), np.random.default_rng(1)
    state = filled(learner)
    law, priors = learner.laws(state.phi)[0], state.phi[0].priors
    theta = posterior.sample(law, noise.root(3))
    with jax.enable_x64(True):

        def wide(x):
            return jnp.asarray(x, jnp.float64) if jnp.issubdtype(x.dtype, jnp.inexact) else x

        psi, *critic = jax.tree.map(wide, (state.actor.psi, law, priors, theta))
        states, h = jnp.asarray(rng.normal(size=(N, FEATURES))), 1e-6
        gradient = cost_gradient(learner, psi, *critic, states)
        assert any(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(gradient))
        for _ in range(5):
            way = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), psi)
            there, back = (jax.tree.map(lambda p, w, h=h: p + h * w, psi, way) for h in (h, -h))
            rise = cost(learner, there, *critic, states) - cost(learner, back, *critic, states)
            pairs = zip(jax.tree.leaves(gradient), jax.tree.leaves(way), strict=True)
            slope = sum(jnp.vdot(g, w) for g, w in pairs)
            np.testing.assert_allclose(rise / (2 * h), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_each_critic_has_its_own_prior_functions_in_targets_values_and_the_policys_climb():
    """Where β makes them nearly all there is: by NumPy, for every member of the ensemble."""
    beta, k = 1e4, 3
    learner = agent(Ensemble(k, prior=beta), critics=2, gamma=0.9)
    state, rng = filled(learner), np.random.default_rng(5)
    states = jnp.asarray(rng.normal(size=(N, FEATURES)), jnp.float32)
    actions = np.asarray(policy(state.actor.psi, states))
    x = np.concatenate([states, actions], axis=1)

    def np_priors(critic, x):
        """[members, rows]."""
        h = np.repeat(np.asarray(x, np.float64)[None], k, axis=0)
        *body, last = [[np.asarray(w, np.float64) for w in layer] for layer in critic]
        for weight, bias in body:
            h = np.maximum(h @ weight + bias[:, None], 0.0)
        return beta * (h @ last[0] + last[1][:, None])[..., 0]

    laws, priors = learner.laws(state.phi), tuple(phi.priors for phi in state.phi)
    first, second = (np_priors(critic, x) for critic in priors)
    assert np.min(np.abs(first - second).max(axis=1)) > 100.0
    for member in range(k):
        found = learner.values(laws[0], priors[0], jnp.int32(member), jnp.asarray(x))
        np.testing.assert_allclose(found, first[member], rtol=1e-2, atol=20.0)
        climbed = cost(learner, state.actor.psi, laws[0], priors[0], jnp.int32(member), states)
        assert float(climbed) == pytest.approx(-first[member].mean(), rel=1e-2, abs=20.0)
    rows = Transition(states, jnp.asarray(actions), jnp.zeros(N), states, jnp.zeros(N, bool))
    keys = [noise.root(i) for i in range(2)]
    targets = np.asarray(target(learner, laws, state.actor.psi, rows, *keys, priors))
    exact = 0.9 * np.minimum(first, second)
    order = [int(np.abs(exact - row).sum(axis=1).argmin()) for row in targets]
    assert sorted(order) == list(range(k))
    np.testing.assert_allclose(targets, exact[order], rtol=1e-2, atol=20.0)
    told = learner.beliefs(state, states, noise.root(4))
    np.testing.assert_allclose(told.outputs[:, 0], first.mean(axis=0), rtol=1e-2, atol=20.0)
    key = noise.root(5)
    _, loss = learn(learner, state, key)
    batch = minibatch(learner, state, key)
    k_theta = noise.fold(key, actor_critic._THETA)
    actor = state.actor
    laws_minus = learner.laws(state.phi_target)
    x = target(learner, laws_minus, actor.psi_target, batch, k_theta, *keys[1:], priors)
    pairs = np.concatenate([batch.observation, batch.action], axis=1)
    errors = [
        np.roll(np_priors(critic, pairs), int(noise.integers(k_theta, (), k)), 0) - x
        for critic in priors
    ]
    assert float(loss) == pytest.approx(np.mean(np.square(errors)) / 2, rel=2e-2)


def test_the_policy_climbs_a_new_sample_of_the_critic_at_every_update():
    """Section 4.4: "At each update we sample a parameter θ̂ ~ q_φ(θ) and compute the policy gradient
    through the sampled critic". Without hidden layers and with all means 0, the critic is
    Q_θ̂(s, a) = … + b·a with b ~ N(0, 0.5²) for each action, and the gradient by ψ, by hand, is
    −b·mean((1 − π²)·(s, 1)). So each update shows its b, the same for all of its minibatch; the
    mean critic would have b = 0 in all of them."""
    std, updates = 0.5, 1000
    learner = agent(MeanField(np.log(np.expm1(std))), hidden=(), critic_lr=1e-9)
    state = filled(learner)
    zeros = jax.tree.map(jnp.zeros_like, state.phi[0].learned.mu)
    learned = state.phi[0].learned._replace(mu=zeros)
    state = state._replace(phi=(state.phi[0]._replace(learned=learned),))

    @jax.jit
    @jax.vmap
    def updated(key):
        """The policy's first moment, of which the gradient is ten times, and the states."""
        (layer,) = learner.learn(state, key)[0].optimiser[1].mu
        return layer, minibatch(learner, state, key).observation

    layer, states = jax.tree.map(
        lambda x: np.asarray(x, np.float64), updated(noise.folds(noise.root(7), updates))
    )
    found = 10 * np.concatenate([layer.weight, layer.bias[:, None]], axis=1)  # [update, s, a]
    slope = 1 - np.asarray(policy(state.actor.psi, jnp.asarray(states))) ** 2
    inputs = np.concatenate([states, np.ones((updates, N, 1))], axis=2)
    by_unit = np.einsum("uns,una->usa", inputs, slope) / N
    b = -np.sum(found * by_unit, axis=1) / np.sum(by_unit**2, axis=1)
    np.testing.assert_allclose(found, -b[:, None] * by_unit, rtol=1e-3, atol=1e-5)
    assert stats.kstest(b.ravel() / std, "norm").pvalue > 1e-4
    correlations = np.corrcoef(np.concatenate([b[1:], b[:-1]], axis=1).T)
    assert np.abs(correlations - np.eye(2 * K)).max() < 5 / np.sqrt(updates)


@pytest.mark.slow
def test_another_draw_of_the_critic_gives_another_gradient_and_dirac_has_one():
    state = {p: filled(agent(p, 0.1)) for p in (Dirac(), MeanField(-1.0))}
    for posterior, apart in zip(state, (False, True), strict=True):
        learner = agent(posterior, 0.1)
        after = [learn(learner, state[posterior], noise.root(5))[0].actor.psi]
        held = agent(posterior, 0.1, resample="episode")
        law = learner.laws(learn(learner, state[posterior], noise.root(5))[0].phi)[0]
        other = state[posterior]._replace(theta=posterior.sample(law, noise.root(6)))
        after.append(learn(held, other, noise.root(5))[0].actor.psi)
        same = [np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, after), strict=True)]
        assert all(same) != apart


# One update of DDPG, written by hand with optax and nothing of rove's but its parameters


def textbook(state, batch, gamma, tau, actor_lr, critic_lr):
    """Lillicrap et al. 2016, Algorithm 1: the critic, then the policy, then both targets."""
    ((theta, *_),), ((theta_target, *_),) = state.phi, state.phi_target
    psi, psi_target = state.actor.psi, state.actor.psi_target

    def mlp(layers, x):
        for weight, bias in layers[:-1]:
            x = jnp.maximum(x @ weight + bias, 0.0)
        return x @ layers[-1][0] + layers[-1][1]

    mu = lambda psi, s: jnp.tanh(mlp(psi, s))  # noqa: E731
    q = lambda theta, s, a: mlp(theta, jnp.concatenate([s, a], 1))[:, 0]  # noqa: E731
    s, a, s_next = batch.observation, batch.action, batch.next_observation
    y = q(theta_target, s_next, mu(psi_target, s_next))
    y = batch.reward + gamma * jnp.where(batch.terminated, 0.0, y)

    def step(loss, parameters, lr):
        optimiser = optax.adam(lr)
        updates, _ = optimiser.update(jax.grad(loss)(parameters), optimiser.init(parameters))
        return optax.apply_updates(parameters, updates)

    theta = step(lambda t: jnp.mean((q(t, s, a) - y) ** 2) / 2, theta, critic_lr)
    psi = step(lambda p: -jnp.mean(q(theta, s, mu(p, s))), psi, actor_lr)
    mixed = lambda old, new: jax.tree.map(lambda o, n: (1 - tau) * o + tau * n, old, new)  # noqa: E731
    return theta, mixed(theta_target, theta), psi, mixed(psi_target, psi)


def test_with_one_theta_and_no_sigma_an_update_is_ddpgs():
    settings = {"gamma": 0.9, "tau": 0.1, "actor_lr": 0.02, "critic_lr": 0.03}
    learner, key = agent(**settings), noise.root(9)
    state = filled(learner)
    after, loss = learn(learner, state, key)
    batch = minibatch(learner, state, key)
    assert 0 < np.sum(batch.terminated) < N
    critics = after.phi[0].learned, after.phi_target[0].learned
    found = (*critics, after.actor.psi, after.actor.psi_target)
    for ours, theirs in zip(found, textbook(state, batch, **settings), strict=True):
        for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-6)
    assert loss > 0


# Targets by hand


def constant(value: float, slope: float = 0.0) -> tuple[Linear, ...]:
    """A critic without hidden layers: value + slope·a₁ on pairs of one state and one action."""
    return (Linear(jnp.array([[0.0], [slope]]), jnp.array([value])),)


def one_row(reward: float, terminated: bool) -> Transition:
    """s = 0.3, a = 0.1 and s′ = 0.5 of one feature, as stored."""
    return Transition(
        jnp.array([[0.3]]), jnp.array([[0.1]]), jnp.array([reward]),
        jnp.array([[0.5]]), jnp.array([terminated]),
    )  # fmt: skip


PSI = (Linear(jnp.array([[2.0]]), jnp.array([-0.2])),)
"""π(0.5) = tanh(0.8)."""


def test_a_target_takes_the_target_policys_action_and_bootstraps_unless_terminated():
    learner, keys = agent(hidden=(), gamma=0.9), [noise.root(i) for i in range(2)]
    laws = (constant(1.0, slope=3.0),)
    x = target(learner, laws, PSI, one_row(0.25, False), *keys)
    np.testing.assert_allclose(x, [[0.25 + 0.9 * (1.0 + 3.0 * np.tanh(0.8))]], rtol=1e-6)
    x = target(learner, laws, PSI, one_row(0.25, True), *keys)
    np.testing.assert_allclose(x, [[0.25]], rtol=1e-6)


def test_a_target_takes_the_lesser_of_two_critics():
    learner, keys = agent(hidden=(), gamma=0.9, critics=2), [noise.root(i) for i in range(2)]
    high, low = constant(1.0), constant(-2.0, slope=0.5)
    for laws in ((high, low), (low, high)):
        x = target(learner, laws, PSI, one_row(0.0, False), *keys)
        np.testing.assert_allclose(x, [[0.9 * (-2.0 + 0.5 * np.tanh(0.8))]], rtol=1e-6)


def test_the_lesser_of_two_laws_is_the_one_of_lesser_mean():
    """Quantiles of two critics: not the lesser of each, but the law whose mean is less."""
    learner = ActorCritic(
        Quantile(2), Dirac(), **{**SMALL, "hidden": (), "gamma": 1.0, "critics": 2}
    )
    wide, narrow = ((Linear(jnp.zeros((2, 2)), jnp.array(z)),) for z in ([-9.0, 3.0], [-1.0, 0.0]))
    x = target(learner, (narrow, wide), PSI, one_row(1.0, False), *map(noise.root, range(2)))
    np.testing.assert_allclose(x, [[[-8.0, 4.0]]])


@pytest.mark.slow
def test_two_critics_that_are_alike_stay_alike():
    """All use the same random numbers in an update, for an exact fit too."""
    learner = agent(LastLayer(period=1), sigma=0.3, critics=2)
    state = filled(learner)
    twice = lambda pair: (pair[0], pair[0])  # noqa: E731
    phi = twice(state.phi)
    moments = jax.tree.map(jnp.zeros_like, state.optimiser)
    state = state._replace(phi=phi, phi_target=twice(state.phi_target), optimiser=moments)
    state, _ = learn(learner, state, noise.root(3))
    for a, b in zip(*(jax.tree.leaves(critic) for critic in state.phi), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(state.phi[0].fitted.mean, phi[0].fitted.mean)


def test_smoothing_is_clipped_noise_within_the_bounds_of_actions():
    """Q = a, so a target shows a′: π(s′) + clip(N(0, std), ±c), within ±1, by hand."""
    learner = agent(hidden=(), gamma=1.0, smoothing_std=0.4, smoothing_clip=0.5)
    rows = jax.tree.map(lambda x: jnp.tile(x, (4000, *[1] * (x.ndim - 1))), one_row(0.0, False))
    keys = [noise.root(i) for i in range(2)]
    x = np.asarray(target(learner, (constant(0.0, 1.0),), PSI, rows, *keys))[0]
    drawn = noise.normal(noise.fold(keys[1], actor_critic._SMOOTHING), (4000, 1))
    blur = np.clip(0.4 * np.asarray(drawn)[:, 0], -0.5, 0.5)
    np.testing.assert_allclose(x, np.clip(np.tanh(0.8) + blur, -1, 1), rtol=1e-5)
    assert x.max() == 1.0
    np.testing.assert_allclose(x.min(), np.tanh(0.8) - 0.5, rtol=1e-5)
    plain = target(agent(hidden=(), gamma=1.0), (constant(0.0, 1.0),), PSI, rows, *keys)
    np.testing.assert_allclose(plain, np.tanh(0.8), rtol=1e-6)


def test_a_target_of_ge_has_the_returns_noise_and_a_theta_of_its_own():
    learner = agent(MeanField(-2.0), 0.5, hidden=(), gamma=0.9)
    rows = jax.tree.map(lambda x: jnp.tile(x, (20_000, *[1] * (x.ndim - 1))), one_row(0.0, False))
    variance = jax.tree.map(lambda w: jnp.full_like(w, 0.04), constant(0.0))
    laws = (MeanField(-2.0).law(rove.posteriors.Phi((constant(1.0), constant(0.0)))),)
    laws = (laws[0]._replace(variance=variance),)
    x = np.asarray(target(learner, laws, PSI, rows, *map(noise.root, range(2))))
    a = np.tanh(0.8)
    spread = 0.9 * np.sqrt(0.04 * (1 + 0.5**2 + a**2) + 0.5**2)
    assert abs(x.mean() - 0.9) < 5 * spread / np.sqrt(20_000)
    np.testing.assert_allclose(x.std(), spread, rtol=0.03)


# What follows an update


def test_targets_follow_by_a_part_and_keys_as_they_are():
    old = {"w": jnp.array([1.0, 2.0]), "key": jnp.array([1, 2], jnp.uint32)}
    new = {"w": jnp.array([3.0, -2.0]), "key": jnp.array([7, 8], jnp.uint32)}
    moved = soft_update(old, new, jnp.float32(0.25))
    np.testing.assert_allclose(moved["w"], [1.5, 1.0])
    np.testing.assert_array_equal(moved["key"], [7, 8])
    for tau, same in ((0.0, old), (1.0, new)):
        np.testing.assert_array_equal(soft_update(old, new, jnp.float32(tau))["w"], same["w"])


def test_what_moves_by_tau_is_phi_itself():
    """μ_θ and ρ_θ, by hand: half-way from ρ = −1 (σ_θ = 0.313) to the ρ of three times this σ_θ is
    ρ = −0.278, where σ_θ is 0.564. The mean of the σ_θ would be 0.627, and that of the variances
    0.700 squared."""
    learner = agent(MeanField(-1.0), 0.1, tau=0.5, critic_lr=1e-9)
    state, rho = filled(learner), np.log(np.exp(3 * np.log(1 + np.exp(-1.0))) - 1)
    mu = state.phi[0].learned.mu
    at = lambda value: jax.tree.map(lambda x: jnp.full_like(x, value), mu)  # noqa: E731
    phi, minus = (MeanFieldLearned(at(m), at(r)) for m, r in ((3.0, rho), (1.0, -1.0)))
    critics = (
        (state.phi[0]._replace(learned=phi),),
        (state.phi_target[0]._replace(learned=minus),),
    )
    state = state._replace(phi=critics[0], phi_target=critics[1])
    after = learn(learner, state, noise.root(4))[0].phi_target
    for leaf in jax.tree.leaves(after[0].learned.mu):
        np.testing.assert_allclose(leaf, 2.0, rtol=1e-6)
    for leaf in jax.tree.leaves(learner.laws(after)[0].std):
        np.testing.assert_allclose(leaf, np.log(1 + np.exp((rho - 1) / 2)), rtol=1e-5)
        np.testing.assert_allclose(leaf, 0.564, atol=5e-4)


def test_the_policy_and_the_targets_wait_for_their_periods():
    learner = agent(policy_period=2, target_period=3, tau=0.5)
    state = filled(learner)
    for counter in (12, 13, 14, 15):
        after, _ = learn(learner, state._replace(counter=jnp.int32(counter)), noise.root(2))

        def moved(old, new):
            pairs = zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True)
            return any(not np.array_equal(*pair) for pair in pairs)

        assert moved(state.phi, after.phi)
        assert moved(state.actor.psi, after.actor.psi) == (counter % 2 == 0)
        assert moved(state.optimiser[1], after.optimiser[1]) == (counter % 2 == 0)
        assert moved(state.phi_target, after.phi_target) == (counter % 3 == 0)
        assert moved(state.actor.psi_target, after.actor.psi_target) == (counter % 3 == 0)


# Acting


def noises(learner: ActorCritic, steps: int, ends=lambda t: False) -> np.ndarray:
    state = init(learner, FEATURES, K, noise.root(0))
    begins = jnp.array([ends(t) for t in range(steps)])

    def step(state, at):
        t, begins = at
        state = learner.resample_theta(state, begins, noise.fold(noise.root(1), t))
        return state, state.random

    return np.asarray(jax.lax.scan(step, state, (jnp.arange(steps), begins))[1], np.float64)


@pytest.mark.parametrize("kappa", [0.15, 1.0])
def test_noise_on_actions_has_the_spread_and_memory_of_its_process(kappa):
    """Ornstein–Uhlenbeck: std σ/√(1 − (1−κ)²), correlation (1−κ)^lag; κ = 1 is independent."""
    steps, memory = 100_000, 1.0 - kappa
    x = noises(agent(noise_std=0.2, noise_reversion=kappa), steps)[100:]
    np.testing.assert_allclose(x.std(axis=0), 0.2 / np.sqrt(1.0 - memory**2), rtol=0.04)
    np.testing.assert_allclose(x.mean(axis=0), 0.0, atol=0.03)
    for lag in (1, 5, 20):
        for j in range(K):
            found = np.corrcoef(x[lag:, j], x[:-lag, j])[0, 1]
            np.testing.assert_allclose(found, memory**lag, atol=0.04)
    assert abs(np.corrcoef(x.T)[0, 1]) < 0.06


def test_noise_starts_anew_with_an_episode():
    """What is left after a start is one step's noise, whatever came before."""
    x = noises(agent(noise_std=0.2, noise_reversion=0.01), 40_000, lambda t: t % 100 == 0)
    first, late = x[::100].std(), x[99::100].std()
    np.testing.assert_allclose(first, 0.2, rtol=0.12)
    assert late > 4 * first


def test_actions_are_the_policys_and_the_noise_within_bounds_and_at_first_any():
    learner = agent(noise_std=0.2, random_steps=5)
    state = filled(learner, rows=5)
    s, psi = jnp.array([0.3, -1.0, 0.2]), state.actor.psi
    for x in (jnp.array([0.1, -0.2]), jnp.array([9.0, -9.0])):
        noisy = state._replace(random=x)
        expected = np.clip(np.asarray(policy(psi, s) + x), -1, 1)
        np.testing.assert_allclose(act(learner, noisy, s, noise.root(0)), expected, rtol=1e-6)
    np.testing.assert_allclose(learner.greedy(state, s), policy(psi, s))
    early = state._replace(counter=jnp.int32(4))
    any_action = jax.jit(jax.vmap(lambda key: learner.act(early, s, key)))
    a = np.asarray(any_action(noise.folds(noise.root(0), 5000)))
    assert np.abs(a).max() <= 1.0
    np.testing.assert_allclose(a.std(), 1 / np.sqrt(3), rtol=0.03)


def test_theta_is_held_as_long_as_it_is_told():
    for resample, change in (("episode", [5]), (3, [3, 6])):
        learner = agent(MeanField(-1.0), 0.1, resample=resample)
        state, changed = init(learner, FEATURES, K, noise.root(0)), []
        for t in range(1, 8):
            state = state._replace(counter=jnp.int32(t))
            after = resample_theta(learner, state, jnp.asarray(t == 5), noise.root(t))
            if not np.array_equal(after.theta[0].weight, state.theta[0].weight):
                changed.append(t)
            state = after
        assert changed == change
    assert init(agent(MeanField(-1.0), 0.1), FEATURES, K, noise.root(0)).theta == ()


# Compositions


PAIRS = [
    *((r, p, 1) for r in grid.RETURNS for p in ("Dirac", "MeanField")),
    *(("Gaussian", p, 1) for p in grid.POSTERIORS if p not in ("Dirac", "MeanField")),
    ("Quantile", "LastLayer", 1),
    ("Quantile", "Ensemble", 2),
    ("Gaussian", "LastLayer", 2),
]
COMMON = [("Categorical", "Dirac", 1), ("Gaussian", "MeanField", 1), ("Gaussian", "Conjugate", 1)]
"""Those of every `make test`."""


@pytest.mark.parametrize(
    ("returns", "posterior", "critics"),
    [pytest.param(*pair, marks=() if pair in COMMON else pytest.mark.slow) for pair in PAIRS],
)
def test_every_family_makes_a_critic(returns, posterior, critics):
    """An update is finite, moves φ and ψ, and leaves the buffer; what cannot work is refused."""
    settings = {"hidden": (8,), "batch_size": 8, "buffer_size": 64, "critics": critics}
    parts = grid.RETURNS[returns], grid.POSTERIORS[posterior]
    if posterior in ("Conjugate", "Beta") or (posterior == "LastLayer" and returns != "Gaussian"):
        with pytest.raises(ConfigError):
            ActorCritic(*parts, **settings)
        return
    learner = ActorCritic(*parts, **settings)
    state = filled(learner)
    after, loss = learn(learner, state, noise.root(1))
    assert np.isfinite(loss)
    for leaf in jax.tree.leaves(after):
        assert np.all(np.isfinite(np.asarray(leaf, np.float64)))
    for part in ("phi", "actor"):
        pairs = zip(*(jax.tree.leaves(getattr(s, part)) for s in (state, after)), strict=True)
        assert any(not np.array_equal(*pair) for pair in pairs)
    beliefs = jax.jit(ActorCritic.beliefs)(learner, state, jnp.ones((2, FEATURES)), noise.root(0))
    assert beliefs.values.shape[1:] == beliefs.stds.shape == (2, 1)
    assert len(learner.densities(beliefs.outputs[0])) == 1


@pytest.mark.slow
def test_an_update_of_a_critic_lowers_its_objective():
    """Many updates on one buffer: every return family fits the targets of a policy that stays."""
    for returns in (Gaussian(0.01), Categorical(low=-8.0, high=8.0), Quantile(8)):
        learner = ActorCritic(returns, Dirac(), **{**SMALL, "hidden": (32,)}, policy_period=10**6)
        state, losses = filled(learner), []
        for t in range(400):
            state, loss = learn(learner, state, noise.root(t))
            losses.append(float(loss))
        assert np.mean(losses[-50:]) < 0.8 * np.mean(losses[:10]), returns


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tau", 0.0), ("tau", 1.5), ("critics", 0), ("noise_std", -1.0), ("noise_reversion", 0.0),
        ("noise_reversion", 1.1), ("policy_period", 0), ("target_period", 0), ("gamma", 2.0),
        ("actor_lr", 0.0), ("critic_lr", float("nan")), ("smoothing_std", -0.1),
        ("resample", 0), ("batch_size", 65), ("random_steps", -1), ("hidden", (0,)),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_by_name(field, value):
    with pytest.raises(ConfigError) as caught:
        agent(**{field: value})
    assert caught.value.field == field


def test_a_reversion_of_independent_noise_is_refused():
    assert float(rove.TD3().compose().noise_reversion) == 1.0
    assert float(rove.TD3(noise="ou", noise_reversion=0.3).compose().noise_reversion) == 0.3
    with pytest.raises(ConfigError, match="no effect with noise='gaussian'"):
        rove.TD3(noise_reversion=0.3).compose()


@pytest.mark.parametrize("setting", [{"rho": -3.0}, {"prior_std": None}])
def test_td3_refuses_what_a_critic_of_one_theta_has_not(setting):
    rove.TD3(critic="mean_field", **setting).compose()
    with pytest.raises(ConfigError, match="no effect with critic='dirac'"):
        rove.TD3(**setting).compose()


def test_a_table_is_refused_as_a_critic():
    with pytest.raises(
        ConfigError, match=r"Conjugate cannot be .* requires one-hot observations.* MeanField"
    ):
        ActorCritic(Gaussian(1.0), Conjugate(), hidden=())


# Named agents, on a task that compiles


def test_agents_and_environments_that_do_not_fit_are_refused_with_those_that_do():
    with pytest.raises(
        ConfigError, match=r"has continuous ones.*ddpg, ddpg_noisynet, ddpg_ge, td3"
    ):
        rove.train("ge", "linear-quadratic-1", steps=10)
    with pytest.raises(ConfigError, match=r"has discrete ones.*auto, dqn.*bayesian_q_learning"):
        rove.train("ddpg", "chain-5", steps=10)
    with pytest.raises(ConfigError, match="has discrete ones"):
        rove.train(agent(), "chain-5", steps=10)


@pytest.mark.parametrize(
    "name",
    [
        "ddpg_ge",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("ddpg", "ddpg_noisynet", "td3")),
    ],
)
def test_a_named_agent_trains_and_a_run_is_read_back(name, tmp_path):
    small = {"hidden": (8,), "batch_size": 8, "learning_starts": 50, "buffer_size": 500}
    run = rove.train(name, "linear-quadratic-2", steps=200, out=tmp_path, seeds=2, **small)
    assert run.returns.shape == (2, 4)
    assert not np.array_equal(*run.returns)
    again = rove.load(tmp_path)
    action = again.policy()(np.array([0.5, -0.5, 0.0, 0.0]))
    assert action.shape == (2,)
    np.testing.assert_array_equal(action, run.policy()(np.array([0.5, -0.5, 0.0, 0.0])))
    run.plot_diagnostics(tmp_path / "d.png")
    assert (tmp_path / "d.png").exists()


@pytest.mark.slow
def test_a_composed_actor_critic_is_read_back(tmp_path):
    learner = ActorCritic(Quantile(4), Ensemble(3), resample="episode", **SMALL)
    run = rove.train(learner, "linear-quadratic-1", steps=100, out=tmp_path)
    assert rove.load(tmp_path).config.agent == learner
    assert np.isfinite(run.evaluate()).all()


def test_a_policy_that_diverges_is_not_its_environments_fault():
    """An action that is not finite makes an observation that is not."""
    job = configure(agent(), "linear-quadratic-1", steps=1).jobs(None)[0]
    flight = outcomes.fresh(job)

    @jax.jit
    def after(action):
        bad = jnp.full(2, jnp.nan)
        step = Step(flight.lane.environment, bad, jnp.ones(()), jnp.array(False), jnp.array(False))
        return complete_step(job.agent, job.environment, flight.lane, action, step, learn=False)[0]

    diverged = outcomes.extended(flight, after(jnp.full(1, jnp.nan))).diverged
    assert "the action was not a finite number at step 1" in diverged
    with pytest.raises(LaneError, match="the observation was not"):
        outcomes.extended(flight, after(jnp.ones(1)))


@pytest.mark.slow
def test_an_action_that_is_not_finite_never_reaches_a_gymnasium_environment():
    rates = {"actor_lr": 1e30, "critic_lr": 1e30, "learning_starts": 20, "batch_size": 8}
    with pytest.raises(LaneError, match="the action was not a finite number at step"):
        rove.train("ddpg", "gym/Pendulum-v1", steps=60, hidden=(8,), random_steps=5, **rates)


def riccati_cost(environment, starts: np.ndarray) -> float:
    """The mean cost of an episode of the best linear policy (no discount), from some starts."""
    a, b, q, r = environment.matrices
    p = linalg.solve_discrete_are(a, b, q, r)
    gain = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
    total = 0.0
    for x in starts:
        for _ in range(environment.horizon):
            u = np.clip(-gain @ x, -1, 1)
            total += x @ q @ x + u @ r @ u
            x = a @ x + b @ u
    return total / len(starts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps", "most"),
    [
        ("ddpg", 20_000, 1.1),
        ("ddpg_ge", 20_000, 1.1),
        ("td3", 20_000, 1.1),
        ("ddpg_dropout", 8000, 1.5),
    ],
)
def test_on_a_linear_quadratic_task_a_policy_comes_near_riccatis(name, steps, most):
    """A multiple of its cost, over 50 starts; without any force it would be 3.3."""
    environment = rove.LinearQuadratic(1)
    run = rove.train(name, environment, steps=steps)
    pi, starts = run.policy(), np.linspace(-1, 1, 50)[:, None] * [[1.0, 0.0]]
    a, b, q, r = environment.matrices
    total = 0.0
    for x in starts:
        for _ in range(environment.horizon):
            u = np.asarray(pi(x), float)
            total += x @ q @ x + u @ r @ u
            x = a @ x + b @ u
    best = riccati_cost(environment, starts)
    assert best * 0.999 < total / len(starts) < most * best
