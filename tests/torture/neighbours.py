"""The bits of a seed do not depend on its neighbours, on workers, or on what trains it."""

import itertools
from pathlib import Path

import jax
import numpy as np
from campaign import Tally

import rove
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.training.outcomes import Outcome

SMALL = {"hidden": (8,), "learning_starts": 50, "buffer_size": 500, "batch_size": 16}
TASKS = [
    (rove.GE(**SMALL), "chain-8", {"episodes": 40}),
    (rove.IGE(**SMALL), "deep-sea-5", {"episodes": 40}),
    (rove.BootstrappedDQN(**SMALL), "chain-8", {"steps": 700}),
    (rove.PSRL(), "chain-8", {"episodes": 40}),
    (rove.DQN(**SMALL), "gym/CartPole-v1", {"steps": 400}),
]


def run(tally: Tally, folder: Path, count: int) -> None:
    """Train seed 3 in so many companies, and compare its parameters and episodes."""
    companies = [(3,), (3, 4), (0, 3), (5, 3, 1)][-count:]
    ways = [("threads", 1), ("threads", 2), ("processes", 2)]
    for i, (agent, task, budget) in enumerate(TASKS):
        first = None
        for seeds, (on, workers) in itertools.product(companies, ways):
            config = configure(agent, task, seeds=seeds, **budget)
            out = folder / f"{i}-{on}-{workers}-{'-'.join(map(str, seeds))}"
            (trained,) = run_all([(config, out)], workers=workers, on=on)
            outcome = trained.only(3).outcomes[0]
            tally.attempts += 1
            if first is None:
                first = leaves(outcome)
            elif not all(map(np.array_equal, first, leaves(outcome))):
                tally.failed(f"{agent.name} on {task}: seed 3 of {seeds}, {workers} {on}")


def leaves(outcome: Outcome) -> list[np.ndarray]:
    """Return the returns of the episodes and the parameters at the end."""
    parameters = jax.tree.leaves(outcome.lane.agent.phi)
    return [outcome.episodes.returns, *map(np.asarray, parameters)]
