"""Runs that are compared, as JSON: curves, numbers, visits, beliefs and configuration."""

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rove import statistics
from rove.agents import AGENTS, label_of
from rove.report import beliefs, commands
from rove.report.folders import RunData
from rove.report.numbers import number, numbers, plain
from rove.statistics import (
    BAND_DRAWS,
    Estimate,
    Support,
    area_under_curve,
    mean_interval,
    moving_average,
)

POINTS, FEW_POINTS = 250, 80
"""The most of a curve that are kept: of scores, and of what is looked at beside them."""
WINDOWS = (1, 20, 100, 500, 2500, 10_000)
"""Moving windows to choose from, in episodes."""
SIZES = (1, 2, 4, 5, 10, 20, 50, 100, 250, 500, 1250, 2500, 5000, 10_000)
"""How many episodes may make a point: windows are whole points."""
LAST = 20
"""The episodes at the end that are shown apart."""
PICTURED = 24
"""Runs of a group with pictures of their visits and beliefs: the best, so that a page of a hundred
stays small."""
STATISTICS = {
    "interquartile mean": statistics.interquartile_mean,
    "mean": statistics.mean,
    "median": statistics.median,
}
MORE = ("coverage", "spread", "return_spread")
_ORDER = list(AGENTS)


def grouped(runs: Sequence[RunData]) -> list[list[RunData]]:
    """Runs that can be compared: the same environment and the same budget."""
    groups: dict[str, list[RunData]] = {}
    for run in runs:
        same = {key: run.told.get(key) for key in ("environment", "episodes", "steps")}
        groups.setdefault(json.dumps(same, sort_keys=True), []).append(run)
    return sorted(groups.values(), key=lambda group: _natural(_title(group[0])))


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """A sort key by which chain-50 comes before chain-100."""
    parts = re.findall(r"\d+|\D+", text)
    return [(p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]


def _title(run: RunData) -> str:
    unit = "episodes" if run.told.get("episodes") else "steps"
    return f"{run.environment}, {run.told.get(unit) or 0:,} {unit}"


class Group:
    """Runs of several agents on one environment."""

    def __init__(self, runs: list[RunData]):
        self.every = _every(runs[0])
        self.tables = {id(run): _scores(run, self.every) for run in runs}
        self.areas = {id(run): self._areas(run) for run in runs}
        self.runs = sorted(runs, key=lambda run: -float(np.mean(self.areas[id(run)])))
        self.labels = _labels(self.runs)
        known = next((run.config for run in runs if run.config is not None), None)
        self.place = known.environment if known else None
        self.optimum = self.place.optimum if self.place else None
        self.support = self._support()

    def _support(self) -> Support | None:
        """The range of scores, unless files hold others."""
        known = self.place.score_range if self.place else None
        scores = [columns["score"] for run in self.runs for columns in run.columns.values()]
        return known if known and all(statistics.within(x, known) for x in scores) else None

    def _areas(self, run: RunData) -> np.ndarray:
        """For each seed, the mean score of all episodes; of all steps, where they are the budget
        and no lane stopped before."""
        if self.every and not run.told.get("until_solved") and not np.any(run.diverged):
            lanes = run.columns.values()
            return np.array([statistics.mean_over_steps(x["score"], x["length"]) for x in lanes])
        return area_under_curve(_common(self.tables[id(run)]))

    def told(self, colours: dict[str, int]) -> dict[str, Any]:
        runs = sorted(self.runs, key=lambda run: _rank(run.name))
        for run in runs:
            colours.setdefault(self.labels[id(run)], len(colours))
        longest = max(table.shape[1] for table in self.tables.values())
        size, unit = (1, self.every) if self.every else (_bin_size(longest), 1)
        windows = sorted({size} | {w for w in WINDOWS if w % size == 0 and w <= longest})[:3]
        return {
            "title": _title(self.runs[0]),
            "environment": self.runs[0].environment,
            "label": self.place.score_label if self.place else "return",
            "optimum": None if self.optimum is None else number(self.optimum),
            "bounded": self.support is not None,
            "unit": "step" if self.every else "episode",
            "bin": size * unit,
            "windows": [window * unit for window in windows],
            "window": (LAST if LAST in windows else windows[-1]) * unit,
            "runs": [
                self._run(run, colours, size, windows, unit, pictured=i < PICTURED)
                for i, run in enumerate(self.runs)
            ],
            "pictured": PICTURED if len(self.runs) > PICTURED else None,
            "improvement": self._improvement(),
        }

    def _run(
        self,
        run: RunData,
        colours: dict[str, int],
        size: int,
        windows: Sequence[int],
        unit: int,
        pictured: bool,
    ) -> dict[str, Any]:
        table = self.tables[id(run)]
        binned = _binned(table, size)
        scores = run.table("score") if self.every else table
        last = np.array([np.mean(row[~np.isnan(row)][-LAST:]) for row in scores])
        played = [len(columns["score"]) for columns in run.columns.values()]
        unfinished = sum(not over for over in run.finished.values())
        return {
            "label": self.labels[id(run)],
            "colour": colours[self.labels[id(run)]],
            "folder": run.path.resolve().name,
            "seeds": run.seeds,
            "played": [min(played), max(played)],
            "unfinished": unfinished,
            "diverged": int(np.sum(run.diverged)),
            "scores": [numbers(row[~np.isnan(row)]) for row in binned],
            "bands": {
                str(w * unit): _band(moving_average(_common(binned), w // size), self.support)
                for w in windows
            },
            "all": estimates(self.areas[id(run)], self.support),
            "last": estimates(last, self.support),
            "solved": self._solved(run),
            "more": _more(run, self.place.bins if self.place else 0),
            "visits": beliefs.visits(run) if pictured else None,
            "beliefs": beliefs.beliefs(run) if pictured else None,
            "alarms": self._alarms(run),
            "about": _about(run),
        }

    def _solved(self, run: RunData) -> dict[str, Any] | None:
        """How soon lanes had solved their task, where it is known when they have. One that diverged
        never will: it counts as unsolved to the end."""
        if self.optimum is None:
            return None
        scores = [columns["score"] for columns in run.columns.values()]
        when = [statistics.episodes_to_solve(each, self.optimum) for each in scores]
        solved = np.array([time is not None for time in when])
        times = np.array([t or len(s) for t, s in zip(when, scores, strict=True)], float)
        end = max(times.max(), run.told.get("episodes") or 0)
        times = np.where(run.diverged & ~solved, end, times)
        at, unsolved, (low, high) = statistics.kaplan_meier(times, solved)
        return {
            "count": int(solved.sum()),
            "median": as_list(statistics.median_episodes_to_solve(times, solved)),
            "at": numbers(at),
            "share": numbers(1.0 - unsolved),
            "band": [numbers(1.0 - high), numbers(1.0 - low)],
            "until": int(times.max()),
        }

    def _alarms(self, run: RunData) -> list[str]:
        if self.optimum is None:
            return []
        found = {
            seed: statistics.collapsed_at(columns["score"], columns["spread"], self.optimum)
            for seed, columns in run.columns.items()
        }
        return [f"seed {s}: q_φ collapsed by episode {at}" for s, at in found.items() if at]

    def _improvement(self) -> list[list[Any]]:
        """[i][j]: how probably a seed of run i has a higher mean score than one of run j."""
        count = len(self.runs)
        table: list[list[Any]] = [[None] * count for _ in range(count)]
        for i, j in itertools.combinations(range(count), 2):
            a, b = (self.areas[id(self.runs[k])] for k in (i, j))
            found = statistics.probability_of_improvement([a], [b])
            table[i][j] = as_list(found)
            flipped = Estimate(1 - found.value, 1 - found.high, 1 - found.low, len(b))
            table[j][i] = as_list(flipped)
        return table


def _rank(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _every(run: RunData) -> int:
    """Steps between two numbers of a table, where the budget is in steps; otherwise 0."""
    return 0 if run.told.get("episodes") else max((run.told.get("steps") or 0) // POINTS, 1)


def _scores(run: RunData, every: int) -> np.ndarray:
    """[seeds, episodes]; or, of every so many steps, [seeds, points], the score of its episode. A
    lane that stopped because it had solved its task keeps its last score to the end; one that
    diverged has the lowest it ever had."""
    if every:
        at = np.arange(every, run.told["steps"] + 1, every)
        lanes = run.columns.values()
        table = np.stack([statistics.score_at(x["score"], x["step"], at) for x in lanes])
        budget = len(at)
    else:
        table, budget = run.table("score"), run.told.get("episodes") or 0
    if run.told.get("until_solved") or np.any(run.diverged):
        more = np.full((len(table), max(budget - table.shape[1], 0)), np.nan)
        table = np.concatenate([table, more], axis=1)
    for row, seed, diverged in zip(table, run.seeds, run.diverged, strict=True):
        if diverged:
            row[np.isnan(row)] = np.nanmin(row)
        elif run.told.get("until_solved") and run.finished.get(seed):
            row[:] = statistics.fill_forward(row[None])[0]
    return table


def _common(table: np.ndarray) -> np.ndarray:
    """The episodes that all lanes have had."""
    return table[:, : int(np.sum(np.all(~np.isnan(table), axis=0)))]


def _bin_size(episodes: int) -> int:
    """So many episodes make a point, that there are not too many."""
    fitting = (size for size in SIZES if episodes / size <= POINTS)
    return next(fitting, -(-episodes // POINTS))


def _binned(table: np.ndarray, size: int) -> np.ndarray:
    """The mean of every `size` episodes; what is left over at the end is left out."""
    count = max(table.shape[1] // size, 1)
    return table[:, : count * size].reshape(len(table), count, -1).mean(axis=2)


def _band(values: np.ndarray, support: Support | None) -> list[list[Any]] | None:
    """The 95% interval of the mean over seeds; none where there is one seed."""
    if len(values) < 2:
        return None
    low, high = mean_interval(values, support, draws=BAND_DRAWS)
    return [numbers(low), numbers(high)]


def as_list(found: Estimate) -> list[Any]:
    return [number(found.value), number(found.low), number(found.high), found.n]


def estimates(values: np.ndarray, support: Support | None) -> dict[str, list[Any]]:
    """Over seeds. The mean has the interval that verdicts have; the others have none that holds for
    every kind of data, and a bootstrap is an approximation."""
    found = {n: statistics.estimate([values], s) for n, s in STATISTICS.items()}
    if len(values) > 1:
        low, high = map(float, mean_interval(values, support))
        found["mean"] = found["mean"]._replace(low=low, high=high)
    return {name: as_list(each) for name, each in found.items()}


def _more(run: RunData, bins: int) -> dict[str, Any]:
    """Coverage and spreads over episodes: mean and interval."""
    told = {}
    for column in MORE:
        table = _common(run.table(column))
        counted = column == "coverage" and table.max(initial=0.0) <= bins
        smooth = moving_average(table, LAST)
        step = max(1, -(-table.shape[1] // FEW_POINTS))
        thin = smooth[:, step - 1 :: step]
        if np.any(thin != 0):
            band = _band(thin, (0.0, bins) if counted else None)
            told[column] = {"step": step, "mean": numbers(thin.mean(axis=0)), "band": band}
    return told


def _labels(runs: Sequence[RunData]) -> dict[int, str]:
    """How to call each run: by its agent, and by what tells it from others of the same agent."""
    labels = {}
    for run in runs:
        alike = [other for other in runs if other.name == run.name]
        label = label_of(run.name)
        if len(alike) > 1:
            settings = [other.told["agent"].get("settings") or {} for other in alike]
            mine = run.told["agent"].get("settings") or {}
            varied = [k for k in mine if any(s.get(k) != mine[k] for s in settings)]
            few = ", ".join(f"{k} {_word(mine[k])}" for k in varied)
            told = {json.dumps([s.get(k) for k in varied]) for s in settings}
            distinct = len(told) == len(alike) and 0 < len(varied) <= 3
            label += f", {few}" if distinct else f", {run.path.resolve().name}"
        labels[id(run)] = label
    return labels


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _about(run: RunData) -> dict[str, Any]:
    """Configuration, versions and the command."""
    agent, place = run.told["agent"], run.told["environment"]
    told = {
        "agent": agent.get("settings") or agent.get("composition") or {},
        "environment": {"name": run.environment, **(place.get("options") or {})},
        "run": {k: run.told.get(k) for k in ("episodes", "steps", "until_solved", "seeds")},
        "versions": run.told.get("versions") or {},
    }
    return plain(told) | {"command": commands.of_run(run)}
