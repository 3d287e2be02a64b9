"""The exact mean return and CVaR of the greedy policies that return particles learn on the cliff.

    python examples/cliff_policies.py cvar 1000

The arguments are the risk measure, mean or cvar, and the number of particles. There are ten seeds
of 4,000 episodes. A policy's return has its exact distribution, in steps of 0.1, with γ = 1.
"""

import sys

import numpy as np

import rove

LEVEL, SIZE = 0.1, 150
SEEDS = range(300, 310)
cliff = rove.Cliff()
ends = (cliff.falls > 0) | (np.arange(cliff.bins) == cliff.landmarks["goal"])


def costs(policy: list[int]) -> np.ndarray:
    """Return the probability of each cost of an episode, in units of 0.1."""
    nothing = np.eye(SIZE)[0]
    laws = np.tile(nothing, (cliff.bins, 1))
    for _ in range(cliff.horizon):
        after = np.where(ends[:, None], nothing, laws)
        after[cliff.falls > 0] = np.roll(nothing, round(10 * cliff.fall))
        laws = cliff.transitions[np.arange(cliff.bins), policy] @ np.roll(after, 1, axis=1)
    return laws[cliff.landmarks["start"]]


risk, particles = sys.argv[1], int(sys.argv[2])
agent = rove.Particles(risk=risk, particles=particles, lr=0.02, gamma=1.0)
run = rove.train(agent, cliff, seeds=SEEDS, episodes=4000)
for outcome in run.outcomes:
    learner, state = run.config.compose(), outcome.lane.agent
    law = costs([int(learner.greedy(state, cliff.observe(cell))) for cell in range(cliff.bins)])
    cost, above = np.arange(SIZE) / 10, np.cumsum(law[::-1])[::-1]
    cvar = np.sum(cost * np.clip(LEVEL - (above - law), 0.0, law)) / LEVEL
    print(f"seed {outcome.job.seed}: mean {-law @ cost:.2f}, CVaR {-cvar:.2f}")
