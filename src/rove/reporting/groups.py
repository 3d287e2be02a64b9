"""Groups of comparable runs, as JSON: curves, numbers, visits, posteriors and configuration."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rove.analysis import curves
from rove.analysis.comparing import compare_means, opposite
from rove.analysis.curves import moving_average
from rove.analysis.seed_scores import (
    TRAINING,
    budget_of,
    common_episodes,
    known_range,
    score_table,
    shared,
    spacing,
    training_scores,
    unit_of,
)
from rove.analysis.sentences import Result, p_values, ranked
from rove.environments import Task
from rove.reporting import beliefs, outcomes, policies, summaries
from rove.reporting.binning import bin_size, binned, recent_table, stopped_early
from rove.reporting.numbers import number, numbers
from rove.reporting.run_data import RunData
from rove.reporting.settings import about
from rove.training import solving

WINDOWS = (1, 20, 100, 500, 2500, 10_000)
"""Available moving windows, in episodes."""
PICTURED = 24
"""Maximum number of runs per group, the first ones, with charts of visits and posteriors and with
differences between them; this keeps large reports small."""


class Group:
    """Runs of several agents on one task, with the name of the task and the labels of all runs."""

    def __init__(self, runs: list[RunData], name: str, labels: Mapping[int, str]):
        trained = [run.trained for run in runs]
        self.unit, self.every = unit_of(trained), spacing(trained)
        self.budgets = {id(run): budget_of(run.trained, self.unit) for run in runs}
        self.common = min(self.budgets.values())
        self.tables = {id(run): score_table(run.trained, self.every) for run in runs}
        self.areas = dict(zip(map(id, runs), training_scores(trained), strict=True))
        self.runs = runs
        self.labels = {id(run): labels[id(run)] for run in runs}
        self.name = name
        self.task = max((run.task for run in runs), key=_known_optimum)
        self.optimum = self.task.optimum
        scores = [x["score"] for run in runs for x in run.columns.values()]
        self.seen = float(min(map(np.min, scores))), float(max(map(np.max, scores)))
        self.support = known_range(trained)

    @property
    def budget(self) -> str:
        """The budget of the runs, such as "60 episodes" or "30 to 60 episodes"."""
        span = sorted({min(self.budgets.values()), max(self.budgets.values())})
        return f"{' to '.join(f'{n:,}' for n in span)} {self.unit}s"

    @property
    def title(self) -> str:
        """The task and the budget."""
        return f"{self.name}, {self.budget}"

    @property
    def standings(self) -> dict[str, float]:
        """The mean score of each run, by label, on a scale that tasks have in common: as a fraction
        of the optimum or, if that is not known, the fraction of all runs that are no better."""
        means = np.array([np.mean(self.areas[id(run)]) for run in self.runs])
        shares = np.less_equal.outer(means, means).mean(axis=0)
        if self.optimum is not None and self.optimum > 0:
            shares = means / self.optimum
        return {self.labels[id(run)]: float(x) for run, x in zip(self.runs, shares, strict=True)}

    def arrange(self, order: Sequence[str]) -> None:
        """Put the runs into the order of some labels."""
        self.runs = sorted(self.runs, key=lambda run: order.index(self.labels[id(run)]))

    def as_json(self, colours: dict[str, int]) -> dict[str, Any]:
        """Return the data of the group."""
        tables = [run.table("score") if self.every else self.tables[id(run)] for run in self.runs]
        longest = max(table.shape[1] for table in tables)
        size = 1 if self.every else bin_size(longest)
        windows = sorted({size} | {w for w in WINDOWS if w % size == 0 and w <= longest})[:3]
        return {
            "title": self.title,
            "task": self.name,
            "budget": self.budget,
            "label": self.task.score_label,
            "optimum": None if self.optimum is None else number(self.optimum),
            "bounded": self.support is not None,
            "unit": self.unit,
            "stopped": any(map(stopped_early, self.runs)),
            "common": self.common if len(set(self.budgets.values())) > 1 else None,
            "bin": self.every or size,
            "windows": windows,
            "window": solving.LAST if solving.LAST in windows else windows[-1],
            "runs": [
                self._run(run, colours, size, windows, pictured=i < PICTURED)
                for i, run in enumerate(self.runs)
            ],
            "pictured": PICTURED if len(self.runs) > PICTURED else None,
            "differences": self._differences() if len(self.runs) <= PICTURED else None,
            "tested": self._tested(),
        }

    def _run(
        self,
        run: RunData,
        colours: dict[str, int],
        size: int,
        windows: Sequence[int],
        pictured: bool,
    ) -> dict[str, Any]:
        """Return the data of a run."""
        played = [len(columns["score"]) for columns in run.columns.values()]
        ended = [seed for seed, finished in run.finished.items() if finished or seed in run.errors]
        return {
            "label": self.labels[id(run)],
            "colour": colours[self.labels[id(run)]],
            "folder": run.path.resolve().name,
            "seeds": run.seeds,
            "played": [min(played), max(played)],
            "budget": self.budgets[id(run)],
            "unfinished": len(run.finished) - len(ended),
            "errors": list(run.errors.values()),
            "diverged": int(np.sum(run.diverged)),
            **self._curves(run, size, windows),
            "starts": self._starts(run),
            "all": summaries.mean(self.areas[id(run)], self.support),
            "last": summaries.mean(self._last(run), self.support),
            **policies.about(run, self.unit, self.support),
            "solved": outcomes.solved(run, self.optimum),
            "more": beliefs.more(run),
            "visits": beliefs.visits(run) if pictured else None,
            "beliefs": beliefs.beliefs(run, self.optimum) if pictured else None,
            "finding": outcomes.finding(run, self.optimum),
            "warnings": outcomes.warnings(run, self.optimum),
            "advice": outcomes.advice(run, self.optimum),
            "about": about(run),
        }

    def _curves(self, run: RunData, size: int, windows: Sequence[int]) -> dict[str, Any]:
        """Return the scores of a run and, for each window, the band of their mean. Windows of
        scores over episodes are computed by the page; over steps, the scores of all windows are
        given."""
        if self.every:
            pairs = {w: recent_table(run, self.every, w) for w in windows}
            first, tables = pairs[windows[0]][0], {w: table for w, (_, table) in pairs.items()}
            smooth = {w: common_episodes(table) for w, table in tables.items()}
        else:
            blocks = binned(self.tables[id(run)], size)
            first, tables = size, {size: blocks}
            smooth = {w: moving_average(common_episodes(blocks), w // size) for w in windows}
        return {
            "first": first,
            "scores": {
                str(w): [numbers(row[~np.isnan(row)]) for row in table]
                for w, table in tables.items()
            },
            "bands": {
                str(w): summaries.band(table, self.support, self.seen)
                for w, table in smooth.items()
            },
        }

    def results(self) -> list[Result]:
        """Return the results of each run that the title of the page states."""
        results = []
        for run in self.runs:
            solved, lost, times = None, 0, np.zeros(0)
            if self.optimum is not None:
                when = outcomes.when(run, self.optimum)
                pairs = zip(when, shared(run.trained, self.common, self.every), strict=True)
                times = np.array([at if at is not None and at <= n else np.inf for at, n in pairs])
                solved, lost = sum(map(bool, when)), sum(outcomes.lost(run, self.optimum))
            result = Result(
                agent=self.labels[id(run)],
                task=self.name,
                solved=solved,
                seeds=len(run.seeds),
                final=float(np.mean(self._last(run))),
                label=self.task.score_label,
                evidence=(tuple(self.areas[id(run)].tolist()),),
                support=self.support,
                lost=lost,
                times=tuple(times.tolist()),
            )
            results.append(result)
        return results

    def _tested(self) -> dict[str, Any] | None:
        """Return the p-values behind titles, of the difference in the mean score in training from
        the reference that titles name first; see `rove.difference`. They are adjusted if there are
        several (Holm). None for a single run."""
        results = self.results()
        if len(results) < 2:
            return None
        return {
            "reference": ranked(results)[0].agent,
            "p": [None if p is None else number(p) for p in p_values(results)],
        }

    def _last(self, run: RunData) -> np.ndarray:
        """Return the mean score of the last episodes that each seed played. A diverged seed has its
        lowest score to the end of its budget."""
        rows = [
            self.tables[id(run)][i] if diverged and not self.every else columns["score"]
            for i, (columns, diverged) in enumerate(
                zip(run.columns.values(), run.diverged, strict=True)
            )
        ]
        return np.array([np.mean(row[-solving.LAST :]) for row in rows])

    def _starts(self, run: RunData) -> int | None:
        """Return the episode, or the step, at which learning starts; None if it starts at once, or
        was not reached."""
        ends = [columns["step"] for columns in run.columns.values()]
        episode = curves.learning_start(ends, run.learning_starts)
        return run.learning_starts if self.every and episode is not None else episode

    def _differences(self) -> list[list[Any]]:
        """Return, at [i][j], the mean score in training of run i minus that of run j."""
        count = len(self.runs)
        table: list[list[Any]] = [[None] * count for _ in range(count)]
        for i, j in itertools.combinations(range(count), 2):
            a, b = (self.areas[id(self.runs[k])] for k in (i, j))
            test, n = compare_means(a, b, self.support, TRAINING), min(len(a), len(b))
            table[i][j] = summaries.difference(test, n)
            table[j][i] = summaries.difference(opposite(test), n)
        return table


def _known_optimum(task: Task) -> float:
    """Return a sort key of tasks: those with a known optimum come last."""
    return -math.inf if task.optimum is None else task.optimum
