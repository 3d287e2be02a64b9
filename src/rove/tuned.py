"""Settings that the searches of `rove tune` found, as defaults by environment."""

import json
import math
from collections.abc import Sequence
from importlib import resources
from typing import Any

SEARCHES = ("figure-2", "figure-3", "figure-4", "scoreboard")
"""Where defaults/ has a file; an earlier one goes before a later one."""


def tuned(agent: str, environment: str, searches: Sequence[str] = SEARCHES) -> dict[str, Any]:
    """What a search found for an agent on an environment, on the nearest size of it, or on the
    same without a twist (chain for permuted-chain)."""
    for name in (environment, environment.removeprefix("permuted-")):
        for search in searches:
            found = _read(search)
            at = _nearest(name, [known for known, agents in found.items() if agent in agents])
            if at is not None:
                told = found[at][agent]["settings"]
                return {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
    return {}


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """The name itself, or the one that has another size and is nearest to it."""
    family, _, size = name.rpartition("-")
    if name in known or not size.isdigit():
        return name if name in known else None
    sizes = [int(k.rpartition("-")[2]) for k in known if k.rpartition("-")[0] == family]
    nearest = min(sizes, key=lambda s: abs(math.log(s / max(int(size), 1))), default=None)
    return None if nearest is None else f"{family}-{nearest}"


def _read(search: str) -> dict[str, Any]:
    file = resources.files("rove") / "defaults" / f"{search}.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}
