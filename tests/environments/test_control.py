"""The classic control tasks against Gymnasium's own, one step at a time from Gymnasium's state."""

import math

import gymnasium
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import stats

import rove
from helpers import in_buffer, targets
from rove.environments.control import GRID, ControlState
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.replay import Transition

STEPS = 10_000
TASKS = {
    "CartPole-v1": rove.CartPole(),
    "MountainCar-v0": rove.MountainCar(),
    "Acrobot-v1": rove.Acrobot(),
}
every_task = pytest.mark.parametrize(("name", "environment"), TASKS.items(), ids=TASKS)


def skilled(name, state):
    """A simple controller, so that goals are reached and poles stay up."""
    if name == "CartPole-v1":
        return int(0.1 * state[0] + 0.3 * state[1] + 3 * state[2] + state[3] > 0)
    if name == "MountainCar-v0":
        return 2 if state[1] >= 0 else 0
    return 2 if state[3] >= 0 else 0  # turn with the second link


def played(name):
    """Steps of Gymnasium: its state before each, what was done, and what it gave. Each episode
    has a share of random actions of its own."""
    env, rng = gymnasium.make(name), np.random.default_rng(0)
    rows, time, random = [], 0, 1.0
    env.reset(seed=0)
    for t in range(STEPS):
        before = np.array(env.unwrapped.state, float)
        anything = int(rng.integers(env.action_space.n))
        action = anything if rng.random() < random else skilled(name, before)
        shown, reward, terminated, truncated, _ = env.step(action)
        rows.append((before, time, action, shown, reward, terminated, truncated))
        time += 1
        if terminated or truncated:
            env.reset(seed=t)
            time, random = 0, rng.choice([0.0, 0.1, 0.5, 1.0])
    return [np.array(column) for column in zip(*rows, strict=True)]


@jax.jit
def stepped(environment, values, times, actions):
    def one(values, time, action):
        return environment.step(ControlState(values, time), action, noise.root(0))

    return jax.vmap(one)(values, times, actions)


