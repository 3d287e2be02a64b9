"""The scoreboard: how soon agents solve tasks that require exploration."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from rove.training.conclusion import Inspection
from rove.training.lane import BEST
from rove.training.outcomes import Outcome
from rove.training.solving import IN_A_ROW, episodes_to_solve, is_optimal

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


NONE = np.zeros(0)
EVALUATE_EVERY = 10
"""Number of episodes between evaluations of the greedy policy. They play one episode, because all
tasks but the bandits are deterministic."""


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
    delivered: np.ndarray = NONE
    """For each seed, whether the policy that it delivers is optimal; empty for a bandit, or if that
    is not known."""
    delivered_values: np.ndarray = NONE
    """For each seed, the number of episodes until an evaluation of its greedy policy was optimal,
    or its budget if the delivered policy is not optimal."""
    values_vary: np.ndarray = NONE
    """For each seed, whether the values of its network depend on the state; NaN for a table."""
    policy_varies: np.ndarray = NONE
    """For each seed, whether its greedy action depends on the state; NaN for a table."""
    greedy: np.ndarray = NONE
    """For each seed, the mean score of its greedy policy (`Run.greedy`)."""

    @property
    def text(self) -> str:
        """Seeds that solved the task, mean value and its 95% interval, such as "10/10 84 (70–101)";
        without the interval if there are few seeds."""
        return _counted(self.solved, self.values, self.support)

    @property
    def delivered_text(self) -> str:
        """The same for delivered policies."""
        if not len(self.solved):
            return self.text
        if not len(self.delivered):
            return ""  # not known
        return _counted(self.delivered, self.delivered_values, (1.0, self.support[1]))

    @property
    def network_text(self) -> str:
        """Of the seeds whose delivered policy is optimal, those whose network's values, and those
        whose greedy actions, depend on the state, and the mean score of the greedy policies of all
        seeds, such as "9, 4 of 10; 10.2"; without the counts for a table."""
        mean = f"{self.greedy.mean():.3g}"
        if not self.delivered.any() or not np.isfinite(self.values_vary).all():
            return mean
        values, actions = (
            int(np.sum(x[self.delivered] == 1.0)) for x in (self.values_vary, self.policy_varies)
        )
        return f"{values}, {actions} of {self.delivered.sum()}; {mean}"


def _counted(solved: np.ndarray, values: np.ndarray, support: Support) -> str:
    mean = f"{values.mean():.0f}"
    if len(values) >= MIN_SEEDS:
        low, high = mean_interval(values, support)
        mean += f" ({low:.0f}–{high:.0f})"
    if not len(solved):
        return mean
    count = f"{solved.sum()}/{len(solved)}"
    return f"{count} {mean}" if solved.any() else count


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
                solvable = task.optimum is not None
                config = configure(
                    settings_of(agent)(**tuned(agent, environment, ["scoreboard"])),
                    task,
                    seeds=QUICK_SEEDS if self.quick else SEEDS,
                    episodes=budget,
                    until_solved=solvable,
                    eval_every=EVALUATE_EVERY if solvable else None,
                    eval_episodes=1 if solvable else None,
                )
                plan[environment, agent] = replace(config, delivers=solvable)
        return plan

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        cells = {key: cell(run) for key, run in runs.items()}
        publish(out / "scoreboard.csv", lanes_csv(cells).encode())
        publish(out / "scoreboard.md", as_tables(cells).encode())
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
    optimal = [
        bool(np.all(is_optimal(np.array(scores), environment.optimum))) for scores in run.evaluated
    ]
    at = [_first_optimal(outcome, environment.optimum) for outcome in run.outcomes]
    times = [time if good else budget for time, good in zip(at, optimal, strict=True)]
    networks = [_delivered_network(outcome) for outcome in run.concluded]
    return Cell(
        values,
        solved,
        budget,
        support,
        np.array(optimal),
        np.array(times, float),
        np.array([np.nan if x is None else not x.values_constant for x in networks], float),
        np.array([np.nan if x is None else not x.policy_constant for x in networks], float),
        np.array([np.mean(scores) for scores in run.greedy]),
    )


def _delivered_network(outcome: Outcome) -> Inspection | None:
    """Return what the network that a seed delivers says: that of the latest of the best
    evaluations, if it delivers that."""
    ended, evaluations = outcome.conclusion, outcome.evaluations
    assert ended is not None
    if ended.delivered.policy != BEST or ended.inspection is None:
        return ended.inspection
    best = np.flatnonzero(evaluations.mean == np.max(evaluations.mean))[-1]
    return Inspection.of_row(evaluations.network[best].tolist())


def _first_optimal(outcome: Outcome, optimum: float) -> int:
    """Return the episode of the first evaluation that was optimal; if none was, the last one."""
    evaluations = outcome.evaluations
    optimal = np.flatnonzero(is_optimal(evaluations.mean, optimum))
    return int(evaluations.episode[optimal[0]]) if len(optimal) else len(outcome.scores)


def value_range(environment: Task, budget: int) -> Support:
    """Return the smallest and the largest value that a seed can have within a budget."""
    if isinstance(environment, BanditTask):
        return 0.0, budget * float(environment.regrets.max())
    return min(IN_A_ROW, budget), budget


MORE = ("delivered", "delivered_value", "values_vary", "policy_varies", "greedy_score")
"""The columns of the table about delivered policies and networks; empty for bandits."""


def lanes_csv(cells: Cells) -> str:
    """Return a CSV table with one row per seed."""
    rows: list[tuple] = []
    for (environment, agent), result in cells.items():
        for seed, value in enumerate(result.values):
            solvable = len(result.solved) > 0
            solved = int(result.solved[seed]) if solvable else ""
            more = [column[seed] if len(column) else np.nan for column in result[4:]]
            numbers = ["" if np.isnan(x) else f"{x:g}" for x in more]
            rows.append((environment, agent, seed, result.episodes, solved, f"{value:g}", *numbers))
    return as_csv(("environment", "agent", "seed", "budget", "solved", "value", *MORE), rows)


def _axes(cells: Cells) -> tuple[list[str], list[str]]:
    """Return the environments (columns) and agents (rows) of the table."""
    environments = [name for name in ORDER if any(name == e for e, _ in cells)]
    return environments, [name for name in AGENTS if any(name == a for _, a in cells)]


def as_tables(cells: Cells) -> str:
    """Return three Markdown tables: of delivered policies, of exploring agents, and of networks."""
    titles = {
        "By the delivered policy": "delivered_text",
        "While exploring": "text",
        "What the networks say": "network_text",
    }
    parts = [f"### {title}\n\n{as_table(cells, field)}" for title, field in titles.items()]
    return "\n".join(parts)


def as_table(cells: Cells, field: str = "text") -> str:
    """Return a Markdown table with one row per agent, of one of the texts of cells. The table of
    networks is without bandits and tables."""
    if field == "network_text":
        cells = {key: x for key, x in cells.items() if np.isfinite(x.values_vary).all()}
        cells = {key: x for key, x in cells.items() if len(x.values_vary)}
    environments, agents = _axes(cells)
    budgets = {e: c.episodes for (e, _), c in cells.items()}
    head = [f"{e} (of {budgets[e]})" for e in environments]
    lines = ["| agent | " + " | ".join(head) + " |", "|---" * (1 + len(head)) + "|"]
    for agent in agents:
        known = [cells.get((e, agent)) for e in environments]
        texts = ["" if cell is None else getattr(cell, field) for cell in known]
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
        more = [
            np.array([float(row[name] or "nan") for row in group if row["solved"]]) for name in MORE
        ]
        support = value_range(make(key[0]), budget)
        known = len(more[0]) and np.isfinite(more[0]).all()
        delivered = (more[0] == 1.0, *more[1:]) if known else ()
        cells[key] = Cell(values, solved, budget, support, *delivered)
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
