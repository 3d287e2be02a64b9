"""Gymnasium environments as training environments: `make("gym/CartPole-v1")`, or custom ones."""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium.wrappers import FrameStackObservation, TimeLimit
from jax import Array
from jaxtyping import Float, Int

from rove.environments import registered
from rove.environments.action_masks import KEY, given_mask, in_observations
from rove.environments.base import Coordinate, State, Task, cell
from rove.environments.encoding import without_unsized_parts
from rove.environments.faults import BadEnvironment
from rove.environments.frames import encoded, frames_in, newest_entry
from rove.environments.guard import Guard
from rove.environments.option_checks import check_options
from rove.environments.source import Source
from rove.errors import ConfigError
from rove.parts.images import Image
from rove.parts.integers import Integers
from rove.parts.masks import allowed_actions, masked, unmasked
from rove.parts.noise import Key
from rove.parts.normalising import Statistics
from rove.parts.onehot import Features, Observation, OneHot, from_columns

LONGEST_EPISODE = 100_000
"""Default number of steps after which an unfinished episode raises an error."""
PROBES = 3
"""Number of initial observations for which diagnostics are recorded."""
ROVE_OPTIONS = (
    "normalise", "time_limit", "longest_episode", "sparse", "optimum", "score_range", "axes",
    "ignore_mask", "frame_stack", "copies",
)  # fmt: skip
"""Options of rove, which are not passed to Gymnasium."""

_SPACES = ("observation_space", "action_space")


class HostState(NamedTuple):
    """The state that training carries for an environment on the host."""

    statistics: Statistics | None
    """Statistics of the observations, if they are normalised."""
    cell: Int[Array, ""] | None
    """The cell of the last observation, if visits are counted."""


