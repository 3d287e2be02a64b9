"""The scoreboard: how soon agents solve tasks that require exploration."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rove.agents import settings_of
from rove.agents.tuned import tuned
from rove.analysis.intervals import MIN_SEEDS, Support, mean_interval
from rove.environments import Task, make
from rove.environments.bandit import BanditTask
from rove.paper.base import Experiment, Key, Runs
from rove.paper.claims import Claim
from rove.parts.files import publish
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.runs.result import Run
from rove.runs.tables import as_csv
from rove.search.grids import SCOREBOARD
from rove.training.solving import IN_A_ROW, episodes_to_solve

EPISODES = {
    "deep-sea-20": 600, "chain-100": 250, "chain-50": 250, "permuted-chain-50": 250,
    "deep-sea-10": 600, "permuted-chain-20": 250, "chain-10": 100, "bandit-10": 1000,
    "bernoulli-bandit-10": 1000, "linear-bandit-4": 1000,
}  # fmt: skip
"""Maximum number of episodes per seed. The longest runs come first."""
QUICK_EPISODES = {"chain-10": 60, "deep-sea-10": 200, "bandit-10": 200}
QUICK_AGENTS = ("dqn", "ge", "ige", "thompson", "psrl")
THOMPSON = {
    "thompson": "bandit-10", "thompson_beta": "bernoulli-bandit-10",
    "thompson_linear": "linear-bandit-4",
}  # fmt: skip
"""Agents for one kind of bandit each. They know the distribution of the arms, so there is nothing
to tune."""
TABLES = ("psrl", "bayesian_q_learning", "particles")
"""Tabular agents, which cannot represent the contexts of the linear bandit."""
UNTUNED = ("auto", *THOMPSON)
"""Agents without a search: `auto` has one setting for all tasks."""
AGENTS = (*SCOREBOARD.grids, *UNTUNED)
SEEDS, QUICK_SEEDS = 10, 2
ORDER = (
    "chain-10", "chain-50", "chain-100", "permuted-chain-20", "permuted-chain-50",
    "deep-sea-10", "deep-sea-20", "bandit-10", "bernoulli-bandit-10", "linear-bandit-4",
)  # fmt: skip
"""The order of the columns of the table."""


class Cell(NamedTuple):
    """The results of an agent on a task."""

    values: np.ndarray
    """For each seed, the number of episodes until it solved the task, or its budget if it did not;
    on a bandit, its regret."""
    solved: np.ndarray
    """For each seed, whether it solved the task; empty for a bandit."""
    episodes: int
    """The budget in episodes."""
    support: Support
    """The range of the values."""

    @property
    def text(self) -> str:
        """Solved seeds, mean value and its 95% interval, such as "10/10 84 (70–101)"; without the
        interval if there are few seeds."""
        mean = f"{self.values.mean():.0f}"
        if len(self.values) >= MIN_SEEDS:
            low, high = mean_interval(self.values, self.support)
            mean += f" ({low:.0f}–{high:.0f})"
        if not len(self.solved):
            return mean
        count = f"{self.solved.sum()}/{len(self.solved)}"
        return f"{count} {mean}" if self.solved.any() else count


@dataclass(frozen=True)
class Scoreboard(Experiment):
    """Scoreboard: every agent on chains, permuted chains, Deep Sea and bandits."""

    name = "scoreboard"
    agents: tuple[str, ...] = ()
    """Names of the agents; all if empty."""

    def configs(self) -> dict[Key, Config]:
        """Return all runs, with the settings of the search `scoreboard`."""
        episodes = QUICK_EPISODES if self.quick else EPISODES
        agents = self.agents or (QUICK_AGENTS if self.quick else AGENTS)
        plan = {}
        for environment, budget in episodes.items():
            for agent in agents:
                if not fits(agent, environment):
                    continue
                task = make(environment)
                plan[environment, agent] = configure(
                    settings_of(agent)(**tuned(agent, environment, ["scoreboard"])),
                    task,
                    seeds=QUICK_SEEDS if self.quick else SEEDS,
                    episodes=budget,
                    until_solved=task.optimum is not None,
                )
        return plan

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        cells = {key: cell(run) for key, run in runs.items()}
        publish(out / "scoreboard.csv", lanes_csv(cells).encode())
        publish(out / "scoreboard.md", as_table(cells).encode())
        draw(cells, out)
        return claims(cells)


def fits(agent: str, environment: str) -> bool:
    """Whether an agent is run on an environment."""
    if agent in TABLES:
        return environment != "linear-bandit-4"
    return THOMPSON.get(agent, environment) == environment


Cells = Mapping[Key, Cell]


def cell(run: Run) -> Cell:
    """Return the results of a run."""
    environment, budget = run.config.environment, run.config.episodes
    assert budget is not None
    support = value_range(environment, budget)
    if isinstance(environment, BanditTask):
        visits = np.stack([outcome.visits for outcome in run.outcomes])
        return Cell(environment.regret(visits), np.zeros(0, bool), budget, support)
    assert environment.optimum is not None
    times = [episodes_to_solve(o.scores, environment.optimum) for o in run.outcomes]
    solved = np.array([time is not None for time in times])
    values = np.array([budget if time is None else time for time in times], float)
    return Cell(values, solved, budget, support)


def value_range(environment: Task, budget: int) -> Support:
    """Return the smallest and the largest value that a seed can have within a budget."""
    if isinstance(environment, BanditTask):
        return 0.0, budget * float(environment.regrets.max())
    return min(IN_A_ROW, budget), budget


def lanes_csv(cells: Cells) -> str:
    """Return a CSV table with one row per seed."""
    rows: list[tuple] = []
    for (environment, agent), result in cells.items():
        for seed, value in enumerate(result.values):
            solved = int(result.solved[seed]) if len(result.solved) else ""
            rows.append((environment, agent, seed, result.episodes, solved, f"{value:g}"))
    return as_csv(("environment", "agent", "seed", "budget", "solved", "value"), rows)


def _axes(cells: Cells) -> tuple[list[str], list[str]]:
    """Return the environments (columns) and agents (rows) of the table."""
    environments = [name for name in ORDER if any(name == e for e, _ in cells)]
    return environments, [name for name in AGENTS if any(name == a for _, a in cells)]


def as_table(cells: Cells) -> str:
    """Return a Markdown table with one row per agent."""
    environments, agents = _axes(cells)
    budgets = {e: c.episodes for (e, _), c in cells.items()}
    head = [f"{e} (of {budgets[e]})" for e in environments]
    lines = ["| agent | " + " | ".join(head) + " |", "|---" * (1 + len(head)) + "|"]
    for agent in agents:
        texts = [cells[e, agent].text if (e, agent) in cells else "" for e in environments]
        lines.append(f"| `{agent}` | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def read(path: Path) -> dict[Key, Cell]:
    """Return the results in a file that `lanes_csv` wrote."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cells = {}
    for key in dict.fromkeys((row["environment"], row["agent"]) for row in rows):
        group = [row for row in rows if (row["environment"], row["agent"]) == key]
        values = np.array([float(row["value"]) for row in group])
        solved = np.array([row["solved"] == "1" for row in group if row["solved"]], bool)
        budget = int(group[0]["budget"])
        cells[key] = Cell(values, solved, budget, value_range(make(key[0]), budget))
    return cells


