"""gymnax environments as compiled training environments."""

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.environments.base import Bound, Environment, State, Step
from rove.errors import check_number
from rove.parts import noise
from rove.parts.images import Image
from rove.parts.integers import Integers
from rove.parts.noise import Key
from rove.parts.onehot import Observation, OneHot


@dataclasses.dataclass(frozen=True)
class GymnaxSource:
    """A gymnax environment with its parameters and spaces."""

    name: str
    """gymnax/NAME or, if it was given as an object, the name of its class."""
    options: str
    """The options that the name was given, or all parameters of an object, as JSON."""
    object_id: int = 0
    """The identity of the user's object; 0 if it was created from its name."""
    environment: Any = dataclasses.field(default=None, compare=False)
    params: Any = dataclasses.field(default=None, compare=False)
    observations: Any = dataclasses.field(default=None, compare=False)
    """The space of observations."""
    actions: Any = dataclasses.field(default=None, compare=False)
    """The space of actions."""
    integers: Integers | None = dataclasses.field(default=None, compare=False)
    """The form of observations of integers; None for all others."""


class GymnaxEnvironment(Environment):
    """An environment with gymnax's interface (version 1.0 or later).

    Observations of any shape are flattened; those of a discrete space are codes. Actions in a box
    are mapped from [−1, 1]^k to its bounds. The time limit is that of the environment's parameters,
    and truncates episodes.
    """

    source: GymnaxSource = eqx.field(static=True)
    """Where the environment comes from."""
    optimum: float | None = eqx.field(default=None, static=True)
    """The best possible score of an episode, if it is known."""
    score_range: tuple[float, float] | None = eqx.field(default=None, static=True)
    """The minimum and maximum score of an episode, if they are known."""

    def __check_init__(self) -> None:
        if self.optimum is not None:
            check_number("optimum", self.optimum, at_least=-1e9, at_most=1e9)
        if self.score_range is not None:
            low, high = self.score_range
            check_number("score_range", low, at_least=-1e9, at_most=1e9)
            check_number("score_range", high, above=low, at_most=1e9)

    def __repr__(self) -> str:
        return f"<GymnaxEnvironment: {self.name}>"

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def coded(self) -> bool:
        return is_discrete(self.source.observations)

    @property
    def observation_size(self) -> int:
        space = self.source.observations
        return int(space.n) if self.coded else math.prod(space.shape)

    @property
    def image(self) -> Image | None:
        """The form of observations with three dimensions: rows, columns and channels."""
        space = self.source.observations
        return Image(*space.shape) if not self.coded and len(space.shape) == 3 else None

    @property
    def integers(self) -> Integers | None:
        return self.source.integers

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        if self.coded:
            return 0.0, 1.0
        low, high = bounds_of(self.source.observations)
        return tuple(low.ravel().tolist()), tuple(high.ravel().tolist())

    @property
    def continuous(self) -> bool:
        return not is_discrete(self.source.actions)

    @property
    def num_actions(self) -> int:
        space = self.source.actions
        return math.prod(space.shape) if self.continuous else int(space.n)

    @property
    def bins(self) -> int:
        return 0

    def bin(self, state: State) -> Int[Array, ""]:
        return jnp.zeros((), jnp.int32)

    def probes(self) -> Mapping[str, Observation]:
        """Return the initial observation of an episode."""
        return {"start": self.reset(noise.root(0))[1]}

    def options(self) -> dict[str, Any]:
        """Return all options that are not at their defaults, in a form that JSON can represent."""
        bounds = self.score_range and list(self.score_range)
        return {"optimum": self.optimum, "score_range": bounds, **json.loads(self.source.options)}

    def observation(self, given: Any, action_mask: Any = None) -> Observation:
        """Convert an observation in gymnax's own shape, or a vector, to one for the agent."""
        if np.shape(given) == tuple(self.source.observations.shape):
            given = np.asarray(self._observed(given))
        return super().observation(given, action_mask)

    def action(self, chosen: Array) -> int | np.ndarray:
        return np.asarray(self._decoded(chosen)) if self.continuous else int(chosen)

    def reset(self, key: Key) -> tuple[State, Observation]:
        observation, state = self.source.environment.reset_env(key, self.source.params)
        return _arrays(state), self._observed(observation)

    def step(self, state: State, action: Int[Array, ""] | Float[Array, " k"], key: Key) -> Step:
        source = self.source
        decoded = self._decoded(action) if self.continuous else action
        observation, after, reward, terminated, _ = source.environment.step_env(
            key, state, decoded, source.params
        )
        return Step(
            state=_arrays(after),
            observation=self._observed(observation),
            reward=jnp.asarray(reward, jnp.float32),
            terminated=jnp.asarray(terminated, bool),
            truncated=jnp.asarray(source.environment.is_truncated(after, source.params), bool),
        )

    def _decoded(self, action: Float[Array, " k"]) -> Float[Array, "..."]:
        """Map an action from [−1, 1]^k to the bounds of the environment's box."""
        space = self.source.actions
        low, high = bounds_of(space)
        unit = jnp.clip(action, -1.0, 1.0).reshape(space.shape)
        return jnp.clip(low + (high - low) * (unit + 1.0) / 2.0, low, high)

    def _observed(self, observation: Any) -> Observation:
        if self.coded:
            return OneHot(jnp.asarray(observation, jnp.int32), self.observation_size)
        return jnp.asarray(observation, jnp.float32).ravel()


def is_discrete(space: Any) -> bool:
    return hasattr(space, "n")


def is_box(space: Any) -> bool:
    return hasattr(space, "low") and hasattr(space, "high")


def bounds_of(space: Any) -> Float[np.ndarray, "2 ..."]:
    """Return the lower and upper bounds of a box; those of float32 stand for infinity."""
    bounds = np.stack([np.broadcast_to(x, space.shape) for x in (space.low, space.high)])
    bounds = bounds.astype(np.float32)
    largest = np.finfo(np.float32).max
    return np.where(np.abs(bounds) < largest, bounds, np.copysign(np.inf, bounds))


def _arrays(state: State) -> State:
    """Return a state whose Python numbers have become arrays, so that its types never change."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), state)
