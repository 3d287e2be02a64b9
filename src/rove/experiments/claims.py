"""A claim of the paper, what the data say about it, and a verdict."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from rove.statistics import Support, difference_test, holm, proportion_test

LEVEL = 0.05
"""Of a verdict, and, adjusted for all claims, of one that stands."""
Verdict = Literal["reproduced", "not reproduced", "inconclusive", "not tested"]


@dataclass(frozen=True)
class Claim:
    text: str
    """The paper's claim."""
    evidence: str
    """What was measured, with n and an interval."""
    verdict: Verdict
    p: float | None = None
    """Two-sided p-value; none where nothing was tested."""
    p_holm: float | None = None
    """The same, adjusted for all claims that were tested together."""

    @property
    def after_holm(self) -> str:
        """Whether a verdict stands among all claims."""
        if self.p_holm is None or self.verdict == "inconclusive":
            return "–"
        return "stands" if self.p_holm < LEVEL else "does not stand"

    @staticmethod
    def judge(text: str, evidence: str, above: bool, p: float) -> "Claim":
        """For "more than": the estimate is above its limit or below it, or so few seeds cannot
        tell."""
        verdict: Verdict = "reproduced" if above else "not reproduced"
        return Claim(text, evidence, verdict if p < LEVEL else "inconclusive", p)

    @staticmethod
    def count(text: str, what: str, groups: np.ndarray | Mapping[str, np.ndarray]) -> "Claim":
        """More than half of all seeds satisfy a condition; of several groups, more than half of
        every group. For it the weakest group decides; against it the strongest does, adjusted for
        the number of groups (Bonferroni)."""
        groups = groups if isinstance(groups, Mapping) else {"": groups}
        found, evidence = [], what
        for name, holds in groups.items():
            count, n = int(holds.sum()), len(holds)
            each = proportion_test(count, n)
            interval = f"95% interval {each.low:.0%} to {each.high:.0%}"
            evidence += f"{f'; {name}' * bool(name)}: {count} of {n} seeds ({interval})"
            found.append(each)
        below = [each.p for each in found if each.value <= 0.5]
        p = min(1.0, len(groups) * min(below)) if below else max(each.p for each in found)
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
        """The mean of one over seeds is above that of the other, by the melded interval of the
        difference."""
        found = difference_test(better, worse, support, support_of_worse)
        sizes = dict.fromkeys((len(better), len(worse)))
        evidence = (
            f"mean {what} {better.mean():.4g} and {worse.mean():.4g}; difference "
            f"{found.value:.3g}, 95% interval {found.low:.3g} to {found.high:.3g}, "
            f"n = {' and '.join(map(str, sizes))}"
        )
        return Claim.judge(text, evidence, found.value > 0.0, found.p)


def adjusted(claims: Sequence[Claim]) -> list[Claim]:
    """The same claims, with p-values by Holm over all that have one."""
    tested = [i for i, claim in enumerate(claims) if claim.p is not None]
    found = dict(zip(tested, holm([claims[i].p or 0.0 for i in tested]), strict=True))
    return [replace(claim, p_holm=found.get(i)) for i, claim in enumerate(claims)]


def as_json(claims: Sequence[Claim]) -> str:
    told = [asdict(claim) | {"after_holm": claim.after_holm} for claim in claims]
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def as_markdown(claims: Sequence[Claim]) -> str:
    rows = [f"| {c.text} | {c.evidence} | {c.verdict} | {c.after_holm} |" for c in claims]
    head = ["| claim | what was measured | verdict | after Holm |", "|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"
