"""Wide-v0: a Gymnasium environment with 151 numbers to observe and a step that costs nothing."""

import gymnasium
import numpy as np


class Wide(gymnasium.Env):
    """Observations are rows of a table of random numbers; an episode lasts 100 steps."""

    observation_space = gymnasium.spaces.Box(-1, 1, (151,), np.float32)
    action_space = gymnasium.spaces.Discrete(7)

    def __init__(self) -> None:
        self._rows = np.random.default_rng(0).uniform(-1, 1, (101, 151)).astype(np.float32)
        self._step = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._rows[0], {}

    def step(self, action):
        self._step += 1
        return self._rows[self._step], float(action == 0), False, self._step == 100, {}


gymnasium.register("Wide-v0", entry_point=Wide)