@every_task
def test_every_step_is_gymnasiums(name, environment):
    values, times, actions, shown, rewards, terminated, truncated = played(name)
    step = stepped(
        environment, values.astype(np.float32), times.astype(np.int32), actions.astype(np.int32)
    )
    assert terminated.sum() >= 10
    assert truncated.sum() >= 5
    np.testing.assert_allclose(step.observation, shown, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(step.reward, rewards)
    np.testing.assert_array_equal(step.terminated, terminated)
    np.testing.assert_array_equal(step.truncated, truncated)


@every_task
def test_first_states_have_gymnasiums_law(name, environment):
    """Kolmogorov and Smirnov against 4,000 of Gymnasium's own, each number at 1e-4; numbers of
    one state are independent, their correlations within the quantile at 1e-4 (3.89)."""
    env, count = gymnasium.make(name).unwrapped, 4000
    env.reset(seed=1)
    theirs = np.array([(env.reset(), np.array(env.state, float))[1] for _ in range(count)])
    state, observation = jax.vmap(environment.reset)(noise.folds(noise.root(2), count))
    ours = np.asarray(state.values, float)
    assert np.all(state.time == 0)
    assert ours.shape == theirs.shape
    moving = theirs.std(axis=0) > 0
    np.testing.assert_array_equal(ours[:, ~moving], theirs[:, ~moving])
    for mine, other in zip(ours[:, moving].T, theirs[:, moving].T, strict=True):
        assert stats.ks_2samp(mine, other).pvalue > 1e-4
    related = np.atleast_2d(np.corrcoef(ours[:, moving].T)) - np.eye(moving.sum())
    assert np.all(np.abs(related) < 3.89 / math.sqrt(count))
    np.testing.assert_array_equal(observation, jax.vmap(environment.observe)(state.values))


@every_task
def test_spaces_and_time_limit_are_gymnasiums(name, environment):
    env = gymnasium.make(name)
    low, high = environment.observation_bounds
    np.testing.assert_array_equal(np.float32(low), env.observation_space.low)
    np.testing.assert_array_equal(np.float32(high), env.observation_space.high)
    assert environment.num_actions == env.action_space.n
    assert environment.horizon == env.spec.max_episode_steps


@pytest.mark.parametrize(
    ("environment", "scores", "label"),
    [
        (rove.CartPole(), [20, 500], "episode length"),
        (rove.MountainCar(), [1, 0], "goal reached"),
        (rove.Acrobot(), [-20, -500], "− episode length"),
    ],
)
def test_scores_are_the_papers(environment, scores, label):
    """Of one episode that ended after 20 steps and one that was cut after 500, whatever they
    were paid."""
    for task in (environment, rove.Sparse(environment, -1.0)):
        got = task.score(np.array([3.0, 4.0]), np.array([20, 500]), np.array([True, False]))
        assert got.tolist() == scores
        assert task.score_label == label
        assert task.optimum == environment.optimum


@pytest.mark.parametrize(
    ("environment", "values", "row", "column"),
    [
        (rove.MountainCar(), (-1.2, -0.07), 0, 0),
        (rove.MountainCar(), (0.6, 0.07), 39, 39),
        (rove.MountainCar(), (-0.5, 0.0), 20, 15),  # 0.7 of 1.8, in 40 cells
        (rove.CartPole(), (-2.4, 9.0, 0.0001, 9.0), 20, 0),
        (rove.CartPole(), (3.0, 0.0, -0.3, 0.0), 0, 39),  # past both edges
        (rove.Acrobot(), (math.pi / 2 + 0.01, -math.pi / 2 + 0.01, 1.0, 1.0), 10, 30),
    ],
)
def test_cells_by_hand(environment, values, row, column):
    state = ControlState(jnp.array(values, jnp.float32), jnp.int32(0))
    assert divmod(int(environment.bin(state)), GRID) == (row, column)
    assert environment.cells == (GRID, GRID)


@pytest.mark.parametrize("environment", TASKS.values(), ids=TASKS)
def test_a_time_limit_is_bootstrapped_and_an_end_is_not(environment):
    """The target of a linear Q with known weights, on one step that ends the task and on the
    last step that time allows: r + γ·max Q(s′) only on the second."""
    ending = {
        "cartpole": (2.39, 2.0, 0.0, 0.0),
        "mountain-car": (0.49, 0.05),
        "acrobot": (2.05, 0.0, 2.0, 0.0),
    }[environment.name]
    calm = np.zeros(len(ending), np.float32)
    key, last = noise.root(0), jnp.int32(environment.horizon - 1)
    agent = rove.Agent(rove.Gaussian(0.0), rove.Dirac(), hidden=(), gamma=0.9, buffer_size=64)
    law = agent.posterior.law(
        agent.init(environment.observation_size, environment.num_actions, key).phi
    )
    bias = np.arange(environment.num_actions) + 1.0
    law = jax.tree.map(
        lambda leaf: jnp.zeros_like(leaf) if leaf.ndim == 2 else jnp.array(bias), law
    )
    cases = [(ending, 0, True, False), (ending, last, True, True), (calm, last, False, True)]
    for values, time, terminated, truncated in cases:
        state = ControlState(jnp.array(values, jnp.float32), jnp.asarray(time, jnp.int32))
        for task in (environment, rove.Sparse(environment, -1.0)):
            step = task.step(state, jnp.int32(1), key)
            assert (bool(step.terminated), bool(step.truncated)) == (terminated, truncated)
            transition = Transition(
                environment.observe(state.values),
                jnp.int32(1),
                step.reward,
                step.observation,
                step.terminated,
            )
            batch = jax.tree.map(lambda leaf: leaf[None], in_buffer(transition))
            x = float(targets(agent, law, law, batch, key, key).squeeze())
            value = 0.0 if terminated else 0.9 * environment.num_actions
            assert x == pytest.approx(float(step.reward) + value, rel=1e-6)


@pytest.mark.parametrize("kind", [rove.CartPole, rove.MountainCar, rove.Acrobot])
@pytest.mark.parametrize("horizon", [0, 2.0, True])
def test_bad_horizons_are_refused_by_name(kind, horizon, monkeypatch):
    """With the run-time check of annotations off, as it is outside tests: it would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError) as caught:
        kind(horizon=horizon)
    assert caught.value.field == "horizon"
