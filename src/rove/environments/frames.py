"""Stacks of frames: the observations of the last K steps, joined into one."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.environments.base import Bound, Environment, State, Step
from rove.environments.encoding import Encode
from rove.environments.faults import BadEnvironment, brief
from rove.environments.wrapper import Wrapper
from rove.errors import ConfigError, check_integer
from rove.parts.images import Image, joined, joined_image
from rove.parts.noise import Key
from rove.parts.onehot import Observation

MOST_FRAMES = 64
"""Maximum number of frames in a stack."""


class Stacked(NamedTuple):
    """The state of a `FrameStack`."""

    state: State
    """The state of the inner environment."""
    frames: Float[Array, "count features"]
    """The last observations, from the oldest to the newest."""


class FrameStack(Wrapper):
    """An environment whose observations are the last K observations of another one.

    Images are joined along their channels, vectors are concatenated, both from the oldest to the
    newest. At the beginning of an episode, the first observation is repeated. By name:
    `rove.make("gymnax/Pong-misc", frame_stack=4)`.

    **Example**
    >>> rove.FrameStack(rove.CartPole(), 4).observation_size
    16
    """

    count: int = eqx.field(default=4, static=True)
    """Number of observations in a stack."""

    def __check_init__(self) -> None:
        check_stack(self.count, self.environment.name, self.environment.coded)

    def inner(self, state: Stacked) -> State:
        return state.state

    @property
    def name(self) -> str:
        return self.environment.name

    @property
    def observation_size(self) -> int:
        return self.count * self.environment.observation_size

    @property
    def image(self) -> Image | None:
        return joined_image(self.environment.image, self.count)

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        shape, image = (self.environment.observation_size,), self.environment.image

        def of_stack(bound: Bound) -> Bound:
            if isinstance(bound, float | int):
                return bound
            frames = np.broadcast_to(np.asarray(bound, float), (self.count, *shape))
            return tuple(joined(frames, image).tolist())

        low, high = self.environment.observation_bounds
        return of_stack(low), of_stack(high)

    def probes(self) -> Mapping[str, Observation]:
        """Return the probes of the inner environment, repeated as at the start of an episode."""
        probes = self.environment.probes().items()
        return {name: self._joined(self._repeated(jnp.asarray(x))) for name, x in probes}

    def observation(self, given: Any, action_mask: Any = None) -> Observation:
        """Convert the last K observations of the inner environment, or a stack of them."""
        several = isinstance(given, Sequence) or getattr(given, "ndim", 0) > 1
        vectors = several and all(getattr(x, "ndim", isinstance(x, Sequence)) for x in given)
        if vectors and len(given) == self.count:
            frames = [np.asarray(self.environment.observation(x)) for x in given]
            given = joined(np.stack(frames), self.environment.image)
        return super().observation(given, action_mask)

    def reset(self, key: Key) -> tuple[State, Observation]:
        state, observation = self.environment.reset(key)
        frames = self._repeated(jnp.asarray(observation))
        return Stacked(state, frames), self._joined(frames)

    def step(self, state: Stacked, action: Int[Array, ""] | Float[Array, " k"], key: Key) -> Step:
        after = self.environment.step(state.state, action, key)
        newest = jnp.asarray(after.observation)
        frames = jnp.concatenate([state.frames[1:], newest[None]])
        return after._replace(state=Stacked(after.state, frames), observation=self._joined(frames))

    def _repeated(self, observation: Float[Array, " features"]) -> Float[Array, "count features"]:
        return jnp.broadcast_to(observation, (self.count, *observation.shape))

    def _joined(self, frames: Float[Array, "count features"]) -> Float[Array, " stack"]:
        return joined(frames, self.environment.image)


def check_stack(count: Any, name: str, coded: bool) -> None:
    """Raise `ConfigError` unless observations of an environment can be stacked."""
    check_integer("frame_stack", count, at_least=1, at_most=MOST_FRAMES)
    if coded and count > 1:
        reason = f"cannot be used with {name}, whose observations are codes of states and not "
        reason += "frames: leave it out, or encode observations as vectors"
        raise ConfigError("frame_stack", count, reason)


def encoded(encode: Encode, given: Any, image: Image | None, count: int) -> np.ndarray:
    """Return an observation of a Gymnasium environment, or a sequence of `count` ones, as columns;
    `image` is the form of the stack."""
    if count == 1:
        return encode(given)
    frames = frames_in(given, count)
    frame = image and image._replace(channels=image.channels // count)
    return joined(np.stack([encode(x) for x in frames]), frame)


def frames_in(given: Any, count: int) -> list[Any]:
    """Return the `count` observations in a stack; raise `BadEnvironment` if it has another number.

    A stack of dictionaries is a dictionary of stacks in Gymnasium.
    """
    if count == 1:
        return [given]
    if isinstance(given, Mapping) and given:
        parts = {key: frames_in(part, count) for key, part in given.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(count)]
    sized = isinstance(given, Sequence) or getattr(given, "ndim", 0) > 0
    if not sized or isinstance(given, str) or len(given) != count:
        problem = f"must be a sequence of the last {count} observations, got {brief(given)}"
        raise BadEnvironment("observation", problem)
    return list(given)


def newest_entry(i: int, size: int, image: Image | None, count: int) -> int:
    """Return the index of entry i of the newest of `count` frames, in a stack of `size` entries."""
    channels = (image.channels if image else size) // count
    pixel, channel = divmod(i, channels)
    return pixel * count * channels + (count - 1) * channels + channel


def stacked(environment: Any, count: Any) -> Environment:
    """Return an environment with stacks of frames, or the environment itself for one frame."""
    check_stack(count, environment.name, environment.coded)
    return environment if count == 1 else FrameStack(environment, count)


def unstacked(environment: Any) -> tuple[Any, int]:
    """Return an environment without its stacks of frames, and the number of frames."""
    if isinstance(environment, FrameStack):
        return environment.environment, environment.count
    return environment, 1
