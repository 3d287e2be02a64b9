"""The data of the page, as compact JSON with numbers rounded to four digits."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from rove.agents import label_of
from rove.analysis import estimates
from rove.report import commands
from rove.report.folders import Results
from rove.report.groups import STATISTICS, Group, as_list, grouped
from rove.report.numbers import numbers, plain

THRESHOLDS = np.linspace(0.0, 1.0, 41)
FIRST = ("dqn", "noisynet", "ge")
"""The paper's agents, which have the same colours in every report."""


def report_data(sources: Sequence[Results], title: str) -> dict[str, Any]:
    """Return all data of the page."""
    return {"title": title, "sources": [_source(source) for source in sources]}


def _source(source: Results) -> dict[str, Any]:
    """Return the data of an experiment, a sweep or a set of runs."""
    colours = {label_of(name): i for i, name in enumerate(FIRST)}
    groups = [Group(runs) for runs in grouped(source.runs)]
    return {
        "name": source.name,
        "command": commands.of_source(source),
        "waiting": source.waiting,
        "claims": source.claims,
        "picture": source.picture and "data:image/png;base64," + _base64(source.picture),
        "sweep": source.sweep and _sweep(source.sweep) | {"about": _about(source.config)},
        "groups": [group.as_json(colours) for group in groups],
        "overall": _overall(groups, colours),
    }


def _about(config: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the configuration, versions and command of a sweep."""
    if config is None:
        return None
    sweep = config["sweep"]
    try:
        command, environment = commands.of_sweep(sweep), sweep["environment"]
        about = {
            "agent": sweep["agent"]["settings"],
            "environment": {"name": environment["name"], **environment["options"]},
            "run": {k: sweep[k] for k in ("method", "episodes", "steps", "until_solved", "seeds")},
            "versions": config.get("versions") or {},
        }
    except (KeyError, TypeError):
        return None
    return plain(about) | {"command": command}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _overall(groups: Sequence[Group], colours: dict[str, int]) -> dict[str, Any] | None:
    """Return a comparison over tasks with a known optimum, by the fraction of it that agents reach.
    Only agents that were run on all tasks are compared. Tasks with few agents are dropped if that
    leaves more pairs of agent and task."""
    known = [group for group in groups if group.optimum]
    choices = [
        [group for group in known if len(group.runs) >= least]
        for least in sorted({len(group.runs) for group in known}, reverse=True)
    ]
    tasks = max(choices, key=lambda tasks: len(tasks) * len(_fractions(tasks)), default=[])
    everywhere = _fractions(tasks)
    if len(tasks) < 2 or len(everywhere) < 2:
        return None
    rows: list[dict[str, Any]] = []
    for name, scores in everywhere.items():
        profile, band = estimates.performance_profile(scores, THRESHOLDS)
        values = {key: as_list(estimates.estimate(scores, s)) for key, s in STATISTICS.items()}
        rows.append(
            {
                "label": name,
                "colour": colours[name],
                "estimates": values,
                "profile": numbers(profile),
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


def _fractions(tasks: Sequence[Group]) -> dict[str, list[np.ndarray]]:
    """Return the fraction of the optimum that each seed reached, by task, for the agents that were
    run on all tasks."""
    fractions: dict[str, list[np.ndarray]] = {}
    for group in tasks:
        assert group.optimum is not None
        for run in group.runs:
            area = group.areas[id(run)]
            fractions.setdefault(group.labels[id(run)], []).append(area / group.optimum)
    return {name: rows for name, rows in fractions.items() if len(rows) == len(tasks)}


def _sweep(sweep: dict[str, Any]) -> dict[str, Any]:
    """Return the points of a sweep with their scores on tuning seeds and on fresh seeds. A point
    with a diverged seed has no score."""

    def mean(scores: list[float]) -> list[Any] | None:
        values = np.array(scores, float)
        if not scores or not np.all(np.isfinite(values)):
            return None
        return as_list(estimates.estimate([values], estimates.mean))

    points = [
        {
            "at": plain(list(point["settings"].values())),
            "score": mean(point["scores"]),
            "confirmed": mean(point["confirmed"]),
            "diverged": int(np.sum(np.isinf(point["scores"]))),
        }
        for point in sweep["points"]
    ]
    return {
        "agent": label_of(str(sweep.get("agent", ""))),
        "environment": str(sweep.get("environment", "")),
        "fields": [
            {"name": name, "values": plain(sweep["fields"][name])} for name in sweep["fields"]
        ],
        "points": points,
    }
