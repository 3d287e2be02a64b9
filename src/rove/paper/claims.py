"""Claims, the evidence for or against them, and verdicts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from rove.analysis.intervals import MIN_SEEDS, Support, difference_test, holm, proportion_test

LEVEL = 0.05
"""Significance level, before and after the adjustment for several claims."""
Verdict = Literal["supported", "not supported", "inconclusive", "not tested"]


@dataclass(frozen=True)
class Claim:
    """A claim and what the data say about it."""

    text: str
    """The claim, usually from the paper."""
    evidence: str
    """What was measured, with n and an interval."""
    verdict: Verdict
    p: float | None = None
    """Two-sided p-value; None if the claim was not tested."""
    p_holm: float | None = None
    """The p-value adjusted over all claims that were tested together."""

    @property
    def after_holm(self) -> str:
        """Whether the verdict remains significant after Holm's adjustment."""
        if self.p_holm is None or self.verdict == "inconclusive":
            return "–"
        return "significant" if self.p_holm < LEVEL else "not significant"

    @staticmethod
    def judge(text: str, evidence: str, above: bool, p: float) -> "Claim":
        """Return the claim with its verdict: inconclusive unless the two-sided test is significant,
        otherwise supported if `above`, else not supported."""
        verdict: Verdict = "supported" if above else "not supported"
        return Claim(text, evidence, verdict if p < LEVEL else "inconclusive", p)

    @staticmethod
    def count(text: str, what: str, groups: np.ndarray | Mapping[str, np.ndarray]) -> "Claim":
        """Test whether more than half of all seeds satisfy a condition, in every group. The weakest
        group decides for the claim. The strongest evidence of any group decides against it,
        adjusted for the number of groups (Bonferroni)."""
        groups = groups if isinstance(groups, Mapping) else {"": groups}
        tests, evidence = [], what
        for name, holds in groups.items():
            count, n = int(holds.sum()), len(holds)
            test = proportion_test(count, n)
            evidence += f"{f'; {name}' * bool(name)}: {count} of {n} seeds"
            if n >= MIN_SEEDS:
                evidence += f" (95% interval {test.low:.0%} to {test.high:.0%})"
            tests.append(test)
        below = [test.p for test in tests if test.value <= 0.5]
        p = min(1.0, len(groups) * min(below)) if below else max(test.p for test in tests)
        return Claim.judge(text, evidence, not below, p)

    @staticmethod
    def ahead(
        text: str,
        what: str,
        better: np.ndarray,
        worse: np.ndarray,
        support: Support,
        support_of_worse: Support | None = None,
    ) -> "Claim":
        """Test whether one mean over seeds is above another, by the melded interval of their
        difference."""
        test = difference_test(better, worse, support, support_of_worse)
        sizes = dict.fromkeys((len(better), len(worse)))
        interval = f", 95% interval {test.low:.3g} to {test.high:.3g}"
        evidence = (
            f"mean {what} {better.mean():.4g} and {worse.mean():.4g}; difference "
            f"{test.value:.3g}{interval if min(sizes) >= MIN_SEEDS else ''}, "
            f"n = {' and '.join(map(str, sizes))}"
        )
        return Claim.judge(text, evidence, test.value > 0.0, test.p)


def adjusted(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims with p-values adjusted by Holm's method over all that were tested."""
    tested = [i for i, claim in enumerate(claims) if claim.p is not None]
    p_holm = dict(zip(tested, holm([claims[i].p or 0.0 for i in tested]), strict=True))
    return [replace(claim, p_holm=p_holm.get(i)) for i, claim in enumerate(claims)]


def as_json(claims: Sequence[Claim]) -> str:
    """Return the claims as JSON."""
    rows = [asdict(claim) | {"after_holm": claim.after_holm} for claim in claims]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def as_markdown(claims: Sequence[Claim]) -> str:
    """Return the claims as a Markdown table."""
    columns = ["claim", "what was measured", "verdict", "over all claims (Holm)"]
    cells = [[c.text, c.evidence, c.verdict, c.after_holm] for c in claims]
    lines = [columns, ["---"] * len(columns), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
