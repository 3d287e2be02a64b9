"""Titles and notes, by hand."""

import numpy as np
import pytest

from rove.analysis.sentences import Result, doubt, headline, note_above_optimum, p_values

GE = Result("GE", "chain-100", 5, 5, 11.0, evidence=((1.0,) * 5,), support=(0.0, 1.0))
DQN = GE._replace(agent="DQN", solved=0, final=0.1, evidence=((0.0,) * 5,))
C51 = GE._replace(agent="C51", solved=2, final=3.0, evidence=((1.0, 1.0, 0.0, 0.0, 0.0),))
APART = " (difference in mean score in training +1, p = 0.0079)"


def test_a_title_says_how_many_seeds_solved_the_task():
    assert headline([GE]) == "GE solves chain-100 on 5 of 5 seeds"
    assert headline([DQN._replace(seeds=1)]) == "DQN does not solve chain-100: 0 of 1 seed"
    assert headline([DQN, GE]) == (f"GE solves chain-100 on 5 of 5 seeds and DQN on 0 of 5{APART}")
    lost = [GE._replace(lost=2), C51._replace(lost=1)]
    assert headline(lost[:1]) == "GE solves chain-100 on 5 of 5 seeds (2 lost it again)"
    assert "seeds (2 lost it again) and C51 on 2 of 5 (1 lost it again)" in headline(lost)
    none = headline([DQN, DQN._replace(agent="A")])
    assert none.startswith("No agent solves chain-100: DQN on 0 of 5 seeds and A on 0 of 5")
    three = [DQN, GE, C51]
    assert "5 of 5 seeds, C51 on 2 of 5 and DQN on 0 of 5" in headline(three)
    five = [*three, DQN._replace(agent="A"), DQN._replace(agent="B")]
    assert "C51 on 2 of 5, DQN on 0 of 5 and 2 more agents" in headline(five)
    settings = [GE._replace(agent=f"GE, rho={i}") for i in range(4)]
    assert headline(settings).endswith(
        "and 1 more setting (too few seeds to rank the settings by mean score in training)"
    )


def test_a_title_begins_with_the_loss_of_all_solutions():
    lost, also, never = GE._replace(lost=5), C51._replace(lost=2), DQN
    assert headline([lost]) == "GE keeps no solution of chain-100: solved and lost on 5 of 5 seeds"
    assert headline([never, also, lost]).startswith(
        "No agent keeps a solution of chain-100: GE solved and lost it on 5 of 5 seeds, C51 on 2"
    )
    settings = [lost._replace(agent=f"GE, rho={i}") for i in range(2)]
    assert headline(settings).startswith("No setting keeps a solution of chain-100: GE, rho=0 ")
    assert headline([lost, C51]).startswith("GE solves chain-100 on 5 of 5 seeds (5 lost it again)")
    assert headline([never]).startswith("DQN does not solve chain-100: 0 of 5 seeds")


def test_a_title_says_when_the_seeds_do_not_tell_agents_apart():
    """5 of 5 against 0 of 5 has p = 0.008 by Fisher's test; 3 of 3 against 0 of 3, p = 0.1."""
    few = [r._replace(seeds=3, evidence=(r.evidence[0][:3],)) for r in (GE, DQN)]
    assert doubt([GE, DQN]) == doubt([DQN, GE]) == APART
    unknown = " (too few seeds to rank them: difference in mean score in training +1, p = 0.1)"
    assert doubt(few) == unknown
    assert headline(few).endswith(unknown)
    not_told = " (by mean score in training, the seeds do not tell C51 from GE)"
    assert doubt([GE, DQN, C51]) == not_told
    assert doubt([GE]) == ""
    many = [GE, *(DQN._replace(agent=f"A{i}") for i in range(12))]  # p = 0.008 times 12
    assert doubt(many) == " (too few seeds to rank the agents by mean score in training)"


def test_p_values_are_those_of_the_best_against_each_other():
    """In the order given; the smaller of two is doubled (Holm)."""
    assert p_values([DQN, GE, C51]) == pytest.approx([2 * 2 / 252, None, 2 * 21 / 252])
    assert p_values([GE]) == [None]


def test_agents_that_solved_equally_many_seeds_are_ranked_by_when():
    """ "Later" describes medians; it is said if the mean scores in training differ."""
    sooner = GE._replace(agent="B", final=1.0, times=(20.0, 21.0, 22.0, 23.0, 24.0))
    later = GE._replace(times=(80.0, 81.0, 82.0, 83.0, 84.0), evidence=((0.0,) * 5,))
    never = DQN._replace(times=(np.inf,) * 5)
    text = "B solves chain-100 on 5 of 5 seeds, GE on 5 of 5 but later and DQN on 0 of 5"
    assert headline([never, later, sooner]) == text
    assert p_values([never, later, sooner]) == pytest.approx([4 / 252, 4 / 252, None])
    alike = later._replace(evidence=GE.evidence)
    assert "GE on 5 of 5 (too few seeds to rank them" in headline([alike, sooner])
    assert p_values([never, never._replace(agent="A")])[1] == 1.0


def test_scores_of_an_unknown_range_are_compared_by_permutations():
    high = Result("A", "x", None, 5, 9.0, evidence=((9.0, 9.1, 8.9, 9.0, 9.2),))
    low = high._replace(agent="B", final=1.0, evidence=((1.0, 1.1, 0.9, 1.0, 1.2),))
    assert doubt([high, low]) == " (difference in mean score in training +8, p = 0.0079)"
    assert doubt([high, high._replace(agent="B")]).startswith(" (too few seeds to rank them")


def test_without_an_optimum_a_title_says_the_final_score():
    cart = Result("DQN", "gym/CartPole-v1", None, 3, 187.4, "episode length", ((1.0, 2.0),))
    assert headline([cart]) == "DQN on gym/CartPole-v1: episode length 187 at the end"
    low = cart._replace(agent="GE", final=-9.25)
    assert "episode length 187 at the end and GE −9.25" in headline([low, cart])


def test_values_above_the_optimum_are_explained_where_a_time_limit_is_bootstrapped():
    above, below = np.array([3.0, 11.5]), np.array([3.0, 11.0])
    ended, scores = np.array([True, True]), np.array([3.0, 2.0])
    limited = np.array([True, False])
    assert "bootstrap" in str(note_above_optimum(above, 11.0, scores, limited))
    assert "11" in str(note_above_optimum(above, 11.0, scores, limited))
    assert note_above_optimum(below, 11.0, scores, limited) is None
    assert note_above_optimum(above, 11.0, scores, ended) is None
    assert note_above_optimum(above, None, scores, limited) is None
    assert note_above_optimum(above, 11.0, scores, limited, "episode length") is None
    unrewarded = np.array([3.0, 0.0])  # the episode that the limit ended
    assert "intrinsic" in str(note_above_optimum(above, 11.0, scores, ended, intrinsic=True))
    assert note_above_optimum(below, 11.0, scores, ended, intrinsic=True) is None
    assert "overestimates" in str(note_above_optimum(above, 11.0, unrewarded, limited))


@pytest.mark.parametrize(
    ("final", "text"), [(123456.7, "123457"), (0.0012345, "0.00123"), (0.0, "0"), (-9.876, "−9.88")]
)
def test_a_title_has_few_digits(final, text):
    assert headline([Result("DQN", "x", None, 1, final)]) == f"DQN on x: return {text} at the end"
