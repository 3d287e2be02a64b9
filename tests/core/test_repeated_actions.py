"""rove.core.control: random actions that repeat, by their frequencies and by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from rove.core import control
from rove.core.control import EpsilonGreedy
from rove.core.learner import AgentState
from rove.parts import noise, replay
from rove.parts.masks import masked

STEPS, LENGTH = 40_000, 50
NOTHING = AgentState((), (), (), (), replay.init(1, 1), jnp.int32(0))
"""A state of an agent, of which random actions use only two parts."""


def play(settings: EpsilonGreedy) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What happens in 40,000 steps, in episodes of 50: the number of each step's random action,
    whether one was taken, how many steps were left, and whether the episode repeats them."""

    def step(random, t):
        state = NOTHING._replace(random=random, counter=t)
        after = settings.next_random(state, t % LENGTH == 0, noise.fold(noise.root(1), t))
        return after, after

    first = settings.first_random()
    after = jax.jit(lambda: lax.scan(step, first, jnp.arange(STEPS))[1])()
    return tuple(np.asarray(x) for x in (after.number, after.left > 0, after.left, after.repeats))


@pytest.fixture(scope="module")
def played():
    return play(EpsilonGreedy(epsilon=0.1, repeat=8))


def test_random_actions_take_n_steps_or_more_with_probability_one_in_n(played):
    """Where one begins far enough from the end of an episode to see how many steps it takes."""
    number, random, left, repeats = played
    begins = random & np.r_[True, number[1:] != number[:-1]]
    early = np.arange(STEPS) % LENGTH < LENGTH - 8
    lengths = left[begins & early & repeats]
    assert len(lengths) > 500
    for n in range(1, 9):
        share = 1.0 / n
        error = 4.0 * np.sqrt(share * (1.0 - share) / len(lengths))
        assert np.mean(lengths >= n) == pytest.approx(share, abs=error + 1e-9)
    assert lengths.max() == 8
    assert set(left[begins & ~repeats].tolist()) == {1}


def test_one_begins_with_probability_epsilon_where_none_is_under_way(played):
    _, random, left, _ = played
    idle = np.r_[True, left[:-1] <= 1] | (np.arange(STEPS) % LENGTH == 0)
    assert np.mean(random[idle]) == pytest.approx(0.1, abs=4 * 0.3 / np.sqrt(idle.sum()))


def test_a_repeated_action_stays_the_same_and_ends_with_the_episode(played):
    number, _, left, _ = played
    under_way = (left[:-1] > 1) & (np.arange(1, STEPS) % LENGTH != 0)
    np.testing.assert_array_equal(number[1:][under_way], number[:-1][under_way])
    np.testing.assert_array_equal(left[1:][under_way], left[:-1][under_way] - 1)
    first = np.arange(STEPS) % LENGTH == 0
    cut = first[1:] & (left[:-1] > 1)
    assert cut.sum() > 20
    assert np.all(number[1:][cut] != number[:-1][cut])


def test_about_half_of_the_episodes_repeat(played):
    repeats = played[3].reshape(-1, LENGTH)
    assert np.all(repeats == repeats[:, :1])
    assert np.mean(repeats[:, 0]) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(len(repeats)))


def test_actions_are_uniform_over_those_that_are_allowed():
    numbers = (jnp.arange(3000) + 0.5) / 3000
    action = jax.vmap(control.action_of, (0, None, None))
    assert np.bincount(action(numbers, jnp.zeros(2), 3)).tolist() == [1000, 1000, 1000]
    s = masked(jnp.zeros(2), jnp.array([True, False, True, True]))
    assert np.bincount(action(numbers, s, 4)).tolist() == [1000, 0, 1000, 1000]


def test_the_action_under_way_replaces_the_best_one():
    settings, q, s = EpsilonGreedy(repeat=8), jnp.array([0.0, 3.0, 1.0]), jnp.zeros(2)

    def choose(left: int) -> int:
        random = control.RandomAction(jnp.float32(0.9), jnp.int32(left), jnp.asarray(True))
        state = NOTHING._replace(random=random)
        return int(settings.epsilon_greedy(q, s, state, noise.root(0)))

    assert [choose(left) for left in (0, 1, 5)] == [1, 2, 2]
