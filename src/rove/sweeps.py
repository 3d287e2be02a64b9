"""`rove.sweep`: points of an agent's settings on tuning seeds; the best confirmed on others."""

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
"""The first tuning seed; seeds below it confirm."""
METHODS = ("grid", "random", "halving")
PARTS = {"tuning": ("points", TUNING), "confirmed": ("confirmed", 0)}
"""Where the runs of each part are, and its first seed."""


@dataclass(frozen=True)
class Plan:
    """What a sweep is to try."""

    base: Config
    """The agent before its point, the environment, the budget and the tuning seeds."""
    fields: Mapping[str, tuple[Any, ...]]
    method: str = "grid"
    count: int | None = None
    """How many points of the grid; None: all."""
    confirm_seeds: int = 0

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """The grid, the last field fastest; or some of it, drawn evenly and the same each time."""
        total = math.prod(map(len, self.fields.values()))
        chosen = range(total)
        if self.count is not None:
            chosen = sorted(random.Random(0).sample(chosen, min(self.count, total)))
        return [self._point(i) for i in chosen]

    def _point(self, number: int) -> dict[str, Any]:
        point: dict[str, Any] = {}
        for name, each in reversed(list(self.fields.items())):
            number, place = divmod(number, len(each))
            point[name] = each[place]
        return {name: point[name] for name in self.fields}

    @property
    def rungs(self) -> list[Rung]:
        seeds = self.base.seeds
        if self.method == "halving":
            return trials.halving(len(self.points), seeds)
        return [Rung(len(self.points), seeds)]

    @property
    def total(self) -> int:
        """Lanes."""
        return sum(rung.points * len(rung.seeds) for rung in self.rungs) + self.confirm_seeds

    def config(self, point: int, seeds: Sequence[int]) -> Config:
        assert isinstance(self.base.agent, Settings)
        agent = with_settings(self.base.agent, self.points[point])
        return replace(self.base, agent=agent, seeds=tuple(seeds))

    def identity(self) -> dict[str, Any]:
        """What makes it this sweep and no other, as JSON."""
        told = {
            "fields": self.fields,
            "method": self.method,
            "points": self.count,
            "confirm_seeds": self.confirm_seeds,
        }
        return {"sweep": json.loads(json.dumps(told)) | self.base.identity()}


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
    """What `sweep` was asked for, checked before anything compiles."""
    check_integer("seeds", seeds, at_least=1, at_most=100_000)
    base = runner.configure(agent, environment, seeds=range(TUNING, TUNING + seeds), **options)
    if not isinstance(base.agent, Settings):
        raise ConfigError("agent", base.agent_name, "a name, or settings such as rove.GE()")
    if not isinstance(fields, Mapping) or not fields:
        raise ConfigError("fields", fields, "at least one, by name: " + spans.SPELLING)
    chosen = {name: spans.values(base.agent, name, told) for name, told in fields.items()}
    if twice := [name for name in chosen if name in options]:
        raise ConfigError(twice[0], options[twice[0]], "either swept or set")
    check_choice("method", method, METHODS)
    if confirm_seeds is None:
        confirm_seeds = min(seeds, TUNING)
    check_integer("confirm_seeds", confirm_seeds, at_least=0, at_most=TUNING)
    if method == "halving" and seeds < 2:
        raise ConfigError("seeds", seeds, "at least 2 with halving: the better half gets more")
    _check_count(method, points, math.prod(map(len, chosen.values())))
    made = Plan(base, chosen, method, points, confirm_seeds)
    for i in range(len(made.points)):
        made.config(i, base.seeds).compose()
    return made


def _check_count(method: str, points: int | None, total: int) -> None:
    """Refuse a number of points that the method cannot use, or that is too many."""
    if method == "grid" and points is not None:
        raise ConfigError("points", points, "not with the method grid, which tries all")
    if method == "random" and points is None:
        raise ConfigError("points", points, "how many to draw, with the method random")
    if points is not None:
        check_integer("points", points, at_least=1, at_most=spans.MOST)
    elif total > spans.MOST:
        what = f"at most {spans.MOST:,}; take fewer values, or points=N with the method random"
        raise ConfigError("points", total, what)