def draw(cells: Cells, out: Path) -> None:
    """Write scoreboard.png and scoreboard.svg."""
    from rove.paper import scoreboard_picture  # imported here because Matplotlib is slow to import

    scoreboard_picture.write(scoreboard_picture.draw(cells, *_axes(cells)), out)


def redraw(data: str | Path, out: str | Path) -> None:
    """Draw the scoreboard from a file such as docs/data/scoreboard.csv, without training."""
    draw(read(Path(data)), Path(out))


def claims(cells: Cells) -> list[Claim]:
    """Test the claims of the documentation about the scoreboard; none of them is in the paper."""
    tested = []
    for environment in ("deep-sea-10", "deep-sea-20"):
        if (environment, "ge") in cells:
            ge = cells[environment, "ge"]
            tested.append(
                Claim.count(
                    f"ours: mean-field GE does not solve {environment}",
                    f"not solved within {ge.episodes} episodes",
                    ~ge.solved,
                )
            )
        slow, fast = (cells.get((environment, agent)) for agent in ("bootstrapped_dqn", "ige"))
        if slow is not None and fast is not None:
            tested.append(
                Claim.ahead(
                    f"ours: Index GE solves {environment} in fewer episodes than Bootstrapped DQN "
                    "with priors",
                    "episodes to solve, for Bootstrapped DQN and for Index GE,",
                    slow.values,
                    fast.values,
                    slow.support,
                )
            )
    return tested
