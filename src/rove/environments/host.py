"""Any Gymnasium environment, as training sees it: `make("gym/CartPole-v1")`, or one's own."""

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.environments import registered
from rove.environments.base import GRID, Coordinate, State, Task, cell
from rove.environments.guard import BadEnvironment, Decode, Encode, Guard, raised, sized
from rove.errors import (
    ConfigError,
    RoveError,
    check_flag,
    check_integer,
    check_number,
)
from rove.noise import Key

LONGEST_EPISODE = 100_000
PROBES = 3
OWN = ("normalise", "longest_episode", "sparse", "axes")
"""Options that are rove's."""
CLIP = 10.0
"""How far from its mean a normalised number may be, in standard deviations."""

_SPACES = ("observation_space", "action_space")


class Statistics(NamedTuple):
    """Of the observations a lane has seen so far."""

    count: Float[Array, ""]
    mean: Float[Array, " features"]
    squares: Float[Array, " features"]
    """Sum of the squared distances from the mean."""

    def seen(self, x: Float[Array, " features"]) -> "Statistics":
        """With one more (Welford 1962)."""
        count = self.count + 1.0
        mean = self.mean + (x - self.mean) / count
        return Statistics(count, mean, self.squares + (x - self.mean) * (x - mean))

    def normalised(self, x: Float[Array, " features"]) -> Float[Array, " features"]:
        std = jnp.sqrt(self.squares / jnp.maximum(self.count, 1.0) + 1e-8)
        return jnp.clip((x - self.mean) / std, -CLIP, CLIP)


class Noted(NamedTuple):
    """What a lane keeps of its observations, as they come."""

    statistics: Statistics | None
    """If they are normalised."""
    place: Float[Array, "2"] | None
    """The two entries of the last one that cells are of, if there are cells."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where environments come from: a registered id and its options, or what a person gave."""

    name: str
    options: str = "{}"
    """As JSON."""
    given: int = 0
    """What tells one given object from another; 0 for a registered id."""
    build: Callable[[], Any] = dataclasses.field(default=lambda: None, compare=False)
    spaces: tuple[Any, Any] = dataclasses.field(default=(None, None), compare=False)
    """Of observations and of actions."""
    encode: Encode = dataclasses.field(default=np.asarray, compare=False)
    decode: Decode = dataclasses.field(default=int, compare=False)

    def new(self) -> Any:
        """One more; or an error that says what it raised."""
        try:
            return self.build()
        except RoveError:
            raise
        except BaseException as error:
            raise raised("environment", error) from error


