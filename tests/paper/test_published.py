"""The claims that the quick forms print are those of the committed full runs."""

from pathlib import Path

from rich.console import Console

from rove.cli import display
from rove.paper import EXPERIMENTS, published

DATA = Path(__file__).parents[2] / "docs" / "data"


def test_the_packaged_claims_are_the_committed_ones():
    """If this fails: rove.paper.published.write("docs/data")"""
    collected = published.collected(DATA)
    assert collected.keys() == EXPERIMENTS.keys()
    for name, claims in collected.items():
        packaged = published.claims(name)
        assert [{k: getattr(claim, k) for k in published.FIELDS} for claim in packaged] == claims
    steady = "N = 100: GE makes progress more consistently than NoisyNet"
    (claim,) = [claim for claim in published.claims("figure-2") if claim.text == steady]
    assert claim.verdict == "supported"
    assert "n = 10" in claim.evidence


def test_the_quick_form_prints_what_the_committed_seeds_say():
    console = Console(width=500, record=True)
    claims = published.claims("figure-3")
    display.claims_table(console, claims, "figure-3", quick=True)
    printed = console.export_text()
    assert "figure-3: claims, as the committed full run judged them" in printed
    assert printed.count("n = 10") + printed.count("of 10 seeds") >= len(claims)
    assert "The quick form only draws the figure: its seeds are too few to test a claim." in printed
    assert printed.rstrip().endswith("rove reproduce figure-3")
    display.claims_table(console, claims, "figure-3", quick=False)
    assert "quick" not in console.export_text()
