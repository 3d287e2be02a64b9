"""rove's compiled environments as ordinary Gymnasium environments."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces

from rove import noise
from rove.environments import ENVIRONMENTS, Environment

_reset = jax.jit(lambda environment, key: environment.reset(key))
_step = jax.jit(lambda environment, state, action, key: environment.step(state, action, key))


class CompiledEnv(gymnasium.Env):
    """A compiled environment behind Gymnasium's interface: the same code steps both."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own name)

    def __init__(self, environment: Environment):
        self.environment = environment
        low, high = environment.observation_bounds
        self.observation_space = spaces.Box(low, high, (environment.observation_size,), np.float32)
        self.action_space = spaces.Discrete(environment.num_actions)
        self._state: Any = None
        self._episode_key: Any = None
        self._time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode_key = noise.root(int(self.np_random.integers(2**31)))
        self._time = 0
        self._state, observation = _reset(self.environment, noise.fold(self._episode_key, 0))
        return np.asarray(observation), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(f"{action!r} is not in {self.action_space}")
        self._time += 1
        key = noise.fold(self._episode_key, self._time)
        after = _step(self.environment, self._state, np.int32(action), key)
        self._state = after.state
        return (
            np.asarray(after.observation),
            float(after.reward),
            bool(after.terminated),
            bool(after.truncated),
            {},
        )


def make(family: str, n: int = 10, **options: Any) -> CompiledEnv:
    """`gymnasium.make("rove/Chain-v0", n=100)`; which family, the registered name sets."""
    return CompiledEnv(ENVIRONMENTS[family].kind(**{"n": n, **options}))


def register() -> None:
    """Make rove's environments known to Gymnasium (done by `import rove`): one name a class."""
    for family, (kind, named, _) in ENVIRONMENTS.items():
        name = f"rove/{kind.__name__}-v0"
        if not named and name not in gymnasium.registry:
            entry_point = "rove.environments.gymnasium:make"
            gymnasium.register(name, entry_point=entry_point, kwargs={"family": family})
