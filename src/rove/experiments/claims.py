"""A claim of the paper, what the data say about it, and a verdict."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from rove.statistics import difference_interval, mean_interval


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
    def compare(text: str, evidence: str, interval: tuple[float, float]) -> "Claim":
        """For "more than": the interval of a difference is above 0, below it, or holds it, and
        then so many seeds cannot tell."""
        low, high = interval
        if low <= 0.0 <= high:
            return Claim(text, evidence, "inconclusive")
        return Claim.judge(text, evidence, low > 0.0)

    @staticmethod
    def ahead(text: str, what: str, better: np.ndarray, worse: np.ndarray) -> "Claim":
        """The mean of one over seeds is above that of the other, beyond Welch's interval of the
        difference."""
        gain, (low, high) = difference_interval(better, worse)
        evidence = (
            f"mean {what} {better.mean():.4g} and {worse.mean():.4g}; difference {gain:.3g}, "
            f"{_interval(low, high, better)}"
        )
        return Claim.compare(text, evidence, (low, high))

    @staticmethod
    def not_ahead(
        text: str, what: str, one: np.ndarray, other: np.ndarray, times: float
    ) -> "Claim":
        """The mean of one over seeds is below so many times that of the other, beyond Welch's
        interval of the difference."""
        room, (low, high) = difference_interval(times * other, one)
        evidence = (
            f"mean {what} {one.mean():.4g} and {other.mean():.4g}; {times:g} times the second less "
            f"the first {room:.3g}, {_interval(low, high, one)}"
        )
        return Claim.compare(text, evidence, (low, high))

    @staticmethod
    def above(text: str, what: str, values: np.ndarray, limit: float = 0.0) -> "Claim":
        """The mean over seeds is above a limit, beyond Student's interval."""
        evidence, (low, high) = _mean(what, values, limit)
        return Claim.compare(text, evidence, (low - limit, high - limit))

    @staticmethod
    def below(text: str, what: str, values: np.ndarray, limit: float = 0.0) -> "Claim":
        """The mean over seeds is below a limit, beyond Student's interval."""
        evidence, (low, high) = _mean(what, values, limit)
        return Claim.compare(text, evidence, (limit - high, limit - low))


def _mean(what: str, values: np.ndarray, limit: float) -> tuple[str, tuple[float, float]]:
    """In words, and its 95% interval."""
    mean, (low, high) = mean_interval(values)
    against = f"; limit {limit:g}" if limit else ""
    return f"{what}: mean {mean:.3g}, {_interval(low, high, values)}{against}", (low, high)


def _interval(low: float, high: float, seeds: np.ndarray) -> str:
    return f"95% interval {low:.3g} to {high:.3g}, n = {len(seeds)}"


def as_json(claims: Sequence[Claim]) -> str:
    return json.dumps([asdict(claim) for claim in claims], indent=2, ensure_ascii=False) + "\n"


def as_markdown(claims: Sequence[Claim]) -> str:
    rows = [f"| {c.text} | {c.evidence} | {c.verdict} |" for c in claims]
    return "\n".join(["| claim | what was measured | verdict |", "|---|---|---|", *rows]) + "\n"
