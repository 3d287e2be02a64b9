"""What GE's prior does to training: sparse Mountain Car with no bound on σ_θ, several, and BBQ's.

    python benchmarks/priors.py [--seeds 10] [--episodes 600]

For each prior: seeds that reach the goal within 200 episodes, seeds that reach it in at least 0.9
of the last 50, hidden units that are off for every state, and the largest standard deviation of a
parameter. Writes docs/data/priors.json.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np

import rove
from rove.environments import make

TASK = "sparse-mountain-car"
SETTINGS = {
    "hidden": (64, 64),
    "rho": -6.0,
    "sigma": 1e-4,
    "target_period": 50,
    "learning_starts": 500,
}
PRIORS = {
    "uniform (the paper)": rove.GE(prior_std=None, **SETTINGS),
    "about μ, 3/√inputs": rove.GE(prior_std=3.0, **SETTINGS),
    "about μ, 1/√inputs": rove.GE(prior_std=1.0, **SETTINGS),
    "about μ, 0.3/√inputs": rove.GE(prior_std=0.3, **SETTINGS),
    "about μ, 0.1/√inputs": rove.GE(prior_std=0.1, **SETTINGS),
    "about 0, 1 (BBQ)": rove.BBQ(prior=1.0, **SETTINGS),
    "about 0, 0.1 (BBQ)": rove.BBQ(prior=0.1, **SETTINGS),
}
FIRST_SEED = 300


def off(mu) -> float:
    """Fraction of hidden units that are 0 in the mean network on a grid of states."""
    low, high = make(TASK).observation_bounds
    axes = [np.linspace(a, b, 25) for a, b in zip(low, high, strict=True)]
    x = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    dead = []
    for weight, bias in mu[:-1]:
        x = np.maximum(x @ np.asarray(weight) + np.asarray(bias), 0.0)
        dead.append(np.all(x == 0.0, axis=0))
    return float(np.mean(np.concatenate(dead)))


def study(agent: rove.Settings, seeds: int, episodes: int) -> dict[str, float]:
    run = rove.train(
        agent,
        TASK,
        seeds=range(FIRST_SEED, FIRST_SEED + seeds),
        episodes=episodes,
        on="processes",
    )
    phis = [outcome.lane.agent.phi.learned for outcome in run.outcomes]
    largest = [max(float(np.max(rho)) for rho in jax.tree.leaves(phi.rho)) for phi in phis]
    return {
        "seeds": seeds,
        "reached by 200": int(np.sum(run.scores[:, :200].any(axis=1))),
        "0.9 of the last 50": int(np.sum(run.scores[:, -50:].mean(axis=1) >= 0.9)),
        "mean score": round(float(run.scores.mean()), 3),
        "units off": round(float(np.mean([off(phi.mu) for phi in phis])), 2),
        "largest σ_θ": round(float(np.median(np.log1p(np.exp(largest)))), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=600)
    chosen = parser.parse_args()
    found = {}
    for name, agent in PRIORS.items():
        found[name] = study(agent, chosen.seeds, chosen.episodes)
        if len(found) == 1:
            print("| prior of θ | " + " | ".join(found[name]) + " |")
            print("|---" * (1 + len(found[name])) + "|")
        print(f"| {name} | " + " | ".join(map(str, found[name].values())) + " |", flush=True)
    out = Path(__file__).parent.parent / "docs" / "data" / "priors.json"
    out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
