"""Alarms on curves written by hand."""

import numpy as np
import pytest

from rove.analysis import networks
from rove.analysis.alarms import (
    EXPLORE_CONTINUOUS,
    EXPLORE_MORE,
    KEEP_IT,
    UNTIL_SOLVED,
    Seed,
    alarms,
    collapsed_at,
    found_nothing,
    remedies,
    start_value,
)
from rove.analysis.networks import is_misjudged, lets_down
from rove.training.conclusion import Inspection
from rove.training.solving import is_lost, is_optimal


def test_collapsed_at_by_hand():
    spread = np.r_[1.0, np.full(40, 0.005)]
    assert collapsed_at(np.zeros(41), spread, 1.0) == 21
    assert collapsed_at(np.r_[np.zeros(15), np.ones(26)], spread, 1.0) is None
    assert collapsed_at(np.zeros(41), np.maximum(spread, 0.02), 1.0) is None
    assert collapsed_at(np.zeros(0), np.zeros(0), 1.0) is None


NETWORK = Inspection(
    units_off=(0.5,), value_range=60.0, largest_value=100.0, gap_range=1.0, actions=2,
    policy_constant=False, value_at_start=37.0, return_from_start=37.2, one_state=False,
    bootstrapped=False, expected=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "earned", "alarm"),
    [
        (0.6, 37.2, True),  # a network that is off
        (90.0, 37.2, True),
        (20.0, 37.2, False),  # within a factor of two
        (1.3, 0.3, False),  # within a tenth of the range of returns
        (-4.0, 4.0, True),
    ],
)
def test_values_far_from_what_the_policy_earns(value, earned, alarm):
    network = NETWORK._replace(value_at_start=value, return_from_start=earned)
    seed = Seed(0, np.zeros(30), np.zeros(30), network=network, scale=11.0)
    assert is_misjudged(seed) == alarm
    other = network._replace(expected=False)  # intrinsic rewards, or a risk measure
    assert not is_misjudged(seed._replace(network=other))
    assert not is_misjudged(seed._replace(network=None))


def test_a_delivered_policy_that_lets_down():
    scores = np.r_[np.zeros(100), np.ones(50)]
    seed = Seed(0, scores, scores, evaluated=[0.0] * 20, score_scale=1.0)
    assert lets_down(seed)
    assert lets_down(seed._replace(evaluated=[1.0] * 17 + [0.0] * 3))  # p = 0.021
    assert not lets_down(seed._replace(evaluated=[1.0] * 18 + [0.0] * 2))  # p = 0.079
    assert not lets_down(seed._replace(evaluated=[1.0] * 20))
    high = seed._replace(scores=100.0 + scores, evaluated=[100.99] * 20, score_scale=100.0)
    assert not lets_down(high)  # less than 5% of the range


def test_found_nothing_by_hand():
    same = np.full(20, -200.0)
    assert found_nothing(same, None)
    assert found_nothing(same, 0.0)
    assert not found_nothing(same, -200.0)  # every episode was optimal
    assert not found_nothing(same[:19], None)  # too early to say
    assert not found_nothing(np.r_[same, -199.0], None)
    assert not found_nothing(np.zeros(0), None)


def test_small_costs_are_nothing_beside_a_known_optimum():
    """As on Deep Sea, where moving costs at most 0.01 and the treasure is worth 1."""
    costs = np.tile([0.0, -0.0017, -0.01], 10)
    assert found_nothing(costs, 0.99)
    assert not found_nothing(costs, None)  # of which nothing is known
    assert not found_nothing(np.r_[costs, 0.99], 0.99)
    lengths = np.tile([9.0, 14.0, 22.0, 35.0], 5)  # a dense reward: CartPole at random, of 500
    assert not found_nothing(lengths, 500.0)
    close = np.tile([8.0, 9.0, 12.0], 10)  # or with one action
    assert not found_nothing(close, 500.0)
    assert not found_nothing(np.tile([-200.0, -180.0], 10), 300.0)  # as on LunarLander
    assert not found_nothing(np.tile([-0.01, 0.0], 10), 0.0)


def test_an_alarm_names_the_seed_and_the_score():
    (sentence,) = alarms(Seed(3, np.zeros(30), np.ones(30)))
    assert sentence == ("seed 3: all 30 episodes scored 0: nothing better was found")
    both = alarms(Seed(3, np.zeros(41), np.r_[1.0, np.full(40, 0.005)], 1.0))
    assert "collapsed by episode 21" in both[0]
    assert "all 41 episodes scored 0" in both[1]
    (sentence,) = alarms(Seed(3, np.tile([0.0, -0.01], 15), np.ones(30), 0.99))
    assert sentence == "seed 3: all 30 episodes scored -0.01 to 0: nothing better was found"
    assert alarms(Seed(3, np.arange(30.0), np.ones(30))) == []


def test_a_reward_that_was_found_and_not_kept():
    scores = np.zeros(50)
    scores[[4, 20]] = 0.99  # too few in a row to count as solved
    seed = Seed(1, scores, np.ones(50), 0.99)
    assert not is_lost(scores, 0.99)
    (sentence,) = alarms(seed)
    assert sentence == (
        "seed 1: 2 episodes scored more than half of the optimum, but none of the last 20"
    )
    assert remedies([seed], "dqn") == [KEEP_IT]
    assert alarms(seed._replace(evaluated=[0.99])) == []
    assert alarms(seed._replace(scores=scores[:30])) == []  # one of the last 20


