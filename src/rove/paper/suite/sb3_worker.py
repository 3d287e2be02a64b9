"""stable-baselines3's DQN on tasks of the suite, in a process with its virtual environment.

It is called with a list of runs, and writes a small file for each: returns, lengths and ends of the
training episodes, and those of episodes of the greedy policy.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from rove.environments import ENVIRONMENTS, Environment, Sparse, Task
from rove.environments.gymnasium import CompiledEnv
from rove.environments.host import ROVE_OPTIONS
from rove.environments.registered import PREFIX
from rove.paper.suite.tasks import BY_NAME, SuiteTask
from rove.parts.files import publish
from rove.parts.platform import prepare
from rove.training.delivering import EPISODES, MOST_STEPS

SETTINGS: dict[str, dict[str, Any]] = {
    "sb3": {},
    "sb3-zoo": {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
}
"""The defaults of the library, and rl-zoo3's settings of DQN for CartPole-v1 (version 2.9.2)."""
EVALUATION_SEED = 1_000_000
"""Added to a seed, for the episodes of its greedy policy."""


def gymnasium_env(task: SuiteTask) -> gymnasium.Env:
    """Create the environment of a task with Gymnasium's interface."""
    if task.environment.startswith(PREFIX):
        rove_options = {k: v for k, v in task.options.items() if k in ROVE_OPTIONS}
        options = {k: v for k, v in task.options.items() if k not in rove_options}
        identifier = task.environment.removeprefix(PREFIX)
        limit = {}
        if "time_limit" in rove_options:
            limit["max_episode_steps"] = rove_options["time_limit"]
        return gymnasium.make(identifier, disable_env_checker=True, **options, **limit)
    environment = task.make()
    if isinstance(environment, Sparse):  # registered as Gymnasium's own task with a sparse reward
        inner = ENVIRONMENTS[task.environment].named["environment"]
        identifier = f"rove/Sparse{type(inner).__name__}-v0"
        return gymnasium.make(identifier, disable_env_checker=True)
    assert isinstance(environment, Environment)
    return CompiledEnv(environment)


class Recorder(gymnasium.Wrapper):
    """Records the return, the length and the end of every episode."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self.terminated: list[bool] = []
        self._return, self._length = 0.0, 0

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self._return, self._length = 0.0, 0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._return, self._length = self._return + float(reward), self._length + 1
        if terminated or truncated:
            self.returns.append(self._return)
            self.lengths.append(self._length)
            self.terminated.append(bool(terminated))
        return observation, reward, terminated, truncated, info


def scores_of(task: Task, record: dict[str, Any]) -> np.ndarray:
    """Return the scores of recorded episodes, as rove scores them."""
    columns = (np.asarray(record[name]) for name in ("returns", "lengths", "terminated"))
    return np.asarray(task.score(*columns), float)


def trained(task: SuiteTask, agent: str, seed: int, steps: int) -> dict[str, Any]:
    """Train DQN for a number of steps; return its episodes and those of its greedy policy."""
    from stable_baselines3 import DQN  # pyrefly: ignore

    began = time.process_time()
    # A larger buffer would never be full.
    settings = {"buffer_size": 1_000_000, **SETTINGS[agent]}
    settings["buffer_size"] = min(settings["buffer_size"], steps)
    env = Recorder(gymnasium_env(task))
    model = DQN("MlpPolicy", env, device="cpu", seed=seed, verbose=0, **settings)
    model.learn(total_timesteps=steps, log_interval=sys.maxsize)
    # Training continues to the end of a rollout: episodes that end after the budget do not count.
    count = int(np.sum(np.cumsum(env.lengths) <= steps))
    test = Recorder(gymnasium_env(task))
    left, seeded = MOST_STEPS, seed + EVALUATION_SEED
    while len(test.returns) < EPISODES and left > 0:
        observation, _ = test.reset(seed=seeded if not test.returns else None)
        ended = False
        while not ended and left > 0:
            action, _ = model.predict(observation, deterministic=True)
            observation, _, terminated, truncated, _ = test.step(int(action))
            ended, left = terminated or truncated, left - 1
    return {
        "task": task.name,
        "agent": agent,
        "seed": seed,
        "steps": steps,
        "seconds": round(time.process_time() - began, 1),
        "returns": [round(x, 6) for x in env.returns[:count]],
        "lengths": env.lengths[:count],
        "terminated": [int(x) for x in env.terminated[:count]],
        "greedy": {
            "returns": [round(x, 6) for x in test.returns],
            "lengths": test.lengths,
            "terminated": [int(x) for x in test.terminated],
        },
    }


def _exit_with_parent() -> None:
    """End the process when its standard input is closed, which happens when its parent ends."""
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """Train runs, given as JSON: a list of (file, task, agent, seed, number of steps)."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    prepare(lanes=1)
    import torch  # pyrefly: ignore

    torch.set_num_threads(1)
    for file, task, agent, seed, steps in json.loads(sys.argv[1]):
        record = trained(BY_NAME[task], agent, seed, steps)
        publish(Path(file), (json.dumps(record) + "\n").encode())
        print(file, flush=True)
    os._exit(0)  # the thread cannot be stopped in any other way
