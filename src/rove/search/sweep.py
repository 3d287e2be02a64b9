"""`rove.sweep`: try many settings of an agent, and confirm the best ones on fresh seeds."""

from __future__ import annotations

import contextlib
import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rove.agents.settings import Settings
from rove.errors import LaneError, as_path, check_callable
from rove.parts.files import publish
from rove.runs import tracking
from rove.runs.execution import check_jobs
from rove.runs.folder import RunFolder
from rove.search import trials
from rove.search.sweep_plan import Plan, plan
from rove.search.sweep_result import STAGES, Point, Sweep, SweepProgress
from rove.search.trials import ranking
from rove.training import storage
from rove.training.progress import Progress


def sweep(
    agent: str | Settings,
    environment: Any,
    fields: Mapping[str, str | Iterable[Any]],
    *,
    seeds: int = 3,
    confirm_seeds: int | None = None,
    method: str = "grid",
    points: int | None = None,
    out: str | Path | None = None,
    report: Callable[[SweepProgress], None] = lambda progress: None,
    workers: int | None = None,
    on: str = "threads",
    log: str | None = None,
    **options: Any,
) -> Sweep:
    """Try many settings of an agent on tuning seeds, and confirm the best ones on fresh seeds.

    A point of a sweep is one combination of values of the swept settings.

    **Arguments**
    - `agent`, `environment`, `workers`, `on`, `log`: as for `rove.train`.
    - `fields`: the settings to sweep, each with a list of values or a range such as "-10:-1:10" or
      "1e-8:1e-1:log8".
    - `seeds`: number of tuning seeds (1000, 1001, …).
    - `confirm_seeds`: number of fresh seeds (0, 1, …) to confirm the best point on, by default the
      value of `seeds`; 0: none.
    - `method`: "grid" tries all points; "random" tries `points` of them; "halving" tries all on one
      seed, the better half on two, the better half of those on four, … up to `seeds`.
    - `points`: number of points to draw from the grid, for "random" and "halving".
    - `out`: folder for the results; an interrupted sweep resumes from it.
    - `report`: a function that is called with a `SweepProgress` whenever a run makes progress.
    - `options`: the budget (`episodes` or `steps`), `until_solved`, and settings of the agent that
      are not swept, as for `rove.train`.

    **Example**
    >>> sweep = rove.sweep("ge", "chain-10", {"rho": [-6.0, -4.0]}, seeds=2, episodes=50)
    >>> sweep.best.settings
    {'rho': -4.0}
    """
    planned = plan(
        agent,
        environment,
        fields,
        seeds=seeds,
        confirm_seeds=confirm_seeds,
        method=method,
        points=points,
        **options,
    )
    check_callable("report", report)
    path = None if out is None else as_path("out", out)
    with tracking.opened(log, path) as tracker:
        if path is not None:
            return run(planned, path, report, workers, on, tracker)
        with tempfile.TemporaryDirectory(prefix="rove-") as folder:
            return replace(run(planned, Path(folder), report, workers, on), path=None)


def run(
    planned: Plan,
    folder: Path,
    report: Callable[[SweepProgress], None] = lambda progress: None,
    workers: int | None = None,
    on: str = "threads",
    tracker: tracking.Tracker | None = None,
) -> Sweep:
    """Run a sweep in a folder, or resume it."""
    recorder = _Recorder(planned, folder, report)

    def try_points(stage: str, points: Sequence[int], seeds: Sequence[int]) -> list[list[float]]:
        folders = [recorder.run_folder(stage, i, seeds) for i in points]
        configs = [planned.config(i, seeds) for i in points]
        runs = list(zip(configs, folders, strict=True))
        return trials.train(runs, recorder.update, workers, on, tracker)

    check_jobs(planned.config(0, planned.base.seeds).jobs(folder), workers, on)
    with RunFolder(folder).open(planned, task=planned.base.environment):
        scores = trials.race(
            len(planned.points),
            planned.rungs,
            lambda points, seeds: try_points("tuning", points, seeds),
        )
        best = ranking(scores)[0]
        if not math.isfinite(np.mean(scores[best])):
            raise LaneError(f"every point of {planned.base.label} diverged; try a smaller lr")
        if planned.confirm_seeds:
            try_points("confirmed", [best], range(planned.confirm_seeds))
        result = recorder.write(finished=True)
        result.plot(folder / "sweep.png")
        return result


