"""The data of the page, as compact JSON with numbers rounded to four digits."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rove import environments
from rove.agents import label_of
from rove.analysis.intervals import Support
from rove.errors import RoveError
from rove.reporting import commands, summaries, titles
from rove.reporting.files import is_gymnasium
from rove.reporting.folders import LOOSE, Results
from rove.reporting.groups import Group
from rove.reporting.labels import colours_of, labels_of, order_of, with_several_settings
from rove.reporting.numbers import number, numbers, plain
from rove.reporting.run_data import RunData
from rove.reporting.tasks import grouped, key_of, names_of
from rove.search.sweep_result import label

THRESHOLDS = np.linspace(0.0, 1.0, 101)


def report_data(sources: Sequence[Results], folders: str) -> dict[str, Any]:
    """Return all data of the page. `folders` names where the results are."""
    names = names_of(run for source in sources for run in [*source.runs, *source.failed])
    parts = [_source(source, names) for source in sources]
    loose = any(source.name == LOOSE for source in sources)  # the title is then not of sweeps
    title = titles.of_page([part["title"] for part in parts if not (loose and part["sweep"])])
    return {"title": title, "folders": folders, "sources": parts}


def _source(source: Results, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of an experiment, a sweep or a set of runs. `names` are those of tasks. In an
    experiment, an agent may have other settings on each task, and is still one agent."""
    parts = grouped(source.runs, names)
    compared = [[part] for part in parts] if commands.of_source(source) else [parts]
    labels = {run: label for group in compared for run, label in labels_of(group).items()}
    groups = [Group(runs, names[key_of(runs[0])], labels) for runs in parts]
    order = order_of([group.standings for group in groups])
    for group in groups:
        group.arrange(order)
    colours = colours_of([{g.labels[id(run)]: run.name for run in g.runs} for g in groups])
    return {
        "name": source.name,
        "title": titles.of_source(source, groups),
        "command": commands.of_source(source),
        "waiting": source.waiting,
        "failed": [_failed(run, names[key_of(run)]) for run in source.failed],
        "claims": source.claims,
        "picture": source.picture and "data:image/png;base64," + _base64(source.picture),
        "sweep": source.sweep and _sweep(source) | {"about": _about(source.config)},
        "several_settings": with_several_settings(source.runs, labels),
        "order": order,
        "reference": _reference(order, groups),
        "ranking": [
            {"label": r.agent, "colour": colours[r.agent], "solved": r.solved, "seeds": r.seeds}
            | {"p": None if p is None else number(p)}
            for r, p in titles.ranking(source, groups)
        ],
        "groups": [group.as_json(colours) for group in groups],
        "overall": _overall(groups, colours, order),
    }


def _reference(order: Sequence[str], groups: Sequence[Group]) -> str | None:
    """Return the label that others are compared with at first: of those on the most tasks, the
    first."""
    return max(order, key=lambda x: sum(x in g.labels.values() for g in groups), default=None)


def _failed(run: RunData, task: str) -> dict[str, Any]:
    """Return the data of a run that failed before it finished an episode."""
    title = f"{label_of(run.name)} on {task}"
    return {"title": title, "folder": run.path.resolve().name, "errors": list(run.errors.values())}


def _about(config: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the configuration, versions and command of a sweep."""
    if config is None:
        return None
    sweep = config["sweep"] | {"task": config.get("task")}
    try:
        command, name = commands.of_sweep(sweep), sweep["environment"]["name"]
        about = {
            "agent": sweep["agent"]["settings"],
            "environment": {"name": name, **commands.options_of(sweep)},
            "run": {k: sweep[k] for k in ("method", "episodes", "steps", "until_solved", "seeds")},
            "versions": config.get("versions") or {},
        }
    except (KeyError, TypeError, AttributeError):
        return None
    return plain(about) | {"command": command}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _overall(
    groups: Sequence[Group], colours: dict[str, int], order: Sequence[str]
) -> dict[str, Any] | None:
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
    support = _mean_support(tasks)
    rows: list[dict[str, Any]] = []
    for name, scores in everywhere.items():
        # A seed's scores on all tasks are one value, independent of those of other seeds.
        n = min(map(len, scores))
        table = np.stack([values[:n] for values in scores])
        above = np.greater.outer(table, THRESHOLDS).mean(axis=0)
        rows.append(
            {
                "label": name,
                "colour": colours[name],
                "mean": summaries.mean(table.mean(axis=0), support),
                "profile": numbers(above.mean(axis=0)),
                "band": summaries.band(above, (0.0, 1.0)),
            }
        )
    rows.sort(key=lambda row: order.index(row["label"]))
    return {
        "tasks": [group.name for group in tasks],
        "left_out": sorted({x for g in known for x in g.labels.values()} - set(everywhere)),
        "thresholds": numbers(THRESHOLDS),
        "agents": rows,
    }


def _mean_support(tasks: Sequence[Group]) -> Support | None:
    """Return the range of a seed's mean fraction of the optimum over tasks; None if unknown."""
    ends = [
        sorted(float(end) / group.optimum for end in group.support)
        for group in tasks
        if group.support and group.optimum
    ]
    if len(ends) < len(tasks):
        return None
    low, high = np.mean(ends, axis=0)
    return float(low), float(high)


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


def _sweep(source: Results) -> dict[str, Any]:
    """Return the points of a sweep with their scores on tuning seeds and on fresh seeds. A point
    with a diverged seed has no score."""
    sweep, support = source.sweep or {}, _support(source.config)

    def mean(scores: list[float]) -> list[Any] | None:
        values = np.array(scores, float)
        return summaries.mean(values, support) if scores and np.all(np.isfinite(values)) else None

    points = [
        {
            "label": label(point["settings"]),
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


def _support(config: dict[str, Any] | None) -> Support | None:
    """Return the range of the scores of a sweep; None if it is unknown. A Gymnasium environment is
    not created."""
    try:
        environment = config["sweep"]["environment"] if config else None
        if environment is None or is_gymnasium(environment) or environment.get("given"):
            return None
        return environments.make(environment["name"], **environment["options"]).score_range
    except (RoveError, KeyError, TypeError):
        return None