class Point(NamedTuple):
    """What was tried, and what it scored."""

    settings: dict[str, Any]
    scores: list[float]
    """The mean score of each tuning lane's episodes; −∞ where it diverged."""
    seeds: list[int]
    confirmed: list[float] | None = None
    """The same on seeds 0, 1, …, for the best point."""

    @property
    def label(self) -> str:
        return label(self.settings)


def label(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in settings.items())


def shown(value: Any) -> str:
    """A value for a person."""
    return f"{value:g}" if isinstance(value, float) else str(value)


class Standing(NamedTuple):
    """How far a sweep is."""

    done: int
    total: int
    """Lanes."""
    best: Point | None
    seconds_left: float | None
    """None while nobody can tell."""
    finished: bool
    """Whether a lane has just ended."""


@dataclass(frozen=True)
class Sweep:
    """A sweep that has been run."""

    plan: Plan
    points: list[Point]
    path: Path | None = None
    finished: bool = True

    def __repr__(self) -> str:
        return f"<Sweep: {self.plan.base.label}, {len(self.points)} points, best {self.best.label}>"

    @property
    def ranked(self) -> list[Point]:
        """The best first: points that were tried on more seeds, then by their mean."""
        return [self.points[i] for i in ranking([point.scores for point in self.points])]

    @property
    def best(self) -> Point:
        return self.ranked[0]

    def plot(self, path: str | Path | None = None) -> Figure:
        """A heat map for two fields, a curve for one, else the best points; written to `path` if
        one is given."""
        from rove import plots  # here, because Matplotlib takes long to import

        made = plots.sweep(self)
        if path is not None:
            plots.save(made, Path(path))
        return made

    def as_json(self) -> str:
        """For `rove report`. A lane that diverged has no score: null."""
        told = {
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
        return json.dumps(told, indent=1) + "\n"

    def as_csv(self) -> str:
        """One row a lane."""
        rows: list[tuple] = []
        for i, point in enumerate(self.points):
            confirmed = point.confirmed or []
            for part, seeds, scores in zip(
                PARTS, (point.seeds, range(len(confirmed))), (point.scores, confirmed), strict=True
            ):
                for seed, score in zip(seeds, _finite(scores), strict=True):
                    told = "" if score is None else repr(score)
                    rows.append((i, *point.settings.values(), part, seed, told))
        return as_csv(("point", *self.plan.fields, "part", "seed", "score"), rows)


def _finite(scores: Sequence[float]) -> list[Any]:
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
    - `agent`, `environment`, `workers`, `on`, `log`, and in `options` episodes or steps and
      settings: as for `train`.
    - `fields`: for each setting to vary its values, or "-10:-1:10", "1e-8:1e-1:log8".
    - `seeds`: how many tuning seeds (1000, 1001, …).
    - `confirm_seeds`: on how many seeds (0, 1, …) the best is run again; as many if not given.
    - `method`: "grid"; "random": only `points` of the grid; "halving": all on one seed, the better
      half on two, the better half of those on four, … up to `seeds`.
    - `out`: a folder; a sweep that was killed goes on from it.

    **Example**
    >>> found = rove.sweep("ge", "chain-10", {"rho": [-6.0, -4.0]}, seeds=2, episodes=50)
    >>> found.best.settings
    {'rho': -4.0}
    """
    made = plan(
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
            return run(made, path, report, workers, on, tracker)
        with tempfile.TemporaryDirectory(prefix="rove-") as folder:
            return replace(run(made, Path(folder), report, workers, on), path=None)


def run(
    made: Plan,
    folder: Path,
    report: Callable[[Standing], None] = lambda standing: None,
    workers: int | None = None,
    on: str = "processes",
    tracker: live.Tracker | None = None,
) -> Sweep:
    """Try every point, or go on with it, in a folder."""
    tally = _Tally(made, folder, report)

    def attempt(part: str, chosen: Sequence[int], seeds: Sequence[int]) -> list[list[float]]:
        places = [tally.place(part, i, seeds) for i in chosen]
        configs = [made.config(i, seeds) for i in chosen]
        plan = list(zip(configs, places, strict=True))
        return trials.train(plan, tally.hear, workers, on, tracker)

    runner.checked_executor(made.config(0, made.base.seeds).jobs(folder), workers, on)
    with RunFolder(folder).open(made):
        scores = trials.race(
            len(made.points), made.rungs, lambda chosen, seeds: attempt("tuning", chosen, seeds)
        )
        best = ranking(scores)[0]
        if not math.isfinite(np.mean(scores[best])):
            raise LaneError(f"every point of {made.base.label} diverged: try a smaller lr")
        if made.confirm_seeds:
            attempt("confirmed", [best], range(made.confirm_seeds))
        found = tally.write(finished=True)
        found.plot(folder / "sweep.png")
        return found


class _Tally:
    """The scores so far, by part, point and seed; sweep.csv and sweep.json follow them."""

    def __init__(self, made: Plan, folder: Path, report: Callable[[Standing], None]):
        self._plan, self._folder, self._report = made, folder, report
        self._lock = threading.Lock()
        self._scores: dict[tuple[str, int], dict[int, float]] = {}
        self._places: dict[Path, tuple[str, int]] = {}
        self._parts: dict[Path, float] = {}
        """Of each lane that has begun, the part that is done."""
        self._resumed: set[Path] = set()
        """Lanes that were done before."""
        self._best: Point | None = None
        self._began = time.monotonic()

    def place(self, part: str, point: int, seeds: Sequence[int]) -> Path:
        """The run folder of a point; of a later rung, with its first seed."""
        where, first = PARTS[part]
        path = self._folder / where / (f"{point:04d}" + f"-{seeds[0]}" * (seeds[0] != first))
        self._places[path] = part, point
        return path

    def hear(self, told: lanes.Progress) -> None:
        """A lane's progress; a lane that ends has a score, or `trials.train` tells why not."""
        assert told.job.path is not None
        part, point = self._places[told.job.folder]
        ended = None
        if told.finished:
            with contextlib.suppress(LaneError):
                ended = trials.score(outcomes.load(told.job))
        with self._lock:
            unit, goal = told.job.goal
            self._parts[told.job.path] = 1.0 if told.finished else getattr(told, unit) / goal
            if ended is not None:
                self._scores.setdefault((part, point), {})[told.job.seed] = ended
                if told.steps_per_second:
                    best = self.write().best
                    self._best = best if math.isfinite(np.mean(best.scores)) else self._best
                else:
                    self._resumed.add(told.job.path)
            self._report(self._standing(told.finished))

    def _standing(self, finished: bool) -> Standing:
        done, before = sum(self._parts.values()), len(self._resumed)
        left = None
        if done - before >= 1.0:
            pace = (time.monotonic() - self._began) / (done - before)
            left = pace * max(self._plan.total - done, 0.0)
        ended = sum(len(each) for each in self._scores.values())
        return Standing(ended, self._plan.total, self._best, left, finished)

    def _sweep(self, finished: bool) -> Sweep:
        points = []
        for i, settings in enumerate(self._plan.points):
            tuning, confirmed = (self._scores.get((part, i), {}) for part in PARTS)
            seeds = sorted(tuning)
            again = [confirmed[seed] for seed in sorted(confirmed)] or None
            points.append(Point(settings, [tuning[s] for s in seeds], seeds, again))
        return Sweep(self._plan, points, self._folder, finished)

    def write(self, finished: bool = False) -> Sweep:
        """sweep.csv and sweep.json, as things stand."""
        found = self._sweep(finished)
        publish(self._folder / "sweep.csv", found.as_csv().encode())
        publish(self._folder / "sweep.json", found.as_json().encode())
        return found
