"""The live display of training: progress bars in a terminal or a notebook, or lines of a log."""

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
from rich import progress as bars
from rich.console import Console

from rove.training.lane import UNLIMITED
from rove.training.outcomes import Job
from rove.training.progress import Progress

MOST_ROWS = 12
"""Maximum number of seeds that get a row each; with more, the seeds of a run share one."""
LINE_SECONDS = 5.0
"""Seconds between two lines of the log."""
PACE_SECONDS = 15.0
"""Seconds over which the pace is measured."""
COMPILING = "starting (compiling takes about 10 s the first time)"


class Live:
    """Shows the progress of jobs: a row for each, and one for all of them with the time left.

    A console that is neither a terminal nor a notebook with ipywidgets gets a line every few
    seconds instead.
    """

    def __init__(self, console: Console, jobs: Sequence[Job], quiet: bool = False):
        self._console, self._quiet = console, quiet
        # rich draws bars in a notebook with ipywidgets.
        notebook = console.is_jupyter and find_spec("ipywidgets") is not None
        drawn = notebook if console.is_jupyter else console.is_terminal
        self._bars_shown = not quiet and drawn
        self._lock = threading.Lock()
        self._last_line, self._created = 0.0, time.monotonic()
        runs = {job.name.rpartition(", seed")[0] for job in jobs}
        self._title = next(iter(runs)) if len(runs) == 1 else ""
        self._name = self._title or f"{len(runs)} runs, {len(jobs)} seeds"
        self._shared = len(jobs) > MOST_ROWS
        self._progress = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(bar_width=16),
            bars.TextColumn("{task.fields[count]}", justify="right"),
            bars.TextColumn("{task.fields[status]}"),
            console=console,
            disable=not self._bars_shown,
        )
        self._jobs: dict[str, list[Job]] = {}
        for job in jobs:
            self._jobs.setdefault(self._row_of(job), []).append(job)
        self._rows = {
            name: self._progress.add_task(name, total=len(group), count="", status="waiting")
            for name, group in self._jobs.items()
        }
        self._total = self._progress.add_task("total", total=1.0, count="", status=COMPILING)
        self._latest: dict[int, Progress] = {}
        """The latest progress by the identity of its job: jobs of an experiment may share names."""
        self._pace: deque[tuple[float, float]] = deque()
        """When how much was done, in the last seconds."""

    def _row_of(self, job: Job) -> str:
        run, _, seed = job.name.rpartition(", seed ")
        if self._shared:
            return run
        return f"seed {seed}" if self._title else job.name

    def report(self, progress: Progress) -> None:
        """Show the progress of a seed."""
        if self._quiet:
            return
        with self._lock:
            self._latest[id(progress.job)] = progress
            if self._bars_shown:
                self._update(self._row_of(progress.job))
            elif progress.finished or time.monotonic() - self._last_line > LINE_SECONDS:
                self._last_line = time.monotonic()
                self._log(progress)

    def _update(self, row: str) -> None:
        """Redraw the row of a seed, or of several, and the total."""
        group = self._jobs[row]
        reported = [p for p in self._latest.values() if self._row_of(p.job) == row]
        count = f"{len([p for p in reported if p.finished])}/{len(group)} seeds"
        if len(group) == 1:
            unit, goal = group[0].goal
            count = f"{getattr(reported[0], unit):,}/{goal:,}"
        self._progress.update(
            self._rows[row],
            completed=sum(map(_fraction, reported)),
            count=count,
            status=_status(reported),
        )
        done = sum(map(_fraction, self._latest.values()))
        total = sum(map(len, self._jobs.values()))
        started = any(p.steps_per_second for p in self._latest.values())
        left = self._time_left(done, total) if started else COMPILING
        finished = len(self._latest) == total and all(p.finished for p in self._latest.values())
        self._progress.update(
            self._total,
            completed=done / total,
            count=f"{done / total:.0%}",
            status=f"done in {_clock(time.monotonic() - self._created)}" if finished else left,
        )

    def _time_left(self, done: float, total: int) -> str:
        """Estimate the time left from the pace of the last 15 seconds: earlier, programs were being
        compiled."""
        now = time.monotonic()
        self._pace.append((now, done))
        while now - self._pace[0][0] > PACE_SECONDS and len(self._pace) > 2:
            self._pace.popleft()
        began, before = self._pace[0]
        passed, newly = now - began, done - before
        if newly <= 0.0 or passed < 1.0:
            return ""
        since = _clock(time.monotonic() - self._created)
        return f"{since} so far, {_clock(passed / newly * (total - done))} left"

    def _log(self, progress: Progress) -> None:
        unit, goal = progress.job.goal
        speed = progress.steps_per_second
        text = f"{progress.job.name}: {getattr(progress, unit):,} of {goal:,} {unit}s"
        text += f", {_score([progress])}" if np.isfinite(progress.recent) else ""
        text += f", {speed:,.0f} steps/s" if speed else ""
        text += ", stopped: solved" if _solved(progress) else ""
        print_line(self._console, text)

    def __enter__(self) -> "Live":
        if self._bars_shown and self._title:
            self._console.print(self._title, highlight=False)
        elif not self._bars_shown and not self._quiet:
            print_line(self._console, f"{self._name}: {COMPILING}")
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()


