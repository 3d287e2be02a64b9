"""The peer of the benchmarks: stable-baselines3's DQN on CartPole-v1, or its DDPG on MuJoCo.

Runs in its own virtual environment and takes one order a line on stdin: "learn N" or
"environment N". It answers each with one line of JSON on stdout, and ends with its stdin.
"""

import json
import platform
import sys
import time
from importlib.metadata import version

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DDPG, DQN
from stable_baselines3.common.base_class import BaseAlgorithm

SEED = 0
WARM_UP = 1_000


def make(steps_before_learning: int, algorithm: str) -> BaseAlgorithm:
    """The same network, batch, buffer and update rate as rove's side, and a constant ε."""
    if algorithm == "ddpg":
        return DDPG(
            "MlpPolicy",
            gymnasium.make("InvertedPendulum-v5"),
            policy_kwargs={"net_arch": [100, 100]},
            batch_size=64,
            buffer_size=50_000,
            learning_starts=steps_before_learning,
            train_freq=1,
            gradient_steps=1,
            seed=SEED,
            device="cpu",
            verbose=0,
        )
    return DQN(
        "MlpPolicy",
        gymnasium.make("CartPole-v1"),
        policy_kwargs={"net_arch": [100, 100]},
        learning_rate=1e-3,
        gamma=0.99,
        batch_size=64,
        buffer_size=50_000,
        learning_starts=steps_before_learning,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=100,
        exploration_initial_eps=0.1,
        exploration_final_eps=0.1,
        seed=SEED,
        device="cpu",
        verbose=0,
    )


def learn(model: BaseAlgorithm, steps: int) -> None:
    """Go on for some steps, without SB3's episode log."""
    model.learn(total_timesteps=steps, log_interval=sys.maxsize, reset_num_timesteps=False)


class Alone:
    """CartPole-v1 with random actions and nothing else."""

    def __init__(self) -> None:
        self.environment = gymnasium.make("CartPole-v1")
        self.environment.reset(seed=SEED)
        self.rng = np.random.default_rng(SEED)

    def run(self, steps: int) -> None:
        for action in self.rng.integers(2, size=steps):
            _, _, terminated, truncated, _ = self.environment.step(action)
            if terminated or truncated:
                self.environment.reset()


def main() -> None:
    threads = sys.argv[1]  # a number, or "default"
    answers, sys.stdout = sys.stdout, sys.stderr

    def answer(**fields: object) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    if threads != "default":
        torch.set_num_threads(int(threads))
    algorithm = sys.argv[2] if len(sys.argv) > 2 else "dqn"
    model, alone = make(steps_before_learning=100, algorithm=algorithm), Alone()
    learn(model, WARM_UP)
    alone.run(WARM_UP)
    packages = ("stable-baselines3", "torch", "gymnasium", "numpy")
    answer(
        threads=torch.get_num_threads(),
        versions={"python": platform.python_version()} | {p: version(p) for p in packages},
    )
    for line in sys.stdin:
        what, steps = line.split()[0], int(line.split()[1])
        before, updates = model.num_timesteps, model._n_updates
        cpu, began = time.process_time(), time.perf_counter()
        if what == "learn":
            learn(model, steps)
        else:
            alone.run(steps)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        done = (model.num_timesteps - before, model._n_updates - updates)
        if what == "learn" and done != (steps, steps):
            raise RuntimeError(f"asked for {steps} steps and updates, got {done}")
        answer(steps=steps, seconds=seconds, cpu=cpu)


if __name__ == "__main__":
    main()
