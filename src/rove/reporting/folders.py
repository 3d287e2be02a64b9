"""Reading run folders, experiment folders and sweep folders for `rove report`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from rove.environments import Task
from rove.errors import ConfigError, RoveError, RunFolderError
from rove.reporting.files import (
    check_run,
    is_gymnasium,
    read_claims,
    read_episodes,
    read_errors,
    read_greedy,
    read_json,
    read_picture,
    read_sweep,
    sweep_config,
)
from rove.runs.config import Config, environment_from
from rove.runs.folder import RunFolder
from rove.runs.recorded import RecordedTask, check_facts
from rove.training.checkpoint import load_arrays
from rove.training.outcomes import UNLIMITED
from rove.training.solving import IN_A_ROW
from rove.training.storage import is_done

LOOSE = "Runs"
"""The title of run folders that belong to no experiment."""


class NothingYet(RunFolderError):
    """The folders contain only runs in progress that have not finished an episode yet."""


@dataclass(frozen=True)
class RunData:
    """The content of a run folder, read without compiling or running anything."""

    path: Path
    raw: dict[str, Any]
    """The content of config.json."""
    columns: dict[int, dict[str, np.ndarray]]
    """Some columns of episodes.csv, for each seed that has finished an episode."""

    errors: dict[int, str] = field(default_factory=dict)
    """The errors of the seeds that failed, by seed."""

    greedy_scores: dict[int, float] = field(default_factory=dict)
    """The greedy scores in diagnostics.json, by seed."""

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
        own = " × ".join(types) or self.composition.get("type", "agent")  # as Learner.name
        return str(agent.get("name") or own)

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

    @cached_property
    def greedy(self) -> np.ndarray | None:
        """The score of the greedy policy of each seed; None if it is not known, as for a run that
        has not finished since it was extended."""
        known = all(self.finished.get(s) and s in self.greedy_scores for s in self.seeds)
        return np.array([self.greedy_scores[s] for s in self.seeds]) if known else None

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


@dataclass(frozen=True)
class Results:
    """An experiment, a sweep, or a set of separate runs."""

    name: str
    path: Path | None = None
    runs: list[RunData] = field(default_factory=list)
    waiting: int = 0
    """Number of runs that have not finished an episode yet."""
    failed: list[RunData] = field(default_factory=list)
    """Runs that failed before they finished an episode."""
    claims: list[dict[str, str]] = field(default_factory=list)
    sweep: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    """The content of a sweep's config.json."""
    picture: bytes | None = None
    """The figure of an experiment, as PNG."""
    active: bool = False
    """Whether a process is working in its folders."""

    @property
    def finished(self) -> bool:
        """Whether no more results will come: everything is done, or no process works on it."""
        done = all(all(run.finished.values()) for run in self.runs) and not self.waiting
        swept = self.sweep is None or bool(self.sweep.get("finished"))
        return not self.active or (done and swept)


def read(paths: Sequence[Path | str]) -> list[Results]:
    """Read all runs, experiments and sweeps in some folders."""
    sources, loose = [], []
    for path in dict.fromkeys(map(Path, paths)):
        if not path.is_dir():
            problem = f"{path} is not a folder" if path.exists() else f"{path} does not exist"
            raise RunFolderError(
                f"{problem}; give a folder written by rove train, sweep or reproduce"
            )
        folders = list(_folders(path))
        if not folders:
            raise RunFolderError(
                f"{path} contains no results; give a folder written by rove train, rove sweep or "
                "rove reproduce"
            )
        loose += [folder for folder in folders if _is_run(folder)]
        sources += [_source(folder) for folder in folders if not _is_run(folder)]
    if loose:
        active = any(map(_is_active, loose))
        sources.insert(0, Results(LOOSE, **_runs(loose), active=active))
    if not any(source.runs or source.sweep or source.failed for source in sources):
        kind = NothingYet if any(source.active for source in sources) else RunFolderError
        raise kind(f"{', '.join(map(str, paths))}: no episode has ended yet")
    return sources


def _is_active(path: Path) -> bool:
    """Whether a process has locked a folder with `RunFolder.open`."""
    lock = path / ".lock"
    if not lock.exists():
        return False
    try:
        with FileLock(lock, blocking=False):
            return False
    except Timeout:
        return True
    except OSError:  # it cannot be locked, so nobody has locked it
        return False


def _is_run(path: Path) -> bool:
    return (path / "config.json").exists() and not _is_sweep(path)


def _is_sweep(path: Path) -> bool:
    """Whether a folder holds a sweep: by its results or, before there are any, by its
    config.json."""
    if (path / "sweep.json").exists():
        return True
    try:
        return "sweep" in read_json(path / "config.json")
    except (RunFolderError, TypeError):
        return False


def _folders(path: Path, depth: int = 2) -> Iterator[Path]:
    """Yield the folder if it is a run, an experiment or a sweep, and otherwise those inside it."""
    if _is_run(path) or _is_sweep(path) or any((path / "runs").glob("*/config.json")):
        yield path
    elif depth:
        for child in sorted(child for child in path.iterdir() if child.is_dir()):
            yield from _folders(child, depth - 1)


def _source(path: Path) -> Results:
    """Read the folder of an experiment or a sweep."""
    folders = sorted(p.parent for p in (path / "runs").glob("*/config.json"))
    found = _runs(folders)
    if (path / "sweep.json").exists():
        found["runs"] = []
    name = path.resolve().name
    return Results(
        name=name,
        path=path,
        **found,
        claims=read_claims(path / "claims.json"),
        sweep=read_sweep(path / "sweep.json"),
        config=sweep_config(path / "config.json"),
        picture=read_picture(path),
        active=any(map(_is_active, (path, *folders))),
    )


def _runs(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the runs that have finished an episode, those that failed before, and the number of
    those that are still waited for."""
    every = [_run(path) for path in paths]
    runs = [run for run in every if run.columns]
    failed = [run for run in every if run.errors and not run.columns]
    return {"runs": runs, "failed": failed, "waiting": len(every) - len(runs) - len(failed)}


def _run(path: Path) -> RunData:
    """Read a run folder."""
    read_json(path / "config.json")  # checks the nesting depth
    raw = RunFolder(path).read()
    try:
        check_run(raw)
        check_facts(raw.get("task") or {})
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        file = path / "config.json"
        raise RunFolderError(f"{file} is not the configuration of a run: {error}") from None
    errors = read_errors(path / "errors.json")
    greedy = read_greedy(path / "diagnostics.json")
    return RunData(path, raw, read_episodes(path / "episodes.csv"), errors, greedy)