def test_values_far_above_the_optimum():
    seed = Seed(0, np.tile([0.0, 0.2], 20), np.ones(40), 1.0, value=2.5)
    (sentence,) = alarms(seed)
    assert sentence == "seed 0: the learned Q is still 2.5 at the start, far above the optimum 1"
    assert alarms(seed._replace(value=1.9)) == []
    assert alarms(seed._replace(scores=np.ones(40))) == []  # solved all the same
    lost = seed._replace(scores=np.r_[np.ones(20), np.zeros(20)])
    assert "far above the optimum" in alarms(lost)[1]
    lower = "to lower Q, try a smaller --agent.gamma, such as 0.9"
    assert remedies([seed], "ige") == [f"{lower}, or a smaller --agent.prior"]
    assert remedies([seed], "dqn") == [f"{lower}, or --agent.double"]
    assert remedies([seed], "ge") == [lower]
    values = np.arange(2 * 3 * 1 * 2.0).reshape(2, 3, 1, 2)
    ones, zeros = np.ones(30), np.zeros(30)
    assert start_value(values, ones, ones, "return", 30) == 9.0  # the mean of 7, 9 and 11
    assert start_value(values, ones, ones, "goal reached", 30) is None
    assert start_value(values, ones, zeros, "return", 30) is None  # rewards after a time limit
    assert start_value(values, zeros, zeros, "return", 30) == 9.0  # a time limit, but no rewards
    assert start_value(values, ones, ones, "return", 19) is None  # too early


def test_an_optimum_that_is_exceeded_is_wrong():
    (sentence,) = alarms(Seed(2, np.r_[np.ones(30), 1.5], np.ones(31), 1.0))
    assert sentence == "seed 2: an episode scored 1.5, above the optimum 1, which is wrong"
    assert alarms(Seed(2, np.full(30, 1.00001), np.ones(30), 1.0)) == []  # rounding


def test_optimal_scores_are_told_at_any_scale():
    """1,000 rewards of 0.1 in single precision, and rewards of 1e-30."""
    total = np.float32(0.0)
    for _ in range(1000):
        total += np.float32(0.1)
    assert is_optimal(np.array([total, 99.9]), 100.0).tolist() == [True, False]
    assert is_optimal(np.array([5e-30, 4e-30, 0.0]), 5e-30).tolist() == [True, False, False]
    assert is_optimal(np.array([-10.0, -10.1]), -10.0).tolist() == [True, False]
    assert is_optimal(np.array([0.0, -0.01]), 0.0).tolist() == [True, False]


def test_a_solution_that_is_lost_again():
    kept, lost = np.ones(60), np.r_[np.ones(30), np.zeros(30)]
    assert not is_lost(kept, 1.0)
    assert is_lost(lost, 1.0)
    assert not is_lost(lost, 1.0, evaluated=[0.0, 1.0])  # it explores, but has learned
    assert is_lost(lost, 1.0, evaluated=[0.5, 0.9, 1.0])
    assert not is_lost(np.zeros(60), 1.0)  # never solved
    assert not is_lost(np.r_[np.zeros(50), np.ones(10)], 1.0)  # solved at the end
    assert not is_lost(np.r_[np.ones(40), np.tile([0.0, 1.0], 10)], 1.0)  # half of the last 20
    (sentence,) = alarms(Seed(3, lost, np.ones(60), 1.0))
    start = "seed 3: solved at episode 10 and lost again"
    assert sentence == f"{start}: of the last 20 episodes 0 are optimal"


def test_advice_is_about_what_went_wrong_and_fits_the_agent():
    nothing, lost = (
        Seed(0, scores, np.ones(len(scores)), 1.0)
        for scores in (np.zeros(30), np.r_[np.ones(30), np.zeros(30)])
    )
    assert remedies([nothing, lost], "dqn") == [EXPLORE_MORE, KEEP_IT + UNTIL_SOLVED]
    assert remedies([nothing, nothing], "own agent") == [EXPLORE_MORE]
    assert remedies([nothing], "ige") == [
        "to explore more, try a larger --agent.prior, the agent auto, or more episodes"
    ]
    assert "try auto, ige" in EXPLORE_MORE
    (own,) = remedies([nothing], "auto")
    assert own.startswith("to explore more, try ige")
    assert "auto" not in own
    (continuous,) = remedies([nothing], "ddpg")
    assert continuous == EXPLORE_CONTINUOUS
    assert remedies([nothing, lost], "psrl") == ["to explore more, train for more episodes"]
    assert remedies([lost._replace(evaluated=[1.0])], "dqn") == []


def test_what_was_done_already_is_no_advice():
    scores = np.ones(60)
    worse = networks.Seed(0, scores, scores, evaluated=np.zeros(20), score_scale=1.0)
    (tip,) = networks.remedies([worse], samples=False)
    assert "--eval-every," in tip
    (tip,) = networks.remedies([worse._replace(evaluated_in_training=True)], samples=False)
    assert "--eval-every" not in tip
