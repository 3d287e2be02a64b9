"""Titles and notes, by hand."""

import numpy as np
import pytest

from rove.analysis.sentences import Result, headline, note_above_optimum

GE = Result("GE", "chain-100", 5, 5, 11.0)
DQN = Result("DQN", "chain-100", 0, 5, 0.1)


def test_a_title_says_how_many_seeds_solved_the_task():
    assert headline([GE]) == "GE solves chain-100 on 5 of 5 seeds"
    assert headline([DQN._replace(seeds=1)]) == "DQN solves chain-100 on 0 of 1 seed"
    assert headline([DQN, GE]) == "GE solves chain-100 on 5 of 5 seeds and DQN on 0 of 5"
    three = [DQN, GE, Result("C51", "chain-100", 2, 5, 3.0)]
    assert headline(three).endswith("5 of 5 seeds, C51 on 2 of 5 and DQN on 0 of 5")
    five = [*three, DQN._replace(agent="A"), DQN._replace(agent="B")]
    assert headline(five).endswith("C51 on 2 of 5, DQN on 0 of 5 and 2 more agents")


def test_without_an_optimum_a_title_says_the_final_score():
    cart = Result("DQN", "gym/CartPole-v1", None, 3, 187.4, "episode length")
    assert headline([cart]) == "DQN on gym/CartPole-v1: episode length 187 at the end"
    low = cart._replace(agent="GE", final=-9.25)
    assert headline([low, cart]).endswith("episode length 187 at the end and GE −9.25")


def test_values_above_the_optimum_are_explained_where_a_time_limit_is_bootstrapped():
    above, below = np.array([3.0, 11.5]), np.array([3.0, 11.0])
    limited, ended = np.array([True, False]), np.array([True, True])
    assert "bootstrap" in str(note_above_optimum(above, 11.0, limited))
    assert "11" in str(note_above_optimum(above, 11.0, limited))
    assert note_above_optimum(below, 11.0, limited) is None
    assert note_above_optimum(above, 11.0, ended) is None
    assert note_above_optimum(above, None, limited) is None
    assert note_above_optimum(above, 11.0, limited, "episode length") is None


@pytest.mark.parametrize(
    ("final", "text"), [(123456.7, "123457"), (0.0012345, "0.00123"), (0.0, "0"), (-9.876, "−9.88")]
)
def test_a_title_has_few_digits(final, text):
    assert headline([Result("DQN", "x", None, 1, final)]) == f"DQN on x: return {text} at the end"