class HostEnvironment(Task):
    """A Gymnasium environment, which is stepped on the host instead of being compiled."""

    source: Source = eqx.field(static=True)
    """Where the environment comes from, and how to create it."""
    size: int = eqx.field(static=True)
    """Number of entries of an observation."""
    actions: int = eqx.field(static=True)
    """Number of actions, or their dimension if they are continuous."""
    initial: Float[Array | np.ndarray, "probes width"]
    """A few initial observations, as columns (see `received`)."""
    normalise: bool = eqx.field(default=False, static=True)
    """Normalise observations by their running mean and standard deviation."""
    vector_actions: bool = eqx.field(default=False, static=True)
    """Whether actions are continuous: vectors of length `actions`."""
    time_limit: int | None = eqx.field(default=None, static=True)
    """Number of steps after which an episode is truncated; None: only the environment's own."""
    longest_episode: int = eqx.field(default=LONGEST_EPISODE, static=True)
    """Number of steps after which an unfinished episode raises an error."""
    alias: str = eqx.field(default="", static=True)
    """The short name that the environment was created from, if any."""
    sparse: float | None = eqx.field(default=None, static=True)
    """Single reward that replaces all others, paid when the task terminates (see `adopt`)."""
    optimum: float | None = eqx.field(default=None, static=True)
    """The best possible score of an episode, if it is known."""
    score_range: tuple[float, float] | None = eqx.field(default=None, static=True)
    """The minimum and maximum score of an episode, if they are known."""
    axes: tuple[int, int] | None = eqx.field(default=None, static=True)
    """The two entries of an observation, horizontal and vertical, whose grid counts visits."""
    grid: tuple[Coordinate, ...] = eqx.field(default=(), static=True)
    """The coordinates of the grid of cells: vertical, then horizontal."""
    discrete: bool = eqx.field(default=False, static=True)
    """Whether the observation space is Discrete; its observations are codes."""
    states: int = eqx.field(default=0, static=True)
    """Number of states of a discrete space, each of which is a cell; 0 for other spaces."""
    first_state: int = eqx.field(default=0, static=True)
    """The number of the first state of a discrete space."""
    image: Image | None = eqx.field(default=None, static=True)
    """The form of observations that are images; None for all others."""
    masked: bool = eqx.field(default=False, static=True)
    """Whether the environment returns action masks, which are not ignored."""
    ignore_mask: bool = eqx.field(default=False, static=True)
    """Ignore the environment's action masks, and choose from all actions."""
    frame_stack: int = eqx.field(default=1, static=True)
    """Number of observations, up to the current one, that the agent sees together."""
    copies: int = eqx.field(default=1, static=True)
    """Number of copies of the environment that a seed is trained on, side by side."""
    values: Integers | None = eqx.field(default=None, static=True)
    """The form of observations that are encoded as integers; None for all others."""
    one_hot: tuple[tuple[int, int, int], ...] = eqx.field(default=(), static=True)
    """For each entry of a multi-discrete observation its first value, its number of values and the
    position of its one-hot code in the vector; () for other spaces."""

    def __check_init__(self) -> None:
        check_options(self)

    def __repr__(self) -> str:
        return f"<HostEnvironment: {self.name}>"

    @property
    def name(self) -> str:
        return self.alias or self.source.name

    @property
    def observation_size(self) -> int:
        return self.size

    @property
    def coded(self) -> bool:
        return self.discrete and not self.normalise

    @property
    def integers(self) -> Integers | None:
        return None if self.normalise else self.values

    @property
    def num_actions(self) -> int:
        return self.actions

    @property
    def continuous(self) -> bool:
        return self.vector_actions

    @property
    def action_space(self) -> gymnasium.Space:
        return self.source.spaces[1]

    @property
    def action_names(self) -> tuple[str, ...]:
        if self.continuous:
            return super().action_names
        actions = [self.source.decode(i).tolist() for i in range(self.actions)]
        return tuple(f"action {action}" for action in actions)

    @property
    def score_label(self) -> str:
        if self.sparse is None:
            return "return"
        return "goal reached" if self.sparse > 0 else "episode length"

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        """Return the return; with a positive `sparse`, 1 if the goal was reached, else 0; with a
        negative one, the length."""
        if self.sparse is None:
            return returns
        return terminated.astype(int) if self.sparse > 0 else length

    @property
    def bins(self) -> int:
        return math.prod(self.cells)

    @property
    def cells(self) -> tuple[int, ...]:
        return tuple(side.cells for side in self.grid) or (self.states,)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self.grid

    @property
    def first_cell(self) -> int:
        return self.first_state

    def bin(self, state: HostState) -> Int[Array, ""]:
        assert state.cell is not None
        return state.cell

    def probes(self) -> Mapping[str, Observation]:
        """Return the initial observations of a few episodes."""
        names = ("start", *(f"start {i + 1}" for i in range(1, PROBES)))
        observations = map(self.received, jnp.asarray(self.initial))
        return dict(zip(names, observations, strict=False))

    def reset(self, key: Key) -> tuple[State, Observation]:
        """Return the state before the first episode, and zeros in place of an observation."""
        observation = self.received(jnp.zeros(self.initial.shape[1]))
        statistics = Statistics.of_shape(self.size) if self.normalise else None
        state = HostState(statistics, self._cell(unmasked(observation)))
        return state, self.agent_observation(state, observation)

    def received(self, columns: Float[Array, " width"]) -> Observation:
        """Return an observation that the host has encoded as columns, followed by its mask."""
        end = columns.shape[-1] - self.actions * self.masked
        allowed = columns[end:] > 0.5 if self.masked else None
        return masked(from_columns(columns[:end], self.size, self.discrete), allowed)

    def updated(self, state: HostState, observation: Observation) -> HostState:
        """Return the state after an observation."""
        x = unmasked(observation)
        statistics = state.statistics and state.statistics.updated(jnp.asarray(x))
        return HostState(statistics, self._cell(x))

    def _cell(self, observation: Features) -> Int[Array, ""] | None:
        if isinstance(observation, OneHot):
            return observation.index if self.states else None
        if not self.axes:
            return None
        horizontal, vertical = (self._entry(observation, i) for i in self.axes)
        return cell(self.grid, (vertical, horizontal))

    def _entry(self, observation: Float[Array, " features"], i: int) -> Array:
        """Return an entry of the newest frame, decoded if it is one-hot or scaled."""
        first, count, at = self.one_hot[i] if self.one_hot else (0, 1, i)
        at = newest_entry(at, self.size, self.image, self.frame_stack)
        if not self.one_hot:
            return observation[at] / (self.values.scale if self.values else 1.0)
        return first + jnp.argmax(observation[at : at + count])

    def agent_observation(self, state: HostState, observation: Observation) -> Observation:
        if state.statistics is None:
            return observation
        x = state.statistics.normalised(jnp.asarray(unmasked(observation)))
        return masked(x, allowed_actions(observation))

    def observation(self, given: Any, action_mask: Any = None) -> Observation:
        try:
            columns = encoded(self.source.encode, given, self.image, self.frame_stack)
            x = from_columns(jnp.asarray(columns), self.size, self.discrete)
        except BadEnvironment as error:
            raise ConfigError("observation", given, str(error), str(error)) from None
        if self.masked and in_observations(self.source.spaces[0]):
            newest = frames_in(given, self.frame_stack)[-1]
            action_mask = newest.get(KEY) if action_mask is None else action_mask
        return masked(x, given_mask(self.action_space, action_mask, self.masked))

    def action(self, chosen: Array) -> int | np.ndarray:
        action = self.source.decode(chosen)
        return action if np.ndim(action) else int(action)

    def make(self) -> Guard:
        """Create an environment that is checked at every step.

        Raises `BadEnvironment` if its spaces differ from those of the first one.
        """
        env = self.source.new()
        owned = id(env) != self.source.object_id
        options = self.longest_episode, owned, self.sparse, self.masked, self.ignore_mask
        guard = Guard(self._limited(env), *options, self.frame_stack)
        for field, first in zip(_SPACES, self.source.spaces, strict=True):
            space = getattr(env, field)
            if without_unsized_parts(space) != without_unsized_parts(first):
                guard.close()
                raise BadEnvironment(field, f"is {space}, but was {first} before")
        return guard

    def renderable(self) -> gymnasium.Env:
        """Create an environment that renders images, with observations as `observation` takes
        them."""
        if not self.source.object_id:
            options = json.loads(self.source.options) | {"render_mode": "rgb_array"}
            return self._played(registered.make_registered(self.source.name, options))
        env = self._played(self.source.new())
        mode = getattr(env, "render_mode", None)
        if mode != "rgb_array":
            message = f"render_mode of environment {self.name} must be 'rgb_array', got {mode!r}"
            raise ConfigError("render_mode", mode, "rgb_array", message)
        return env

    def _limited(self, env: Any) -> Any:
        """Return an environment with the time limit."""
        return env if self.time_limit is None else TimeLimit(env, self.time_limit)

    def _played(self, env: Any) -> Any:
        """Return an environment with the time limit, and with stacks of observations."""
        env = self._limited(env)
        return env if self.frame_stack == 1 else FrameStackObservation(env, self.frame_stack)

    def options(self) -> dict[str, Any]:
        """Return all options, in a form that JSON can represent."""
        shared = {name: getattr(self, name) for name in ROVE_OPTIONS}
        shared["axes"] = self.axes and list(self.axes)
        shared["score_range"] = self.score_range and list(self.score_range)
        for name in ("frame_stack", "copies"):  # as in runs from before these options
            if shared[name] == 1:
                del shared[name]
        if self.source.registered:
            return shared | json.loads(self.source.options)
        return shared | dict(zip(_SPACES, map(str, self.source.spaces), strict=True))
