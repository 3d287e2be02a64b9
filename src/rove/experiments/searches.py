"""What is searched: for each agent a grid, and for each environment a budget, as data."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rove.agents import settings_of
from rove.settings import Settings
from rove.trials import Rung
from rove.tuned import tuned

Grid = Mapping[str, tuple]


@dataclass(frozen=True)
class Search:
    """Every point of an agent's grid is tried on a few seeds; the best go on to further ones."""

    environments: Mapping[str, int]
    """The budget of a lane on each."""
    grids: Mapping[str, Grid]
    """For each agent, or variant of one, what is searched. All have as many points."""
    first_seeds: tuple[int, ...]
    further_seeds: tuple[int, ...] = ()
    finalists: int = 1
    bases: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """By the family of an environment, settings that all agents which have them share."""
    keeps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of those, what an agent keeps as its own: it would be another agent without."""
    unit: Literal["episodes", "steps"] = "episodes"
    """What the budget of an environment counts."""
    until_solved: bool = False
    """Whether a lane that has solved its task stops, and scores the optimum from there on."""

    def points(self, agent: str) -> list[dict[str, Any]]:
        """Every point of the agent's grid."""
        grid = self.grids[agent]
        return [dict(zip(grid, each, strict=True)) for each in itertools.product(*grid.values())]

    def rungs(self, agent: str) -> list[Rung]:
        """The first seeds for every point; the further ones for the finalists."""
        first = Rung(len(self.points(agent)), self.first_seeds)
        return [first] + [Rung(self.finalists, self.further_seeds)] * bool(self.further_seeds)

    def base(self, environment: str, agent: str) -> dict[str, Any]:
        """What is set for an agent before its grid."""
        name, chosen = variant(agent)
        kind, own = settings_of(name), self.keeps.get(agent, ())
        shared = self.bases.get(family(environment), {})
        return {k: v for k, v in shared.items() if hasattr(kind, k) and k not in own} | chosen


VARIANTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "dqn-paper": ("dqn", {"epsilon": 0.1, "epsilon_steps": 0}),
    "ge-step": ("ge", {"resample": "step"}),
    "ge-episode": ("ge", {"resample": "episode"}),
}
"""Agents with some settings fixed: DQN with the paper's ε, and GE with either way to resample θ."""


def variant(name: str) -> tuple[str, dict[str, Any]]:
    """The agent behind a name, and the settings that the name fixes."""
    return VARIANTS.get(name, (name, {}))


def variant_settings(name: str, environment: str, searches: Sequence[str]) -> Settings:
    """Tuned settings of an agent or a variant. A variant that was not searched takes those of its
    agent."""
    agent, fixed = variant(name)
    found = tuned(name, environment, searches) or tuned(agent, environment, searches)
    return settings_of(agent)(**(found | fixed))


def family(environment: str) -> str:
    """A name without its size."""
    name, _, size = environment.rpartition("-")
    return name if size.isdigit() else environment


PERIODS = (25, 50, 100)
FIGURE_2 = Search(
    environments={"chain-10": 100, "chain-50": 200, "chain-100": 200},
    grids={
        "dqn": {
            "target_period": PERIODS,
            "epsilon": (0.01, 0.03, 0.1, 0.3),
            "epsilon_steps": (0, 5000),
        },
        "noisynet": {
            "target_period": PERIODS,
            "rho": (-7.0, -6.0, -5.0, -4.5, -4.0, -3.5, -3.0, -2.0),
        },
        "ge": {
            "target_period": PERIODS,
            "rho": (-6.0, -5.0, -4.0, -3.0),
            "sigma": (1e-3, 1e-2),
        },
    },
    first_seeds=(1000, 1001),
    further_seeds=(1002, 1003, 1004),
    finalists=4,
)

