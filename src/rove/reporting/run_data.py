"""The content of a run folder, read without compiling or running anything."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rove.analysis.seed_scores import Trained
from rove.environments import Task
from rove.errors import RoveError
from rove.reporting.files import is_gymnasium
from rove.runs.config import Config, environment_from
from rove.runs.folder import RunFolder
from rove.runs.recorded import RecordedTask
from rove.training.checkpoint import load_arrays
from rove.training.conclusion import Conclusion
from rove.training.outcomes import UNLIMITED
from rove.training.solving import IN_A_ROW
from rove.training.storage import conclusion_of, is_done


@dataclass(frozen=True)
class RunData:
    """The content of a run folder, read without compiling or running anything."""

    path: Path
    raw: dict[str, Any]
    """The content of config.json."""
    columns: dict[int, dict[str, np.ndarray]]
    """Some columns of episodes.csv, for each seed that has finished an episode."""
    evaluations: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)
    """Some columns of evaluations.csv, for each seed that was evaluated during training."""

    errors: dict[int, str] = field(default_factory=dict)
    """The errors of the seeds that failed, by seed."""

    @cached_property
    def task(self) -> Task:
        """The environment: one of rove's own, or what the folder records about another one."""
        environment = self.raw["environment"]
        try:
            if not is_gymnasium(environment):
                return environment_from(self.raw)
        except (RoveError, TypeError):
            pass  # a custom one
        return RecordedTask(self.raw)

    @cached_property
    def config(self) -> Config | None:
        """The configuration of the run; None if the agent is custom."""
        try:
            return RunFolder(self.path).config(environment=self.task)
        except (RoveError, TypeError):
            return None

    @property
    def seeds(self) -> list[int]:
        """The seeds that have finished an episode."""
        return list(self.columns)

    @cached_property
    def name(self) -> str:
        """The name of the agent."""
        if self.config is not None:
            return self.config.agent_name
        agent = self.raw["agent"]
        parts = (self.composition.get(part) for part in ("returns", "posterior"))
        types = [str(part["type"]) for part in parts if isinstance(part, dict) and "type" in part]
        composed = " × ".join(types) or self.composition.get("type", "agent")  # as Learner.name
        return str(agent.get("name") or composed)

    @property
    def composition(self) -> dict[str, Any]:
        """The parts and fields of a composed agent; empty for a named one."""
        return self.raw["agent"].get("composition", {})

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return str(self.raw["environment"]["name"])

    @cached_property
    def learning_starts(self) -> int:
        """The step at which learning starts; 1 if it is not known."""
        if self.config is not None:
            return int(self.config.compose().learning_starts)
        starts = self.composition.get("learning_starts")
        return starts if isinstance(starts, int) else 1

    @cached_property
    def intrinsic(self) -> bool:
        """Whether values include intrinsic rewards."""
        if self.config is not None:
            return self.config.compose().intrinsic
        return (self.composition.get("bonus") or {}).get("type", "NoBonus") != "NoBonus"

    @cached_property
    def trained(self) -> Trained:
        """The training, as far as scores of seeds depend on it."""
        columns, seeds = self.columns.values(), self.seeds
        return Trained(
            scores=[x["score"] for x in columns],
            ends=[x["step"] for x in columns],
            lengths=[x["length"] for x in columns],
            episodes=self.raw.get("episodes"),
            steps=self.raw.get("steps"),
            stops_early=self.stops_early,
            finished=[bool(self.finished.get(seed)) for seed in seeds],
            stopped=[bool(self.stopped.get(seed)) for seed in seeds],
            diverged=self.diverged.tolist(),
            score_range=self.task.score_range,
        )

    def table(self, column: str) -> np.ndarray:
        """Return a column as a table, [seeds, episodes], padded with NaN."""
        rows = [columns[column] for columns in self.columns.values()]
        table = np.full((len(rows), max(map(len, rows))), np.nan)
        for row, values in zip(table, rows, strict=True):
            row[: len(values)] = values
        return table

    @cached_property
    def finished(self) -> dict[int, bool]:
        """For each seed, whether it has finished."""
        steps, episodes = (self.raw[unit] or UNLIMITED for unit in ("steps", "episodes"))
        in_a_row = IN_A_ROW if self.raw["until_solved"] else UNLIMITED

        def finished(about: dict[str, Any]) -> bool:
            try:
                return is_done(about, steps, episodes, in_a_row)
            except ValueError:
                return False

        return {seed: finished(about) for seed, about in self._about.items()}

    @property
    def stops_early(self) -> bool:
        """Whether a seed may stop before the end of its budget."""
        return bool(self.raw.get("until_solved")) or self.raw.get("stop_at") is not None

    @property
    def stopped(self) -> dict[int, bool]:
        """For each seed, whether it has reached the score at which to stop."""
        return {seed: about.get("stopped") is True for seed, about in self._about.items()}

    @cached_property
    def policies(self) -> list[Conclusion] | None:
        """The trained policy of each seed; None if it is not known, as for a run that has not
        finished since it was extended."""
        abouts = [self._about.get(seed, {}) for seed in self.seeds]
        records = [conclusion_of(about) for about in abouts if "step" in about]
        known = [record for record in records if record is not None]
        finished = all(self.finished.get(seed) for seed in self.seeds)
        return known if finished and len(known) == len(self.seeds) else None

    @property
    def evaluated(self) -> list[list[float]] | None:
        """The scores of the trained policy of each seed; None if they are not known."""
        return None if self.policies is None else [record.scores for record in self.policies]

    @cached_property
    def diverged(self) -> np.ndarray:
        """For each seed, whether it diverged."""
        return np.array([bool(self._about.get(seed, {}).get("diverged")) for seed in self.seeds])

    @cached_property
    def _about(self) -> dict[int, dict[str, Any]]:
        """For each seed, the metadata of its checkpoint; empty if there is none."""
        paths = {seed: self._checkpoint(seed) for seed in self.raw["seeds"]}
        return {
            seed: load_arrays(path, "episodes.length")[1] if path.exists() else {}
            for seed, path in paths.items()
        }

    def arrays(self, seed: int, start: str) -> dict[str, np.ndarray]:
        """Return the arrays of a seed's checkpoint whose names start with `start`; none without a
        checkpoint."""
        path = self._checkpoint(seed)
        return load_arrays(path, start)[0] if path.exists() else {}

    def _checkpoint(self, seed: int) -> Path:
        return self.path / "lanes" / f"seed-{seed}.safetensors"
