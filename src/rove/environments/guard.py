"""A Gymnasium environment that is checked at every step: what is wrong with it has a name."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rove.errors import RoveError

Encode = Callable[[Any], np.ndarray]
"""From an observation, as an environment gives it, to a vector of float32."""
Decode = Callable[[Any], Any]
"""From a learner's action, a number or a vector in [−1, 1]^k, to the environment's."""


_LARGEST = float(np.finfo(np.float32).max)


class BadEnvironment(RoveError):
    """What an environment did wrong: the field at fault, and what is the matter with it."""

    def __init__(self, field: str, what: str):
        self.field, self.what = field, what
        super().__init__(f"{field} {what}")


def raised(field: str, error: BaseException) -> BadEnvironment:
    """What an environment raises costs its own lane alone, whatever it is; Ctrl-C stops
    everything."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    return BadEnvironment(field, f"raised {_shown(error)}")


class Guard:
    """One environment of one lane. `reset` and `step` give vectors and numbers that are in order,
    or raise `BadEnvironment`."""

    def __init__(
        self, env: Any, longest_episode: int, ours: bool = True, sparse: float | None = None
    ):
        self.env, self._ours, self._sparse = env, ours, sparse
        self.action_space = _actions(env)
        self.encode = encoder(env.observation_space)
        self.decode = decoder(self.action_space)
        self._longest = longest_episode
        self._length = 0

    def reset(self, seed: int) -> np.ndarray:
        """The first observation of an episode, which the seed decides."""
        try:
            told = self.env.reset(seed=seed)
        except BaseException as error:
            wrong = raised("reset", error)
            hint = " (reset has to take a seed)" if "argument 'seed'" in wrong.what else ""
            raise BadEnvironment("reset", f"{wrong.what}{hint}") from error
        if not isinstance(told, tuple) or len(told) != 2 or not isinstance(told[1], dict):
            what = f"returned {_brief(told)}, where (observation, info) is needed"
            raise BadEnvironment("reset", what)
        self._length = 0
        return self.encode(told[0])

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool]:
        """The next observation (at an episode's end its final one), the reward, `terminated` and
        `truncated`."""
        if self.env.action_space is not self.action_space:
            self._same_actions()
        try:
            told = self.env.step(self.decode(action))
        except BaseException as error:
            raise raised("step", error) from error
        if not isinstance(told, tuple) or len(told) != 5:
            needed = "(observation, reward, terminated, truncated, info)"
            raise BadEnvironment("step", f"returned {_brief(told)}, where {needed} is needed")
        observation, reward, terminated, truncated, _ = told
        ended = _flag("terminated", terminated), _flag("truncated", truncated)
        self._length += 1
        if self._length >= self._longest and not any(ended):
            what = f"did not end in {self._longest:,} steps (longest_episode; or add a TimeLimit)"
            raise BadEnvironment("the episode", what)
        reward = _reward(reward)
        if self._sparse is not None:
            reward = self._sparse if ended[0] else 0.0
        return self.encode(observation), reward, *ended

    def close(self) -> None:
        """Let it go, unless it is a person's own. What it says to that is of no consequence."""
        try:
            if self._ours:
                self.env.close()
        except KeyboardInterrupt:
            raise
        except BaseException:
            return

    def _same_actions(self) -> None:
        found = self.env.action_space
        if found != self.action_space:
            what = f"changed from {self.action_space} to {found}"
            raise BadEnvironment("action_space", what)


def encoder(space: Any) -> Encode:
    """How observations of a space become vectors: a box as it is, in one row; anything discrete
    one-hot; parts one after another, without those of a dictionary that have no fixed size, such
    as a sentence."""
    if isinstance(space, spaces.Box):
        shape = space.shape
        kinds = "fiub" if space.dtype.kind == "f" else "iub"

        def of_box(observation: Any) -> np.ndarray:
            try:
                x = np.asarray(observation)
            except ValueError as error:  # a ragged list
                raise BadEnvironment("observation", f"is no array: {error}") from None
            if x.shape != shape:
                what = f"has shape {x.shape}, where its space says {shape}"
                raise BadEnvironment("observation", what)
            if x.dtype.kind not in kinds:
                what = f"holds {x.dtype}, where its space says {space.dtype}"
                raise BadEnvironment("observation", what)
            with np.errstate(over="ignore"):  # too large is not finite, and is told so
                return _finite(x.astype(np.float32).ravel())

        return of_box
    kept = sized(space)
    if kept is not space:
        within = encoder(kept)

        def of_sized(observation: Any) -> np.ndarray:
            if not isinstance(observation, Mapping):
                raise BadEnvironment("observation", f"is {_brief(observation)}, no dictionary")
            return within({key: x for key, x in observation.items() if key in kept.spaces})

        return of_sized
    if not _fixed(space):
        what = f"is {_brief(space)}: needed are observations of a fixed size; wrap the environment"
        raise BadEnvironment("observation_space", what)

    def of_parts(observation: Any) -> np.ndarray:
        if not space.contains(observation):
            what = f"is {_brief(observation)}, which is not in its space, {space}"
            raise BadEnvironment("observation", what)
        return _finite(np.asarray(spaces.flatten(space, observation), np.float32))

    return of_parts


