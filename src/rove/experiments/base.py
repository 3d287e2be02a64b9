"""What an experiment is: configurations to train, and what to make of the runs."""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rove import runner
from rove.agents import label_of
from rove.errors import LaneError
from rove.experiments.claims import Claim, adjusted, as_json, as_markdown
from rove.run import Run
from rove.runs import Config
from rove.training import lanes
from rove.training.checkpoint import publish
from rove.training.outcomes import Job

Key: TypeAlias = tuple[str, str]
"""An environment and an agent, by the names that the experiment gives them."""
Runs: TypeAlias = Mapping[Key, Run]
DQNS = ("dqn-paper", "dqn")
"""What the paper says of DQN is judged of both: with its ε, and with the one that was searched."""
AGENTS = (*DQNS, "noisynet", "ge-step", "ge-episode")
"""Those of Figures 2 and 3. What the paper says of GE is judged of `ge-step`, which draws θ at
every step as the paper's does."""
LEFT_OUT = ("dqn-paper", "ge-episode")
"""Of the quick form."""
LABELS = {"dqn-paper": "DQN, ε = 0.1", "ge-step": "GE", "ge-episode": "GE, θ per episode"}
"""Of variants."""


def label(name: str) -> str:
    """How to call an agent, or a variant of one."""
    return LABELS.get(name) or label_of(name)


def write_claims(out: Path, claims: Sequence[Claim]) -> None:
    """claims.json and claims.md."""
    publish(out / "claims.json", as_json(claims).encode())
    publish(out / "claims.md", as_markdown(claims).encode())


@dataclass(frozen=True)
class Experiment(abc.ABC):
    quick: bool = False
    """Fewer seeds and episodes: minutes, and still shows the effect."""

    @classmethod
    def missing(cls) -> str | None:
        """What has to be installed for it, if it is not."""
        return None

    @abc.abstractmethod
    def configs(self) -> dict[Key, Config]:
        """What to train. The longest lanes come first."""

    @abc.abstractmethod
    def write(self, runs: Runs, out: Path) -> list[Claim]:
        """Data and pictures to `out`, and what the runs say of the claims."""

    def jobs(self) -> list[Job]:
        return [job for config in self.configs().values() for job in config.jobs(None)]

    def run(
        self,
        out: Path,
        report: lanes.Report = lambda progress: None,
        workers: int | None = None,
    ) -> list[Claim]:
        """Train it all, or go on with it, and write what came of it to `out`. P-values are
        adjusted for the claims of this experiment."""
        configs = self.configs()
        plan = [(config, out / "runs" / "-".join(key)) for key, config in configs.items()]
        runs = dict(zip(configs, runner.run_all(plan, report, workers, "processes"), strict=True))
        if errors := [error for run in runs.values() for error in run.errors]:
            raise LaneError("\n".join(map(str, errors)))
        found = adjusted(self.write(runs, out))
        write_claims(out, found)
        return found
