"""The suite: which tasks and agents are run, and how their results are written."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from rove.agents import DQN
from rove.agents.settings import Settings
from rove.errors import ConfigError, Diverged, LaneError, did_you_mean
from rove.paper import published
from rove.paper.base import Experiment, Key, Runs, write_claims
from rove.paper.claims import Claim, adjusted
from rove.paper.suite import judging, page, sb3
from rove.paper.suite.results import (
    AGENTS,
    OWN,
    RANDOM,
    SB3,
    ResultTable,
    SeedResult,
    results_csv,
    seed_result,
)
from rove.paper.suite.sb3 import PeerRun, Say
from rove.paper.suite.tasks import BY_NAME, SuiteTask
from rove.parts.files import publish
from rove.runs.config import Config
from rove.runs.configure import configure, default_settings
from rove.runs.execution import run_all
from rove.runs.result import Run
from rove.runs.tables import publish_text
from rove.training.progress import Report, ignore

SEEDS, QUICK_SEEDS = 10, 2
QUICK_STEPS = 3_000
QUICK_TASKS = ("deep-sea-10", "permuted-chain-20", "frozenlake-4x4", "deep-sea-20")
QUICK_AGENTS = tuple(name for name in OWN if name not in ("ge", "bootstrapped_dqn"))
WORKERS = 2
"""Maximum number of processes."""
NEVER = 2**30
"""Step of the first update of an agent that does not learn."""


def plain_settings(agent: str, task: SuiteTask) -> Settings:
    """Return an agent's default settings without tuned ones; `random` acts uniformly."""
    if agent == RANDOM:
        return DQN(epsilon=1.0, learning_starts=NEVER)
    return default_settings(agent, task.make(), searches=())


@dataclass(frozen=True)
class Suite(Experiment):
    """Suite: agents on 18 sparse tasks, each agent with one setting for all of them."""

    name = "suite"
    in_all = False
    tasks: tuple[str, ...] = ()
    """Names of the tasks; all if empty."""
    agents: tuple[str, ...] = ()
    """Names of the agents; all if empty. In quick form, without stable-baselines3."""
    seeds: int | None = None
    """Number of seeds; 10 by default."""
    say: Say = field(default=ignore, compare=False)
    """Receives messages about tasks that are left out, and the progress of stable-baselines3."""

    def __post_init__(self) -> None:
        for kind, known in (("task", BY_NAME), ("agent", AGENTS)):
            for name in getattr(self, f"{kind}s"):
                if name not in known:
                    names, hint = ", ".join(known), did_you_mean(name, known) or "."
                    message = f"the suite has no {kind} {name!r}{hint} It has {names}"
                    raise ConfigError(f"{kind}s", name, f"one of {names}", message)

    @cached_property
    def chosen(self) -> list[SuiteTask]:
        """The tasks to run, except those whose package is not installed."""
        names = self.tasks or (QUICK_TASKS if self.quick else tuple(BY_NAME))
        return [task for name in names if (task := BY_NAME[name]).missing is None]

    @cached_property
    def left_out(self) -> list[str]:
        """Messages that name the tasks that are left out, and why."""
        names = self.tasks or (QUICK_TASKS if self.quick else tuple(BY_NAME))
        return [reason for name in names if (reason := BY_NAME[name].missing)]

    @property
    def contestants(self) -> tuple[str, ...]:
        """The agents to run."""
        return self.agents or (QUICK_AGENTS if self.quick else AGENTS)

    def steps(self, task: SuiteTask) -> int:
        """Return the number of steps on a task."""
        return QUICK_STEPS if self.quick else task.steps

    @property
    def seed_numbers(self) -> range:
        """The seeds."""
        return range(self.seeds or (QUICK_SEEDS if self.quick else SEEDS))

    def configs(self) -> dict[Key, Config]:
        """Return a run for each task, agent of rove and seed. Every seed has its own run folder, so
        that any subset of them can be resumed."""
        plan = {}
        for task in self.chosen:
            for agent in self.contestants:
                if agent in SB3:
                    continue
                settings, steps = plain_settings(agent, task), self.steps(task)
                config = configure(settings, task.make(), steps=steps)
                for seed in self.seed_numbers:
                    own = replace(config, seeds=(seed,), extendable=True, delivers=True)
                    plan[task.name, f"{agent}-{seed}"] = own
        return plan

    def peer_runs(self, out: Path) -> list[PeerRun]:
        """Return the runs of stable-baselines3, seed by seed."""
        return [
            PeerRun(
                out / "sb3" / f"{task.name}-{agent}-{seed}.json",
                task,
                agent,
                seed,
                self.steps(task),
            )
            for seed in self.seed_numbers
            for task in self.chosen
            for agent in self.contestants
            if agent in SB3
        ]

    def run(
        self,
        out: Path,
        report: Report = ignore,
        workers: int | None = None,
    ) -> list[Claim]:
        """Train task by task, or resume, and write the results to `out`. P-values are adjusted over
        the claims. In quick form, return those of the committed full run instead."""
        for reason in self.left_out:
            self.say(reason)
        configs, results = self.configs(), []
        workers = min(workers or WORKERS, WORKERS)
        for task in self.chosen:
            of_task = {key: config for key, config in configs.items() if key[0] == task.name}
            plan = [(config, out / "runs" / "-".join(key)) for key, config in of_task.items()]
            runs = run_all(plan, report, workers, "processes") if plan else []
            if failed := [e for run in runs for e in run.errors if not isinstance(e, Diverged)]:
                raise LaneError("\n".join(map(str, failed)))
            for (_, lane), run in zip(of_task, runs, strict=True):
                results.append(result_of(task, _agent_of(lane), run))
        peer_runs = self.peer_runs(out)
        sb3.run(peer_runs, workers, self.say)
        results += [peer.result() for peer in peer_runs]
        claims = adjusted(self.write_results(results, out))
        if self.quick:
            return published.claims(self.name)
        write_claims(out, claims)
        return claims

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        results = [
            result_of(BY_NAME[task], _agent_of(lane), run) for (task, lane), run in runs.items()
        ]
        return self.write_results(results, out)

    def write_results(self, results: Sequence[SeedResult], out: Path) -> list[Claim]:
        """Write suite.csv.gz, suite.md and the picture; return the tested claims."""
        from rove.paper.suite import picture  # imported here because Matplotlib is slow to import

        publish_text(out / "suite.csv.gz", results_csv(results))
        publish(out / "suite.md", page.summary(results).encode())
        table = ResultTable(results)
        picture.write(table, out)
        return judging.claims(table)


def _agent_of(lane: str) -> str:
    """Return the agent of a run whose name consists of its agent and its seed, as in "dqn-0"."""
    return lane.rpartition("-")[0]


def result_of(task: SuiteTask, agent: str, run: Run) -> SeedResult:
    """Return the result of a run with one seed.

    A seed that diverged has no episodes, and a score of 0.
    """
    steps, none = run.config.steps, np.zeros(0)
    assert steps is not None
    if not run.outcomes:
        return seed_result(task, agent, run.config.seeds[0], steps, none, none)
    outcome, policy, delivered = run.outcomes[0], "", []
    if agent != RANDOM:
        policy, delivered = run.delivered[0].policy, run.evaluated[0]
    scores, ends = np.asarray(outcome.scores, float), np.asarray(outcome.episodes.step, float)
    identity = task, agent, outcome.job.seed, steps
    return seed_result(*identity, scores, ends, policy, delivered)
