"""Checks of Gymnasium environments at every step."""

import math
import warnings
from collections import deque
from typing import Any

import numpy as np

from rove.environments.action_masks import KEY, MaskReader
from rove.environments.actions import action_space, decoder
from rove.environments.encoding import encoder, image_of
from rove.environments.faults import BadEnvironment, brief, environment_error
from rove.errors import RoveWarning
from rove.parts.images import joined

_LARGEST = float(np.finfo(np.float32).max)
LONG_EPISODE = 10_000
"""Number of steps after which there is a warning that an episode has not ended."""


class Guard:
    """An environment that is checked at every step.

    `reset` and `step` return valid vectors and numbers, or raise `BadEnvironment`. `owned` says
    whether `close` closes the environment, and `sparse` is the only reward, paid on termination.
    See `MaskReader` for `masked` and `ignore_mask`. An observation consists of the last
    `frame_stack` ones; at the beginning of an episode, the first one is repeated.
    """

    def __init__(
        self,
        env: Any,
        longest_episode: int,
        owned: bool = True,
        sparse: float | None = None,
        masked: bool | None = None,
        ignore_mask: bool = False,
        frame_stack: int = 1,
    ):
        self.env, self._owned, self._sparse = env, owned, sparse
        self.action_space = action_space(env)
        self.encode = encoder(env.observation_space, None if ignore_mask else KEY)
        self.decode = decoder(self.action_space)
        self.mask = MaskReader(env.observation_space, self.action_space, masked, ignore_mask)
        self._longest = longest_episode
        self._limited = getattr(getattr(env, "spec", None), "max_episode_steps", None) is not None
        self._length = 0
        self._image, self._frame_stack = image_of(env.observation_space), frame_stack
        self._frames: deque[np.ndarray] = deque(maxlen=frame_stack)

    def reset(self, seed: int) -> np.ndarray:
        """Begin an episode with a seed, and return its first observation, followed by its action
        mask if the environment has masks."""
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
        self._frames.clear()
        return self._columns(*result)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool]:
        """Take a step, and return the observation, the reward, `terminated` and `truncated`.

        At the end of an episode, the observation is the final one. It is followed by its action
        mask, as in `reset`.
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
        observation, reward, terminated, truncated, info = result
        ended = _flag("terminated", terminated), _flag("truncated", truncated)
        self._length += 1
        if self._length >= self._longest and not any(ended):
            problem = f"did not end in {self._longest:,} steps: raise longest_episode "
            problem += "(--env.longest-episode), or set time_limit (--env.time-limit)"
            raise BadEnvironment("the episode", problem)
        if self._length == LONG_EPISODE and not self._limited and not any(ended):
            text = f"an episode has not ended after {LONG_EPISODE:,} steps, and there is no time "
            text += "limit; if this is not intended, set time_limit (--env.time-limit)"
            warnings.warn(text, RoveWarning, 2)
        reward = _reward(reward)
        if self._sparse is not None:
            reward = self._sparse if ended[0] else 0.0
        return self._columns(observation, info, terminal=ended[0]), reward, *ended

    def _columns(self, observation: Any, info: Any, terminal: bool = False) -> np.ndarray:
        """Return an observation as columns, followed by its action mask."""
        columns = self._stacked(self.encode(observation))
        mask = self.mask(observation, info, terminal)
        return np.concatenate([columns, mask]) if mask.size else columns

    def _stacked(self, frame: np.ndarray) -> np.ndarray:
        """Return an observation together with those before it."""
        if self._frame_stack == 1:
            return frame
        self._frames.extend([frame] * (1 if self._frames else self._frame_stack))
        return joined(np.stack(self._frames), self._image)

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
