"""Environments that a report does not create, as their run folder describes them."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from rove.environments import Coordinate, Task
from rove.errors import ConfigError, check_integer, check_number


class RecordedTask(Task):
    """An environment that is custom or from Gymnasium. Creating it would import its package and run
    its code, so that it is only known by the field `task` of config.json."""

    title: str = eqx.field(static=True)
    facts: dict[str, Any] = eqx.field(static=True)

    @property
    def name(self) -> str:
        return self.title

    @property
    def observation_size(self) -> int:
        return 0

    @property
    def num_actions(self) -> int:
        return len(self.action_names)

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(self.facts.get("action_names", ()))

    @property
    def optimum(self) -> float | None:
        return self.facts.get("optimum")

    @property
    def score_label(self) -> str:
        return self.facts.get("score_label", "return")

    @property
    def score_range(self) -> tuple[float, float] | None:
        known = self.facts.get("score_range")
        return None if known is None else (known[0], known[1])

    @property
    def bins(self) -> int:
        return math.prod(self.cells)

    @property
    def cells(self) -> tuple[int, ...]:
        return tuple(self.facts.get("cells", (0,)))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(*side) for side in self.facts.get("coordinates", ()))

    @property
    def first_cell(self) -> int:
        return self.facts.get("first_cell", 1)

    def probes(self) -> dict[str, Any]:
        return {name: jnp.zeros(0) for name in self.facts.get("probes", ())}

    def bin(self, state: Any) -> Any:
        raise NotImplementedError

    def reset(self, key: Any) -> Any:
        raise NotImplementedError


def check_facts(facts: Any) -> None:
    """Validate the field `task` of config.json."""
    if not isinstance(facts, dict):
        raise ConfigError.must_be("task", facts, "a dict")
    for name in (facts.get("score_label", ""), *facts.get("action_names", ())):
        _check(isinstance(name, str), name, "a name")
    for name in facts.get("probes", ()):
        _check(isinstance(name, str), name, "a name")
    for number in (facts.get("optimum"), *(facts.get("score_range") or ())):
        if number is not None:
            check_number("task", number)
    _check(len(facts.get("score_range") or (0, 0)) == 2, facts, "described by two limits of scores")
    cells, sides = facts.get("cells", (0,)), facts.get("coordinates", ())
    _check(len(cells) in (1, 2), cells, "a row or a board of cells")
    for count in cells:
        check_integer("task", count, at_least=0)
    check_integer("task", facts.get("first_cell", 1), at_least=-(2**31))
    _check(len(sides) in (0, len(cells)), sides, "a coordinate for each side of the cells")
    for name, low, high, *count in sides:
        _check(isinstance(name, str), name, "a name")
        _check(len(count) <= 1, count, "a number of cells")
        check_integer("task", *(count or [1]), at_least=1)
        check_number("task", low)
        check_number("task", high, above=low)


def _check(valid: bool, value: Any, allowed: str) -> None:
    if not valid:
        raise ConfigError.must_be("task", value, allowed)
