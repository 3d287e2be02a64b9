"""Compiled environments that mask actions: agents learn the values of allowed actions."""

import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rove
from rove.environments.base import Step
from rove.environments.gymnasium import CompiledEnv
from rove.errors import ConfigError, LaneError
from rove.parts import noise
from rove.parts.masks import Masked

NETWORK = {"hidden": (32,), "learning_starts": 50, "target_period": 20, "gamma": 0.9}


class GateState(NamedTuple):
    room: jax.Array


class Gate(rove.Environment):
    """Two rooms and eight actions, most of which are not allowed.

    In room 0 action 0 leads to room 1 and action 1 ends the task with 0.2. Room 1 allows action 0
    alone, which ends it with 0.1. Whatever is not allowed would pay 1. So the best return is 0.2;
    an agent that ignores the mask gets 1, and one that takes the maximum over all actions in its
    targets finds in room 1 whatever its network says of seven actions that it never takes.
    """

    empty: int = 2
    """The room in which no action is allowed."""

    name = "gate"
    observation_size = 2
    num_actions = 8
    bins = 2
    optimum = 0.2

    def bin(self, state):
        return state.room

    def observe(self, state):
        return jax.nn.one_hot(state.room, 2)

    def action_mask(self, state):
        return (jnp.arange(8) < 2 - state.room) & (state.room != self.empty)

    def reset(self, key):
        state = GateState(jnp.zeros((), jnp.int32))
        return state, self.observe(state)

    def step(self, state, action, key):
        legal = Gate.action_mask(self, state)[action]
        on = legal & (state.room == 0) & (action == 0)
        reward = jnp.where(state.room == 0, jnp.where(on, 0.0, 0.2), 0.1)
        after = GateState(jnp.where(on, 1, state.room))
        false = jnp.zeros((), bool)
        return Step(after, self.observe(after), jnp.where(legal, reward, 1.0), ~on, false)


AGENTS = {
    "dqn": rove.DQN(**NETWORK, epsilon=0.3),
    "dqn double": rove.DQN(**NETWORK, epsilon=0.3, double=True),
    "ge": rove.GE(**NETWORK, rho=-3.0, sigma=1e-2, resample="episode"),
    "qr_dqn": rove.QRDQN(**NETWORK, epsilon=0.3, quantiles=8),
    "bootstrapped_dqn": rove.BootstrappedDQN(**NETWORK, size=4, prior=1.0),
    "bayesian_dqn": rove.BayesianDQN(**NETWORK, period=100),
    "psrl": rove.AGENTS["psrl"](gamma=0.9),
    "bayesian_q_learning": rove.AGENTS["bayesian_q_learning"](gamma=0.9),
}
QUICK = ("dqn", "psrl")


def values(run) -> np.ndarray:
    """Q of the posterior mean at the start, for the first seed."""
    outcome = run.outcomes[0]
    xs = jnp.eye(2)
    beliefs = run.config.compose().beliefs(outcome.lane.agent, xs, noise.root(0))
    return np.asarray(beliefs.values.mean(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x not in QUICK)) for x in AGENTS]
)
def test_agents_learn_the_best_allowed_action(name):
    """0.2, and never 1: Q(0, 0) = γ·0.1 = 0.09 and Q(0, 1) = 0.2."""
    run = rove.train(AGENTS[name], Gate(), seeds=3, steps=2500)
    assert np.nanmax(run.returns) <= 0.2 + 1e-6
    np.testing.assert_allclose(run.evaluate(1)[:, 0], 0.2)
    q = values(run)
    np.testing.assert_allclose([q[0, 0], q[0, 1], q[1, 0]], [0.09, 0.2, 0.1], atol=0.05)
    act = run.policy()
    assert act([1.0, 0.0], np.arange(8) < 2) == 1
    assert act([0.0, 1.0], np.arange(8) == 5) == 5
    assert isinstance(run.outcomes[0].lane.observation, Masked)


@pytest.mark.slow
def test_the_compiled_loop_and_the_host_do_the_same():
    """The task has no randomness, so that its Gymnasium form has the same bits; it passes
    Gymnasium's own checks, with the mask in `info`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*infinity.*")
        check_env(CompiledEnv(Gate()), skip_render_check=True)
    info = CompiledEnv(Gate()).reset(seed=0)[1]
    assert info["action_mask"].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
    assert info["action_mask"].dtype == np.int8
    tasks = Gate(), rove.adopt(lambda: CompiledEnv(Gate()))
    runs = [rove.train(AGENTS["dqn"], task, episodes=120) for task in tasks]
    np.testing.assert_array_equal(runs[0].returns, runs[1].returns)
    np.testing.assert_array_equal(runs[0].lengths, runs[1].lengths)


def test_a_sparse_task_keeps_the_mask():
    assert rove.Sparse(Gate()).masked
    assert not rove.Sparse(rove.Chain(5)).masked


def test_a_video_has_allowed_actions_only(tmp_path):
    run = rove.train(AGENTS["dqn"], Gate(), steps=40)
    path, scores = rove.watch(run, tmp_path / "gate.gif")
    assert path.exists()
    assert scores[0] <= 0.2 + 1e-6


@pytest.mark.parametrize("empty", [0, 1])
def test_a_state_without_an_allowed_action_ends_the_seed(empty):
    """At the start, and after a step that does not end the task."""
    words = r"action_mask allowed no action at step \d+; at least one must be allowed"
    with pytest.raises(LaneError, match=words):
        rove.train(AGENTS["dqn"], Gate(empty=empty), steps=40)


class WrongShape(Gate):
    def action_mask(self, state):
        return jnp.ones(7, bool)


class Floats(Gate):
    def action_mask(self, state):
        return jnp.ones(8)


class Continuous(Gate):
    continuous = True

    def step(self, state, action, key):
        return super().step(state, jnp.argmax(action), key)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (WrongShape(), r"action_mask must have shape \(8,\), got \(7,\)"),
        (Floats(), "action_mask must be an array of bool, got float32"),
        (Continuous(), "action_mask must be None if actions are continuous"),
    ],
)
def test_a_wrong_mask_is_refused_before_anything_compiles(environment, words):
    with pytest.raises(ConfigError, match=f"gate: {words}"):
        rove.train(AGENTS["dqn"], environment, steps=40)
