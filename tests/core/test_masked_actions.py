"""Actions that are not allowed: neither chosen, nor used in targets. Values by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from helpers import in_buffer, targets
from rove.core import control
from rove.core.algorithm import Agent
from rove.parts import noise
from rove.parts.masks import Masked
from rove.parts.networks import Linear
from rove.parts.onehot import Form
from rove.parts.replay import Transition
from rove.posteriors import Dirac, Phi
from rove.returns import Categorical, Gaussian

NETWORK = (Linear(jnp.array([[1.0, -1.0, 3.0]]), jnp.array([-1.0, 0.5, 0.0])),)
"""Q⁻(2) = (1, −1.5, 6) and Q⁻(−1) = (−2, 1.5, −3)."""
ONLINE = (Linear(jnp.array([[1.0, 1.0, 1.0]]), jnp.array([0.0, 1.0, 9.0])),)
"""Q(2) = (2, 3, 11) and Q(−1) = (−1, 0, 8): action 2 is the best, then action 1."""

target = jax.jit(targets)


def agent(**settings) -> Agent:
    settings = {"hidden": (), "gamma": 0.5, "batch_size": 4, "buffer_size": 8, **settings}
    return Agent(Gaussian(0.0), Dirac(), **settings)


def transitions(allowed) -> Transition:
    """Four transitions with r = 0.25: to 2, to 2, to −1, and to 2 with an end of the task."""
    batch = Transition(
        observation=jnp.full((4, 1), 7.0),
        action=jnp.zeros(4, jnp.int32),
        reward=jnp.full(4, 0.25),
        next_observation=jnp.array([[2.0], [2.0], [-1.0], [2.0]]),
        terminated=jnp.array([False, False, False, True]),
    )
    allowed = jnp.asarray(allowed, bool)
    return in_buffer(batch._replace(next_observation=Masked(batch.next_observation, allowed)))


MASKS = [[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("double", "x"),
    [
        # max over allowed: Q⁻(2) → 1, then −1.5; Q⁻(−1) → max(−2, −3); at the end the reward alone.
        (False, [0.25 + 0.5 * 1.0, 0.25 - 0.5 * 1.5, 0.25 - 0.5 * 2.0, 0.25]),
        # The allowed action that Q prefers (1, 1, 2), with the value of Q⁻.
        (True, [0.25 - 0.5 * 1.5, 0.25 - 0.5 * 1.5, 0.25 - 0.5 * 3.0, 0.25]),
    ],
)
def test_a_target_uses_the_best_allowed_action(double, x):
    """Action 2 has the highest Q⁻ of all in s′ = 2, where it is not allowed."""
    drawn = target(
        agent(double=double), ONLINE, NETWORK, transitions(MASKS), noise.root(0), noise.root(1)
    )
    np.testing.assert_allclose(drawn, [x], rtol=1e-6)


def test_a_mask_that_allows_everything_changes_nothing():
    masked = transitions(np.ones((4, 3)))
    plain = masked._replace(next_observation=masked.next_observation.observation)
    for double in (False, True):
        drawn = [
            target(agent(double=double), ONLINE, NETWORK, batch, noise.root(0), noise.root(1))
            for batch in (masked, plain)
        ]
        np.testing.assert_array_equal(*drawn)


def test_an_empty_mask_at_the_end_of_the_task_is_harmless_for_a_distribution():
    """The target of C51 is the reward alone, without a NaN from actions that do not exist."""
    returns = Categorical(atoms=3, low=0.0, high=1.0)
    learner = Agent(returns, Dirac(), hidden=(), gamma=0.5, batch_size=4, buffer_size=8)
    network = (Linear(jnp.zeros((1, 9)), jnp.zeros(9)),)
    drawn = target(learner, network, network, transitions(MASKS), noise.root(0), noise.root(1))
    np.testing.assert_allclose(drawn[0, 3], [0.5, 0.5, 0.0], atol=1e-6)
    assert np.isfinite(drawn).all()


def test_the_greedy_and_the_acting_policy_choose_the_best_allowed_action():
    """Q(2) = (1, −1.5, 6): best 2, then 0, then 1."""
    learner = agent()
    state = learner.init(1, 3, noise.root(0), Form(masked=True))._replace(phi=Phi(NETWORK))
    choose = jax.jit(lambda x: (learner.greedy(state, x), learner.act(state, x, noise.root(1))))
    for allowed, best in (([1, 1, 1], 2), ([1, 1, 0], 0), ([0, 1, 0], 1), ([0, 1, 1], 2)):
        chosen = choose(Masked(jnp.array([2.0]), jnp.asarray(allowed, bool)))
        assert [int(action) for action in chosen] == [best, best]


def test_random_actions_are_uniform_over_those_that_are_allowed():
    """χ² with one degree of freedom less than there are allowed actions; ε = 0.6 of 4,000."""
    allowed = np.array([0, 1, 0, 1, 1, 0, 1], bool)
    q = jnp.array([9.0, 0.0, 0.0, 0.0, 1.0, 9.0, 0.0])
    s = Masked(jnp.zeros(1), jnp.asarray(allowed))
    choose = jax.vmap(lambda key: control.epsilon_greedy(q, s, jnp.asarray(0.6), key))
    chosen = np.asarray(jax.jit(choose)(noise.folds(noise.root(3), 4000)))
    counts = np.bincount(chosen, minlength=7)
    assert not counts[~allowed].any()
    expected = 4000 * (0.6 * np.array([0, 1, 0, 1, 1, 0, 1]) / 4 + 0.4 * np.eye(7)[4])
    assert stats.chisquare(counts[allowed], expected[allowed]).pvalue > 1e-3
