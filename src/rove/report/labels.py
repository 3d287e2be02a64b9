"""Labels of runs, and their colours."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rove.agents import AGENTS, label_of
from rove.analysis.colours import number_of
from rove.report.folders import RunData

_ORDER = list(AGENTS)


def labels_of(runs: Sequence[RunData]) -> dict[int, str]:
    """Return a label for each run: its agent and, if several runs have the same agent, the settings
    in which they differ."""
    labels = {}
    for run in runs:
        alike = [other for other in runs if other.name == run.name]
        label = label_of(run.name)
        if len(alike) > 1:
            settings = [_settings(other) for other in alike]
            own = _settings(run)
            varied = [k for k in own if any(s.get(k) != own[k] for s in settings)]
            suffix = ", ".join(f"{k} {_word(own[k])}" if k else own[k] for k in varied)
            variants = {json.dumps([s.get(k) for k in varied]) for s in settings}
            distinct = len(variants) == len(alike) and 0 < len(varied) <= 3
            label += f", {suffix}" if distinct else f", {run.path.resolve().name}"
        labels[id(run)] = label
    return labels


def _settings(run: RunData) -> dict[str, Any]:
    """Return the settings of a run's agent and, without a name, its budget."""
    budget = next(f"{run.raw[unit]:,} {unit}" for unit in ("episodes", "steps") if run.raw[unit])
    return (run.raw["agent"].get("settings") or {}) | {"": budget}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def colours_of(groups: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Return the number of the style of each label, given groups of labels with their agents: that
    of the agent, as in all plots, or if another label of the same group has it, a free one."""
    agents = {label: name for group in groups for label, name in group.items()}
    reserved = set(map(number_of, agents.values()))
    numbers: dict[str, int] = {}
    for label, name in sorted(agents.items(), key=lambda pair: (_rank(pair[1]), pair[0])):
        beside = {numbers.get(other) for group in groups if label in group for other in group}
        free = (n for n in itertools.count() if n not in reserved | beside)
        numbers[label] = next(free) if number_of(name) in beside else number_of(name)
    return numbers


def _rank(name: str) -> int:
    """Return the position of an agent in the list of named agents."""
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)
