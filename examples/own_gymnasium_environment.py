"""An environment of one's own, written for Gymnasium, trained as it is: a corridor in the dark.

The agent stands in one of ten rooms and is told which. A lamp in the first room pays a little,
and ends the episode; the door at the far end pays 1. Thirty steps are a time limit.

    python examples/own_gymnasium_environment.py
"""

from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

import rove

ROOMS = 10


class Corridor(gymnasium.Env):
    observation_space = spaces.Discrete(ROOMS)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple:
        super().reset(seed=seed)
        self.room = 1 + int(self.np_random.integers(2))
        return self.room, {}

    def step(self, action: Any) -> tuple:
        self.room += 1 if action == 1 else -1
        lamp, door = self.room == 0, self.room == ROOMS - 1
        return self.room, 0.01 * lamp + 1.0 * door, lamp or door, False, {}


def main() -> None:
    agent = rove.DQN(hidden=(64, 64), learning_starts=100, buffer_size=5_000)
    run = rove.train(agent, lambda: TimeLimit(Corridor(), 30), seeds=3, episodes=200)
    print("return of the last 20 episodes, by seed:", run.returns[:, -20:].mean(axis=1).round(2))
    act = run.policy(seed=0)
    print("greedy, room by room:", "".join("←→"[act(room)] for room in range(1, ROOMS - 1)))


if __name__ == "__main__":
    main()
