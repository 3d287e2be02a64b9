"""The action masks of Gymnasium environments: `info["action_mask"]`, or a part of observations."""

import functools
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import Array
from jaxtyping import Bool, Float

from rove.environments.actions import action_count, part_sizes
from rove.environments.faults import BadEnvironment, brief
from rove.errors import ConfigError

KEY = "action_mask"
_NONE = np.zeros(0, np.float32)


def in_observations(space: Any) -> bool:
    """Whether masks are a part of the observations of a space, as in PettingZoo."""
    return isinstance(space, spaces.Dict) and KEY in space.spaces


class MaskReader:
    """Reads the action masks of an environment, and checks them.

    **Arguments**
    - `observation_space`, `action_space`: the spaces of the environment.
    - `present`: whether the environment has masks; None: if the first reset returns one.
    - `ignored`: whether masks are left unread.
    """

    def __init__(
        self, observation_space: Any, action_space: Any, present: bool | None, ignored: bool
    ):
        self._actions, self.present, self._ignored = action_space, present, ignored
        self._in_observations = in_observations(observation_space)

    def __call__(self, observation: Any, info: Any, terminal: bool = False) -> np.ndarray:
        """Return the mask of a state as numbers, 1 for each allowed action and 0 for the others;
        an empty array if the environment has no masks. A terminal state may have no mask, or one
        that allows no action."""
        source = observation if self._in_observations else info
        if self._ignored or not isinstance(source, Mapping):
            return _NONE
        given = source.get(KEY)
        if self.present is None:
            self.present = given is not None
        if given is None:
            return self._missing(terminal) if self.present else _NONE
        if not self.present:
            problem = 'has an "action_mask", but had none at the first reset: return it from reset '
            problem += "and from every step, or set ignore_mask (--env.ignore-mask)"
            raise BadEnvironment("info", problem)
        return as_mask(self._actions, given, terminal)

    def _missing(self, terminal: bool) -> np.ndarray:
        if terminal:
            return np.ones(action_count(self._actions), np.float32)
        problem = 'has no "action_mask", but had one before: return it from reset and from every '
        raise BadEnvironment("info", problem + "step, or set ignore_mask (--env.ignore-mask)")


def as_mask(space: Any, given: Any, terminal: bool = False) -> Float[np.ndarray, " actions"]:
    """Return a mask as numbers; raise `BadEnvironment` if it does not fit the action space.

    The mask of a MultiDiscrete space is a tuple with a mask for each part, as for
    `space.sample(mask)`.
    """
    if isinstance(space, spaces.Discrete):
        mask = _vector(given, int(space.n))
    elif isinstance(space, spaces.MultiDiscrete):
        sizes = part_sizes(space)
        if not isinstance(given, tuple | list) or len(given) != len(sizes):
            problem = f"must be a tuple of {len(sizes)} masks, one for each part of {brief(space)}"
            raise BadEnvironment(KEY, f"{problem}, got {brief(given)}")
        parts = map(_vector, given, sizes)
        mask = functools.reduce(lambda rows, part: np.multiply.outer(rows, part).ravel(), parts)
    else:
        problem = f"needs a Discrete or MultiDiscrete action space, but it is {brief(space)}: set "
        raise BadEnvironment(KEY, f"{problem}ignore_mask (--env.ignore-mask) to ignore it")
    if not terminal and not mask.any():
        problem = "allows no action: at least one must be allowed unless the task has terminated"
        raise BadEnvironment(KEY, problem)
    return mask


def given_mask(space: Any, given: Any, required: bool) -> Bool[Array, " actions"] | None:
    """Return the mask that a user passes with an observation, or None; raise `ConfigError` if it is
    wrong, or missing although it is required."""
    if given is None and required:
        message = "action_mask is missing: this environment masks actions, so pass the mask with "
        message += 'the observation, as in act(observation, info["action_mask"])'
        raise ConfigError(KEY, given, "the mask of the observation", message)
    try:
        return None if given is None else jnp.asarray(as_mask(space, given) > 0.5)
    except BadEnvironment as error:
        raise ConfigError(KEY, given, str(error), str(error)) from None


def _vector(given: Any, actions: int) -> Float[np.ndarray, " actions"]:
    """Return a mask of `actions` actions; raise `BadEnvironment` if it is not one."""
    try:
        mask = np.asarray(given)
    except ValueError as error:  # a ragged list
        raise BadEnvironment(KEY, f"is not an array: {error}") from None
    if mask.shape != (actions,):
        problem = f"has shape {mask.shape}, but must have shape ({actions},), one entry per action"
        raise BadEnvironment(KEY, problem)
    if mask.dtype.kind not in "iub":
        raise BadEnvironment(KEY, f"has dtype {mask.dtype}, but must be of integers or bool")
    if not np.isin(mask, (0, 1)).all():
        raise BadEnvironment(KEY, f"must contain only 0 and 1, got {brief(mask.tolist())}")
    return mask.astype(np.float32)
