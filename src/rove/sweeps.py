"""`rove.sweep`: try points of an agent's settings on tuning seeds, confirm the best on others."""

from __future__ import annotations

import contextlib
import json
import math
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rove import live, runner, spans, trials
from rove.errors import ConfigError, LaneError, as_path, check_choice, check_integer
from rove.runs import Config, RunFolder
from rove.settings import Settings, with_settings
from rove.tables import as_csv
from rove.training import lanes, outcomes
from rove.training.checkpoint import publish
from rove.trials import Rung, ranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TUNING = 1000
"""The first tuning seed; smaller seeds are for confirmation."""
METHODS = ("grid", "random", "halving")
PARTS = {"tuning": ("points", TUNING), "confirmed": ("confirmed", 0)}
"""The subfolder for the runs of each part of a sweep, and its first seed."""


@dataclass(frozen=True)
class Plan:
    """The points, seeds and method of a sweep."""

    base: Config
    """The agent without the swept settings, the environment, the budget and the tuning seeds."""
    fields: Mapping[str, tuple[Any, ...]]
    """The values of each swept setting."""
    method: str = "grid"
    count: int | None = None
    """Number of points to draw from the grid; None: all."""
    confirm_seeds: int = 0
    """Number of seeds to confirm the best point on."""

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """The grid, with the last field varying fastest, or a reproducible uniform sample of it."""
        total = math.prod(map(len, self.fields.values()))
        chosen = range(total)
        if self.count is not None:
            chosen = sorted(random.Random(0).sample(chosen, min(self.count, total)))
        return [self._point(i) for i in chosen]

    def _point(self, number: int) -> dict[str, Any]:
        point: dict[str, Any] = {}
        for name, values in reversed(list(self.fields.items())):
            number, index = divmod(number, len(values))
            point[name] = values[index]
        return {name: point[name] for name in self.fields}

    @property
    def rungs(self) -> list[Rung]:
        """The rounds of the search: how many points are tried on which seeds."""
        seeds = self.base.seeds
        if self.method == "halving":
            return trials.halving(len(self.points), seeds)
        return [Rung(len(self.points), seeds)]

    @property
    def total(self) -> int:
        """Total number of runs, one per point and seed."""
        return sum(rung.points * len(rung.seeds) for rung in self.rungs) + self.confirm_seeds

    def config(self, point: int, seeds: Sequence[int]) -> Config:
        """Return the configuration of a point, by its number, on some seeds."""
        assert isinstance(self.base.agent, Settings)
        agent = with_settings(self.base.agent, self.points[point])
        return replace(self.base, agent=agent, seeds=tuple(seeds))

    def identity(self) -> dict[str, Any]:
        """Return what identifies this sweep, as JSON."""
        own = {
            "fields": self.fields,
            "method": self.method,
            "points": self.count,
            "confirm_seeds": self.confirm_seeds,
        }
        return {"sweep": json.loads(json.dumps(own)) | self.base.identity()}


def plan(
    agent: str | Settings,
    environment: Any,
    fields: Mapping[str, str | Iterable[Any]],
    *,
    seeds: int = 3,
    confirm_seeds: int | None = None,
    method: str = "grid",
    points: int | None = None,
    **options: Any,
) -> Plan:
    """Return the plan of a sweep. All points are validated before anything is compiled."""
    check_integer("seeds", seeds, at_least=1, at_most=100_000)
    base = runner.configure(agent, environment, seeds=range(TUNING, TUNING + seeds), **options)
    if not isinstance(base.agent, Settings):
        raise ConfigError("agent", base.agent_name, "a name, or settings such as rove.GE()")
    if not isinstance(fields, Mapping) or not fields:
        what = "at least one setting, by name, with its values: " + spans.SPELLING
        raise ConfigError("fields", fields, what)
    chosen = {name: spans.values(base.agent, name, given) for name, given in fields.items()}
    if both := [name for name in chosen if name in options]:
        raise ConfigError(both[0], options[both[0]], "either sweep it or set it, not both")
    check_choice("method", method, METHODS)
    if confirm_seeds is None:
        confirm_seeds = min(seeds, TUNING)
    check_integer("confirm_seeds", confirm_seeds, at_least=0, at_most=TUNING)
    if method == "halving" and seeds < 2:
        what = "at least 2 with the method halving, which tries the better half on more seeds"
        raise ConfigError("seeds", seeds, what)
    _check_count(method, points, math.prod(map(len, chosen.values())))
    planned = Plan(base, chosen, method, points, confirm_seeds)
    for i in range(len(planned.points)):
        planned.config(i, base.seeds).compose()
    return planned


