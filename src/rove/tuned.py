"""Settings that the searches of `rove tune` found, as defaults by environment."""

import json
import math
from collections.abc import Sequence
from importlib import resources
from typing import Any

SEARCHES = ("figure-2", "figure-3", "figure-4", "scoreboard", "deep-sea")
"""Where defaults/ has a file; of those that are as near, an earlier one goes before a later one."""


def tuned(agent: str, environment: str, searches: Sequence[str] = SEARCHES) -> dict[str, Any]:
    """What a search found for an agent on an environment, on the nearest size of it, or on the
    same without a twist (chain for permuted-chain)."""
    for name in (environment, environment.removeprefix("permuted-")):
        found = [
            (_distance(name, known), agents[agent]["settings"])
            for search in searches
            for known, agents in _read(search).items()
            if agent in agents
        ]
        distance, told = min(found, key=lambda each: each[0], default=(math.inf, {}))
        if distance < math.inf:
            return {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    return {}


def _distance(name: str, other: str) -> float:
    """How far apart two tasks are: not at all, by their sizes, or not to be compared."""
    if name == other:
        return 0.0
    (family, _, size), (kind, _, known) = name.rpartition("-"), other.rpartition("-")
    if family != kind or not (size.isdigit() and known.isdigit()):
        return math.inf
    return abs(math.log(int(known) / max(int(size), 1)))


def _read(search: str) -> dict[str, Any]:
    file = resources.files("rove") / "defaults" / f"{search}.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}
