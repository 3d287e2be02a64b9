"""The searches of `rove reproduce tuning`: a grid per agent and a budget per environment."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from rove.agents import settings_of
from rove.agents.settings import Settings
from rove.agents.tuned import tuned
from rove.search.trials import Rung

Grid = Mapping[str, tuple]
Values = dict[str, Any]
"""The values of some settings."""


@dataclass(frozen=True)
class Search:
    """A search over the settings of several agents. Points of each agent's grid are tried on a few
    seeds and, if `refined`, so are neighbours of the best; the finalists are tried on further
    seeds."""

    environments: Mapping[str, int]
    """The training budget per seed on each environment."""
    grids: Mapping[str, Grid]
    """The values to search, for each agent or variant."""
    budget: int
    """Maximum number of points per agent; a larger grid is sampled."""
    first_seeds: tuple[int, ...]
    """The seeds that all points are tried on."""
    further_seeds: tuple[int, ...] = ()
    """The seeds that only the finalists are tried on."""
    finalists: int = 1
    """Number of finalists."""
    refined: bool = False
    """Whether to try up to `budget` further points in the neighbourhood of the best."""
    bases: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Settings shared by all agents that have them, by the family of the environment."""
    keeps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Shared settings that an agent does not take over, since they define it."""
    unit: Literal["episodes", "steps"] = "episodes"
    """The unit of the budget."""
    until_solved: bool = False
    """Whether a seed stops once it has solved its task; the rest of its budget counts as
    optimal."""

    def points(self, agent: str) -> list[Values]:
        """Return all points of the agent's grid, or a Latin hypercube sample of it."""
        grid = self.grids[agent]
        if math.prod(map(len, grid.values())) <= self.budget:
            chosen = itertools.product(*grid.values())
        else:
            chosen = _latin(grid, self.budget)
        return [dict(zip(grid, point, strict=True)) for point in chosen]

    def neighbours(
        self, agent: str, best: Sequence[Values], tried: Sequence[Values]
    ) -> list[Values]:
        """Return up to `budget` untried points: each is one of the best with some settings moved to
        the next value of the grid, up or down."""
        grid, rng, points = self.grids[agent], np.random.default_rng(0), list(tried)
        for attempt in range(100 * self.budget):
            parent, point = best[attempt % len(best)], {}
            for name, values in grid.items():
                index = values.index(parent[name]) + rng.choice((-1, 0, 0, 1))
                point[name] = values[min(max(index, 0), len(values) - 1)]
            if point not in points:
                points.append(point)
            if len(points) == len(tried) + self.budget:
                break
        return points[len(tried) :]

    def rungs(self, points: int) -> list[Rung]:
        """Return the rungs: the first seeds for every point, the further seeds for the
        finalists."""
        first = Rung(points, self.first_seeds)
        return [first] + [Rung(self.finalists, self.further_seeds)] * bool(self.further_seeds)

    def base(self, environment: str, agent: str) -> dict[str, Any]:
        """Return the settings of an agent that are fixed during the search."""
        name, chosen = variant(agent)
        kind, kept = settings_of(name), self.keeps.get(agent, ())
        shared = self.bases.get(family(environment), {})
        return {k: v for k, v in shared.items() if hasattr(kind, k) and k not in kept} | chosen


def _latin(grid: Grid, count: int) -> list[tuple]:
    """Return a Latin hypercube sample: every value of a setting occurs equally often, to within
    one. If duplicates remain after many attempts, they are dropped."""
    points: list[tuple] = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        columns = []
        for values in grid.values():
            indices = np.resize(rng.permutation(len(values)), count)
            columns.append([values[i] for i in rng.permutation(indices)])
        points = list(zip(*columns, strict=True))
        if len(set(points)) == count:
            break
    return list(dict.fromkeys(points))


VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "dqn-paper": ("dqn", {"epsilon": 0.1, "epsilon_steps": 0}),
    "ge-step": ("ge", {"resample": "step"}),
    "ge-episode": ("ge", {"resample": "episode"}),
}
"""Agents with some settings fixed: DQN with the paper's ε, and GE with each way to resample θ."""


def variant(name: str) -> tuple[str, dict[str, Any]]:
    """Return the agent of a variant, and the settings that the variant fixes."""
    return VARIANTS.get(name, (name, {}))


def variant_settings(name: str, environment: str, searches: Sequence[str]) -> Settings:
    """Return the tuned settings of an agent or a variant; a variant that was not tuned uses those
    of its agent."""
    agent, fixed = variant(name)
    settings = tuned(name, environment, searches) or tuned(agent, environment, searches)
    return settings_of(agent)(**(settings | fixed))


def family(environment: str) -> str:
    """Return the name of an environment without its size."""
    name, _, size = environment.rpartition("-")
    return name if size.isdigit() else environment


RATES = (1e-3, 3e-4, 1e-4)
"""Learning rates; those of the paper are 1e-3, 1e-4 and 1e-5."""
PERIODS = (25, 50, 100, 200)
_GAUSS: Grid = {
    "rho": (-7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0),
    "sigma": (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
}
"""The paper's range of σ, and the part of its range of ρ, −10 to −1, above −7, where σ_θ is 0.0009.
Figure 5 has all of both ranges."""
_BOUNDED: Grid = {**_GAUSS, "prior_std": (0.1, 0.3, 1.0, 3.0, 10.0, None)}
"""GE also searches the width of the prior; the paper has none (None)."""
_STEP: Grid = {"lr": RATES, "target_period": PERIODS}
_PAPER: Mapping[str, Grid] = {
    "dqn": {
        **_STEP,
        "epsilon": (0.003, 0.01, 0.03, 0.1, 0.3),
        "epsilon_steps": (0, 5_000, 20_000),
    },
    "dqn-paper": _STEP,
    "noisynet": {**_STEP, "rho": tuple(-7.0 + 0.5 * i for i in range(13))},
    "ge-step": {**_STEP, **_BOUNDED},
    "ge-episode": {**_STEP, **_BOUNDED},
}
"""The agents of Figures 2 and 3: learning rate and τ for all, and the settings specific to each."""

FIGURE_2 = Search(
    environments={"chain-10": 100, "chain-50": 200, "chain-100": 200},
    grids=_PAPER,
    budget=24,
    first_seeds=(1000, 1001),
    further_seeds=tuple(range(1002, 1012)),
    finalists=4,
    refined=True,
)

_EPSILON: Grid = {"epsilon": (0.01, 0.03, 0.1), "epsilon_steps": (0, 5000)}
_REGRESSION: Grid = {"sigma": (0.03, 0.1, 0.3), "prior": (1.0, 10.0)}
SCOREBOARD = Search(
    environments={"chain-50": 150, "deep-sea-10": 400, "bandit-10": 500},
    grids={
        "dqn": _EPSILON,
        "c51": {"epsilon": (0.01, 0.1), "high": (1.1, 12.0, 101.0)},  # one per kind of task
        "qr_dqn": _EPSILON,
        "noisynet": {"rho": (-6.0, -5.0, -4.5, -4.0, -3.5, -3.0)},
        "ge": {"lr": RATES, **_BOUNDED},
        "vdqn": {"lr": RATES, **_BOUNDED},
        "bbq": {"lr": RATES, **_GAUSS, "prior": (0.1, 0.3, 1.0, 3.0)},
        "bayesian_dqn": _REGRESSION,
        "bootstrapped_dqn": {"prior": (1.0, 3.0, 10.0), "mask": (0.5, 1.0)},
        "parameter_noise": {"distance": (0.05, 0.2, 0.5), "std": (0.02, 0.1)},
        "double_uncertain": {"rate": (0.02, 0.1, 0.3), "resample": ("step", "episode")},
        "rlsvi": _REGRESSION,
        "ige": {"lr": RATES, "prior": (3.0, 10.0, 30.0), "sigma": _GAUSS["sigma"]},
        "adam_lmc": {"lr": RATES, "sigma": (0.05, 0.2, 0.5), "adam": (0.3, 1.0, 3.0)},
        "full_covariance": {"lr": RATES, **_BOUNDED},
        "bbvi": {"lr": RATES, **_BOUNDED},
        "return_density": {**_EPSILON, "density": ("gaussian", "laplace", "skewed_laplace")},
        "psrl": {"concentration": (0.01, 0.1, 1.0), "reward_std": (0.3, 1.0)},
        "bayesian_q_learning": {"lam": (0.03, 0.1, 1.0), "beta": (0.1, 1.0)},
        "particles": {"epsilon": (0.01, 0.03, 0.1), "lr": (0.02, 0.1, 0.3)},
    },
    budget=12,
    first_seeds=(1000, 1001),
    finalists=4,
    refined=True,
    bases={
        "chain": {"target_period": 25},
        "deep-sea": {
            "hidden": (50, 50),
            "batch_size": 128,
            "buffer_size": 10_000,
            "learning_starts": 128,
            "target_period": 4,
            "period": 100,
        },
        "bandit": {
            "hidden": (50, 50),
            "batch_size": 32,
            "buffer_size": 2000,
            "learning_starts": 32,
            "target_period": 4,
            "period": 5,
        },
    },
    until_solved=True,
    keeps={"rlsvi": ("hidden",), "bbvi": ("hidden",)},
)

DEEP_SEA = Search(
    environments={"deep-sea-20": 600},
    grids={
        "bootstrapped_dqn": {"prior": (3.0, 10.0, 30.0), "mask": (0.5, 1.0)},
        "ige": {"prior": (3.0, 10.0, 30.0), "rank": (4, 8), "sigma": _GAUSS["sigma"]},
    },
    budget=12,
    first_seeds=(1000, 1001, 1002, 1003),
    finalists=4,
    refined=True,
    bases={"deep-sea": SCOREBOARD.bases["deep-sea"]},
    until_solved=True,
)

_CONTROL = {"hidden": (64, 64), "learning_starts": 500}
FIGURE_3 = Search(
    environments={"sparse-mountain-car": 400, "sparse-acrobot": 100, "sparse-cartpole": 200},
    grids=_PAPER,
    budget=24,
    first_seeds=(1000, 1001),
    further_seeds=(1002, 1003, 1004, 1005),
    finalists=4,
    refined=True,
    bases={f"sparse-{name}": _CONTROL for name in ("mountain-car", "acrobot", "cartpole")},
)

_PENDULUM = {"actor_lr": 1e-3, "critic_lr": 1e-3, "tau": 0.02}
FIGURE_4 = Search(
    environments={"gym/InvertedPendulum-v5": 15_000, "sparse-inverted-pendulum": 15_000},
    unit="steps",
    grids={
        "ddpg": {"noise_std": (0.05, 0.1, 0.2, 0.3, 0.4, 0.6), "noise": ("ou", "gaussian")},
        "ddpg_noisynet": {
            "rho": (-8.0, -7.0, -6.0, -5.5, -5.0, -4.5, -4.0, -3.5, -3.0, -2.5, -2.0, -1.0)
        },
        "ddpg_ge": {"critic_lr": RATES, **_BOUNDED},
    },
    budget=12,
    first_seeds=(1000, 1001),
    finalists=4,
    refined=True,
    bases=dict.fromkeys(("gym/InvertedPendulum-v5", "sparse-inverted-pendulum"), _PENDULUM),
)

SEARCHES = {
    "figure-2": FIGURE_2, "figure-3": FIGURE_3, "figure-4": FIGURE_4, "scoreboard": SCOREBOARD,
    "deep-sea": DEEP_SEA,
}  # fmt: skip
