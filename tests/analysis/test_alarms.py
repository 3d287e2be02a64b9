"""Alarms on curves written by hand."""

import numpy as np

from rove.analysis.alarms import (
    EXPLORE_MORE,
    KEEP_IT,
    alarms,
    collapsed_at,
    found_nothing,
    remedies,
)
from rove.training.solving import is_lost


def test_collapsed_at_by_hand():
    spread = np.r_[1.0, np.full(40, 0.005)]
    assert collapsed_at(np.zeros(41), spread, 1.0) == 21
    assert collapsed_at(np.r_[np.zeros(15), np.ones(26)], spread, 1.0) is None
    assert collapsed_at(np.zeros(41), np.maximum(spread, 0.02), 1.0) is None
    assert collapsed_at(np.zeros(0), np.zeros(0), 1.0) is None


def test_found_nothing_by_hand():
    same = np.full(20, -200.0)
    assert found_nothing(same, None)
    assert found_nothing(same, 0.0)
    assert not found_nothing(same, -200.0)  # every episode was optimal
    assert not found_nothing(same[:19], None)  # too early to say
    assert not found_nothing(np.r_[same, -199.0], None)
    assert not found_nothing(np.zeros(0), None)


def test_an_alarm_names_the_seed_and_the_score():
    (sentence,) = alarms(3, np.zeros(30), np.ones(30), None)
    assert sentence == ("seed 3: all 30 episodes scored 0: nothing better was found")
    both = alarms(3, np.zeros(41), np.r_[1.0, np.full(40, 0.005)], 1.0)
    assert "collapsed by episode 21" in both[0]
    assert "all 41 episodes scored 0" in both[1]
    assert alarms(3, np.arange(30.0), np.ones(30), None) == []


def test_a_solution_that_is_lost_again():
    kept, lost = np.ones(60), np.r_[np.ones(30), np.zeros(30)]
    assert not is_lost(kept, 1.0)
    assert is_lost(lost, 1.0)
    assert not is_lost(lost, 1.0, greedy=1.0)  # it explores, but has learned
    assert is_lost(lost, 1.0, greedy=0.5)
    assert not is_lost(np.zeros(60), 1.0)  # never solved
    assert not is_lost(np.r_[np.zeros(50), np.ones(10)], 1.0)  # solved at the end
    assert not is_lost(np.r_[np.ones(40), np.tile([0.0, 1.0], 10)], 1.0)  # half of the last 20
    (sentence,) = alarms(3, lost, np.ones(60), 1.0, lost=True)
    start = "seed 3: solved at episode 10 and lost again"
    assert sentence == f"{start}: of the last 20 episodes 0 are optimal"


def test_advice_is_about_what_went_wrong():
    nothing, lost = np.zeros(30), np.r_[np.ones(30), np.zeros(30)]
    assert remedies([nothing, lost], 1.0, [False, True]) == [EXPLORE_MORE, KEEP_IT]
    assert remedies([nothing, nothing], 1.0, [False, False]) == [EXPLORE_MORE]
    assert remedies([lost], 1.0, [False]) == []
