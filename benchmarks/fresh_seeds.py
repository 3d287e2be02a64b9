"""Sparse Mountain Car on seeds that nothing was chosen by: GE, NoisyNet and DQN of equal search.

    python benchmarks/fresh_seeds.py [--seeds 20] [--episodes 600]

For each agent: seeds that reach the goal within 200 episodes, seeds that reach it in at least 0.9
of the last 50, both with exact 95% intervals, and the median of the first episode that reaches it.
Writes docs/data/fresh-seeds.json. Run folders in .bench/fresh-seeds, from which a second call
resumes.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import rove
from rove.analysis.intervals import proportion_interval
from rove.environments import make
from rove.search.grids import variant_settings

TASK = "sparse-mountain-car"
AGENTS = ("ge-step", "ge-episode", "noisynet", "dqn", "dqn-paper")
FIRST_SEED = 400
ROOT = Path(__file__).parent.parent


def count(yes: np.ndarray) -> str:
    low, high = proportion_interval(int(yes.sum()), len(yes))
    return f"{yes.sum()} of {len(yes)} ({100 * low:.0f}% to {100 * high:.0f}%)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=600)
    chosen = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + chosen.seeds)
    found = {}
    print("| agent | reaches the goal by 200 | 0.9 of the last 50 | first, median | settings |")
    print("|---|---|---|---|---|")
    for agent in AGENTS:
        settings = variant_settings(agent, TASK, ["figure-3"])
        run = rove.train(
            settings,
            make(TASK),
            seeds=seeds,
            episodes=chosen.episodes,
            out=ROOT / ".bench" / "fresh-seeds" / agent,
            on="processes",
        )
        reached = run.scores.any(axis=1)
        first = np.where(reached, run.scores.argmax(axis=1) + 1.0, np.inf)
        last = run.scores[:, -50:].mean(axis=1)
        shown = {k: getattr(settings, k) for k in ("rho", "sigma", "prior_std", "epsilon", "lr",
                 "target_period") if hasattr(settings, k)}  # fmt: skip
        found[agent] = {
            "settings": shown,
            "first": [None if np.isinf(x) else int(x) for x in first],
            "last 50": [round(float(x), 2) for x in last],
        }
        median = np.median(first)
        told = ", ".join(f"{k} {v:g}" if v is not None else f"{k} –" for k, v in shown.items())
        print(
            f"| {agent} | {count(first <= 200)} | {count(last >= 0.9)} | "
            f"{'not reached' if np.isinf(median) else f'{median:g}'} | {told} |",
            flush=True,
        )
    path = ROOT / "docs" / "data" / "fresh-seeds.json"
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
