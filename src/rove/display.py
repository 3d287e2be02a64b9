"""What the command shows: live progress, and tables at the end."""

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rove.environments import Bandit
from rove.statistics import episodes_to_solve, mean_and_interval, solve_summary
from rove.sweeps import Standing, Sweep, shown
from rove.training import lanes
from rove.training.outcomes import Job

if TYPE_CHECKING:
    from rove.experiments.claims import Claim
    from rove.run import Run

MANY = 12
"""Lanes up to which each has a bar of its own."""


class Live:
    """A bar for every lane (for every group of lanes, where there are many); plain lines where
    there is no terminal."""

    def __init__(self, console: Console, jobs: Sequence[Job]):
        self._console = console
        self._lock = threading.Lock()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._bars = {}
        self._seen: dict[str, dict[int, lanes.Progress]] = {}
        self._last_line = 0.0
        self._jobs = list(jobs)
        for job in jobs:
            name = self._bar_of(job)
            if name not in self._bars:
                total = sum(j.goal[1] for j in jobs if self._bar_of(j) == name)
                self._bars[name] = self._progress.add_task(name, total=total, shown="starting")
                self._seen[name] = {}

    def _bar_of(self, job: Job) -> str:
        many = len(self._jobs) > MANY
        return job.name.rsplit(", seed", 1)[0] if many else job.name

    def report(self, told: lanes.Progress) -> None:
        with self._lock:
            name = self._bar_of(told.job)
            seen = self._seen[name]
            seen[id(told.job)] = told
            done = sum(_done(p) for p in seen.values())
            speed = sum(p.steps_per_second for p in seen.values() if not p.finished)
            ended = [p.recent for p in seen.values() if np.isfinite(p.recent)]
            recent = np.mean(ended) if ended else np.nan
            label = told.job.environment.score_label
            shown = f"{label} {_score(recent):>7}  " + (f"{speed:6,.0f} steps/s" if speed else "")
            self._progress.update(self._bars[name], completed=done, shown=shown)
            quiet = time.monotonic() - self._last_line < 5.0
            if not self._console.is_terminal and (told.finished or not quiet):
                self._last_line = time.monotonic()
                unit, goal = told.job.goal
                _say(
                    self._console,
                    f"{told.job.name}: {getattr(told, unit)} of {goal} {unit}s, "
                    f"{label} {_score(told.recent)}"
                    + (f", {told.steps_per_second:,.0f} steps/s" if told.steps_per_second else ""),
                )

    def __enter__(self) -> "Live":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()


def _say(console: Console, line: str) -> None:
    """A line of progress. No lane fails because it cannot be written."""
    with contextlib.suppress(OSError):
        console.print(line, highlight=False, soft_wrap=True)


def _score(value: float | np.floating) -> str:
    """A dash before the first episode has ended."""
    return f"{value:.3f}" if np.isfinite(value) else "–"


class SweepLive:
    """One bar for a sweep: lanes done, the best so far, the time left; plain lines where there is
    no terminal."""

    def __init__(self, console: Console, total: int):
        self._console, self._last_line = console, 0.0
        self._progress = Progress(
            TextColumn("lanes"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task("lanes", total=total, shown="starting")

    def report(self, told: Standing) -> None:
        shown = _standing(told)
        self._progress.update(self._bar, completed=told.done, shown=shown)
        if not self._console.is_terminal and time.monotonic() - self._last_line > 5.0:
            self._last_line = time.monotonic()
            line = f"{told.done} of {told.total} lanes" + (f", {shown}" if shown else "")
            _say(self._console, line)

    def __enter__(self) -> "SweepLive":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()


def _standing(told: Standing) -> str:
    parts = []
    if told.best is not None:
        scores = told.best.scores
        parts.append(f"best {np.mean(scores):.3f} (n = {len(scores)}) at {told.best.label}")
    if told.seconds_left is not None:
        minutes, seconds = divmod(round(told.seconds_left), 60)
        parts.append(f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left")
    return ", ".join(parts)


def sweep_table(console: Console, found: Sweep) -> None:
    """The ten best points, and the best on both kinds of seeds."""
    base = found.plan.base

    def interval(scores: Sequence[float]) -> str:
        return mean_and_interval(np.array(scores), base.environment.score_range)

    table = Table(title=f"{base.label}: the best of {len(found.points)}", title_justify="left")
    for name in found.plan.fields:
        table.add_column(name, justify="right")
    table.add_column(f"mean {base.environment.score_label} on tuning seeds")
    for point in found.ranked[:10]:
        row = (shown(value) for value in point.settings.values())
        table.add_row(*row, interval(point.scores))
    console.print(table)
    best = found.best
    lines = [f"best: {best.label}", f"on tuning seeds: {interval(best.scores)}"]
    if best.confirmed:
        lines.append(f"on other seeds:  {interval(best.confirmed)}")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _done(told: lanes.Progress) -> int:
    """How far a lane is; one that stopped before its goal, because it is solved, is done."""
    unit, goal = told.job.goal
    return goal if told.finished else getattr(told, unit)


def closing_table(console: Console, run: "Run") -> None:
    """One row a seed, and the mean with its interval."""
    optimum, label = run.config.environment.optimum, run.config.environment.score_label
    table = Table(title=run.config.label, title_justify="left")
    for column in ("seed", "episodes", "steps", f"mean {label}", "last 20", "greedy", "solved at"):
        table.add_column(column, justify="right")
    greedy = run.evaluate()
    solved, last = [], []
    for outcome, g in zip(run.outcomes, greedy, strict=True):
        scores = outcome.scores
        solved.append(episodes_to_solve(scores, optimum) if optimum is not None else None)
        means = [_score(np.mean(part)) if len(part) else "–" for part in (scores, scores[-20:])]
        last += [float(np.mean(scores[-20:]))] if len(scores) else []
        step, when = int(outcome.lane.step), solved[-1]
        table.add_row(
            str(outcome.job.seed), f"{len(scores):,}", f"{step:,}", *means, f"{g:.3f}",
            str(when) if when else "–",
        )  # fmt: skip
    console.print(table)
    if len(last) > 1:
        told = mean_and_interval(np.array(last), run.config.environment.score_range, digits=3)
        console.print(f"last 20 episodes: {told} seeds", highlight=False)
    if isinstance(bandit := run.config.environment, Bandit):
        regret = bandit.regret(np.stack([outcome.visits for outcome in run.outcomes]))
        pulls = [len(outcome.scores) for outcome in run.outcomes]
        told = mean_and_interval(regret, (0.0, max(pulls) * bandit.regrets.max()), digits=1)
        console.print(
            f"regret: {told} seeds; Lai and Robbins' rate times log {np.mean(pulls):.0f}: "
            f"{bandit.lai_robbins * np.log(np.mean(pulls)):.1f}",
            highlight=False,
        )
    if optimum is not None:
        console.print(
            f"ten episodes in a row at the optimum of {optimum:g}: "
            + solve_summary([outcome.scores for outcome in run.outcomes], optimum),
            highlight=False,
        )


def claims_table(console: Console, claims: Sequence["Claim"], name: str) -> None:
    table = Table(title=f"{name}: claims, tested on these data", title_justify="left")
    table.add_column("claim", ratio=3)
    table.add_column("what was measured", ratio=4)
    table.add_column("verdict")
    table.add_column("after Holm")
    for claim in claims:
        colour = {"reproduced": "green", "not reproduced": "red"}.get(claim.verdict, "yellow")
        verdict = f"[{colour}]{claim.verdict}[/]"
        table.add_row(claim.text, claim.evidence, verdict, claim.after_holm)
    console.print(table)
