"""What the page shows, as JSON: few numbers, each of four digits."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from rove import statistics
from rove.agents import label_of
from rove.report import commands
from rove.report.folders import Source
from rove.report.groups import STATISTICS, Group, as_list, grouped
from rove.report.numbers import numbers, plain

THRESHOLDS = np.linspace(0.0, 1.0, 41)
FIRST = ("dqn", "noisynet", "ge")
"""The paper's agents have the same colours everywhere."""


def whole(sources: Sequence[Source], title: str) -> dict[str, Any]:
    """All of it."""
    return {"title": title, "sources": [_source(source) for source in sources]}


def _source(source: Source) -> dict[str, Any]:
    colours = {label_of(name): i for i, name in enumerate(FIRST)}  # of each label
    groups = [Group(runs) for runs in grouped(source.runs)]
    return {
        "name": source.name,
        "command": commands.of_source(source),
        "waiting": source.waiting,
        "claims": source.claims,
        "picture": source.picture and "data:image/png;base64," + _base64(source.picture),
        "sweep": source.sweep and _sweep(source.sweep) | {"about": _about(source.config)},
        "groups": [group.told(colours) for group in groups],
        "overall": _overall(groups, colours),
    }


def _about(config: dict[str, Any] | None) -> dict[str, Any] | None:
    """A sweep's configuration, versions and command."""
    if config is None:
        return None
    told = config["sweep"]
    try:
        command = commands.of_sweep(told)
        about = {
            "agent": told["agent"]["settings"],
            "environment": {"name": told["environment"]["name"], **told["environment"]["options"]},
            "run": {k: told[k] for k in ("method", "episodes", "steps", "until_solved", "seeds")},
            "versions": config.get("versions") or {},
        }
    except (KeyError, TypeError):
        return None
    return plain(about) | {"command": command}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _overall(groups: Sequence[Group], colours: dict[str, int]) -> dict[str, Any] | None:
    """Agents that were on all tasks of known optimum, by their share of it. Tasks with few agents
    are left out where that makes for more pairs of agent and task, and agents that were not on
    the others."""
    known = [group for group in groups if group.optimum]
    choices = [
        [group for group in known if len(group.runs) >= least]
        for least in sorted({len(group.runs) for group in known}, reverse=True)
    ]
    tasks = max(choices, key=lambda tasks: len(tasks) * len(_shares(tasks)), default=[])
    everywhere = _shares(tasks)
    if len(tasks) < 2 or len(everywhere) < 2:
        return None
    rows: list[dict[str, Any]] = []
    for name, each in everywhere.items():
        share, band = statistics.performance_profile(each, THRESHOLDS)
        found = {key: as_list(statistics.estimate(each, s)) for key, s in STATISTICS.items()}
        rows.append(
            {
                "label": name,
                "colour": colours[name],
                "estimates": found,
                "profile": numbers(share),
                "band": [numbers(side) for side in band],
            }
        )
    rows.sort(key=lambda row: -row["estimates"]["interquartile mean"][0])
    return {
        "tasks": [group.runs[0].environment for group in tasks],
        "left_out": sorted({x for g in known for x in g.labels.values()} - set(everywhere)),
        "thresholds": numbers(THRESHOLDS),
        "agents": rows,
    }


def _shares(tasks: Sequence[Group]) -> dict[str, list[np.ndarray]]:
    """Of the agents that were on all of some tasks, what each lane had of the optimum, by task."""
    shares: dict[str, list[np.ndarray]] = {}
    for group in tasks:
        assert group.optimum is not None
        for run in group.runs:
            area = group.areas[id(run)]
            shares.setdefault(group.labels[id(run)], []).append(area / group.optimum)
    return {name: each for name, each in shares.items() if len(each) == len(tasks)}


def _sweep(told: dict[str, Any]) -> dict[str, Any]:
    """The points of a sweep with what they scored: on the seeds they were chosen on, and on
    others. One with a lane that diverged has no score."""

    def found(scores: list[float]) -> list[Any] | None:
        values = np.array(scores, float)
        if not scores or not np.all(np.isfinite(values)):
            return None
        return as_list(statistics.estimate([values], statistics.mean))

    points = [
        {
            "at": plain(list(point["settings"].values())),
            "score": found(point["scores"]),
            "confirmed": found(point["confirmed"]),
            "diverged": int(np.sum(np.isinf(point["scores"]))),
        }
        for point in told["points"]
    ]
    return {
        "agent": label_of(str(told.get("agent", ""))),
        "environment": str(told.get("environment", "")),
        "fields": [
            {"name": name, "values": plain(told["fields"][name])} for name in told["fields"]
        ],
        "points": points,
    }