def _check_count(method: str, points: int | None, total: int) -> None:
    """Raise `ConfigError` if the method does not support this number of points."""
    if method == "grid" and points is not None:
        what = "the method grid tries all points; leave it out, or use random or halving"
        raise ConfigError("points", points, what)
    if method == "random" and points is None:
        raise ConfigError("points", points, "the method random needs the number of points to draw")
    if points is not None:
        check_integer("points", points, at_least=1, at_most=spans.MOST)
    elif total > spans.MOST:
        what = f"at most {spans.MOST:,}; use fewer values, or points=N with the method random"
        raise ConfigError("points", total, what)


class Point(NamedTuple):
    """A point of a sweep and its scores."""

    settings: dict[str, Any]
    scores: list[float]
    """Mean score over the episodes of each tuning seed; −∞ if it diverged."""
    seeds: list[int]
    confirmed: list[float] | None = None
    """Scores on the fresh seeds 0, 1, …, for the best point only."""

    @property
    def label(self) -> str:
        return label(self.settings)


def label(settings: Mapping[str, Any]) -> str:
    """Format settings as "rho=-4, sigma=0.001"."""
    return ", ".join(f"{name}={format_value(value)}" for name, value in settings.items())


def format_value(value: Any) -> str:
    """Format the value of a setting for display."""
    return f"{value:g}" if isinstance(value, float) else str(value)


class Standing(NamedTuple):
    """The progress of a sweep."""

    done: int
    """Number of finished runs."""
    total: int
    """Total number of runs."""
    best: Point | None
    seconds_left: float | None
    """Estimated time left; None while there is no estimate."""
    finished: bool
    """Whether a run has just finished."""


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep."""

    plan: Plan
    points: list[Point]
    path: Path | None = None
    finished: bool = True

    def __repr__(self) -> str:
        return f"<Sweep: {self.plan.base.label}, {len(self.points)} points, best {self.best.label}>"

    @property
    def ranked(self) -> list[Point]:
        """The points, best first: by number of seeds tried, then by mean score."""
        return [self.points[i] for i in ranking([point.scores for point in self.points])]

    @property
    def best(self) -> Point:
        """The best point."""
        return self.ranked[0]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw a curve for one field, a heat map for two, or else the best points; optionally write
        the figure to `path`."""
        from rove import plots  # imported here because Matplotlib is slow to import

        figure = plots.sweep(self)
        if path is not None:
            plots.save(figure, Path(path))
        return figure

    def as_json(self) -> str:
        """Return the sweep as JSON for `rove report`. The score of a diverged run is null."""
        content = {
            "agent": self.plan.base.agent_name,
            "environment": self.plan.base.environment.name,
            "finished": self.finished,
            "fields": self.plan.fields,
            "points": [
                point._replace(
                    scores=_finite(point.scores),
                    confirmed=point.confirmed and _finite(point.confirmed),
                )._asdict()
                for point in self.points
            ],
        }
        return json.dumps(content, indent=1) + "\n"

    def as_csv(self) -> str:
        """Return a CSV table with one row per run."""
        rows: list[tuple] = []
        for i, point in enumerate(self.points):
            confirmed = point.confirmed or []
            for part, seeds, scores in zip(
                PARTS, (point.seeds, range(len(confirmed))), (point.scores, confirmed), strict=True
            ):
                for seed, score in zip(seeds, _finite(scores), strict=True):
                    text = "" if score is None else repr(score)
                    rows.append((i, *point.settings.values(), part, seed, text))
        return as_csv(("point", *self.plan.fields, "part", "seed", "score"), rows)


