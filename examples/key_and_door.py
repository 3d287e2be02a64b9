"""An own task with a sparse reward: fetch the key, then go to the door.

Run it to train `auto` on it with one seed: `python examples/key_and_door.py`.
"""

import gymnasium
import numpy as np

import rove

SIZE, LIMIT = 8, 100
KEY, DOOR = (0, SIZE - 1), (SIZE - 1, 0)
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class KeyAndDoor(gymnasium.Env):
    """A room of 8 by 8 places: a reward of 1 for reaching the door with the key, and no other."""

    observation_space = gymnasium.spaces.MultiDiscrete([SIZE, SIZE, 2])  # row, column, has the key
    action_space = gymnasium.spaces.Discrete(4)  # up, down, left, right

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.has_key, self.steps = self.np_random.integers(SIZE, size=2), False, 0
        return self._observation(), {}

    def step(self, action):
        self.place = np.clip(self.place + MOVES[action], 0, SIZE - 1)
        self.has_key |= tuple(self.place) == KEY
        self.steps += 1
        at_door = bool(self.has_key and tuple(self.place) == DOOR)
        return self._observation(), float(at_door), at_door, self.steps >= LIMIT, {}

    def _observation(self):
        return np.array([*self.place, self.has_key])


if __name__ == "__main__":
    task = rove.adopt(KeyAndDoor(), optimum=1.0, score_range=(0.0, 1.0))
    run = rove.train("auto", task, steps=15_000, eval_every=1_000)
    print("last 50 episodes:", run.scores[0, -50:].mean())
    print("delivered:", run.delivered[0].policy, np.mean(run.evaluated[0]))
