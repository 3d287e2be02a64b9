"""Settings found by the search of `rove.experiments.tune`, as defaults by environment."""

import json
import math
from importlib import resources
from typing import Any


def tuned(agent: str, environment: str) -> dict[str, Any]:
    """What the search found for an agent on an environment, or on the nearest size of it."""
    found = json.loads(resources.files("rove").joinpath("tuned.json").read_text("utf-8"))
    family, _, size = environment.removeprefix("permuted-").rpartition("-")
    sizes = [
        int(name.rpartition("-")[2])
        for name, agents in found.items()
        if name.rpartition("-")[0] == family and agent in agents
    ]
    if not sizes or not size.isdigit():
        return {}
    nearest = min(sizes, key=lambda s: abs(math.log(s / max(int(size), 1))))
    return found[f"{family}-{nearest}"][agent]["settings"]