def sized(space: Any) -> Any:
    """What is used of a space: not the parts of a dictionary that have no fixed size."""
    if not isinstance(space, spaces.Dict):
        return space
    parts = {key: part for key, part in space.items() if _fixed(part)}
    return spaces.Dict(parts) if 0 < len(parts) < len(space.spaces) else space


def _fixed(space: Any) -> bool:
    """Whether all observations of a space become vectors of one length."""
    try:
        return bool(space.is_np_flattenable and spaces.flatdim(space) > 0)
    except NotImplementedError:  # a package's own kind of space
        return False


def _finite(x: np.ndarray) -> np.ndarray:
    if not np.isfinite(x).all():
        i = int(np.flatnonzero(~np.isfinite(x))[0])
        raise BadEnvironment("observation", f"was not a finite number: {x[i]} at index {i}")
    return x


def _reward(reward: Any) -> float:
    if not isinstance(reward, float | int | np.floating | np.integer | np.bool_):
        try:
            x = np.asarray(reward)
        except ValueError:  # a ragged list
            raise BadEnvironment("reward", f"is {_brief(reward)}, not a number") from None
        if x.shape != ():
            raise BadEnvironment("reward", f"has shape {x.shape}, where a number is needed")
        if x.dtype.kind not in "fiub":
            raise BadEnvironment("reward", f"is {_brief(reward)}, not a number")
    try:
        number = float(reward)
    except OverflowError:
        raise BadEnvironment("reward", "is too large a number") from None
    if not abs(number) <= _LARGEST:
        raise BadEnvironment("reward", f"was not a finite number: {number}")
    return number


def _flag(field: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise BadEnvironment(field, f"is {_brief(value)}, where True or False is needed")


def decoder(space: spaces.Discrete | spaces.Box) -> Decode:
    """How a learner's actions become those of a space: numbers from its first on; for a box, −1 is
    its lower bound and 1 its upper."""
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        return lambda action: np.int64(first + int(action))
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    centre, half = (low + high) / 2, (high - low) / 2

    def to_box(action: Any) -> np.ndarray:
        unit = np.clip(np.asarray(action, np.float64).reshape(space.shape), -1.0, 1.0)
        inside = (centre + half * unit).astype(space.dtype)
        return np.clip(inside, space.low, space.high)  # rounding may have left it

    return to_box


def _actions(env: Any) -> spaces.Discrete | spaces.Box:
    """The actions: numbers, or vectors of floats within bounds."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        what = "is a VectorEnv: give a single environment, of which every seed gets one of its own"
        raise BadEnvironment("environment", what)
    if not isinstance(env, gymnasium.Env):
        raise BadEnvironment("environment", f"is {_brief(env)}, not a gymnasium.Env")
    for field in ("action_space", "observation_space"):
        try:
            found = getattr(env, field, None)
        except BaseException as error:
            raise raised(field, error) from error
        if not isinstance(found, spaces.Space):
            raise BadEnvironment(field, "is missing, or not a gymnasium space")
    space = env.action_space
    if isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind == "f":
        if not space.is_bounded():
            what = f"is {space}: its bounds have to be finite; wrap it in a RescaleAction"
            raise BadEnvironment("action_space", what)
        return space
    if not isinstance(space, spaces.Discrete):
        what = f"is {space}: needed is a Discrete one, or a Box of floats; wrap the environment"
        raise BadEnvironment("action_space", what)
    return space


def _shown(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:
        said = ""
    return f"{type(error).__name__}: {said}".splitlines()[0][:300].rstrip(": ")


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
