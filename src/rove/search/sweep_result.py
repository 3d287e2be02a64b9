"""The result of a sweep, and its progress."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rove.runs.tables import as_csv
from rove.search.sweep_plan import TUNING, Plan
from rove.search.trials import ranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAGES = {"tuning": ("points", TUNING), "confirmed": ("confirmed", 0)}
"""The stages of a sweep: the subfolder for the runs of each stage, and its first seed."""


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


class SweepProgress(NamedTuple):
    """The progress of a sweep."""

    done: int
    """Number of finished runs."""
    total: int
    """Total number of runs."""
    best: Point | None
    """The best point so far; None until a run has finished."""
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
        """Draw a curve for one field, a heat map for two, or the best points for more.

        The figure is also written to `path`, if it is given.
        """
        from rove.analysis import plots  # imported here because Matplotlib is slow to import
        from rove.search import sweep_plot

        figure = sweep_plot.draw(self)
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
            for stage, seeds, scores in zip(
                STAGES, (point.seeds, range(len(confirmed))), (point.scores, confirmed), strict=True
            ):
                for seed, score in zip(seeds, _finite(scores), strict=True):
                    text = "" if score is None else repr(score)
                    rows.append((i, *point.settings.values(), stage, seed, text))
        return as_csv(("point", *self.plan.fields, "stage", "seed", "score"), rows)


def _finite(scores: Sequence[float]) -> list[Any]:
    """Replace infinite scores by None."""
    return [score if math.isfinite(score) else None for score in scores]
