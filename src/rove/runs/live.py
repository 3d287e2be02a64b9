"""The live display of training: progress bars in a terminal or a notebook, otherwise log lines."""

import contextlib
import sys
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich import progress as bars
from rich.console import Console

from rove.runs.pace import Pace, fraction
from rove.training.lane import UNLIMITED
from rove.training.outcomes import Job
from rove.training.progress import Progress

MOST_ROWS = 12
"""Maximum number of seeds with a row each; if there are more, the seeds of a run share a row."""
LINE_SECONDS = 5.0
"""Seconds between two lines of the log."""
COMPILING = "compiling takes about 10 s"
STATUS_WIDTH, BAR_WIDTH = 50, (8, 60)
"""The width of the status of a row, and the minimum and maximum width of its bar, in characters."""


class Live:
    """Shows the progress of jobs: a row for each, and a row for the total with the time left.

    If the console is neither a terminal nor a notebook with ipywidgets, a line is printed every few
    seconds instead.
    """

    def __init__(self, console: Console, jobs: Sequence[Job], quiet: bool = False):
        self._console, self._quiet = console, quiet
        # rich draws bars in a notebook with ipywidgets.
        notebook = console.is_jupyter and find_spec("ipywidgets") is not None
        can_draw = notebook if console.is_jupyter else console.is_terminal
        self._bars_shown = not quiet and can_draw
        self._lock = threading.Lock()
        self._last_line, self._created = 0.0, time.monotonic()
        runs = {job.name.rpartition(", seed")[0] for job in jobs}
        self._title = next(iter(runs)) if len(runs) == 1 else ""
        self._name = self._title or f"{len(runs)} runs, {len(jobs)} seeds"
        self._shared = len(jobs) > MOST_ROWS
        self._jobs: dict[str, list[Job]] = {}
        for job in jobs:
            self._jobs.setdefault(self._row_of(job), []).append(job)
        self._progress = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(bar_width=self._bar_width()),
            bars.TextColumn("{task.fields[count]}", justify="right"),
            bars.TextColumn("{task.fields[status]}"),
            console=console,
            disable=not self._bars_shown,
        )
        self._rows = {
            name: self._progress.add_task(name, total=len(group), count="", status="waiting")
            for name, group in self._jobs.items()
        }
        status = _Ticking(self._created, f"starting, {{}} ({COMPILING})")
        self._total = self._progress.add_task("total", total=1.0, count="", status=status)
        self._latest: dict[int, Progress] = {}
        """The latest progress by the id of its job, since jobs of an experiment may share names."""
        self._pace = Pace()

    def _row_of(self, job: Job) -> str:
        run, _, seed = job.name.rpartition(", seed ")
        if self._shared:
            return run
        return f"seed {seed}" if self._title else job.name

    def _bar_width(self) -> int:
        """Return the width of bars that leaves enough space for names, counts and statuses."""
        counts = [_count(group, group[0].goal[1], len(group)) for group in self._jobs.values()]
        name, count = (
            max(map(len, texts), default=0) for texts in (["total", *self._jobs], counts)
        )
        least, most = BAR_WIDTH
        return min(max(self._console.width - name - count - STATUS_WIDTH - 3, least), most)

    def report(self, progress: Progress) -> None:
        """Show the progress of a seed."""
        if self._quiet:
            return
        with self._lock:
            self._latest[id(progress.job)] = progress
            self._pace.add(progress, time.monotonic())
            if self._bars_shown:
                self._update(self._row_of(progress.job))
            elif progress.finished or time.monotonic() - self._last_line > LINE_SECONDS:
                self._last_line = time.monotonic()
                self._log(progress)

    def _update(self, row: str) -> None:
        """Redraw the row of a seed, or of several, and the total."""
        group = self._jobs[row]
        reported = [p for p in self._latest.values() if self._row_of(p.job) == row]
        unit, _ = group[0].goal
        count = _count(group, getattr(reported[0], unit), sum(p.finished for p in reported))
        self._progress.update(
            self._rows[row],
            completed=sum(map(fraction, reported)),
            count=count,
            status=_status(reported),
        )
        done = sum(map(fraction, self._latest.values()))
        total = sum(map(len, self._jobs.values()))
        changed: dict[str, Any] = {}
        if len(self._latest) == total and all(p.finished for p in self._latest.values()):
            changed = {"status": f"done in {_clock(time.monotonic() - self._created)}"}
        elif any(p.steps_per_second for p in self._latest.values()):
            left = self._pace.seconds_left(self._latest.values(), total)
            text = "{} so far" if left is None else f"{{}} so far, {_clock(left)} left"
            changed = {"status": _Ticking(self._created, text)}
        self._progress.update(
            self._total, completed=done / total, count=f"{done / total:.0%}", **changed
        )

    def _log(self, progress: Progress) -> None:
        unit, goal = progress.job.goal
        speed = progress.steps_per_second
        text = f"{progress.job.name}: {getattr(progress, unit):,} of {goal:,} {unit}s"
        text += f", {_score([progress])}" if np.isfinite(progress.recent) else ""
        text += f", {speed:,.0f} steps/s" if speed else ""
        text += f", stopped: {reason}" if (reason := _stopped(progress)) else ""
        print_line(self._console, text)

    def __enter__(self) -> "Live":
        if self._bars_shown and self._title:
            self._console.print(self._title, highlight=False)
        elif not self._bars_shown and not self._quiet:
            print_line(self._console, f"{self._name}: starting ({COMPILING} the first time)")
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()