class HostEnvironment(Task):
    """A Gymnasium environment. It is stepped on the host; the state that training carries for it
    is what it has noted of its observations."""

    source: Source = eqx.field(static=True)
    size: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    first: Float[Array | np.ndarray, "probes features"]
    """Some first observations."""
    normalise: bool = eqx.field(default=False, static=True)
    """Show the agent observations less their running mean, by their standard deviation."""
    vectors: bool = eqx.field(default=False, static=True)
    """Whether actions are vectors, of so many numbers."""
    longest_episode: int = eqx.field(default=LONGEST_EPISODE, static=True)
    """Steps after which an episode that has not ended is an error."""
    alias: str = eqx.field(default="", static=True)
    """Another name that a person can type."""
    sparse: float | None = eqx.field(default=None, static=True)
    """One reward, where the task ends, in place of its own: 1 for a goal, −1 for a fall."""
    axes: tuple[int, int] | None = eqx.field(default=None, static=True)
    """The two entries of an observation, across and up, in whose cells visits are counted."""
    sides: tuple[Coordinate, ...] = eqx.field(default=(), static=True)
    """The coordinates of those cells."""

    def __check_init__(self) -> None:
        check_flag("normalise", self.normalise)
        if self.sparse is not None:
            check_number("sparse", self.sparse, at_least=-1e6, at_most=1e6)
        check_integer("longest_episode", self.longest_episode, at_least=1)

    @property
    def name(self) -> str:
        return self.alias or self.source.name

    @property
    def observation_size(self) -> int:
        return self.size

    @property
    def num_actions(self) -> int:
        return self.actions

    @property
    def continuous(self) -> bool:
        return self.vectors

    @property
    def optimum(self) -> None:
        """None: nobody has said."""
        return None

    @property
    def score_label(self) -> str:
        if self.sparse is None:
            return "return"
        return "goal reached" if self.sparse > 0 else "episode length"

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        """Of a task made sparse: whether the goal was reached, or how long it was to the fall."""
        if self.sparse is None:
            return returns
        return terminated.astype(int) if self.sparse > 0 else length

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Of a goal reached or not; else nobody has said."""
        return (0.0, 1.0) if self.sparse is not None and self.sparse > 0 else None

    @property
    def bins(self) -> int:
        return math.prod(self.cells)

    @property
    def cells(self) -> tuple[int, ...]:
        return (GRID, GRID) if self.axes else (0,)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self.sides

    def bin(self, state: Noted) -> Int[Array, ""]:
        assert state.place is not None
        across, up = state.place
        return cell(self.sides, (up, across))

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """First observations of some episodes."""
        names = ("start", *(f"start {i + 1}" for i in range(1, PROBES)))
        return {name: jnp.asarray(x) for name, x in zip(names, self.first, strict=False)}

    def reset(self, key: Key) -> tuple[State, Float[Array, " features"]]:
        """Before the first episode: nothing was seen yet, and the observation is to come."""
        nought, none = jnp.zeros(self.size), jnp.zeros(())
        statistics = Statistics(none, nought, nought) if self.normalise else None
        return Noted(statistics, self._place(nought)), nought

    def noted(self, state: Noted, observation: Float[Array, " features"]) -> Noted:
        """The state with an observation in it."""
        statistics = state.statistics and state.statistics.seen(observation)
        return Noted(statistics, self._place(observation))

    def _place(self, observation: Float[Array, " features"]) -> Float[Array, "2"] | None:
        return observation[jnp.array(self.axes)] if self.axes else None

    def shown(
        self, state: Noted, observation: Float[Array, " features"]
    ) -> Float[Array, " features"]:
        return state.statistics.normalised(observation) if state.statistics else observation

    def vector(self, observation: Any) -> np.ndarray:
        try:
            return self.source.encode(observation)
        except BadEnvironment as error:
            raise ConfigError("observation", observation, str(error)) from None

    def action(self, chosen: Array) -> int | np.ndarray:
        action = self.source.decode(chosen)
        return action if self.continuous else int(action)

    def make(self) -> Guard:
        """A new one, with the spaces of the first, checked at every step."""
        env = self.source.new()
        ours = id(env) != self.source.given
        guard = Guard(env, self.longest_episode, ours, self.sparse)
        for field, first in zip(_SPACES, self.source.spaces, strict=True):
            found = getattr(env, field)
            if sized(found) != sized(first):
                guard.close()
                raise BadEnvironment(field, f"is {found}, where it was {first} before")
        return guard

    def viewable(self) -> gymnasium.Env:
        """A new one that can be drawn."""
        if not self.source.given:
            options = json.loads(self.source.options) | {"render_mode": "rgb_array"}
            return registered.made(self.source.name, options)
        env = self.source.new()
        if getattr(env, "render_mode", None) != "rgb_array":
            raise ConfigError("render_mode", getattr(env, "render_mode", None), "rgb_array")
        return env

    def options(self) -> dict[str, Any]:
        """What the name leaves open, as JSON has it."""
        shared = {name: getattr(self, name) for name in OWN}
        shared["axes"] = self.axes and list(self.axes)
        described = dict(zip(_SPACES, map(str, self.source.spaces), strict=True))
        return shared | (described if self.source.given else json.loads(self.source.options))
