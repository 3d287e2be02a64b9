"""The plan of a sweep: its points, its seeds and its method."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rove.agents.settings import Settings, with_settings
from rove.errors import ConfigError, check_choice, check_integer
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.search import space, trials
from rove.search.trials import Rung

TUNING = 1000
"""The first tuning seed; smaller seeds are for confirmation."""
METHODS = ("grid", "random", "halving")


@dataclass(frozen=True)
class Plan:
    """The points, seeds and method of a sweep."""

    base: Config
    """The agent with the settings that are not swept, the environment, budget and tuning seeds."""
    fields: Mapping[str, tuple[Any, ...]]
    """The values of each swept setting."""
    method: str = "grid"
    count: int | None = None
    """Number of points to draw from the grid; None: all."""
    confirm_seeds: int = 0
    """Number of seeds to confirm the best point on."""

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """The points of the grid, the last field varying fastest, or a fixed sample of them."""
        total = math.prod(map(len, self.fields.values()))
        numbers = range(total)
        if self.count is not None:
            numbers = sorted(random.Random(0).sample(numbers, min(self.count, total)))
        return [self._point(number) for number in numbers]

    def _point(self, number: int) -> dict[str, Any]:
        """Return the point of the grid with a number."""
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
        choices = {
            "fields": self.fields,
            "method": self.method,
            "points": self.count,
            "confirm_seeds": self.confirm_seeds,
        }
        return {"sweep": json.loads(json.dumps(choices)) | self.base.identity()}


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
    base = configure(agent, environment, seeds=range(TUNING, TUNING + seeds), **options)
    if not isinstance(base.agent, Settings):
        raise ConfigError.must_be("agent", base.agent_name, "a name, or settings such as rove.GE()")
    if not isinstance(fields, Mapping) or not fields:
        allowed = "a mapping from at least one setting to its values, such as {'rho': [-6, -4]}"
        raise ConfigError.must_be("fields", fields, allowed)
    swept = {name: space.values(base.agent, name, given) for name, given in fields.items()}
    if clashes := [name for name in swept if name in options]:
        field = clashes[0]
        raise ConfigError(field, options[field], "is also swept: either sweep it or set it")
    check_choice("method", method, METHODS)
    if confirm_seeds is None:
        confirm_seeds = min(seeds, TUNING)
    check_integer("confirm_seeds", confirm_seeds, at_least=0, at_most=TUNING)
    if method == "halving" and seeds < 2:
        hint = "; it tries the better half of the points on more seeds"
        raise ConfigError.must_be("seeds", seeds, "at least 2 with method='halving'", hint)
    _check_count(method, points, math.prod(map(len, swept.values())))
    # The base's values of swept settings have no effect: set them to the first ones, so that equal
    # sweeps have equal plans.
    first = {name: values[0] for name, values in swept.items()}
    base = replace(base, agent=with_settings(base.agent, first))
    planned = Plan(base, swept, method, points, confirm_seeds)
    for i in range(len(planned.points)):
        planned.config(i, base.seeds).compose()
    return planned


def _check_count(method: str, points: int | None, total: int) -> None:
    """Raise `ConfigError` if the method does not support this number of points."""
    if method == "grid" and points is not None:
        reason = "has no effect with method='grid', which tries all points: remove it, or use "
        reason += "method='random' or 'halving'"
        raise ConfigError("points", points, reason)
    if method == "random" and points is None:
        message = "method='random' needs a number of points to draw: --points N, or points=N"
        raise ConfigError("points", points, "a number", message)
    if points is not None:
        check_integer("points", points, at_least=1, at_most=space.MOST)
    elif total > space.MOST:
        message = f"the grid has {total:,} points, more than {space.MOST:,}: use fewer values, or "
        message += "method='random' with a number of points"
        raise ConfigError("points", total, f"at most {space.MOST:,}", message)
