"""The policies of a trained agent, against what the agent itself does, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.core.policies import (
    POLICIES,
    VOTERS,
    Behaviour,
    Mean,
    Sample,
    Vote,
    candidates_of,
    policies_of,
)
from rove.parts import noise

SMALL = {"hidden": (5,), "buffer_size": 32, "batch_size": 4}
WIDE = rove.MeanField(1.0)
"""A posterior whose samples disagree."""
YES, NO = jnp.ones((), bool), jnp.zeros((), bool)


def agent_with(resample, **changes):
    return rove.Agent(rove.Gaussian(0.1), WIDE, resample=resample, **SMALL, **changes)


def played(policy, agent, state, steps, key):
    """The actions of an episode, and the observations it shows."""
    xs = noise.normal(noise.fold(key, 99), (steps, 3))

    @jax.jit
    def step(kept, x, k):
        return policy.act(agent, state, kept, x, k)

    kept, actions = policy.begin(agent, state, noise.fold(key, 0)), []
    for i, x in enumerate(xs):
        action, kept = step(kept, x, noise.fold(key, i + 1))
        actions.append(int(action))
    return actions, xs


@pytest.mark.fast_cases("episode")
@pytest.mark.parametrize("resample", ["step", "episode", 3])
def test_a_sample_and_the_behaviour_follow_the_agents_own_steps(resample):
    """`Learner.act` and `resample_theta`, called as the training loop calls them."""
    noisy, key = agent_with(resample, epsilon=0.5), noise.root(3)
    state = noisy.init(3, 4, noise.root(1))._replace(counter=jnp.asarray(3 * 5, jnp.int32))
    for policy, agent in ((Behaviour(), noisy), (Sample(), agent_with(resample))):
        actions, xs = played(policy, noisy, state, 8, key)
        act, resampled = jax.jit(agent.act), jax.jit(agent.resample_theta)
        now = resampled(state, YES, noise.fold(key, 0))
        for i, (action, x) in enumerate(zip(actions, xs, strict=True)):
            k = noise.fold(key, i + 1)
            assert action == int(act(now, x, k))
            now = resampled(now._replace(counter=now.counter + 1), NO, k)


def test_the_behaviour_takes_random_actions_and_a_sample_does_not():
    """ε = 1: every action is random, so that 200 steps in one state see all of four actions."""
    agent = agent_with("episode", epsilon=1.0, epsilon_steps=10**6)
    state, key = agent.init(3, 4, noise.root(1)), noise.root(5)
    x = jnp.ones(3)
    seen = {}
    for policy in (Behaviour(), Sample()):
        step = jax.jit(lambda kept, k, policy=policy: policy.act(agent, state, kept, x, k))
        kept, actions = policy.begin(agent, state, key), []
        for i in range(200):
            action, kept = step(kept, noise.fold(key, i))
            actions.append(int(action))
        seen[type(policy)] = set(actions)
    assert seen[Behaviour] == {0, 1, 2, 3}
    assert len(seen[Sample]) == 1  # θ is held for the episode


@pytest.mark.parametrize("resample", ["step", "episode"])
def test_a_vote_is_the_majority_of_its_samples(resample):
    agent, key = agent_with(resample, epsilon=0.9), noise.root(7)
    state = agent.init(3, 4, noise.root(2))
    actions, xs = played(Vote(), agent, state, 6, key)
    begin = jax.jit(lambda k: Sample().begin(agent, state, k))
    act = jax.jit(lambda kept, x, k: Sample().act(agent, state, kept, x, k))
    kept, disagreed = [begin(k) for k in noise.folds(noise.fold(key, 0), VOTERS)], 0
    for i, (action, x) in enumerate(zip(actions, xs, strict=True)):
        keys = noise.folds(noise.fold(key, i + 1), VOTERS)
        both = [act(kept[j], x, keys[j]) for j in range(VOTERS)]
        votes, kept = [int(action) for action, _ in both], [after for _, after in both]
        counts = np.bincount(votes, minlength=4)
        assert counts[action] == counts.max()
        disagreed += len(set(votes)) > 1
    assert disagreed > 3


def test_the_mean_is_the_agents_greedy_action():
    agent = agent_with("step")
    state = agent.init(3, 4, noise.root(2))
    actions, xs = played(Mean(), agent, state, 5, noise.root(1))
    assert actions == [int(agent.greedy(state, x)) for x in xs]


def test_an_agent_has_the_policies_that_differ():
    assert candidates_of(rove.DQN(epsilon=0.0).compose()) == ["mean"]
    assert candidates_of(rove.DQN(epsilon=0.1).compose()) == ["mean", "behaviour"]
    assert candidates_of(rove.GE().compose()) == ["mean", "sample", "vote"]
    playable = [name for name in POLICIES if name not in ("settled", "best")]
    assert candidates_of(rove.GE(epsilon_steps=9).compose()) == playable
    assert candidates_of(rove.PSRL().compose()) == ["mean", "sample", "vote"]
    assert candidates_of(rove.TD3(noise_std=0.0, random_steps=0).compose()) == ["mean"]
    assert candidates_of(rove.DDPGGE(noise_std=0.1).compose()) == ["mean", "behaviour"]
    assert policies_of(rove.GE().compose()) == list(POLICIES)
    assert policies_of(rove.DQN(epsilon=0.0).compose()) == ["mean", "behaviour", "settled", "best"]
    assert policies_of(rove.PSRL().compose()) == [*playable, "best"]


def test_an_actors_noise_is_its_behaviour():
    agent = rove.DDPG(noise_std=0.5, random_steps=0, **SMALL).compose()
    state, x, key = agent.init(3, 2, noise.root(0)), jnp.ones(3), noise.root(4)
    behaviour = Behaviour()
    kept = behaviour.begin(agent, state, key)
    action, after = behaviour.act(agent, state, kept, x, noise.fold(key, 1))
    expected = np.clip(np.asarray(agent.greedy(state, x)) + np.asarray(kept.random), -1, 1)
    np.testing.assert_allclose(action, expected, rtol=1e-6)
    assert np.all(np.asarray(after.random) != np.asarray(kept.random))
    quiet, _ = Sample().act(agent, state, Sample().begin(agent, state, key), x, key)
    np.testing.assert_allclose(quiet, agent.greedy(state, x), rtol=1e-6)
