"""Alarms of several seeds in few words."""

import numpy as np

from rove.analysis.alarms import Seed, alarms, untrained
from rove.analysis.findings import finding, grouped


def seed(number, scores, optimum=1.0):
    return Seed(number, np.array(scores, float), np.ones(len(scores)), optimum)


def lost(number, at):
    """Solved at an episode, and lost by the end."""
    return seed(number, [0.0] * (at - 10) + [1.0] * 10 + [0.0] * (60 - at))


NOTHING, KEPT = seed(1, [0.0] * 60), seed(4, [0.0] * 30 + [1.0] * 30)
FORGOTTEN = seed(5, [0.0] * 10 + [0.8] + [0.0] * 49)


def test_one_line_says_what_became_of_the_seeds():
    all_but_one = [lost(0, 20), NOTHING, lost(2, 25), lost(3, 30), KEPT]
    text = "3 of 5 seeds solved it and lost it again; 1 found nothing"
    assert finding(all_but_one) == text
    assert finding([NOTHING]) == "1 of 1 seed found nothing"
    assert finding([KEPT, FORGOTTEN]) == (
        "1 of 2 seeds scored more than half of the optimum, but not in the end"
    )
    assert finding([KEPT]) is None
    assert finding([]) is None


def test_a_policy_that_kept_the_solution_is_no_finding():
    assert finding([lost(0, 20)._replace(evaluated=[1.0])]) is None
    assert finding([lost(0, 20)._replace(evaluated=[0.0])]) is not None


def test_every_alarm_is_a_finding():
    collapsed = seed(6, [0.1, 0.2] * 30)._replace(spread=np.array([1.0] + [0.001] * 59))
    high = seed(7, [0.1, 0.2] * 30)._replace(value=9.0)
    unknown = seed(8, [5.0] * 60, optimum=None)
    above = seed(9, [0.0] * 30 + [1.0] * 29 + [1.1])
    for each in (above, lost(0, 20), NOTHING, FORGOTTEN, collapsed, high, unknown, KEPT):
        assert bool(alarms(each)) == (finding([each]) is not None)


def test_seeds_with_the_same_kind_of_alarm_share_a_sentence():
    three = [
        sentence for x in (lost(0, 20), NOTHING, lost(2, 25), lost(3, 45)) for sentence in alarms(x)
    ]
    assert grouped(three) == [
        "seeds 0, 2 and 3: solved at episode 20 to 45 and lost again: of the last 20 episodes 0 to "
        "5 are optimal",
        "seed 1: all 60 episodes scored 0: nothing better was found",
    ]
    assert grouped(alarms(NOTHING)) == alarms(NOTHING)
    of_the_run = untrained(100, 0, 1_000)
    assert grouped([*alarms(NOTHING), *of_the_run])[1:] == of_the_run
    costs = [
        "seed 0: all 20 episodes scored -0.2 to 0: x",
        "seed 1: all 20 episodes scored -0.1 to 0: x",
    ]
    assert grouped(costs) == ["seeds 0 and 1: all 20 episodes scored -0.2 to 0: x"]
    nothing = ["seed 2: all 20 episodes scored 0.1: x"]
    assert grouped(costs + nothing) == ["seeds 0, 1 and 2: all 20 episodes scored -0.2 to 0.1: x"]
    large = ["seed 0: Q is 1e+09", "seed 1: Q is 1,250.5"]
    assert grouped(large) == ["seeds 0 and 1: Q is 1,250.5 to 1e+09"]
