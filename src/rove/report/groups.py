"""Groups of comparable runs, as JSON: curves, numbers, visits, posteriors and configuration."""

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rove.agents import AGENTS, label_of
from rove.analysis import curves, intervals
from rove.analysis.alarms import alarms
from rove.analysis.curves import area_under_curve, moving_average
from rove.analysis.intervals import Support
from rove.analysis.sentences import LAST, Result
from rove.report import beliefs, commands, summaries
from rove.report.binning import (
    FEW_POINTS,
    bin_size,
    binned,
    common_episodes,
    score_table,
    steps_per_point,
)
from rove.report.folders import RunData
from rove.report.numbers import number, numbers, plain
from rove.training import solving

WINDOWS = (1, 20, 100, 500, 2500, 10_000)
"""Available moving windows, in episodes."""
PICTURED = 24
"""Maximum number of runs per group, the best ones, with charts of visits and posteriors and with
differences between them; this keeps large reports small."""
MORE = ("coverage", "spread", "return_spread")
"""Columns of episodes.csv that are shown in addition to the score."""
_ORDER = list(AGENTS)


def grouped(runs: Sequence[RunData]) -> list[list[RunData]]:
    """Group runs with the same environment and the same budget."""
    groups: dict[str, list[RunData]] = {}
    for run in runs:
        same = {key: run.raw.get(key) for key in ("environment", "episodes", "steps")}
        groups.setdefault(json.dumps(same, sort_keys=True), []).append(run)
    return sorted(groups.values(), key=lambda group: _natural(_title(group[0])))


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """Return a sort key by which chain-50 comes before chain-100."""
    parts = re.findall(r"\d+|\D+", text)
    return [(p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]


def _title(run: RunData) -> str:
    """Return the title of a group: environment and budget."""
    unit = "episodes" if run.raw.get("episodes") else "steps"
    return f"{run.environment}, {run.raw.get(unit) or 0:,} {unit}"


class Group:
    """Runs of several agents on one environment."""

    def __init__(self, runs: list[RunData]):
        self.every = steps_per_point(runs[0])
        self.tables = {id(run): score_table(run, self.every) for run in runs}
        self.areas = {id(run): self._areas(run) for run in runs}
        self.runs = sorted(runs, key=lambda run: -float(np.mean(self.areas[id(run)])))
        self.labels = _labels(self.runs)
        known = next((run.config for run in runs if run.config is not None), None)
        self.task = known.environment if known else None
        self.optimum = self.task.optimum if self.task else None
        self.support = self._support()

    def _support(self) -> Support | None:
        """Return the range of scores; None if it is unknown or some scores lie outside it."""
        known = self.task.score_range if self.task else None
        scores = [columns["score"] for run in self.runs for columns in run.columns.values()]
        return known if known and all(intervals.within(x, known) for x in scores) else None

    def _areas(self, run: RunData) -> np.ndarray:
        """Return the mean score of each seed over all episodes or, if the budget is in steps and no
        seed stopped early, over all steps."""
        if self.every and not run.raw.get("until_solved") and not np.any(run.diverged):
            lanes = run.columns.values()
            return np.array([curves.mean_over_steps(x["score"], x["length"]) for x in lanes])
        return area_under_curve(common_episodes(self.tables[id(run)]))

    def as_json(self, colours: dict[str, int]) -> dict[str, Any]:
        """Return the data of the group. Labels that have no colour yet get the next one."""
        runs = sorted(self.runs, key=lambda run: _rank(run.name))
        for run in runs:
            colours.setdefault(self.labels[id(run)], len(colours))
        longest = max(table.shape[1] for table in self.tables.values())
        size, unit = (1, self.every) if self.every else (bin_size(longest), 1)
        windows = sorted({size} | {w for w in WINDOWS if w % size == 0 and w <= longest})[:3]
        return {
            "title": _title(self.runs[0]),
            "environment": self.runs[0].environment,
            "label": self.task.score_label if self.task else "return",
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
            "differences": self._differences() if len(self.runs) <= PICTURED else None,
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
        """Return the data of a run."""
        table = self.tables[id(run)]
        blocks = binned(table, size)
        played = [len(columns["score"]) for columns in run.columns.values()]
        unfinished = sum(not finished for finished in run.finished.values())
        return {
            "label": self.labels[id(run)],
            "colour": colours[self.labels[id(run)]],
            "folder": run.path.resolve().name,
            "seeds": run.seeds,
            "played": [min(played), max(played)],
            "unfinished": unfinished,
            "diverged": int(np.sum(run.diverged)),
            "scores": [numbers(row[~np.isnan(row)]) for row in blocks],
            "bands": {
                str(w * unit): summaries.band(
                    moving_average(common_episodes(blocks), w // size), self.support
                )
                for w in windows
            },
            "starts": self._starts(run),
            "all": summaries.mean(self.areas[id(run)], self.support),
            "last": summaries.mean(self._last(run), self.support),
            "solved": self._solved(run),
            "more": _more(run, self.task.bins if self.task else 0),
            "visits": beliefs.visits(run) if pictured else None,
            "beliefs": beliefs.beliefs(run) if pictured else None,
            "alarms": self._alarms(run),
            "about": _about(run),
        }

    def results(self) -> list[Result]:
        """Return what the title of the page says about each run."""
        results = []
        for run in self.runs:
            label = self.task.score_label if self.task else "return"
            solved = None if self.optimum is None else sum(map(bool, self._when(run)))
            final = float(np.mean(self._last(run)))
            name, seeds = self.labels[id(run)], len(run.seeds)
            results.append(Result(name, run.environment, solved, seeds, final, label))
        return results

    def _last(self, run: RunData) -> np.ndarray:
        """Return the mean score of the last episodes of each seed."""
        scores = run.table("score") if self.every else self.tables[id(run)]
        return np.array([np.mean(row[~np.isnan(row)][-LAST:]) for row in scores])

    def _starts(self, run: RunData) -> int | None:
        """Return the episode, or the step, at which learning starts; None if it starts at once, or
        was not reached."""
        ends = [columns["step"] for columns in run.columns.values()]
        episode = curves.learning_start(ends, run.learning_starts)
        return run.learning_starts if self.every and episode is not None else episode

    def _when(self, run: RunData) -> list[int | None]:
        """Return the episode at which each seed had solved its task, or None."""
        assert self.optimum is not None
        rows = [columns["score"] for columns in run.columns.values()]
        return [solving.episodes_to_solve(row, self.optimum) for row in rows]

    def _solved(self, run: RunData) -> dict[str, Any] | None:
        """Return how soon seeds solved their task; None if its optimum is unknown. A diverged seed
        counts as unsolved to the end."""
        if self.optimum is None:
            return None
        watched = np.array([len(columns["score"]) for columns in run.columns.values()])
        end = max(int(watched.max()), run.raw.get("episodes") or 0)
        return summaries.solved(self._when(run), np.where(run.diverged, end, watched))

    def _alarms(self, run: RunData) -> list[str]:
        """Return a sentence for each seed that found nothing or whose posterior collapsed."""
        return [
            sentence
            for seed, columns in run.columns.items()
            for sentence in alarms(seed, columns["score"], columns["spread"], self.optimum)
        ]

    def _differences(self) -> list[list[Any]]:
        """Return, at [i][j], the mean score of run i minus that of run j."""
        count = len(self.runs)
        table: list[list[Any]] = [[None] * count for _ in range(count)]
        for i, j in itertools.combinations(range(count), 2):
            a, b = (self.areas[id(self.runs[k])] for k in (i, j))
            table[i][j], table[j][i] = summaries.difference(a, b, self.support)
        return table


def _rank(name: str) -> int:
    """Return the position of an agent in the list of named agents."""
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _more(run: RunData, bins: int) -> dict[str, Any]:
    """Return the means and intervals of coverage and spreads over episodes."""
    curves = {}
    for column in MORE:
        table = common_episodes(run.table(column))
        counted = column == "coverage" and table.max(initial=0.0) <= bins
        smooth = moving_average(table, LAST)
        step = max(1, -(-table.shape[1] // FEW_POINTS))
        thin = smooth[:, step - 1 :: step]
        if np.any(thin != 0):
            support = (0.0, bins) if counted else None
            curves[column] = {"step": step} | summaries.curve(thin, support)
    return curves


def _labels(runs: Sequence[RunData]) -> dict[int, str]:
    """Return a label for each run: its agent and, if several runs have the same agent, the settings
    in which they differ."""
    labels = {}
    for run in runs:
        alike = [other for other in runs if other.name == run.name]
        label = label_of(run.name)
        if len(alike) > 1:
            settings = [other.raw["agent"].get("settings") or {} for other in alike]
            own = run.raw["agent"].get("settings") or {}
            varied = [k for k in own if any(s.get(k) != own[k] for s in settings)]
            suffix = ", ".join(f"{k} {_word(own[k])}" for k in varied)
            variants = {json.dumps([s.get(k) for k in varied]) for s in settings}
            distinct = len(variants) == len(alike) and 0 < len(varied) <= 3
            label += f", {suffix}" if distinct else f", {run.path.resolve().name}"
        labels[id(run)] = label
    return labels


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _about(run: RunData) -> dict[str, Any]:
    """Return the configuration, the versions and the command of a run."""
    agent, environment = run.raw["agent"], run.raw["environment"]
    about = {
        "agent": agent.get("settings") or agent.get("composition") or {},
        "environment": {"name": run.environment, **(environment.get("options") or {})},
        "run": {k: run.raw.get(k) for k in ("episodes", "steps", "until_solved", "seeds")},
        "versions": run.raw.get("versions") or {},
    }
    return plain(about) | {"command": commands.of_run(run)}
