"""Checks of Gymnasium environments: errors say what an environment did wrong, and when."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rove.environments.encoding import encoder
from rove.environments.faults import BadEnvironment, brief, environment_error
from rove.errors import RoveWarning

Decode = Callable[[Any], Any]
"""Converts a learner's action, an integer or a vector in [−1, 1]^k, to the environment's."""
_LARGEST = float(np.finfo(np.float32).max)
LONG_EPISODE = 10_000
"""Number of steps after which a warning says that an episode without a time limit goes on."""


class Guard:
    """An environment that is checked at every step.

    `reset` and `step` return valid vectors and numbers, or raise `BadEnvironment`. `owned` says
    whether `close` closes the environment, and `sparse` is the only reward, paid on termination.
    """

    def __init__(
        self, env: Any, longest_episode: int, owned: bool = True, sparse: float | None = None
    ):
        self.env, self._owned, self._sparse = env, owned, sparse
        self.action_space = _action_space(env)
        self.encode = encoder(env.observation_space)
        self.decode = decoder(self.action_space)
        self._longest = longest_episode
        self._limited = getattr(getattr(env, "spec", None), "max_episode_steps", None) is not None
        self._length = 0

    def reset(self, seed: int) -> np.ndarray:
        """Begin an episode with a seed, and return its first observation."""
        try:
            result = self.env.reset(seed=seed)
        except BaseException as error:
            problem = environment_error("reset", error).problem
            hint = " (reset must accept a seed)" if "argument 'seed'" in problem else ""
            raise BadEnvironment("reset", f"{problem}{hint}") from error
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], dict):
            problem = f"must return (observation, info), got {brief(result)}"
            raise BadEnvironment("reset", problem)
        self._length = 0
        return self.encode(result[0])

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool]:
        """Take a step, and return the observation, the reward, `terminated` and `truncated`.

        At the end of an episode, the observation is the final one.
        """
        if self.env.action_space is not self.action_space:
            self._check_actions()
        try:
            result = self.env.step(self.decode(action))
        except BaseException as error:
            raise environment_error("step", error) from error
        if not isinstance(result, tuple) or len(result) != 5:
            needed = "(observation, reward, terminated, truncated, info)"
            raise BadEnvironment("step", f"must return {needed}, got {brief(result)}")
        observation, reward, terminated, truncated, _ = result
        ended = _flag("terminated", terminated), _flag("truncated", truncated)
        self._length += 1
        if self._length >= self._longest and not any(ended):
            problem = f"did not end in {self._longest:,} steps: raise longest_episode "
            problem += "(--env.longest-episode), or add a TimeLimit wrapper"
            raise BadEnvironment("the episode", problem)
        if self._length == LONG_EPISODE and not self._limited and not any(ended):
            text = f"no end of an episode in {LONG_EPISODE:,} steps, and no time limit: if that is "
            text += "not meant, add a TimeLimit wrapper"
            warnings.warn(text, RoveWarning, 2)
        reward = _reward(reward)
        if self._sparse is not None:
            reward = self._sparse if ended[0] else 0.0
        return self.encode(observation), reward, *ended

    def close(self) -> None:
        """Close the environment, unless it belongs to the user, and ignore its errors."""
        try:
            if self._owned:
                self.env.close()
        except KeyboardInterrupt:
            raise
        except BaseException:
            return

    def _check_actions(self) -> None:
        """Raise `BadEnvironment` if the action space has changed."""
        space = self.env.action_space
        if space != self.action_space:
            problem = f"changed from {self.action_space} to {space}"
            raise BadEnvironment("action_space", problem)


def _reward(reward: Any) -> float:
    """Return a reward as a float; raise `BadEnvironment` if it is not a finite number."""
    if not isinstance(reward, float | int | np.floating | np.integer | np.bool_):
        try:
            x = np.asarray(reward)
        except ValueError:  # a ragged list
            raise BadEnvironment("reward", f"must be a number, got {brief(reward)}") from None
        if x.shape != ():
            raise BadEnvironment("reward", f"must be a number, got an array of shape {x.shape}")
        if x.dtype.kind not in "fiub":
            raise BadEnvironment("reward", f"must be a number, got {brief(reward)}")
    try:
        number = float(reward)
    except OverflowError:
        raise BadEnvironment("reward", "is too large") from None
    if _LARGEST < abs(number) < math.inf:
        raise BadEnvironment("reward", f"is outside the range of float32: {number}")
    if not math.isfinite(number):
        raise BadEnvironment("reward", f"was not a finite number: {number}")
    return number


def _flag(field: str, value: Any) -> bool:
    """Return a flag as a bool; raise `BadEnvironment` if it is not one."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise BadEnvironment(field, f"must be True or False, got {brief(value)}")


def decoder(space: spaces.Discrete | spaces.Box) -> Decode:
    """Return a function that converts a learner's actions to those of a space.

    Integers are shifted to the first action of a discrete space; −1 and 1 are mapped to the lower
    and upper bound of a box.
    """
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        return lambda action: np.int64(first + int(action))
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    centre, half = (low + high) / 2, (high - low) / 2

    def to_box(action: Any) -> np.ndarray:
        unit = np.clip(np.asarray(action, np.float64).reshape(space.shape), -1.0, 1.0)
        inside = (centre + half * unit).astype(space.dtype)
        return np.clip(inside, space.low, space.high)  # rounding may exceed the bounds

    return to_box


def _action_space(env: Any) -> spaces.Discrete | spaces.Box:
    """Return an environment's action space; raise `BadEnvironment` if it cannot be used."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        problem = "is a VectorEnv: pass a single environment; every seed gets a copy of it"
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
    if not isinstance(space, spaces.Discrete):
        problem = f"is {space}, but must be Discrete or a Box of floats: convert it with a "
        problem += "gymnasium.ActionWrapper"
        raise BadEnvironment("action_space", problem)
    return space
