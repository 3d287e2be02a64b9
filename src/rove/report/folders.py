"""Reading run folders, experiment folders and sweep folders for `rove report`."""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from rove.environments import ALIASES, HostEnvironment
from rove.environments.host import OWN
from rove.environments.host import Source as Origin
from rove.environments.registered import PREFIX
from rove.errors import ConfigError, RoveError, RunFolderError, check_integer
from rove.runs import Config, RunFolder
from rove.training.checkpoint import load_arrays

LOOSE = "Runs"
"""The title of run folders that belong to no experiment."""
LEVELS = 50
"""Maximum nesting depth of a JSON file."""
_COLUMNS = ("step", "length", "score", "spread", "return_spread", "coverage")


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

    @cached_property
    def config(self) -> Config | None:
        """The configuration of the run; None if the agent or the environment is custom."""
        environment = self.raw["environment"]
        try:
            given = stub(environment, self._probes) if is_gymnasium(environment) else None
            return RunFolder(self.path).config(environment=given)
        except (RoveError, TypeError):
            return None

    @property
    def _probes(self) -> int:
        """Number of states in which the first seed recorded its posterior."""
        snapshots = self.arrays(self.seeds[0], ".snapshots.values") if self.seeds else {}
        return next((array.shape[2] for array in snapshots.values() if array.ndim == 4), 1)

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
        return str(agent.get("name") or agent.get("composition", {}).get("type", "agent"))

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return str(self.raw["environment"]["name"])

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
        return {seed: bool(about.get("finished")) for seed, about in self._about.items()}

    @cached_property
    def diverged(self) -> np.ndarray:
        """For each seed, whether it diverged."""
        return np.array(["diverged" in self._about.get(seed, {}) for seed in self.seeds])

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


def is_gymnasium(entry: Any) -> bool:
    """Whether an environment in config.json is from Gymnasium. Creating such an environment would
    import its package and run its code."""
    if not isinstance(entry, dict):
        return False
    name = str(entry.get("name"))
    return name.startswith(PREFIX) or name in ALIASES or any(map(is_gymnasium, entry.values()))


def stub(entry: dict[str, Any], probes: int = 1) -> HostEnvironment:
    """Return a placeholder for a Gymnasium environment that is not created. It knows its name and
    rove's own options."""
    name, options = str(entry["name"]), entry.get("options") or {}
    shared = ALIASES[name][1] if name in ALIASES else {}
    own = shared | {key: options[key] for key in OWN if key in options}
    return HostEnvironment(Origin(name), 0, 0, np.zeros((probes, 0), np.float32), **own)


@dataclass(frozen=True)
class Source:
    """An experiment, a sweep, or a set of separate runs."""

    name: str
    path: Path | None = None
    runs: list[RunData] = field(default_factory=list)
    waiting: int = 0
    """Number of runs that have not finished an episode yet."""
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


