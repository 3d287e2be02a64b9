"""Alarms of several seeds in few words: one line per agent, or one per kind of alarm."""

import re
from collections.abc import Callable, Sequence

from rove.analysis.alarms import (
    collapsed_at,
    found_nothing,
    is_exceeded,
    is_too_high,
    successes_forgotten,
)
from rove.analysis.networks import Seed, is_misjudged, lets_down, says_the_same
from rove.training.solving import is_lost

_NUMBER = r"(-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)"
_RANGE = re.compile(f"{_NUMBER}(?: to {_NUMBER})?")
"""Matches a number, or a range such as 0 to 0.1."""


def _lost(seed: Seed) -> bool:
    return seed.optimum is not None and is_lost(seed.scores, seed.optimum, seed.evaluated)


def _forgotten(seed: Seed) -> bool:
    optimum = seed.optimum
    return optimum is not None and successes_forgotten(seed.scores, optimum, seed.evaluated) > 0


def _collapsed(seed: Seed) -> bool:
    optimum = seed.optimum
    at = None if optimum is None else collapsed_at(seed.scores, seed.spread, optimum)
    return at is not None


_KINDS: dict[str, Callable[[Seed], bool]] = {
    "solved it and lost it again": _lost,
    "scored more than half of the optimum, but not in the end": _forgotten,
    "ended with values that do not depend on the state": says_the_same,
    "delivered a policy worse than its last training episodes": lets_down,
    "learned values far from what its policy earns": is_misjudged,
    "found nothing": lambda seed: found_nothing(seed.scores, seed.optimum),
    "still expected far more than the optimum": is_too_high,
    "had an early collapse of q_φ": _collapsed,
    "scored more than the optimum, which is wrong": is_exceeded,
}
"""What a seed with an alarm did; one that did several things is counted for the first."""


def finding(seeds: Sequence[Seed]) -> str | None:
    """Say in one line what went wrong, such as "4 of 5 seeds solved it and lost it again; 1 found
    nothing"; None if there is no alarm."""
    kinds = [next((text for text, kind in _KINDS.items() if kind(seed)), None) for seed in seeds]
    first, *others = [f"{kinds.count(text)} {text}" for text in _KINDS if text in kinds] or [""]
    if not first:
        return None
    count, _, did = first.partition(" ")
    of = f"{count} of {len(seeds)} seed{'s' * (len(seeds) > 1)}"
    return "; ".join([f"{of} {did}", *others])


def grouped(alarms: Sequence[str]) -> list[str]:
    """Join the alarms of several seeds that differ in their numbers only: "seeds 0, 2 and 3: solved
    at episode 41 to 97 and lost again"."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for alarm in alarms:
        match = re.fullmatch(r"seed (\d+): (.*)", alarm)
        seed, sentence = match.groups() if match else ("", alarm)
        groups.setdefault(_RANGE.sub("#", sentence) if match else alarm, []).append(
            (seed, sentence)
        )
    return [_joined(*zip(*group, strict=True)) for group in groups.values()]


def _joined(seeds: Sequence[str], sentences: Sequence[str]) -> str:
    """Return one sentence for several that have the same words, with the ranges of the numbers."""
    columns = zip(*map(_RANGE.findall, sentences), strict=True)
    ranges = map(_range_of, columns)
    text = _RANGE.sub(lambda match: next(ranges), sentences[0])
    if not seeds[0]:
        return text
    listed = " and ".join([*([", ".join(seeds[:-1])] if len(seeds) > 1 else []), seeds[-1]])
    return f"seed{'s' * (len(seeds) > 1)} {listed}: {text}"


def _range_of(ranges: Sequence[tuple[str, str]]) -> str:
    """Return the range of several ranges; the second part of a single number is empty."""
    low = min((low for low, _ in ranges), key=_value)
    high = max((high or low for low, high in ranges), key=_value)
    return low if low == high else f"{low} to {high}"


def _value(number: str) -> float:
    return float(number.replace(",", ""))
