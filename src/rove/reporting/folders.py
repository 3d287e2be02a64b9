"""Reading run folders, experiment folders and sweep folders for `rove report`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rove.errors import ConfigError, RunFolderError
from rove.reporting.files import (
    check_run,
    read_claims,
    read_episodes,
    read_errors,
    read_evaluations,
    read_json,
    read_picture,
    read_sweep,
    sweep_config,
)
from rove.reporting.run_data import RunData
from rove.runs.folder import RunFolder
from rove.runs.recorded import RecordedTask, check_facts

LOOSE = "Runs"
"""The title of run folders that belong to no experiment."""


class NothingYet(RunFolderError):
    """The folders contain only runs in progress that have not finished an episode yet."""


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
    contents = _runs(folders)
    if (path / "sweep.json").exists():
        contents["runs"] = []
    name = path.resolve().name
    return Results(
        name=name,
        path=path,
        **contents,
        claims=read_claims(path / "claims.json"),
        sweep=read_sweep(path / "sweep.json"),
        config=sweep_config(path / "config.json"),
        picture=read_picture(path),
        active=any(map(_is_active, (path, *folders))),
    )


def _runs(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the runs that have finished an episode, those that failed before that, and the number
    of the others."""
    all_runs = [_run(path) for path in paths]
    runs = [run for run in all_runs if run.columns]
    failed = [run for run in all_runs if run.errors and not run.columns]
    return {"runs": runs, "failed": failed, "waiting": len(all_runs) - len(runs) - len(failed)}


def _run(path: Path) -> RunData:
    """Read a run folder."""
    read_json(path / "config.json")  # checks the nesting depth
    raw = RunFolder(path).read()
    try:
        check_run(raw)
        check_facts(raw.get("task") or {})
        RecordedTask(raw)  # checks what the environment's options say of it
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        file = path / "config.json"
        raise RunFolderError(f"{file} is not the configuration of a run: {error}") from None
    errors = read_errors(path / "errors.json")
    tables = read_episodes(path / "episodes.csv"), read_evaluations(path / "evaluations.csv")
    return RunData(path, raw, *tables, errors)
