"""Verdicts by intervals: each can come out three ways."""

import json

import numpy as np
import pytest

from rove.analysis.intervals import holm
from rove.cli import reproducing
from rove.paper.base import write_claims
from rove.paper.claims import Claim, adjusted, as_json, as_markdown

UNIT = (0.0, 1.0)
SEEDS = np.linspace(-0.05, 0.05, 10)
YES, NO, OPEN = "supported", "not supported", "inconclusive"


def yes(count, n=10):
    return np.arange(n) < count


def test_more_than_is_by_the_melded_interval_of_a_difference():
    def verdict(gain):
        claim = Claim.ahead(
            "a claim", "score", 0.5 + gain / 2 + SEEDS, 0.5 - gain / 2 + SEEDS, UNIT
        )
        return claim.verdict

    found = [verdict(gain) for gain in (0.6, 0.3, 0.0, -0.3, -0.6)]
    assert found == [YES, OPEN, OPEN, OPEN, NO]


def test_a_wider_support_leaves_more_open():
    """What is decided of fractions is open if the scores could have been ten times as high."""
    told = ("a claim", "score", 0.8 + SEEDS, 0.2 + SEEDS)
    assert Claim.ahead(*told, UNIT).verdict == YES
    assert Claim.ahead(*told, (0.0, 10.0)).verdict == OPEN


def test_equal_seeds_are_not_certain():
    """Five of one group at 0.6 and five of another at 0.4: nothing is known of the next ones."""
    claim = Claim.ahead("a claim", "score", np.full(5, 0.6), np.full(5, 0.4), UNIT)
    assert claim.verdict == OPEN


def test_most_seeds_is_by_clopper_and_pearson():
    def verdict(count, n=10):
        return Claim.count("a claim", "stuck", yes(count, n)).verdict

    assert [verdict(count) for count in (10, 9, 8, 5, 2, 1, 0)] == [YES, YES, *3 * [OPEN], NO, NO]
    assert [verdict(count, 5) for count in (5, 0)] == [OPEN, OPEN]
    assert [verdict(count, 6) for count in (6, 0)] == [YES, NO]


def test_of_several_groups_the_least_decides():
    def verdict(*counts):
        groups = {f"agent {i}": yes(count) for i, count in enumerate(counts)}
        return Claim.count("a claim", "solved", groups).verdict

    assert verdict(10, 9, 10) == YES
    assert verdict(10, 8, 10) == OPEN
    assert verdict(10, 0, 10) == NO
    # The least of three is more often low by chance: 1 of 10, p = 0.021, is not enough.
    assert verdict(10, 1, 10) == OPEN
    assert verdict(1) == NO


def test_evidence_has_its_interval_and_n():
    claim = Claim.count("a claim", "stuck", {"DQN": yes(9), "GE": yes(10)})
    assert claim.evidence == (
        "stuck; DQN: 9 of 10 seeds (95% interval 55% to 100%); "
        "GE: 10 of 10 seeds (95% interval 69% to 100%)"
    )
    assert claim.p == pytest.approx(22 / 1024)
    assert Claim.count("a claim", "fell", yes(3, 4)).evidence.startswith("fell: 3 of 4 seeds")
    claim = Claim.ahead("a claim", "score", 0.7 + SEEDS, 0.1 + SEEDS, UNIT)
    assert claim.evidence.startswith("mean score 0.7 and 0.1; difference 0.6, 95% interval 0.")
    assert claim.evidence.endswith(", n = 10")
    claim = Claim.ahead("a claim", "score", 0.7 + SEEDS, 0.1 + SEEDS[:4], UNIT)
    assert claim.evidence.endswith(", n = 10 and 4")


def test_holm_is_over_all_claims_that_were_tested():
    """Of 0.002 and 0.0215 and one that was not tested both stand; with eight more, one does."""
    found = [
        Claim.count("a", "stuck", yes(10)),
        Claim("b", "left out", "not tested"),
        Claim.count("c", "stuck", yes(1)),
        Claim.count("d", "stuck", yes(5)),
    ]
    told = adjusted(found)
    assert [claim.after_holm for claim in told] == ["significant", "–", "significant", "–"]
    assert [claim.p_holm for claim in told if claim.p is not None] == pytest.approx(
        holm([claim.p for claim in found if claim.p is not None])
    )
    told = adjusted(found + 8 * [found[3]])
    assert [claim.after_holm for claim in told[:4]] == ["significant", "–", "not significant", "–"]
    assert [claim.verdict for claim in told[:4]] == [claim.verdict for claim in found]


def test_what_is_written():
    told = adjusted([Claim.count("a", "stuck", yes(10)), Claim("b", "left", "not tested")])
    first, second = json.loads(as_json(told))
    assert first["p"] == first["p_holm"] == pytest.approx(2 / 1024)
    assert (first["after_holm"], second["p"], second["p_holm"]) == ("significant", None, None)
    assert as_markdown(told).splitlines()[2:] == [
        "| a | stuck: 10 of 10 seeds (95% interval 69% to 100%) | supported | significant |",
        "| b | left | not tested | – |",
    ]


def test_several_experiments_are_adjusted_together(tmp_path):
    """Each by itself would stand: 3 × 0.0215 and more do not."""
    claims = {name: [Claim.count(name, "stuck", yes(9))] for name in "abc"}
    assert all(adjusted(found)[0].after_holm == "significant" for found in claims.values())
    for name, found in reproducing._adjusted(claims).items():
        write_claims(tmp_path / name, found)
        (told,) = json.loads((tmp_path / name / "claims.json").read_text())
        assert told["text"] == name
        assert told["p_holm"] == pytest.approx(3 * 22 / 1024)
        assert told["after_holm"] == "not significant"
        assert "| not significant |" in (tmp_path / name / "claims.md").read_text()


def test_of_groups_of_unequal_size_the_weakest_decides():
    """Five of five seeds alone are inconclusive, whatever a larger group does; two of thirty are
    not supported, whatever a group of two does."""
    five, nine = np.ones(5, bool), np.arange(10) < 9
    assert Claim.count("a claim", "solved", five).verdict == "inconclusive"
    assert Claim.count("a claim", "solved", nine).verdict == "supported"
    assert Claim.count("a claim", "solved", {"a": five, "b": nine}).verdict == "inconclusive"
    two, few = np.zeros(2, bool), np.arange(30) < 2
    assert Claim.count("a claim", "solved", {"a": two, "b": few}).verdict == "not supported"
