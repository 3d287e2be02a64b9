"""The base class of experiments: configurations to train, and an evaluation of the runs."""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias

from rove.agents import label_of
from rove.errors import LaneError
from rove.paper import published
from rove.paper.claims import Claim, adjusted, as_json, as_markdown
from rove.parts.files import publish
from rove.runs.config import Config
from rove.runs.execution import run_all
from rove.runs.result import Run
from rove.training.outcomes import Job
from rove.training.progress import Report, ignore

Key: TypeAlias = tuple[str, str]
"""The names an experiment uses for an environment and an agent, which identify a run."""
Runs: TypeAlias = Mapping[Key, Run]
DQNS = ("dqn-paper", "dqn")
"""The paper's claims about DQN are tested for both: with the paper's ε, and with a tuned one."""
AGENTS = (*DQNS, "noisynet", "ge-step", "ge-episode")
"""The agents of Figures 2 and 3. The paper's claims about GE are tested for `ge-step`, which
resamples θ every step, as in the paper."""
LEFT_OUT = ("dqn-paper", "ge-episode")
"""Agents that are omitted with --quick."""
LABELS = {"dqn-paper": "DQN, ε = 0.1", "ge-step": "GE", "ge-episode": "GE, θ per episode"}
"""Display names of variants."""


def label(name: str) -> str:
    """Return the display name of an agent or a variant."""
    return LABELS.get(name) or label_of(name)


def write_claims(out: Path, claims: Sequence[Claim]) -> None:
    """Write claims.json and claims.md."""
    publish(out / "claims.json", as_json(claims).encode())
    publish(out / "claims.md", as_markdown(claims).encode())


@dataclass(frozen=True)
class Experiment(abc.ABC):
    """An experiment: what to train, and how to evaluate it."""

    name: ClassVar[str]
    """The name on the command line."""
    in_all: ClassVar[bool] = True
    """Whether `rove reproduce all` runs it."""
    quick: bool = False
    """Use fewer seeds and episodes: takes minutes and still shows the effect."""

    @classmethod
    def missing(cls) -> str | None:
        """Return how to install a missing dependency, or None."""
        return None

    @abc.abstractmethod
    def configs(self) -> dict[Key, Config]:
        """Return what to train. The longest runs come first."""

    @abc.abstractmethod
    def write(self, runs: Runs, out: Path) -> list[Claim]:
        """Write data and figures to `out`, and return the tested claims."""

    def jobs(self) -> list[Job]:
        """Return one job per seed of every configuration."""
        return [job for config in self.configs().values() for job in config.jobs(None)]

    def run(
        self,
        out: Path,
        report: Report = ignore,
        workers: int | None = None,
    ) -> list[Claim]:
        """Train all configurations, or resume them, and write the results to `out`. P-values are
        adjusted over the claims of this experiment. In quick form, which has too few seeds to test
        a claim, return those of the committed full run instead."""
        configs = self.configs()
        plan = [(config, out / "runs" / "-".join(key)) for key, config in configs.items()]
        runs = dict(zip(configs, run_all(plan, report, workers, "processes"), strict=True))
        if errors := [error for run in runs.values() for error in run.errors]:
            raise LaneError("\n".join(map(str, errors)))
        claims = adjusted(self.write(runs, out))
        if self.quick:
            return published.claims(self.name)
        write_claims(out, claims)
        return claims
