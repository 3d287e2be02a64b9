"""What decides how many states of chain-128 are visited in the first 20 episodes (Figure 2 (d)).

The rows differ in whether there are updates, how wide q_φ is (ρ), and how long θ is held.

    python examples/first_episodes.py
"""

import dataclasses
import warnings

import numpy as np

import rove
from rove.search.grids import variant_settings

NEVER = {"learning_starts": 1_000_000}
step, episode, dqn = (
    variant_settings(name, "chain-128", ("figure-2",)) for name in ("ge-step", "ge-episode", "dqn")
)
CASES = {
    "dqn, searched": (dqn, {}),
    "dqn, searched, no updates": (dqn, NEVER),
    "ge, θ per step": (step, {}),
    "ge, θ per step, no updates": (step, NEVER),
    "ge, θ per step, ρ −3": (step, {"rho": -3.0}),
    "ge, θ per step, all else as per episode": (episode, {"resample": "step"}),
    "ge, θ per episode, all else as per step": (step, {"resample": "episode"}),
    "ge, θ per episode": (episode, {}),
    "ge, θ per episode, no updates": (episode, NEVER),
}
warnings.simplefilter("ignore", rove.RoveWarning)
print("median number of states visited in 3 and in 20 episodes, and seeds of ten that reach s128")
for name, (settings, changes) in CASES.items():
    run = rove.train(dataclasses.replace(settings, **changes), "chain-128", seeds=10, episodes=20)
    visited = np.stack([outcome.episodes.coverage for outcome in run.outcomes])
    medians = np.median(visited[:, [2, 19]], axis=0)
    print(f"{name:42}{medians[0]:7g}{medians[1]:7g}{np.sum(run.visits[:, -1] > 0.0):4}")
