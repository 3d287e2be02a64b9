"""Scales of rewards: by hand, in what updates see and reports show, and the same actions whatever
the unit of the rewards."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.environments.base import Step
from rove.errors import ConfigError
from rove.parts import noise, replay
from rove.parts.replay import Transition

GAMMA = 0.5
REWARDS = np.float32([0, 2, -4, 1, -8, 0.5, 3])
TERMINATED, TRUNCATED = np.arange(7) == 2, np.arange(7) == 3
CURRENT = [0.0, 2.0, 0.0, 0.0, -8.0, -3.5, 1.25]
"""G after each step, in the episodes of steps 0 to 2 (terminated), 3 (truncated), and 4 to 6."""
LARGEST = [0.0, 2.0, 3.0, 3.0, 8.0, 8.0, 8.0]
SMALL = {"hidden": (16,), "batch_size": 8, "buffer_size": 300, "learning_starts": 20}
X = jnp.ones(3)


def steps():
    for reward, *ends in zip(REWARDS, TERMINATED, TRUNCATED, strict=True):
        terminated, truncated = map(jnp.asarray, ends)
        after = X, terminated, None, None, truncated
        yield Transition(X, jnp.int32(0), jnp.asarray(reward), *after)


def test_the_largest_return_by_hand():
    scale = rove.LargestReturn()
    state = scale.init()
    assert float(scale.value(state)) == 1.0
    for step, current, largest in zip(steps(), CURRENT, LARGEST, strict=True):
        state = scale.observe(state, step, GAMMA)
        assert (float(state.current), float(state.largest)) == (current, largest)
        assert float(scale.value(state)) == (largest or 1.0)
        assert float(rove.LargestReturn(least=2.5).value(state)) == max(largest, 2.5)
    no_limit = step._replace(truncated=None)
    assert float(scale.observe(state, no_limit, GAMMA).current) == 3.0 + GAMMA * CURRENT[-1]


@pytest.mark.parametrize("n_step", [1, 2])
def test_updates_see_all_rewards_in_the_scale_of_now(n_step):
    """Also those that were stored before the scale grew; the intrinsic reward is not divided."""
    bonus = rove.Counts(0.5, centred=False)
    agent = rove.Agent(
        rove.Gaussian(0.0), rove.Dirac(), reward_scale=rove.LargestReturn(), bonus=bonus,
        gamma=GAMMA, n_step=n_step, hidden=(), batch_size=4, buffer_size=7,
    )  # fmt: skip
    state = jax.jit(agent.init, static_argnums=(0, 1))(3, 2, noise.root(0))
    observe = jax.jit(agent.observe)
    for step in steps():
        state = observe(state, step)

    @jax.jit
    def stored(state):
        law = agent.posterior.law(state.phi)
        reward = partial(agent.reward, state, (), law, noise.root(1))
        return replay.everything(state.replay, GAMMA, reward)[0].reward

    single = REWARDS / 8.0 + 0.5 / 7.0  # all seven steps visit the same cell
    follows = np.float32([1, 1, 0, 0, 1, 1, 0]) * (n_step - 1)
    expected = single + GAMMA * follows * np.append(single[1:], 0.0)
    np.testing.assert_allclose(stored(state), expected, rtol=1e-6)
    assert replay.last(state.replay).reward == REWARDS[-1]


class ScaledChain(rove.Chain):
    """A chain whose rewards are multiplied by a number."""

    optimum = score_range = None
    factor: float = 1.0

    def step(self, state, action, key) -> Step:
        after = super().step(state, action, key)
        return after._replace(reward=self.factor * after.reward)


class ScaledPointMass(rove.LinearQuadratic):
    factor: float = 1.0

    def step(self, state, action, key) -> Step:
        after = super().step(state, action, key)
        return after._replace(reward=self.factor * after.reward)


AGENTS = {
    "auto": rove.Auto(**SMALL, epsilon_steps=200, reward_scale="running"),
    "ge": rove.GE(**SMALL, reward_scale="running"),
    "qr_dqn": rove.QRDQN(**SMALL, quantiles=5, risk="cvar", reward_scale="running"),
    "c51": rove.C51(**SMALL, low=-1.0, high=1.0, reward_scale="running"),
    "bootstrapped_dqn": rove.BootstrappedDQN(**SMALL, size=3, reward_scale="running"),
    "bayesian_dqn": rove.BayesianDQN(**SMALL, period=50, reward_scale="running"),
    "ddpg": rove.DDPG(**SMALL, reward_scale="running"),
}
QUICK = ("auto", "ge", "ddpg")


def trained(agent, factor: float) -> rove.Run:
    if agent.name == "ddpg":
        task, budget = ScaledPointMass(1, factor=factor), {"steps": 300}
    else:
        task, budget = ScaledChain(6, factor=factor), {"episodes": 20}
    return rove.train(agent, task, seeds=2, **budget, on="threads")


@pytest.mark.fast_cases("auto")
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in AGENTS]
)
def test_the_unit_of_rewards_has_no_effect(name):
    """Bit for bit at powers of two: the same parameters, and reports in the unit of the rewards."""
    agent = AGENTS[name]
    runs = {k: trained(agent, 2.0**k) for k in (0, 10, -7)}
    for k, run in runs.items():
        for one, other in zip(runs[0].outcomes, run.outcomes, strict=True):
            a, b, factor = one.lane, other.lane, 2.0**k
            for x, y in zip(*map(jax.tree.leaves, (a.agent.phi, b.agent.phi)), strict=True):
                np.testing.assert_array_equal(x, y)
            episodes = one.episodes.returns, other.episodes.returns
            np.testing.assert_array_equal(factor * episodes[0], episodes[1])
            known = np.argmax(episodes[0] != 0.0)  # the unit is not known before a first reward
            for field in ("spread", "return_spread"):
                x, y = (getattr(outcome.episodes, field)[known:] for outcome in (one, other))
                np.testing.assert_array_equal(factor * x, y)
            assert factor * a.agent.reward_scale.largest == b.agent.reward_scale.largest
            np.testing.assert_array_equal(a.snapshots.outputs, b.snapshots.outputs)
            slots = slice(int(known).bit_length(), None)  # after episodes 1, 2, 4, …
            for field in ("values", "reward_scale"):
                x, y = (getattr(lane.snapshots, field)[slots] for lane in (a, b))
                np.testing.assert_array_equal(factor * x, y)
            assert np.any(y != 0.0)


@pytest.mark.slow
def test_without_a_scale_the_unit_has_an_effect():
    agent = rove.GE(**SMALL)
    one, other = (trained(agent, factor).outcomes[0].lane.agent.phi for factor in (1.0, 2.0))
    assert any(np.any(x != y) for x, y in zip(*map(jax.tree.leaves, (one, other)), strict=True))


@pytest.mark.slow
def test_growing_leaves_returns_of_at_most_one_as_they_are():
    """Up to rounding, which differs between two compiled programs."""
    one, other = (
        trained(rove.GE(**SMALL, reward_scale=scale), 2.0**-4).outcomes[0]
        for scale in (1.0, "growing")
    )
    assert 0.0 < float(other.lane.agent.reward_scale.largest) < 1.0
    for x, y in zip(*map(jax.tree.leaves, (one.lane.agent.phi, other.lane.agent.phi)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_a_constant_scale_is_a_task_whose_rewards_are_divided():
    """Bit for bit, except for what is reported: in the unit of the task."""
    outcomes = [
        trained(rove.GE(**SMALL, reward_scale=scale), factor).outcomes[0]
        for scale, factor in ((1.0, 1.0), (8.0, 8.0))
    ]
    plain, scaled = (outcome.lane for outcome in outcomes)
    for x, y in zip(*map(jax.tree.leaves, (plain.agent.phi, scaled.agent.phi)), strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(8.0 * plain.snapshots.values, scaled.snapshots.values)
    assert not jax.tree.leaves(plain.agent.reward_scale)


@pytest.mark.parametrize(
    "returns", [rove.Gaussian(0.0), rove.Categorical(11, low=-1.0, high=1.0), rove.Quantile(3)]
)
def test_exported_values_are_in_the_unit_of_the_task(returns):
    agent = rove.Agent(returns, rove.Dirac(), reward_scale=rove.ConstantScale(8.0), hidden=(4,))
    plain = rove.Agent(returns, rove.Dirac(), hidden=(4,))
    state = agent.init(3, 2, noise.root(0))
    scaled, unscaled = agent.folded(state), plain.folded(state)
    assert scaled is not None
    assert unscaled is not None
    x, values = jnp.array([0.5, -1.0, 2.0]), []
    for folded in (scaled, unscaled):
        (stack,) = folded.stacks
        first, last = (jax.tree.map(lambda leaf: leaf[0], layer) for layer in stack.networks)
        z = jax.nn.relu(x @ first.weight + first.bias) @ last.weight + last.bias
        if folded.support is not None:
            z = jax.nn.softmax(z.reshape(2, -1)) @ folded.support
        values.append(np.asarray(z))
    assert np.ptp(values[1]) > 0.0
    np.testing.assert_allclose(values[0], 8.0 * values[1], rtol=1e-5, atol=1e-6)


def test_names_stand_for_scales():
    assert rove.DQN(reward_scale="running").compose().reward_scale == rove.LargestReturn()
    assert rove.TD3(reward_scale="growing").compose().reward_scale == rove.LargestReturn(least=1.0)
    assert rove.GE(reward_scale=10).compose().reward_scale == rove.ConstantScale(10.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rove.DQN(reward_scale=0.0), "reward_scale must be a finite number above 0"),
        (lambda: rove.DQN(reward_scale=1e-45), "reward_scale must be at least 1e-37, got 1e-45"),
        (lambda: rove.DQN(reward_scale="largest"), "running, growing"),
        (lambda: rove.ThompsonBeta(reward_scale="running"), "1 for Bernoulli"),
        (lambda: rove.PSRL(reward_scale=2.0), "psrl has no setting 'reward_scale'"),
        (lambda: rove.LargestReturn(least=-1.0), "least must be a finite number of at least 0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
