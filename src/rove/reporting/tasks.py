"""Tasks: environments with their options, the names that tell them apart, and the runs on each."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rove.reporting.commands import flat
from rove.reporting.run_data import RunData
from rove.search.sweep_result import label

UNCOUNTED = "optimum"
"""The option that does not change an environment, only what is reported about it."""


def key_of(run: RunData) -> str:
    """Return the identity of a run's task: its environment and all options except the optimum."""
    return json.dumps(run.raw["environment"] | {"options": _options(run)}, sort_keys=True)


def _options(run: RunData) -> dict[str, Any]:
    """Return the options of a run's environment that are set, except the optimum."""
    options = run.raw["environment"]["options"]
    return {k: v for k, v in options.items() if v is not None and k != UNCOUNTED}


def grouped(runs: Sequence[RunData], names: Mapping[str, str]) -> list[list[RunData]]:
    """Group runs by their task, in the natural order of the tasks' names."""
    groups: dict[str, list[RunData]] = {}
    for run in runs:
        groups.setdefault(key_of(run), []).append(run)
    return [groups[key] for key in sorted(groups, key=lambda key: _natural(names[key]))]


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """Return a sort key by which chain-50 comes before chain-100."""
    parts = re.findall(r"\d+|\D+", text)
    return [(p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]


def names_of(runs: Iterable[RunData]) -> dict[str, str]:
    """Return the name of each task, by its key: that of the environment and, if several tasks have
    the same environment, the options in which they differ: "FrozenLake-v1 (is_slippery=False)"."""
    tasks = {key_of(run): run for run in runs}
    names = {}
    for key, run in tasks.items():
        alike = [flat(_options(x)) for x in tasks.values() if x.environment == run.environment]
        options = flat(_options(run)).items()
        differing = {k: v for k, v in options if any(other.get(k) != v for other in alike)}
        names[key] = run.environment + (f" ({label(differing)})" if differing else "")
    return names
