"""Return density estimation: the published updates on a table, learning, and risk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from environments.test_cliff import planned, way
from helpers import in_buffer, objective
from rove.core.algorithm import Agent
from rove.parts import networks, noise
from rove.parts.replay import Transition
from rove.posteriors import Dirac, Phi

RATE = 1e-3


def softplus(x):
    return np.logaddexp(0.0, x)


@pytest.mark.parametrize("density", ["gaussian", "laplace"])
def test_a_step_on_a_table_is_the_published_update(density):
    """Two states and two actions, one-hot, without hidden layers: a step of gradient descent on the
    objective of one transition moves location and scale of (s, a) as Morimura et al. (2012) have
    it, to first order in α, and no other entry."""
    agent = rove.ReturnDensity(density=density, hidden=(), batch_size=1, gamma=0.9).compose()
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2, 4)).astype(np.float32)  # (μ, ϱ) of both actions
    phi = Phi((networks.Linear(jnp.asarray(table), jnp.zeros(4)),))
    step = Transition(
        jnp.eye(2)[:1], jnp.array([1]), jnp.array([0.7]), jnp.eye(2)[1:], np.array([False])
    )
    batch = in_buffer(step)
    law = agent.posterior.law(phi)
    theta = agent.posterior.sample_rows(law, jnp.arange(1), noise.root(0))
    x = agent.lookahead((), law, law, theta, batch, noise.root(1))

    def loss(weights):
        layer = networks.Linear(weights, jnp.zeros(4))
        return objective(agent, Phi((layer,)), batch, x, noise.root(2))[0]

    after = table - RATE * np.asarray(jax.grad(loss)(jnp.asarray(table)))
    following = table[1].reshape(2, 2).astype(float)
    mu_next, raw_next = following[np.argmax(following[:, 0])]
    (mu, raw), floor = table[0, 2:].astype(float), 0.01
    scale, spread = softplus(raw) + floor, 0.9 * (softplus(raw_next) + floor)
    d = 0.7 + 0.9 * mu_next - mu
    if density == "gaussian":
        moves = d, (d**2 + spread**2 - scale**2) / (2 * scale)
    else:
        decay = np.exp(-abs(d) / spread)
        moves = scale * np.sign(d) * (1 - decay), abs(d) + spread * decay - scale
    assert after[0, 2] - mu == pytest.approx(RATE * moves[0], rel=1e-3)
    assert softplus(float(after[0, 3])) + floor - scale == pytest.approx(RATE * moves[1], rel=5e-3)
    np.testing.assert_array_equal(after[0, :2], table[0, :2])
    np.testing.assert_array_equal(after[1], table[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "density",
    [
        "skewed_laplace",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("gaussian", "laplace")),
    ],
)
def test_densities_learn_a_chain(density):
    """Of swapped actions, from random ones alone; an agent that does not learn earns 11 on no
    seed but by luck."""
    agent = rove.ReturnDensity(
        density=density, epsilon=1.0, hidden=(32,), target_period=25, lr=3e-3
    )
    run = rove.train(agent, "permuted-chain-5", seeds=2, episodes=250)
    assert np.all(run.evaluate() == 11.0)


def cliff_walk(agent: rove.Settings, steps: int) -> list[tuple[int, int]]:
    """The way of the greedy policy after training, without wind."""
    run = rove.train(agent, "cliff", steps=steps)
    cliff, learner, state = run.config.environment, run.config.compose(), run.outcomes[0].lane.agent
    return way(tuple(int(learner.greedy(state, cliff.observe(c))) for c in range(cliff.bins)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("risk", "level"), [("cvar", 0.1), pytest.param("mean", None, marks=pytest.mark.slow)]
)
def test_risk_sensitive_agents_take_the_detour(risk, level):
    """Quantiles in a table, and ε-greedy actions: the way of the exact policy (`test_cliff.py`),
    along the edge for the mean, and on the top row for the CVaR."""
    agent = rove.QRDQN(
        risk=risk,
        gamma=1.0,
        hidden=(),
        lr=5e-3,
        target_period=50,
        learning_starts=200,
        batch_size=32,
    )
    found, exact = cliff_walk(agent, 20_000), way(planned(level)[0])
    assert found[-1] == (3, 6)
    assert (min(found) < (1, 0)) == (min(exact) < (1, 0)) == (risk == "cvar")


def test_named_agents_compose_their_risk():
    for settings in (rove.C51, rove.QRDQN, rove.ReturnDensity):
        assert settings().compose().returns.risk is None
        risk = settings(risk="quantile", risk_level=0.25).compose().returns.risk
        assert risk == rove.ValueAtRisk(0.25)
    agent = rove.ReturnDensity(natural=False).compose()
    assert agent == Agent(rove.LearnedGaussian(draw="distribution"), Dirac(), epsilon=0.1)