def _finite(scores: Sequence[float]) -> list[Any]:
    """Replace infinite scores by None."""
    return [score if math.isfinite(score) else None for score in scores]


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
    report: Callable[[Standing], None] = lambda standing: None,
    workers: int | None = None,
    on: str = "threads",
    log: str | None = None,
    **options: Any,
) -> Sweep:
    """Try points of an agent's settings on tuning seeds, and confirm the best on other seeds.

    **Arguments**
    - `agent`, `environment`, `workers`, `on`, `log`, and in `options` the budget (`episodes` or
      `steps`) and fixed settings: as for `train`.
    - `fields`: the settings to sweep, each with a list of values or a range such as "-10:-1:10" or
      "1e-8:1e-1:log8".
    - `seeds`: number of tuning seeds (1000, 1001, …).
    - `confirm_seeds`: number of fresh seeds (0, 1, …) to confirm the best point on; by default as
      many as tuning seeds.
    - `method`: "grid" tries all points; "random" tries `points` of them; "halving" tries all on one
      seed, the better half on two, the better half of those on four, … up to `seeds`.
    - `points`: number of points to draw from the grid, for "random" and "halving".
    - `out`: folder for the results; an interrupted sweep resumes from it.
    - `report`: called with a `Standing` whenever a run makes progress.

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
    path = None if out is None else as_path("out", out)
    with live.opened(log, path) as tracker:
        if path is not None:
            return run(planned, path, report, workers, on, tracker)
        with tempfile.TemporaryDirectory(prefix="rove-") as folder:
            return replace(run(planned, Path(folder), report, workers, on), path=None)


def run(
    planned: Plan,
    folder: Path,
    report: Callable[[Standing], None] = lambda standing: None,
    workers: int | None = None,
    on: str = "processes",
    tracker: live.Tracker | None = None,
) -> Sweep:
    """Run a sweep in a folder, or resume it."""
    tally = _Tally(planned, folder, report)

    def attempt(part: str, chosen: Sequence[int], seeds: Sequence[int]) -> list[list[float]]:
        folders = [tally.run_folder(part, i, seeds) for i in chosen]
        configs = [planned.config(i, seeds) for i in chosen]
        runs = list(zip(configs, folders, strict=True))
        return trials.train(runs, tally.update, workers, on, tracker)

    runner.checked_executor(planned.config(0, planned.base.seeds).jobs(folder), workers, on)
    with RunFolder(folder).open(planned):
        scores = trials.race(
            len(planned.points),
            planned.rungs,
            lambda chosen, seeds: attempt("tuning", chosen, seeds),
        )
        best = ranking(scores)[0]
        if not math.isfinite(np.mean(scores[best])):
            raise LaneError(f"every point of {planned.base.label} diverged; try a smaller lr")
        if planned.confirm_seeds:
            attempt("confirmed", [best], range(planned.confirm_seeds))
        result = tally.write(finished=True)
        result.plot(folder / "sweep.png")
        return result


class _Tally:
    """The scores so far, by part, point and seed. Keeps sweep.csv and sweep.json up to date."""

    def __init__(self, planned: Plan, folder: Path, report: Callable[[Standing], None]):
        self._plan, self._folder, self._report = planned, folder, report
        self._lock = threading.Lock()
        self._scores: dict[tuple[str, int], dict[int, float]] = {}
        self._folders: dict[Path, tuple[str, int]] = {}
        """The part and point of each run folder."""
        self._fractions: dict[Path, float] = {}
        """The fraction done of each run that has started."""
        self._resumed: set[Path] = set()
        """Runs that had finished before this call."""
        self._best: Point | None = None
        self._began = time.monotonic()

    def run_folder(self, part: str, point: int, seeds: Sequence[int]) -> Path:
        """Return the run folder of a point. On later rungs its name contains the first seed."""
        subfolder, first = PARTS[part]
        path = self._folder / subfolder / (f"{point:04d}" + f"-{seeds[0]}" * (seeds[0] != first))
        self._folders[path] = part, point
        return path

    def update(self, progress: lanes.Progress) -> None:
        """Record the progress of a run and, once it has finished, its score. `trials.train` raises
        the errors of runs without a score."""
        assert progress.job.path is not None
        part, point = self._folders[progress.job.folder]
        score = None
        if progress.finished:
            with contextlib.suppress(LaneError):
                score = trials.score(outcomes.load(progress.job))
        with self._lock:
            unit, goal = progress.job.goal
            done = 1.0 if progress.finished else getattr(progress, unit) / goal
            self._fractions[progress.job.path] = done
            if score is not None:
                self._scores.setdefault((part, point), {})[progress.job.seed] = score
                if progress.steps_per_second:
                    best = self.write().best
                    self._best = best if math.isfinite(np.mean(best.scores)) else self._best
                else:
                    self._resumed.add(progress.job.path)
            self._report(self._standing(progress.finished))

    def _standing(self, finished: bool) -> Standing:
        """Return the progress; the time left is extrapolated from the runs of this call."""
        done, before = sum(self._fractions.values()), len(self._resumed)
        left = None
        if done - before >= 1.0:
            pace = (time.monotonic() - self._began) / (done - before)
            left = pace * max(self._plan.total - done, 0.0)
        finished_runs = sum(len(scores) for scores in self._scores.values())
        return Standing(finished_runs, self._plan.total, self._best, left, finished)

    def _sweep(self, finished: bool) -> Sweep:
        """Return the sweep with the scores so far."""
        points = []
        for i, settings in enumerate(self._plan.points):
            tuning, confirmed = (self._scores.get((part, i), {}) for part in PARTS)
            seeds = sorted(tuning)
            fresh = [confirmed[seed] for seed in sorted(confirmed)] or None
            points.append(Point(settings, [tuning[s] for s in seeds], seeds, fresh))
        return Sweep(self._plan, points, self._folder, finished)

    def write(self, finished: bool = False) -> Sweep:
        """Write sweep.csv and sweep.json with the scores so far."""
        result = self._sweep(finished)
        publish(self._folder / "sweep.csv", result.as_csv().encode())
        publish(self._folder / "sweep.json", result.as_json().encode())
        return result
