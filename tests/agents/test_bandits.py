"""Thompson sampling with Beta and with linear posteriors: exact posteriors, and regret."""

import jax
import numpy as np
import pytest

import rove
from rove.core.algorithm import Agent
from rove.environments import BernoulliBandit, LinearBandit
from rove.parts import noise
from rove.parts.replay import Transition


def regrets(run: rove.Run) -> np.ndarray:
    """The total regret of each seed."""
    return run.config.environment.regret(np.stack([o.visits for o in run.outcomes]))


@pytest.mark.slow
def test_beta_regret_against_lai_and_robbins():
    """After 2,000 pulls, the mean of three seeds is below Lai and Robbins' rate times log t, and a
    tenth of what random pulls lose. (The bound is for t → ∞: at first, regret can be below it.)"""
    run = rove.train(
        "thompson_beta", "bernoulli-bandit-10", seeds=3, episodes=2000, buffer_size=2000
    )
    bandit = run.config.environment
    assert regrets(run).mean() < bandit.lai_robbins * np.log(2000)
    assert regrets(run).mean() < 0.1 * 2000 * bandit.regrets.mean()


@pytest.mark.slow
def test_a_posterior_that_does_not_learn_misses_that_bound():
    """The same agent whose posterior stays at the prior."""
    run = rove.train(
        "thompson_beta", "bernoulli-bandit-10", episodes=2000, period=10_000, buffer_size=2000
    )
    bandit = run.config.environment
    assert regrets(run).mean() > 4.0 * bandit.lai_robbins * np.log(2000)


def test_linear_posterior_is_the_closed_form():
    """Σ⁻¹ = I/s² + XᵀX/σ² and m = Σ·Xᵀr/σ² of every arm, with a 1 for the bias, in float64; after
    60 pulls that the agent chooses."""
    agent = rove.ThompsonLinear(sigma=0.5, prior=0.8, buffer_size=64).compose()
    bandit, rows = LinearBandit(3, features=4), []
    state = agent.init(4, 3, noise.root(0))
    act, observe, learn = (jax.jit(f) for f in (Agent.act, Agent.observe, Agent.learn))
    for t in range(60):
        key = noise.fold(noise.root(1), t)
        situation, x = bandit.reset(noise.fold(key, 0))
        arm = act(agent, state, x, noise.fold(key, 1))
        step = bandit.step(situation, arm, noise.fold(key, 2))
        rows.append((np.append(x, 1.0), int(arm), float(step.reward)))
        pull = Transition(x, arm, step.reward, step.observation, step.terminated)
        state, _ = learn(agent, observe(agent, state, pull), noise.fold(key, 3))
    inputs, arms, rewards = (np.array(column, float) for column in zip(*rows, strict=True))
    mean, root = state.phi.fitted
    for arm in range(3):
        x, r = inputs[arms == arm], rewards[arms == arm]
        covariance = np.linalg.inv(np.eye(5) / 0.8**2 + x.T @ x / 0.5**2)
        np.testing.assert_allclose(mean[arm], covariance @ x.T @ r / 0.5**2, rtol=1e-3, atol=1e-4)
        product = np.asarray(root[arm], float) @ np.asarray(root[arm], float).T
        np.testing.assert_allclose(product, covariance, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_linear_regret_grows_slowly():
    """Of 1,000 pulls in 20 contexts, the mean of three seeds loses less than 0.06 of what random
    pulls do, and the last half less than half as much as the first. A table of 20 × 5 means would
    have to pull each arm in each context."""
    run = rove.train("thompson_linear", "linear-bandit-5", seeds=3, episodes=1000, buffer_size=1000)
    half = rove.train("thompson_linear", "linear-bandit-5", seeds=3, episodes=500, buffer_size=1000)
    bandit = run.config.environment
    random = 1000 * bandit.regrets.mean()
    assert regrets(run).mean() < 0.06 * random
    assert regrets(run).mean() - regrets(half).mean() < 0.5 * regrets(half).mean()


def test_lai_robbins_of_bernoulli_arms_by_hand():
    """Σ Δ/KL(p, p*), with KL from the probabilities of both outcomes."""
    bandit = BernoulliBandit(4, map_seed=3)
    p = np.random.default_rng(3).random(4)
    assert bandit.means == pytest.approx(p)
    constant = 0.0
    for q in p[p < p.max()]:
        pairs = ((q, p.max()), (1 - q, 1 - p.max()))
        constant += (p.max() - q) / sum(a * np.log(a / b) for a, b in pairs)
    assert bandit.lai_robbins == pytest.approx(constant)