class _Recorder:
    """Collects scores by stage, point and seed, and keeps sweep.csv and sweep.json up to date."""

    def __init__(self, planned: Plan, folder: Path, report: Callable[[SweepProgress], None]):
        self._plan, self._folder, self._report = planned, folder, report
        self._lock = threading.Lock()
        self._scores: dict[tuple[str, int], dict[int, float]] = {}
        self._folders: dict[Path, tuple[str, int]] = {}
        """The stage and point of each run folder."""
        self._fractions: dict[Path, float] = {}
        """The finished fraction of each run that has started, by the path of its checkpoint."""
        self._resumed: set[Path] = set()
        """Checkpoints of runs that had finished before this call."""
        self._best: Point | None = None
        self._began = time.monotonic()

    def run_folder(self, stage: str, point: int, seeds: Sequence[int]) -> Path:
        """Return the run folder of a point. On later rungs its name contains the first seed."""
        subfolder, first = STAGES[stage]
        path = self._folder / subfolder / (f"{point:04d}" + f"-{seeds[0]}" * (seeds[0] != first))
        self._folders[path] = stage, point
        return path

    def update(self, progress: Progress) -> None:
        """Record the progress of a run and, once it has finished, its score.

        A run without a score is skipped here; `trials.train` raises its error.
        """
        assert progress.job.path is not None
        stage, point = self._folders[progress.job.folder]
        score = None
        if progress.finished:
            with contextlib.suppress(LaneError):
                score = trials.score(storage.load(progress.job))
        with self._lock:
            unit, goal = progress.job.goal
            fraction = 1.0 if progress.finished else getattr(progress, unit) / goal
            self._fractions[progress.job.path] = fraction
            if score is not None:
                self._scores.setdefault((stage, point), {})[progress.job.seed] = score
                if progress.steps_per_second:
                    best = self.write().best
                    self._best = best if math.isfinite(np.mean(best.scores)) else self._best
                else:
                    self._resumed.add(progress.job.path)
            self._report(self._progress(progress.finished))

    def _progress(self, finished: bool) -> SweepProgress:
        """Return the progress, with the time left extrapolated from the runs of this call."""
        done = sum(self._fractions.values())
        done_now = done - len(self._resumed)
        seconds_left = None
        if done_now >= 1.0:
            seconds_per_run = (time.monotonic() - self._began) / done_now
            seconds_left = seconds_per_run * max(self._plan.total - done, 0.0)
        finished_runs = sum(len(scores) for scores in self._scores.values())
        return SweepProgress(finished_runs, self._plan.total, self._best, seconds_left, finished)

    def _sweep(self, finished: bool) -> Sweep:
        """Return the sweep with the scores so far."""
        points = []
        for i, settings in enumerate(self._plan.points):
            tuning, fresh = (self._scores.get((stage, i), {}) for stage in STAGES)
            seeds = sorted(tuning)
            confirmed = [fresh[seed] for seed in sorted(fresh)] or None
            points.append(Point(settings, [tuning[s] for s in seeds], seeds, confirmed))
        return Sweep(self._plan, points, self._folder, finished)

    def write(self, finished: bool = False) -> Sweep:
        """Write sweep.csv and sweep.json with the scores so far."""
        result = self._sweep(finished)
        publish(self._folder / "sweep.csv", result.as_csv().encode())
        publish(self._folder / "sweep.json", result.as_json().encode())
        return result
