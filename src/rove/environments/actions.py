"""The action spaces of Gymnasium environments, and the conversion of a learner's actions."""

import itertools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces

from rove.environments.faults import BadEnvironment, brief, environment_error

Decode = Callable[[Any], Any]
"""Converts a learner's action, an integer or a vector in [−1, 1]^k, to the environment's."""
ActionSpace: TypeAlias = spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box
MOST_COMBINATIONS = 1_024
"""Maximum number of combinations of a MultiDiscrete or MultiBinary action space."""


def action_space(env: Any) -> ActionSpace:
    """Return an environment's action space; raise `BadEnvironment` if it cannot be used."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        problem = "is a VectorEnv: pass a single environment; copies=K has it copied"
        raise BadEnvironment("environment", problem)
    if not isinstance(env, gymnasium.Env):
        raise BadEnvironment("environment", f"must be a gymnasium.Env, got {brief(env)}")
    for field in ("action_space", "observation_space"):
        try:
            value = getattr(env, field, None)
        except BaseException as error:
            raise environment_error(field, error) from error
        if not isinstance(value, spaces.Space):
            raise BadEnvironment(field, "is missing, or not a gymnasium space")
    space = env.action_space
    if isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind == "f":
        if not space.is_bounded():
            problem = (
                f"is {space}, but its bounds must be finite: declare a bounded Box, or convert "
            )
            problem += "actions with a gymnasium.ActionWrapper"
            raise BadEnvironment("action_space", problem)
        return space
    if isinstance(space, spaces.Discrete):
        return space
    if not isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        problem = f"is {space}, but must be Discrete, MultiDiscrete, MultiBinary or a Box of "
        problem += "floats: convert it with a gymnasium.ActionWrapper"
        raise BadEnvironment("action_space", problem)
    if (count := action_count(space)) > MOST_COMBINATIONS:
        problem = f"is {brief(space)} with {count:,} combinations, but each combination is an "
        problem += f"action, and at most {MOST_COMBINATIONS:,} are supported: choose from fewer "
        problem += "with a gymnasium.ActionWrapper"
        raise BadEnvironment("action_space", problem)
    return space


def action_count(space: ActionSpace) -> int:
    """Return the number of actions of a space, or the dimension of a box."""
    if isinstance(space, spaces.Box):
        return math.prod(space.shape)
    return int(space.n) if isinstance(space, spaces.Discrete) else math.prod(part_sizes(space))


def part_sizes(space: spaces.MultiDiscrete | spaces.MultiBinary) -> list[int]:
    """Return the number of values of each part of an action."""
    if isinstance(space, spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    return space.nvec.ravel().tolist()


def decoder(space: ActionSpace) -> Decode:
    """Return a function that converts a learner's actions to those of a space.

    Integers are shifted to the first action of a discrete space. They number the combinations of a
    MultiDiscrete or MultiBinary space, of which the last part changes fastest. −1 and 1 are mapped
    to the lower and upper bound of a box.
    """
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        return lambda action: np.int64(first + int(action))
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        table = np.array(list(itertools.product(*map(range, part_sizes(space)))), space.dtype)
        table = table.reshape(-1, *space.shape)
        if isinstance(space, spaces.MultiDiscrete):
            table = table + space.start
        return lambda action: table[int(action)].copy()
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    centre, half = (low + high) / 2, (high - low) / 2

    def to_box(action: Any) -> np.ndarray:
        unit = np.clip(np.asarray(action, np.float64).reshape(space.shape), -1.0, 1.0)
        inside = (centre + half * unit).astype(space.dtype)
        return np.clip(inside, space.low, space.high)  # rounding may exceed the bounds

    return to_box
