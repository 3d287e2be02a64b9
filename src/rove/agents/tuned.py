"""Default settings by agent and environment, as found by `rove reproduce tuning`."""

import json
import math
from collections.abc import Sequence
from importlib import resources
from typing import Any

SOURCES = ("figure-2", "figure-3", "figure-4", "scoreboard", "deep-sea")
"""The searches with a file in defaults/; at equal distance, the earlier one takes precedence."""

FOR_ALL_TASKS = ("auto",)
"""Agents whose class has settings that were chosen on the development half of the suite."""

RELATED = ("permuted-", "bernoulli-", "linear-")
"""Prefixes of names of environments: without one, a name is that of a similar environment."""


def tuned(agent: str, environment: str, searches: Sequence[str] = SOURCES) -> dict[str, Any]:
    """Return the tuned settings of an agent on an environment, or an empty dict.

    If the environment itself was not tuned, the nearest size of it is used, the plain chain for a
    permuted chain, and the Gaussian bandit for other bandits.
    """
    _, settings = _nearest(agent, environment, searches)
    return {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}


def for_new_tasks(agent: str) -> dict[str, Any]:
    """Return the settings of an agent for tasks that it was not tuned for. They were chosen on the
    development half of the suite (`rove reproduce suite`)."""
    return _read("new-tasks").get(agent, {})


def tuned_for(agent: str, environment: str) -> str | None:
    """Return the environment that the settings of `tuned` were found on, or None."""
    return _nearest(agent, environment, SOURCES)[0]


def origin(agent: str, environment: str) -> str:
    """Say where an agent's default settings on an environment come from, after "they are"."""
    if source := tuned_for(agent, environment):
        return f"tuned on {source}"
    if agent in FOR_ALL_TASKS:
        return "the same for all tasks, chosen on the development half of the suite"
    return "generic, not tuned for this environment"


def _nearest(
    agent: str, environment: str, searches: Sequence[str]
) -> tuple[str | None, dict[str, Any]]:
    """Return the most similar environment on which an agent was tuned, and its settings there."""
    plain = next((environment.removeprefix(x) for x in RELATED if environment.startswith(x)), "")
    for name in (environment, plain):
        candidates = [
            (_distance(name, known), known, agents[agent]["settings"])
            for search in searches
            for known, agents in _read(search).items()
            if agent in agents
        ]
        if candidates:
            distance, known, settings = min(candidates, key=lambda candidate: candidate[0])
            if distance < math.inf:
                return known, settings
    return None, {}


def _distance(name: str, other: str) -> float:
    """Return the distance of two environments: |log ratio| of their sizes, or ∞ if they differ in
    kind."""
    if name == other:
        return 0.0
    (family, _, size), (kind, _, known) = name.rpartition("-"), other.rpartition("-")
    if family != kind or not (size.isdigit() and known.isdigit()):
        return math.inf
    return abs(math.log(int(known) / max(int(size), 1)))


def _read(search: str) -> dict[str, Any]:
    file = resources.files("rove.agents") / "defaults" / f"{search}.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {}
