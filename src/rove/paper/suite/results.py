"""The results of the suite: one row for every task, agent and seed."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rove.agents import AGENTS as KNOWN
from rove.agents import label_of
from rove.analysis.comparing import compare_means
from rove.analysis.curves import mean_over_steps
from rove.analysis.intervals import Comparison
from rove.paper import recorded
from rove.paper.suite.tasks import BY_NAME, RECENT, SuiteTask
from rove.runs.tables import as_csv

RANDOM = "random"
DEFAULT = next(name for name in ("auto", "ige") if name in KNOWN)
"""The agent to start with, which the claims are about."""
SB3 = {"sb3": "SB3 DQN", "sb3-zoo": "SB3 DQN (zoo)"}
OWN = tuple(
    name for name in (RANDOM, "dqn", "ge", "ige", "bootstrapped_dqn", "auto")
    if name == RANDOM or name in KNOWN
)  # fmt: skip
"""rove's agents."""
AGENTS = (*OWN, *SB3)
"""All agents, in the order of the tables."""
TENTHS = 10
COLUMNS = (
    "task", "half", "agent", "seed", "steps", "episodes", "last", "score", "solved", "policy",
    "delivered", "training", *(f"tenth_{i + 1}" for i in range(TENTHS)),
)  # fmt: skip


def label(agent: str) -> str:
    """Return the display name of an agent."""
    return {RANDOM: "random actions", **SB3}.get(agent) or label_of(agent)


class SeedResult(NamedTuple):
    """The results of an agent on a task with one seed."""

    task: SuiteTask
    agent: str
    seed: int
    steps: int
    """The budget."""
    episodes: int
    """Number of training episodes."""
    last: float
    """Mean score of the last training episodes; NaN if there was none."""
    policy: str
    """The policy that was delivered; empty if none was evaluated."""
    delivered: float
    """Mean score of the delivered policy; NaN if none was evaluated."""
    tenths: tuple[float, ...]
    """Mean score of the training episodes that ended in each tenth of the budget; NaN for none."""
    training: float = float("nan")
    """Mean score in training, over steps; NaN if no episode ended."""

    @property
    def score(self) -> float:
        """The score of the last training episodes on the scale from 0 to 1."""
        return float(self.task.normalised(self.last)) if np.isfinite(self.last) else 0.0

    @property
    def solved(self) -> bool:
        """Whether the seed has solved the task."""
        return self.score >= self.task.solved

    @property
    def delivered_score(self) -> float:
        """The score of the delivered policy on the scale from 0 to 1."""
        return float(self.task.normalised(self.delivered))


def seed_result(
    task: SuiteTask,
    agent: str,
    seed: int,
    steps: int,
    scores: Float[np.ndarray, " episodes"],
    ends: Float[np.ndarray, " episodes"],
    policy: str = "",
    delivered: Sequence[float] = (),
) -> SeedResult:
    """Summarise the scores of training episodes, which ended at the steps `ends`."""
    tenth = np.minimum((np.asarray(ends, float) - 1) * TENTHS // steps, TENTHS - 1)
    tenths = tuple(_mean(scores[tenth == i]) for i in range(TENTHS))
    last = _mean(scores[-RECENT:])
    lengths = np.diff(np.asarray(ends, float), prepend=0.0)
    training = mean_over_steps(scores, lengths) if len(scores) else float("nan")
    numbers = (len(scores), last, policy, _mean(delivered), tenths, training)
    return SeedResult(task, agent, seed, steps, *numbers)


def _mean(values: Sequence[float] | np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _mean_of_known(values: Sequence[float]) -> float:
    return _mean([x for x in values if np.isfinite(x)])


def results_csv(results: Iterable[SeedResult]) -> str:
    """Return a CSV table with one row per seed."""
    number = lambda x: "" if np.isnan(x) else f"{x:.6g}"  # noqa: E731
    rows = [
        (
            r.task.name, r.task.half, r.agent, r.seed, r.steps, r.episodes, number(r.last),
            f"{r.score:.4f}", int(r.solved), r.policy, number(r.delivered),
            number(r.training), *map(number, r.tenths),
        )
        for r in results
    ]  # fmt: skip
    return as_csv(COLUMNS, rows)


def read(path: str | Path) -> list[SeedResult]:
    """Return the results in a file that `results_csv` wrote. Scores are recomputed. In a file of an
    earlier version, without the mean score in training, that is the mean of the tenths."""
    number = lambda text: float(text) if text else float("nan")  # noqa: E731
    tenths = lambda row: [number(row[f"tenth_{i + 1}"]) for i in range(TENTHS)]  # noqa: E731
    return [
        SeedResult(
            BY_NAME[row["task"]],
            row["agent"],
            int(row["seed"]),
            int(row["steps"]),
            int(row["episodes"]),
            number(row["last"]),
            row["policy"],
            number(row["delivered"]),
            tuple(tenths(row)),
            number(row["training"]) if "training" in row else _mean_of_known(tenths(row)),
        )
        for row in recorded.read(path)
    ]


class ResultTable:
    """Results as tables of tasks and seeds, for the agents and tasks that have any."""

    def __init__(self, results: Iterable[SeedResult]):
        self.results = list(results)
        names = {r.task.name for r in self.results}
        present = {r.agent for r in self.results}
        self.tasks = [task for task in BY_NAME.values() if task.name in names]
        self.agents = [agent for agent in AGENTS if agent in present]
        self._cells: dict[tuple[str, str], list[SeedResult]] = {}
        for r in sorted(self.results, key=lambda r: r.seed):
            self._cells.setdefault((r.task.name, r.agent), []).append(r)

    def half(self, half: str) -> "ResultTable":
        """Return the results of the tasks of one half."""
        return ResultTable(r for r in self.results if r.task.half == half)

    def cell(self, task: str, agent: str) -> list[SeedResult]:
        """Return the results of an agent on a task, by seed."""
        return self._cells.get((task, agent), [])

    def scores(self, agent: str) -> list[Float[np.ndarray, " seeds"]]:
        """Return the scores of an agent, task by task."""
        return [np.array([r.score for r in self.cell(t.name, agent)]) for t in self.tasks]

    def solved(self, agent: str) -> list[Bool[np.ndarray, " seeds"]]:
        """Return which seeds of an agent solved each task."""
        return [np.array([r.solved for r in self.cell(t.name, agent)], bool) for t in self.tasks]

    def compared(self, a: str, b: str) -> Comparison:
        """Test whether two agents differ in the mean score in training, averaged over tasks on the
        scale from 0 to 1. On a single task, the scores are those of `rove.difference`, in the units
        of the environment and within its range of scores."""
        if len(self.tasks) == 1:
            (task,) = self.tasks
            x, y = ([r.training for r in self.cell(task.name, agent)] for agent in (a, b))
            x, y = (np.nan_to_num(np.array(row), nan=task.zero) for row in (x, y))
            return compare_means(x, y, task.make().score_range)
        return compare_means(self._training(a), self._training(b))

    def _training(self, agent: str) -> list[Float[np.ndarray, " seeds"]]:
        """Return the mean scores in training of an agent, task by task; 0 without an episode."""
        rows = [(t, [r.training for r in self.cell(t.name, agent)]) for t in self.tasks]
        return [np.nan_to_num(task.normalised(np.array(row))) for task, row in rows]

    def complete(self, *agents: str) -> bool:
        """Whether agents have results on every task."""
        return bool(self.tasks) and all(self.cell(t.name, a) for t in self.tasks for a in agents)
