"""A claim of the paper, what the data say about it, and a verdict."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from rove.statistics import difference_interval


@dataclass(frozen=True)
class Claim:
    text: str
    """The paper's claim."""
    evidence: str
    """What was measured, with n and an interval."""
    verdict: Literal["reproduced", "not reproduced", "inconclusive", "not tested"]

    @staticmethod
    def judge(text: str, evidence: str, holds: bool) -> "Claim":
        return Claim(text, evidence, "reproduced" if holds else "not reproduced")

    @staticmethod
    def compare(
        text: str, evidence: str, interval: tuple[float, float], enough: bool = True
    ) -> "Claim":
        """For "more than": the interval of a difference is above 0, below it, or holds it, and
        then so many seeds cannot tell."""
        low, high = interval
        if low <= 0.0 <= high:
            return Claim(text, evidence, "inconclusive")
        return Claim.judge(text, evidence, low > 0.0 and enough)

    @staticmethod
    def ahead(text: str, what: str, better: np.ndarray, worse: np.ndarray) -> "Claim":
        """The mean of one over seeds is above that of the other, beyond the difference's
        interval."""
        evidence, interval = _difference(what, better, worse)
        return Claim.compare(text, evidence, interval)

    @staticmethod
    def not_ahead(
        text: str, what: str, one: np.ndarray, other: np.ndarray, margin: float
    ) -> "Claim":
        """The mean of one over seeds is not above that of the other by more than a margin: the
        difference's interval is below it, above it, or holds it."""
        evidence, (low, high) = _difference(what, one, other)
        return Claim.compare(
            text, f"{evidence}; margin {margin:.3g}", (margin - high, margin - low)
        )


def _difference(what: str, one: np.ndarray, other: np.ndarray) -> tuple[str, tuple[float, float]]:
    """In words, and its 95% interval."""
    gain, (low, high) = difference_interval(one, other)
    text = (
        f"mean {what} {one.mean():.4g} and {other.mean():.4g}; difference {gain:.3g}, 95% interval "
        f"{low:.3g} to {high:.3g}, n = {len(one)}"
    )
    return text, (low, high)


def as_json(claims: Sequence[Claim]) -> str:
    return json.dumps([asdict(claim) for claim in claims], indent=2, ensure_ascii=False) + "\n"


def as_markdown(claims: Sequence[Claim]) -> str:
    rows = [f"| {c.text} | {c.evidence} | {c.verdict} |" for c in claims]
    return "\n".join(["| claim | what was measured | verdict |", "|---|---|---|", *rows]) + "\n"
