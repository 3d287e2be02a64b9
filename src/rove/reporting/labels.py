"""Labels of runs, and their colours."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rove.agents import AGENTS, label_of
from rove.analysis.colours import number_of
from rove.reporting.run_data import RunData
from rove.reporting.settings import changed, settings_of
from rove.search.sweep_result import label as settings_label

_ORDER = list(AGENTS)
NAMED = 3
"""Maximum number of settings in a label."""


def labels_of(groups: Sequence[Sequence[RunData]]) -> dict[int, str]:
    """Return a label for each run of groups of comparable runs: its agent and, if runs of that
    agent differ in how they change the default settings of their tasks, those settings. Runs of one
    group that still have the same label are distinguished by their budgets or their folders."""
    runs = [run for group in groups for run in group]
    labels = {id(run): _label(run, [x for x in runs if x.name == run.name]) for run in runs}
    unique = {}
    for group in groups:
        for run in group:
            alike = [x for x in group if labels[id(x)] == labels[id(run)]]
            budgets = set(map(_budget, alike))
            suffix = _budget(run) if len(budgets) == len(alike) else run.path.resolve().name
            unique[id(run)] = labels[id(run)] + (f", {suffix}" if len(alike) > 1 else "")
    return unique


def with_several_settings(runs: Sequence[RunData], labels: Mapping[int, str]) -> list[str]:
    """Return the labels that runs with different settings share: those of agents whose default
    settings, or those searched for an experiment, depend on the task."""
    variants: dict[str, set[str]] = {}
    for run in runs:
        settings = json.dumps(settings_of(run), sort_keys=True)
        variants.setdefault(labels[id(run)], set()).add(settings)
    return [label for label, settings in variants.items() if len(settings) > 1]


def _label(run: RunData, alike: Sequence[RunData]) -> str:
    """Return the name of a run's agent, with the settings that tell runs of that agent apart."""
    names, settings = _distinguishing([changed(x) for x in alike]), settings_of(run)
    if names is None:
        return f"{label_of(run.name)}, {run.path.resolve().name}"
    text = settings_label({k: settings[k] for k in names if settings.get(k) is not None})
    return f"{label_of(run.name)}, {text}" if text else label_of(run.name)


def _distinguishing(changes: Sequence[Mapping[str, Any]]) -> Sequence[str] | None:
    """Return the names of the settings that differ; of more than three, the fewest that tell all
    runs with different settings apart, or None if three are too few."""
    names = list(dict.fromkeys(name for settings in changes for name in settings))
    varied = [k for k in names if any(s.get(k) != changes[0].get(k) for s in changes)]
    if len(varied) <= NAMED:
        return varied

    def variants(chosen: Sequence[str]) -> int:
        return len({json.dumps([settings.get(k) for k in chosen]) for settings in changes})

    choices = (c for n in range(1, NAMED + 1) for c in itertools.combinations(varied, n))
    return next((c for c in choices if variants(c) == variants(varied)), None)


def order_of(groups: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the order of labels on a page, given their standings on each task: by the mean over
    tasks, highest first."""
    standings: dict[str, list[float]] = {}
    for label, standing in (pair for group in groups for pair in group.items()):
        standings.setdefault(label, []).append(standing)
    return sorted(standings, key=lambda label: (-np.mean(standings[label]), label))


def _budget(run: RunData) -> str:
    return next(f"{run.raw[unit]:,} {unit}" for unit in ("episodes", "steps") if run.raw[unit])


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
