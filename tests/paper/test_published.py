"""The verdicts that the quick forms quote are those of the committed full runs."""

from pathlib import Path

from rove.paper import EXPERIMENTS, published
from rove.paper.claims import Claim, as_markdown

DATA = Path(__file__).parents[2] / "docs" / "data"


def test_the_packaged_verdicts_are_those_of_the_committed_claims():
    """If this fails: rove.paper.published.write("docs/data")"""
    collected = published.collected(DATA)
    assert published.verdicts() == collected
    assert collected.keys() == EXPERIMENTS.keys()
    assert (
        collected["figure-2"]["N = 100: GE makes progress more consistently than NoisyNet"]
        == "supported, n = 10"
    )
    assert not any(
        verdict.endswith("?") for group in collected.values() for verdict in group.values()
    )


def test_a_claim_in_quick_form_has_no_verdict_of_its_own():
    claim = Claim.judge("GE is ahead", "n = 2", above=True, p=0.001)
    assert (claim.verdict, claim.direction) == ("supported", "as claimed")
    quick = claim.without_verdict("inconclusive, n = 10")
    assert (quick.verdict, quick.direction, quick.p) == ("no verdict", "as claimed", None)
    assert as_markdown([quick]).splitlines()[2] == (
        "| GE is ahead | n = 2 | as claimed | inconclusive, n = 10 |"
    )