def _clock(seconds: float) -> str:
    """Format a duration as 1:23, or as 1:02:03 from an hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shown_by_default() -> bool:
    """Whether `rove.train` shows its progress unless told otherwise: in a terminal or notebook."""
    return sys.stderr.isatty() or Console(stderr=True).is_jupyter


def format_score(value: float | np.floating) -> str:
    """Format a score; a dash before the first episode has ended."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 100.0 else f"{value:.1f}"


def print_line(console: Console, line: str) -> None:
    """Print a line of the log. A failure to write must not stop training."""
    with contextlib.suppress(OSError):
        console.print(line, highlight=False, soft_wrap=True)


def _fraction(progress: Progress) -> float:
    """Return how much of a job is done; one that stopped early counts as complete."""
    unit, goal = progress.job.goal
    return 1.0 if progress.finished else getattr(progress, unit) / goal


def _status(reported: Sequence[Progress]) -> str:
    """Describe the jobs of a row: their scores and their speed."""
    speed = sum(p.steps_per_second for p in reported if not p.finished)
    recent = [p.recent for p in reported if np.isfinite(p.recent)]
    if not recent and not speed:
        return "done" if all(p.finished for p in reported) else "starting"
    if all(p.finished and p.job.in_a_row < UNLIMITED for p in reported):
        solved = [p for p in reported if _solved(p)]
        if len(reported) > 1:
            return f"solved {len(solved)}/{len(reported)}, {_score(reported)}"
        return f"solved at episode {solved[0].episode:,}" if solved else f"{_score(reported)}"
    text = _score(reported)
    return f"{text}, {speed:,.0f} steps/s" if speed else text


def _solved(progress: Progress) -> bool:
    """Whether a job stopped before its budget because it solved its task."""
    unit, goal = progress.job.goal
    early = progress.finished and getattr(progress, unit) < goal
    return early and progress.job.in_a_row < UNLIMITED


def _score(reported: Sequence[Progress]) -> str:
    """Describe the recent score: 'return 8.250 of 11', or 'return 8.250' without an optimum. While
    nothing has been found, this is how many cells were visited: 'return 0.000, 31 of 72 cells'."""
    environment = reported[0].job.environment
    recent = [p.recent for p in reported if np.isfinite(p.recent)]
    text = f"{environment.score_label} {format_score(np.mean(recent)) if recent else '–'}"
    if environment.bins and recent and not any(recent):
        cells = max(p.coverage for p in reported)
        return f"{text}, {cells:,} of {environment.bins:,} cells"
    return text if environment.optimum is None else f"{text} of {environment.optimum:g}"