def read(paths: Sequence[Path | str]) -> list[Source]:
    """Read all runs, experiments and sweeps in some folders."""
    sources, loose = [], []
    for path in dict.fromkeys(map(Path, paths)):
        if not path.is_dir():
            raise RunFolderError(
                f"{path} is not a folder" if path.exists() else f"the folder {path} does not exist"
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
        runs, waiting = _runs(loose)
        active = any(map(_is_active, loose))
        sources.insert(0, Source(LOOSE, runs=runs, waiting=waiting, active=active))
    if not any(source.runs or source.sweep for source in sources):
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
        return "sweep" in _json(path / "config.json")
    except (RunFolderError, TypeError):
        return False


def _folders(path: Path, depth: int = 2) -> Iterator[Path]:
    """Yield the folder if it is a run, an experiment or a sweep, and otherwise those inside it."""
    if _is_run(path) or _is_sweep(path) or any((path / "runs").glob("*/config.json")):
        yield path
    elif depth:
        for child in sorted(child for child in path.iterdir() if child.is_dir()):
            yield from _folders(child, depth - 1)


def _source(path: Path) -> Source:
    """Read the folder of an experiment or a sweep."""
    folders = sorted(p.parent for p in (path / "runs").glob("*/config.json"))
    runs, waiting = _runs(folders)
    name = path.resolve().name
    return Source(
        name=name,
        path=path,
        runs=[] if (path / "sweep.json").exists() else runs,
        waiting=waiting,
        claims=_claims(path / "claims.json"),
        sweep=_sweep(path / "sweep.json"),
        config=_config(path / "config.json"),
        picture=_picture(path),
        active=any(map(_is_active, (path, *folders))),
    )


def _config(path: Path) -> dict[str, Any] | None:
    """Return the content of a sweep's config.json; None if it is missing or not a sweep."""
    try:
        raw = _json(path)
        return raw if isinstance(raw["sweep"]["agent"]["settings"], dict) else None
    except (RunFolderError, KeyError, TypeError):
        return None


def _runs(paths: Sequence[Path]) -> tuple[list[RunData], int]:
    """Return the runs that have finished an episode, and the number of those that have not."""
    every = [_run(path) for path in paths]
    runs = [run for run in every if run.columns]
    return runs, len(every) - len(runs)


def _run(path: Path) -> RunData:
    """Read a run folder."""
    _json(path / "config.json")  # checks the nesting depth
    raw = RunFolder(path).read()
    try:
        _check(raw)
    except (ConfigError, KeyError) as error:
        file = path / "config.json"
        raise RunFolderError(f"{file} is not the configuration of a run: {error}") from None
    return RunData(path, raw, _episodes(path / "episodes.csv"))


def _check(raw: dict[str, Any]) -> None:
    """Validate the fields of a run's configuration that the report uses."""
    agent, environment = (_checked(key, raw[key], dict) for key in ("agent", "environment"))
    for key in ("settings", "composition"):
        _checked(key, agent.get(key, {}), dict)
    _checked("name", environment["name"], str)
    _checked("options", environment["options"], dict)
    for seed in _checked("seeds", raw["seeds"], list):
        check_integer("seeds", seed, at_least=0)
    unit = "steps" if raw["episodes"] is None else "episodes"
    check_integer(unit, raw[unit], at_least=1)


def _checked(field: str, value: Any, kind: type) -> Any:
    """Return a value of the right type, or raise `ConfigError`."""
    if not isinstance(value, kind):
        raise ConfigError(field, value, f"a {kind.__name__}")
    return value


def _episodes(path: Path) -> dict[int, dict[str, np.ndarray]]:
    """Read some columns of episodes.csv, by seed; empty if the file does not exist yet."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            indices = [head.index(name) for name in _COLUMNS]
            seed = head.index("seed")
            by_seed: dict[int, list[list[float]]] = {}
            for row in rows:
                by_seed.setdefault(int(row[seed]), []).append([float(row[i]) for i in indices])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from None
    tables = {seed: np.array(rows).T for seed, rows in by_seed.items()}
    return {seed: dict(zip(_COLUMNS, table, strict=True)) for seed, table in tables.items()}


def _json(path: Path) -> Any:
    """Read a JSON file; None if it does not exist."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from None
    if not _shallow(content):
        raise RunFolderError(f"{path} cannot be read: it is nested deeper than {LEVELS} levels")
    return content


def _shallow(value: Any, levels: int = LEVELS) -> bool:
    """Whether JSON is nested at most `levels` deep, so that recursion over it is safe."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_shallow(child, levels - 1) for child in inner)


def _claims(path: Path) -> list[dict[str, str]]:
    """Read claims.json; empty if it does not exist."""
    content = _json(path) or []
    try:
        return [
            {key: str(c[key]) for key in ("text", "evidence", "verdict")}
            | {"after_holm": str(c.get("after_holm", "–"))}
            for c in content
        ]
    except (KeyError, TypeError, AttributeError):
        raise RunFolderError(f"{path} is not a list of claims written by rove") from None


def _sweep(path: Path) -> dict[str, Any] | None:
    """Read sweep.json; None if it does not exist."""
    content = _json(path)
    if content is None:
        return None
    try:
        fields = {str(name): list(values) for name, values in content["fields"].items()}
        points = [
            {
                "settings": {name: point["settings"][name] for name in fields},
                "scores": _scores(point["scores"]),
                "confirmed": _scores(point.get("confirmed")),
            }
            for point in content["points"]
        ]
        return content | {"fields": fields, "points": points}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFolderError(f"{path} is not a sweep written by rove: {error!r}") from None


def _scores(values: list[Any] | None) -> list[float]:
    """Return scores, with −∞ for null, the score of a diverged seed."""
    return [-math.inf if score is None else float(score) for score in values or []]


def _picture(path: Path) -> bytes | None:
    """Read the figure of an experiment."""
    drawn = sorted(file for file in path.glob("*.png") if file.is_file())
    return drawn[0].read_bytes() if drawn else None
