"""Environments that are not created, as their run folder describes them."""

import json
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from rove.environments import Coordinate, Task
from rove.environments.host import HostEnvironment
from rove.environments.option_checks import MOST_COPIES
from rove.environments.registered import module_of
from rove.errors import ConfigError, RunFolderError, check_flag, check_integer, check_number
from rove.parts.images import Image
from rove.parts.integers import Integers
from rove.parts.masks import masked
from rove.parts.onehot import Observation, from_columns, width

NAMED = 10
"""Maximum number of actions whose names are recorded."""
RESTATABLE = ("optimum", "score_range")
"""The parts of a run's identity that may be stated later, because only reports depend on them."""


def facts_of(task: Task) -> dict[str, Any]:
    """Return the field `task` of config.json: facts about an environment that reports use if it
    cannot be rebuilt, and that are not part of its identity."""
    if isinstance(task, RecordedTask):
        return task.facts
    facts = {
        "score_label": task.score_label,
        "optimum": task.optimum,
        "score_range": task.score_range,
        "observation_size": task.observation_size,
        "coded": task.coded,
        "image": task.image,
        "integers": task.integers,
        "masked": task.masked,
        "num_actions": task.num_actions,
        "continuous": task.continuous,
        "cells": task.cells,
        "coordinates": task.coordinates,
        "first_cell": task.first_cell,
        "action_names": () if task.continuous else task.action_names[:NAMED],
        "probes": list(task.probes()),
    }
    if isinstance(task, HostEnvironment):
        source = task.source
        facts |= {"given": bool(source.object_id), "package": source.package}
        facts |= {"module": module_of(source.name) if source.registered else ""}
    return json.loads(json.dumps(facts, default=lambda value: value.tolist()))


class RecordedTask(Task):
    """An environment that cannot be created without the user's code, or without importing its
    package: it is known only from config.json and episodes.csv."""

    contents: dict[str, Any] = eqx.field(static=True)
    """The content of config.json."""
    reason: str = eqx.field(default="", static=True)
    """Why the environment was not created, and how to pass it in."""
    scores: Callable[..., Any] = eqx.field(default=lambda *episode: episode[0], static=True)
    """Looks up the score of an episode by its return, length and whether it terminated."""

    def __check_init__(self) -> None:
        check_integer("copies", self.copies, at_least=1, at_most=MOST_COPIES)

    @property
    def identity(self) -> dict[str, Any]:
        """The parts of the run's identity that describe the environment."""
        return {key: self.contents.get(key) for key in ("environment", *RESTATABLE)}

    @property
    def facts(self) -> dict[str, Any]:
        """The field `task` of config.json."""
        return self.contents.get("task") or {}

    @property
    def name(self) -> str:
        return self.identity["environment"]["name"]

    @property
    def observation_size(self) -> int:
        return self.facts.get("observation_size", 0)

    @property
    def coded(self) -> bool:
        return self.facts.get("coded", False)

    @property
    def image(self) -> Image | None:
        shape = self.facts.get("image")
        return None if shape is None else Image(*shape)

    @property
    def integers(self) -> Integers | None:
        form = self.facts.get("integers")
        return None if form is None else Integers(*form)

    @property
    def masked(self) -> bool:
        return self.facts.get("masked", False)

    @property
    def num_actions(self) -> int:
        return self.facts.get("num_actions", len(self.action_names))

    @property
    def continuous(self) -> bool:
        return self.facts.get("continuous", False)

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

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        return self.scores(returns, length, terminated)

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
        return dict.fromkeys(self.facts.get("probes", ()), self._no_observation())

    def bin(self, state: Any) -> Any:
        return jnp.zeros((), jnp.int32)

    def reset(self, key: Any) -> Any:
        """Return no state, and zeros in place of an observation: only their shapes are used."""
        return None, self._no_observation()

    @property
    def copies(self) -> int:
        of_gymnasium = "given" in self.facts
        return self.identity["environment"]["options"].get("copies", 1) if of_gymnasium else 1

    def _no_observation(self) -> Observation:
        size = self.observation_size
        x = from_columns(jnp.zeros(width(size, self.coded)), size, self.coded)
        return masked(x, jnp.ones(self.num_actions, bool) if self.masked else None)


def check_created(task: Task) -> None:
    """Raise `RunFolderError` if an environment cannot be played because it was not created."""
    if isinstance(task, RecordedTask):
        raise RunFolderError(task.reason)


def check_parts(contents: dict[str, Any]) -> None:
    """Raise `ConfigError` or `KeyError` unless agent and environment in a config.json are described
    by dicts."""
    parts = {name: contents[name] for name in ("agent", "environment")}
    if isinstance(parts["environment"], dict):
        parts["options"] = parts["environment"]["options"]
    for name, value in parts.items():
        if not isinstance(value, dict):
            raise ConfigError.must_be(name, value, "a dict")


def check_facts(facts: Any) -> None:
    """Validate the field `task` of config.json."""
    if not isinstance(facts, dict):
        raise ConfigError.must_be("task", facts, "a dict")
    names = [facts.get(key, "") for key in ("score_label", "package", "module")]
    for name in (*names, *facts.get("action_names", ()), *facts.get("probes", ())):
        _check(isinstance(name, str), name, "a name")
    for flag in ("coded", "masked", "continuous", "given"):
        check_flag("task", facts.get(flag, False))
    for size in ("observation_size", "num_actions"):
        check_integer("task", facts.get(size, 0), at_least=0)
    for number in (facts.get("optimum"), *(facts.get("score_range") or ())):
        if number is not None:
            check_number("task", number)
    _check(len(facts.get("score_range") or (0, 0)) == 2, facts, "described by two limits of scores")
    image = facts.get("image") or Image(1, 1, 1)
    _check(len(image) == len(Image._fields), image, "described by the form of an image")
    for side in image:
        check_integer("task", side, at_least=1)
    form = facts.get("integers") or Integers()
    _check(len(form) == len(Integers._fields), form, "described by the form of integers")
    check_number("task", form[0], above=0.0)
    check_flag("task", form[1])
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
