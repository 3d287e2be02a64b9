"""rove's compiled environments as Gymnasium environments, and a wrapper for sparse rewards."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from rove.environments import ENVIRONMENTS, Environment, Sparse, drawing
from rove.environments.action_masks import KEY
from rove.errors import check_number
from rove.parts import noise


@jax.jit
def _reset(environment: Environment, seed: int | jax.Array) -> tuple[Any, ...]:
    """Return an episode's key, and its initial state, observation and action mask."""
    key = noise.root(seed)
    state, observation = environment.reset(noise.fold(key, 0))
    return key, state, observation, environment.action_mask(state)


@jax.jit
def _step(environment: Environment, state: Any, action: Any, key: Any, time: Any) -> tuple:
    """Return the result of a step, and the action mask of the next state."""
    after = environment.step(state, action, noise.fold(key, time))
    return after, environment.action_mask(after.state)


class CompiledEnv(gymnasium.Env):
    """A compiled environment with Gymnasium's interface."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 (Gymnasium's own name)

    def __init__(self, environment: Environment, render_mode: str | None = None):
        self.environment, self.render_mode = environment, render_mode
        shape = (environment.observation_size,)
        low, high = (np.full(shape, x, np.float32) for x in environment.observation_bounds)
        self.observation_space = spaces.Box(low, high, shape, np.float32)
        self.action_space: Any = environment.action_space
        self._state: Any = None
        self._observation = np.zeros(shape, np.float32)
        self._episode_key: Any = None
        self._time = 0
        self._visited: set[int] = set()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._time, seed = 0, int(self.np_random.integers(2**31))
        self._visited = set()
        self._episode_key, self._state, observation, mask = _reset(self.environment, seed)
        self._observation = np.asarray(observation, np.float32)
        return self._observation, _info(mask)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(f"{action!r} is not in {self.action_space}")
        self._time += 1
        action = np.asarray(action, np.float32 if self.environment.continuous else np.int32)
        time = np.int32(self._time)
        after, mask = _step(self.environment, self._state, action, self._episode_key, time)
        self._state, self._observation = after.state, np.asarray(after.observation, np.float32)
        return (
            self._observation,
            float(after.reward),
            bool(after.terminated),
            bool(after.truncated),
            _info(mask),
        )

    def render(self) -> np.ndarray | None:
        """Return an image of the environment's cells: the current one, those visited in this
        episode, and landmarks such as the goal. Without cells, an observation that is an image is
        drawn instead."""
        if self.render_mode is None:
            return None
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before render()")
        task = self.environment
        if not task.bins and task.image is not None:
            return drawing.channels(self._observation.reshape(task.image.shape))
        if not task.bins:
            raise NotImplementedError(f"{task.name} has neither cells nor images to draw")
        at = int(task.bin(self._state))
        self._visited.add(at)
        return drawing.board(
            task.cells, at, self._visited, task.landmarks, upwards=bool(task.coordinates)
        )


def _info(mask: jax.Array | None) -> dict[str, Any]:
    """Return the `info` of a state with the given action mask."""
    return {} if mask is None else {KEY: np.asarray(mask, np.int8)}


class SparseReward(gymnasium.Wrapper, RecordConstructorArgs):
    """A wrapper that replaces all rewards by a single one, paid when the task terminates.

    All other rewards are 0, also that of a step that truncates the episode.

    **Example**
    >>> env = rove.SparseReward(gymnasium.make("MountainCar-v0"), reward=1.0)
    """

    def __init__(self, env: gymnasium.Env, reward: float = 1.0):
        check_number("reward", reward)
        RecordConstructorArgs.__init__(self, reward=reward)
        super().__init__(env)
        self._reward = float(reward)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, self._reward if terminated else 0.0, terminated, truncated, info


def make(family: str, n: int = 10, render_mode: str | None = None, **options: Any) -> CompiledEnv:
    """Create an environment for `gymnasium.make("rove/Chain-v0", n=100)`.

    The registered name determines the family. `n` is the size, if the family has sizes.
    """
    size = {"n": n} if ENVIRONMENTS[family].sized else {}
    return CompiledEnv(ENVIRONMENTS[family].kind(**size, **options), render_mode)


def register() -> None:
    """Register rove's environments with Gymnasium; `import rove` calls this.

    There is one name per class, except for tasks that Gymnasium already has. The sparse tasks are
    Gymnasium's originals, wrapped in `SparseReward`.
    """
    for name, (kind, named, _, original) in ENVIRONMENTS.items():
        if kind is Sparse and original is not None:
            spec = gymnasium.spec(original)
            _register(
                f"Sparse{type(named['environment']).__name__}",
                entry_point=spec.entry_point,
                max_episode_steps=spec.max_episode_steps,
                additional_wrappers=(SparseReward.wrapper_spec(reward=named["reward"]),),
            )
        elif original is None and not named:
            entry_point = "rove.environments.gymnasium:make"
            _register(kind.__name__, entry_point=entry_point, kwargs={"family": name})


def _register(name: str, **spec: Any) -> None:
    if f"rove/{name}-v0" not in gymnasium.registry:
        gymnasium.register(f"rove/{name}-v0", **spec)
