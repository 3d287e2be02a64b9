"""Terminal output of the commands: live progress, and tables at the end."""

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich import progress as bars
from rich.console import Console
from rich.table import Table

from rove.analysis.estimates import solve_summary
from rove.analysis.intervals import mean_and_interval
from rove.environments import Bandit
from rove.search.sweep_result import Standing, Sweep, format_value
from rove.training.outcomes import Job
from rove.training.progress import Progress
from rove.training.solving import episodes_to_solve

if TYPE_CHECKING:
    from rove.paper.claims import Claim
    from rove.runs.result import Run

MANY = 12
"""Maximum number of seeds that get a progress bar each; with more, they share one per run."""


class Live:
    """Progress bars, one per seed or, with many seeds, one per run; plain lines if the output is
    not a terminal."""

    def __init__(self, console: Console, jobs: Sequence[Job]):
        self._console = console
        self._lock = threading.Lock()
        self._progress = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(bar_width=24),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[status]}"),
            bars.TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._bars = {}
        self._latest: dict[str, dict[int, Progress]] = {}
        self._last_line = 0.0
        self._jobs = list(jobs)
        for job in jobs:
            name = self._bar_of(job)
            if name not in self._bars:
                total = sum(j.goal[1] for j in jobs if self._bar_of(j) == name)
                self._bars[name] = self._progress.add_task(name, total=total, status="starting")
                self._latest[name] = {}

    def _bar_of(self, job: Job) -> str:
        many = len(self._jobs) > MANY
        return job.name.rsplit(", seed", 1)[0] if many else job.name

    def report(self, progress: Progress) -> None:
        """Show the progress of a seed."""
        with self._lock:
            name = self._bar_of(progress.job)
            latest = self._latest[name]
            latest[id(progress.job)] = progress
            done = sum(_done(p) for p in latest.values())
            speed = sum(p.steps_per_second for p in latest.values() if not p.finished)
            recents = [p.recent for p in latest.values() if np.isfinite(p.recent)]
            recent = np.mean(recents) if recents else np.nan
            label = progress.job.environment.score_label
            text = f"{label} {_score(recent):>7}  " + (f"{speed:6,.0f} steps/s" if speed else "")
            self._progress.update(self._bars[name], completed=done, status=text)
            quiet = time.monotonic() - self._last_line < 5.0
            if not self._console.is_terminal and (progress.finished or not quiet):
                self._last_line = time.monotonic()
                unit, goal = progress.job.goal
                _say(
                    self._console,
                    f"{progress.job.name}: {getattr(progress, unit)} of {goal} {unit}s, "
                    f"{label} {_score(progress.recent)}"
                    + (f", {pace:,.0f} steps/s" if (pace := progress.steps_per_second) else ""),
                )

    def __enter__(self) -> "Live":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()


def _say(console: Console, line: str) -> None:
    """Print a line of progress. A failure to write must not stop training."""
    with contextlib.suppress(OSError):
        console.print(line, highlight=False, soft_wrap=True)


def _score(value: float | np.floating) -> str:
    """Format a score; a dash before the first episode has ended."""
    return f"{value:.3f}" if np.isfinite(value) else "–"


class SweepLive:
    """One progress bar for a sweep: runs done, best point so far and time left; plain lines if the
    output is not a terminal."""

    def __init__(self, console: Console, total: int):
        self._console, self._last_line = console, 0.0
        self._progress = bars.Progress(
            bars.TextColumn("runs"),
            bars.BarColumn(bar_width=24),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[status]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task("runs", total=total, status="starting")

    def report(self, standing: Standing) -> None:
        """Show the progress of the sweep."""
        text = _standing(standing)
        self._progress.update(self._bar, completed=standing.done, status=text)
        if not self._console.is_terminal and time.monotonic() - self._last_line > 5.0:
            self._last_line = time.monotonic()
            line = f"{standing.done} of {standing.total} runs" + (f", {text}" if text else "")
            _say(self._console, line)

    def __enter__(self) -> "SweepLive":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()


def _standing(standing: Standing) -> str:
    """Describe the best point so far and the time left."""
    parts = []
    if standing.best is not None:
        scores = standing.best.scores
        parts.append(f"best {np.mean(scores):.3f} (n = {len(scores)}) at {standing.best.label}")
    if standing.seconds_left is not None:
        minutes, seconds = divmod(round(standing.seconds_left), 60)
        parts.append(f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left")
    return ", ".join(parts)


def sweep_table(console: Console, sweep: Sweep) -> None:
    """Print the ten best points, and the scores of the best on tuning and on fresh seeds."""
    base = sweep.plan.base

    def interval(scores: Sequence[float]) -> str:
        return mean_and_interval(np.array(scores), base.environment.score_range)

    table = Table(title=f"{base.label}: best of {len(sweep.points)} points", title_justify="left")
    for name in sweep.plan.fields:
        table.add_column(name, justify="right")
    table.add_column(f"mean {base.environment.score_label} on tuning seeds")
    for point in sweep.ranked[:10]:
        row = (format_value(value) for value in point.settings.values())
        table.add_row(*row, interval(point.scores))
    console.print(table)
    best = sweep.best
    lines = [f"best: {best.label}", f"on tuning seeds: {interval(best.scores)}"]
    if best.confirmed:
        lines.append(f"on fresh seeds:  {interval(best.confirmed)}")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _done(progress: Progress) -> int:
    """Return the episodes or steps done; a seed that stopped early counts as complete."""
    unit, goal = progress.job.goal
    return goal if progress.finished else getattr(progress, unit)


def closing_table(console: Console, run: "Run") -> None:
    """Print one row per seed, and the mean over seeds with its interval."""
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
        mean = mean_and_interval(np.array(last), run.config.environment.score_range, digits=3)
        console.print(f"last 20 episodes: {mean} seeds", highlight=False)
    if isinstance(bandit := run.config.environment, Bandit):
        regret = bandit.regret(np.stack([outcome.visits for outcome in run.outcomes]))
        pulls = [len(outcome.scores) for outcome in run.outcomes]
        mean = mean_and_interval(regret, (0.0, max(pulls) * bandit.regrets.max()), digits=1)
        console.print(
            f"regret: {mean} seeds; Lai and Robbins' rate times log {np.mean(pulls):.0f}: "
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
    """Print the claims of an experiment with their verdicts."""
    table = Table(title=f"{name}: claims tested on these data", title_justify="left")
    table.add_column("claim", ratio=3)
    table.add_column("what was measured", ratio=4)
    table.add_column("verdict")
    table.add_column("after Holm")
    for claim in claims:
        colour = {"reproduced": "green", "not reproduced": "red"}.get(claim.verdict, "yellow")
        verdict = f"[{colour}]{claim.verdict}[/]"
        table.add_row(claim.text, claim.evidence, verdict, claim.after_holm)
    console.print(table)
