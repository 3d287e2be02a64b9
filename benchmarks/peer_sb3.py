"""stable-baselines3 or sbx as a contestant: DQN or DDPG on a Gymnasium environment."""

import sys
from functools import partial
from typing import Any

import gymnasium
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

from serving import entry, serve

LEARNING_STARTS = 100


def make(
    library: str,
    agent: str,
    environment: str,
    width: int,
    batch: int,
    seeds: list[int],
    copies: int,
) -> Any:
    """The network, batch, buffer and update rate of rove's side, and a constant ε."""
    if library == "sb3":
        from stable_baselines3 import DDPG, DQN
    else:
        from sbx import DDPG, DQN
    shared = {
        "policy_kwargs": {"net_arch": [width, width]},
        "learning_rate": 1e-3,
        "gamma": 0.99,
        "batch_size": batch,
        "buffer_size": 50_000,
        "learning_starts": LEARNING_STARTS,
        "train_freq": 1,
        "gradient_steps": copies,
        "seed": seeds[0],
        "device": "cpu",
        "verbose": 0,
    }
    create = partial(gymnasium.make, environment.removeprefix("gym/"))
    task = DummyVecEnv([create] * copies) if copies > 1 else create()
    if agent == "ddpg":
        return DDPG("MlpPolicy", task, **shared)
    epsilon = {"exploration_initial_eps": 0.1, "exploration_final_eps": 0.1}
    return DQN("MlpPolicy", task, target_update_interval=100, **epsilon, **shared)


def main() -> None:
    chosen = entry()
    if chosen["threads"]:
        torch.set_num_threads(chosen["threads"])
    fields = ("library", "agent", "environment", "width", "batch", "seeds", "copies")
    model = make(**{field: chosen[field] for field in fields})

    def learn(steps: int) -> None:
        before, updates = model.num_timesteps, model._n_updates
        # Without the log of episodes
        model.learn(total_timesteps=steps, log_interval=sys.maxsize, reset_num_timesteps=False)
        done = model.num_timesteps - before, model._n_updates - updates
        if before > LEARNING_STARTS and done != (steps, steps):
            raise RuntimeError(f"asked for {steps} steps and updates, got {done}")

    packages = {"sb3": ("stable-baselines3",), "sbx": ("sbx-rl", "stable-baselines3", "jax")}
    serve(learn, 1, (*packages[chosen["library"]], "torch", "numpy", "gymnasium"))


if __name__ == "__main__":
    main()
