"""Verdicts by intervals: each can come out three ways."""

import numpy as np

from rove.experiments.claims import Claim

SEEDS = np.arange(-2.0, 3.0)
"""Of mean 0, within ±1.96 by Student's interval, and ±2.31 by Welch's of two such groups."""
YES, NO, OPEN = "reproduced", "not reproduced", "inconclusive"


def test_more_than_is_by_the_interval_of_a_difference():
    def verdict(gain):
        return Claim.ahead("a claim", "score", SEEDS + gain, SEEDS).verdict

    assert [verdict(gain) for gain in (2.4, 2.2, -2.2, -2.4)] == [YES, OPEN, OPEN, NO]


def test_not_more_than_so_many_times_counts_the_spread_of_both():
    def verdict(gain, other=SEEDS + 10.0):
        return Claim.not_ahead("a claim", "score", SEEDS + 10.0 + gain, other, times=1.5).verdict

    assert [verdict(gain) for gain in (0.0, 5.0, 9.0)] == [YES, OPEN, NO]
    # What is 1.1 times as much is also spread 1.1 times as widely: 1.1 ± 1.16, not ± 1.05.
    claim = Claim.not_ahead("a claim", "score", np.zeros(5), 1.0 + 0.535 * SEEDS, times=1.1)
    assert claim.verdict == OPEN


def test_a_limit_is_held_against_the_interval_of_a_mean():
    def verdicts(mean):
        told = ("a claim", "score", SEEDS + mean, 10.0)
        return Claim.above(*told).verdict, Claim.below(*told).verdict

    found = [verdicts(mean) for mean in (12.0, 11.9, 8.1, 8.0)]
    assert found == [(YES, NO), (OPEN, OPEN), (OPEN, OPEN), (NO, YES)]


def test_evidence_has_its_interval_and_n():
    claim = Claim.above("a claim", "its score", SEEDS + 12.0, 10.0)
    assert claim.evidence == "its score: mean 12, 95% interval 10 to 14, n = 5; limit 10"
    claim = Claim.ahead("a claim", "score", SEEDS + 4.0, SEEDS + 1.0)
    assert claim.evidence.endswith("4 and 1; difference 3, 95% interval 0.694 to 5.31, n = 5")