_EPSILON: Grid = {"epsilon": (0.01, 0.03, 0.1), "epsilon_steps": (0, 5000)}
_GAUSS: Grid = {"rho": (-5.0, -4.0, -3.0), "sigma": (1e-3, 1e-2)}
_REGRESSION: Grid = {"sigma": (0.03, 0.1, 0.3), "prior": (1.0, 10.0)}
SCOREBOARD = Search(
    environments={"chain-50": 150, "deep-sea-10": 400, "bandit-10": 500},
    grids={
        "dqn": _EPSILON,
        "c51": {"epsilon": (0.01, 0.1), "high": (1.1, 12.0, 101.0)},  # one for each kind of task
        "qr_dqn": _EPSILON,
        "noisynet": {"rho": (-6.0, -5.0, -4.5, -4.0, -3.5, -3.0)},
        "ge": _GAUSS,
        "vdqn": _GAUSS,
        "bbq": _GAUSS,
        "bayesian_dqn": _REGRESSION,
        "bootstrapped_dqn": {"prior": (1.0, 3.0, 10.0), "mask": (0.5, 1.0)},
        "parameter_noise": {"distance": (0.05, 0.2, 0.5), "std": (0.02, 0.1)},
        "double_uncertain": {"rate": (0.02, 0.1, 0.3), "resample": ("step", "episode")},
        "rlsvi": _REGRESSION,
        "ige": {"prior": (3.0, 10.0, 30.0), "rho": (None, -6.0)},
        "psrl": {"concentration": (0.01, 0.1, 1.0), "reward_std": (0.3, 1.0)},
        "bayesian_q_learning": {"lam": (0.03, 0.1, 1.0), "beta": (0.1, 1.0)},
    },
    first_seeds=(1000, 1001),
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
    keeps={"rlsvi": ("hidden",)},
)

DEEP_SEA = Search(
    environments={"deep-sea-20": 600},
    grids={
        "bootstrapped_dqn": {"prior": (3.0, 10.0, 30.0), "mask": (0.5, 1.0)},
        "ige": {"prior": (3.0, 10.0, 30.0), "rank": (4, 8)},
    },
    first_seeds=(1000, 1001, 1002, 1003),
    bases={"deep-sea": SCOREBOARD.bases["deep-sea"]},
    until_solved=True,
)

_SMALL_GAUSS: Grid = {"rho": (-7.0, -6.0, -5.0, -4.0, -3.0, -2.0), "sigma": (1e-4, 1e-3)}
_CONTROL = {"hidden": (64, 64), "target_period": 200, "learning_starts": 500}
FIGURE_3 = Search(
    environments={"sparse-cartpole": 200, "sparse-acrobot": 100},
    grids={
        "dqn": {"epsilon": (0.005, 0.01, 0.02, 0.05, 0.1, 0.2), "epsilon_steps": (0, 10_000)},
        "noisynet": {
            "rho": (-7.0, -6.5, -6.0, -5.5, -5.0, -4.5, -4.0, -3.5, -3.0, -2.5, -2.0, -1.0)
        },
        "ge-step": _SMALL_GAUSS,
        "ge-episode": _SMALL_GAUSS,
    },
    first_seeds=(1000, 1001),
    bases={f"sparse-{name}": _CONTROL for name in ("cartpole", "acrobot")},
)

_COPIES = (25, 50, 100, 200)
_RHOS = (-7.0, -6.0, -5.0, -4.0)
_COPIED_GAUSS: Grid = {"target_period": _COPIES, "rho": _RHOS, "sigma": (1e-4,)}
MOUNTAIN_CAR = Search(
    environments={"sparse-mountain-car": 400},
    grids={
        "dqn": {"target_period": _COPIES, "epsilon": (0.005, 0.02, 0.05, 0.1)},
        "noisynet": {"target_period": _COPIES, "rho": _RHOS},
        "ge-step": _COPIED_GAUSS,
        "ge-episode": _COPIED_GAUSS,
    },
    first_seeds=(1000, 1001, 1002, 1003),
    bases={"sparse-mountain-car": {"hidden": (64, 64), "learning_starts": 500}},
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
        "ddpg_ge": {"rho": (-7.0, -5.0, -3.0, -2.0), "sigma": (1e-3, 1e-2, 1e-1)},
    },
    first_seeds=(1000, 1001),
    bases=dict.fromkeys(("gym/InvertedPendulum-v5", "sparse-inverted-pendulum"), _PENDULUM),
)

SEARCHES = {
    "figure-2": FIGURE_2, "figure-3": FIGURE_3, "mountain-car": MOUNTAIN_CAR, "figure-4": FIGURE_4,
    "scoreboard": SCOREBOARD, "deep-sea": DEEP_SEA,
}  # fmt: skip