class _Ticking:
    """A text that contains the time elapsed since a moment, updated whenever it is drawn."""

    def __init__(self, since: float, text: str):
        self._since, self._text = since, text

    def __str__(self) -> str:
        return self._text.format(_clock(time.monotonic() - self._since))


def _count(group: Sequence[Job], done: int, finished: int) -> str:
    """Describe how much of a row is done: episodes or steps of one seed, or seeds of several."""
    goal = group[0].goal[1]
    return f"{done:,}/{goal:,}" if len(group) == 1 else f"{finished}/{len(group)} seeds"


def _clock(seconds: float) -> str:
    """Format a duration as 1:23, or as 1:02:03 from an hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shown_by_default() -> bool:
    """Whether `rove.train` shows its progress by default: in a terminal or a notebook."""
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


def _status(reported: Sequence[Progress]) -> str:
    """Describe the jobs of a row: their scores and their speed."""
    speed = sum(p.steps_per_second for p in reported if not p.finished)
    recent = [p.recent for p in reported if np.isfinite(p.recent)]
    if not recent and not speed:
        return "done" if all(p.finished for p in reported) else "starting"
    if all(p.finished and _may_stop(p.job) for p in reported):
        reasons = [reason for p in reported if (reason := _stopped(p))]
        counts = [f"{x} {reasons.count(x)}/{len(reported)}" for x in dict.fromkeys(reasons)]
        if len(reported) > 1:
            return ", ".join([*(counts or [f"stopped 0/{len(reported)}"]), _score(reported)])
        at = f"at episode {reported[0].episode:,}"
        return f"{reasons[0]} {at}" if reasons else _score(reported)
    text = _score(reported)
    return f"{text}, {speed:,.0f} steps/s" if speed else text


def _may_stop(job: Job) -> bool:
    """Whether a job may stop before the end of its budget."""
    return job.in_a_row < UNLIMITED or job.stop_at is not None


def _stopped(progress: Progress) -> str:
    """Describe why a job stopped before the end of its budget: 'solved', or 'reached 0.9'; empty if
    it did not."""
    unit, goal = progress.job.goal
    if not progress.finished or getattr(progress, unit) >= goal or not _may_stop(progress.job):
        return ""
    return f"reached {progress.job.stop_at:g}" if progress.stopped else "solved"


def _score(reported: Sequence[Progress]) -> str:
    """Describe the recent score: 'return 8.250 of 11', or 'return 8.250' without an optimum.

    While all scores are 0, the number of visited cells is added: 'return 0.000, 31 of 72 cells'.
    The total is left out for a grid over coordinates, not all of whose cells need be reachable.
    """
    environment = reported[0].job.environment
    recent = [p.recent for p in reported if np.isfinite(p.recent)]
    text = f"{environment.score_label} {format_score(np.mean(recent)) if recent else '–'}"
    if environment.bins and recent and not any(recent):
        of = "" if environment.coordinates else f" of {environment.bins:,}"
        cells = max(p.coverage for p in reported)
        return f"{text}, {cells:,}{of} cell{'s' * (cells != 1 or bool(of))}"
    return text if environment.optimum is None else f"{text} of {environment.optimum:g}"
