"""What `rove report` is given: run folders, experiment folders and sweep folders."""

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
"""How to call run folders that were given one by one."""
LEVELS = 50
"""The most that a JSON file may have."""
_COLUMNS = ("step", "length", "score", "spread", "return_spread", "coverage")


class NothingYet(RunFolderError):
    """Folders of runs that go on, and none of which has had an episode."""


@dataclass(frozen=True)
class RunData:
    """A run as its folder tells it: no program is compiled, and nothing in it is run."""

    path: Path
    told: dict[str, Any]
    """config.json."""
    columns: dict[int, dict[str, np.ndarray]]
    """For each seed that has an episode, some columns of episodes.csv."""

    @cached_property
    def config(self) -> Config | None:
        """What the run was asked for, unless the agent or environment is a person's own."""
        place = self.told["environment"]
        try:
            given = unmade(place, self._probes) if of_gymnasium(place) else None
            return RunFolder(self.path).config(environment=given)
        except (RoveError, TypeError):
            return None

    @property
    def _probes(self) -> int:
        """In how many states the first lane looked at its beliefs."""
        looked = self.arrays(self.seeds[0], ".snapshots.values") if self.seeds else {}
        return next((array.shape[2] for array in looked.values() if array.ndim == 4), 1)

    @property
    def seeds(self) -> list[int]:
        return list(self.columns)

    @cached_property
    def name(self) -> str:
        """The agent's."""
        if self.config is not None:
            return self.config.agent_name
        agent = self.told["agent"]
        return str(agent.get("name") or agent.get("composition", {}).get("type", "agent"))

    @property
    def environment(self) -> str:
        return str(self.told["environment"]["name"])

    def table(self, column: str) -> np.ndarray:
        """[seeds, episodes]; NaN where a lane had fewer episodes."""
        rows = [columns[column] for columns in self.columns.values()]
        table = np.full((len(rows), max(map(len, rows))), np.nan)
        for row, values in zip(table, rows, strict=True):
            row[: len(values)] = values
        return table

    @cached_property
    def finished(self) -> dict[int, bool]:
        """For each seed, whether its lane is over."""
        return {seed: bool(about.get("finished")) for seed, about in self._about.items()}

    @cached_property
    def diverged(self) -> np.ndarray:
        """[seeds], whether its lane diverged."""
        return np.array(["diverged" in self._about.get(seed, {}) for seed in self.seeds])

    @cached_property
    def _about(self) -> dict[int, dict[str, Any]]:
        """For each seed, what its lane's checkpoint says of itself, if there is one."""
        paths = {seed: self._lane(seed) for seed in self.told["seeds"]}
        return {
            seed: load_arrays(path, "episodes.length")[1] if path.exists() else {}
            for seed, path in paths.items()
        }

    def arrays(self, seed: int, start: str) -> dict[str, np.ndarray]:
        """Some arrays of a lane's checkpoint, if it has one."""
        path = self._lane(seed)
        return load_arrays(path, start)[0] if path.exists() else {}

    def _lane(self, seed: int) -> Path:
        return self.path / "lanes" / f"seed-{seed}.safetensors"


def of_gymnasium(place: Any) -> bool:
    """Whether what config.json tells of an environment names one of Gymnasium's, to make which
    would import its package and run its code."""
    if not isinstance(place, dict):
        return False
    name = str(place.get("name"))
    return name.startswith(PREFIX) or name in ALIASES or any(map(of_gymnasium, place.values()))


def unmade(place: dict[str, Any], probes: int = 1) -> HostEnvironment:
    """An environment of Gymnasium's that is not made: it knows its name, rove's own options, and
    what follows from them."""
    name, options = str(place["name"]), place.get("options") or {}
    shared = ALIASES[name][1] if name in ALIASES else {}
    own = shared | {key: options[key] for key in OWN if key in options}
    return HostEnvironment(Origin(name), 0, 0, np.zeros((probes, 0), np.float32), **own)


@dataclass(frozen=True)
class Source:
    """What belongs together: an experiment, a sweep, or runs that were given one by one."""

    name: str
    path: Path | None = None
    runs: list[RunData] = field(default_factory=list)
    waiting: int = 0
    """Runs that have no episode yet."""
    claims: list[dict[str, str]] = field(default_factory=list)
    sweep: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    """What a sweep's config.json says."""
    picture: bytes | None = None
    """A PNG."""
    held: bool = False
    """Whether a process is at work in its folders."""

    @property
    def finished(self) -> bool:
        """Whether nothing more is to come: all is done, or was left by whoever was at it."""
        over = all(all(run.finished.values()) for run in self.runs) and not self.waiting
        return not self.held or (over and (self.sweep is None or bool(self.sweep.get("finished"))))


def read(paths: Sequence[Path | str]) -> list[Source]:
    """Everything in some folders, or a sentence about what is wrong with them."""
    sources, loose = [], []
    for path in dict.fromkeys(map(Path, paths)):
        if not path.is_dir():
            raise RunFolderError(
                f"{path} is not a folder" if path.exists() else f"there is no folder {path}"
            )
        found = list(_places(path))
        if not found:
            raise RunFolderError(
                f"{path} holds no run: it is no folder of rove train, rove reproduce or rove sweep"
            )
        loose += [place for place in found if _is_run(place)]
        sources += [_source(place) for place in found if not _is_run(place)]
    if loose:
        runs, waiting = _runs(loose)
        held = any(map(_held, loose))
        sources.insert(0, Source(LOOSE, runs=runs, waiting=waiting, held=held))
    if not any(source.runs or source.sweep for source in sources):
        kind = NothingYet if any(source.held for source in sources) else RunFolderError
        raise kind(f"{', '.join(map(str, paths))}: no episode has ended yet")
    return sources


def _held(path: Path) -> bool:
    """Whether a process has claimed a folder, as `RunFolder.open` does."""
    lock = path / ".lock"
    if not lock.exists():
        return False
    try:
        with FileLock(lock, blocking=False):
            return False
    except Timeout:
        return True
    except OSError:  # it cannot be locked, so nobody has
        return False


def _is_run(path: Path) -> bool:
    return (path / "config.json").exists() and not _is_sweep(path)


def _is_sweep(path: Path) -> bool:
    """A sweep's folder has a config.json too, which says so; its results may still be to come."""
    if (path / "sweep.json").exists():
        return True
    try:
        return "sweep" in _json(path / "config.json")
    except (RunFolderError, TypeError):
        return False


def _places(path: Path, depth: int = 2) -> Iterator[Path]:
    """The runs, experiments and sweeps in a folder, or the folder, if it is one."""
    if _is_run(path) or _is_sweep(path) or any((path / "runs").glob("*/config.json")):
        yield path
    elif depth:
        for child in sorted(child for child in path.iterdir() if child.is_dir()):
            yield from _places(child, depth - 1)


def _source(path: Path) -> Source:
    places = sorted(p.parent for p in (path / "runs").glob("*/config.json"))
    runs, waiting = _runs(places)
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
        held=any(map(_held, (path, *places))),
    )


def _config(path: Path) -> dict[str, Any] | None:
    """Of a sweep, if it is there and is one."""
    try:
        told = _json(path)
        return told if isinstance(told["sweep"]["agent"]["settings"], dict) else None
    except (RunFolderError, KeyError, TypeError):
        return None


def _runs(paths: Sequence[Path]) -> tuple[list[RunData], int]:
    """The runs that have an episode, and how many have none."""
    found = [_run(path) for path in paths]
    runs = [run for run in found if run.columns]
    return runs, len(found) - len(runs)


def _run(path: Path) -> RunData:
    _json(path / "config.json")  # is not too deep
    told = RunFolder(path).read()
    try:
        _check(told)
    except (ConfigError, KeyError) as error:
        raise RunFolderError(f"{path / 'config.json'} is not a run of rove: {error}") from None
    return RunData(path, told, _episodes(path / "episodes.csv"))


def _check(told: dict[str, Any]) -> None:
    """Refuse what is no run's configuration, in a field that the report uses."""
    agent, place = (_checked(key, told[key], dict) for key in ("agent", "environment"))
    for key in ("settings", "composition"):
        _checked(key, agent.get(key, {}), dict)
    _checked("name", place["name"], str)
    _checked("options", place["options"], dict)
    for seed in _checked("seeds", told["seeds"], list):
        check_integer("seeds", seed, at_least=0)
    unit = "steps" if told["episodes"] is None else "episodes"
    check_integer(unit, told[unit], at_least=1)


def _checked(field: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ConfigError(field, value, f"a {kind.__name__}")
    return value


def _episodes(path: Path) -> dict[int, dict[str, np.ndarray]]:
    """Some columns of episodes.csv, by seed; nothing, if it is not there yet."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            places = [head.index(name) for name in _COLUMNS]
            seed = head.index("seed")
            by_seed: dict[int, list[list[float]]] = {}
            for row in rows:
                by_seed.setdefault(int(row[seed]), []).append([float(row[i]) for i in places])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from None
    tables = {seed: np.array(rows).T for seed, rows in by_seed.items()}
    return {seed: dict(zip(_COLUMNS, table, strict=True)) for seed, table in tables.items()}


def _json(path: Path) -> Any:
    """A JSON file; None, if there is none."""
    try:
        told = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from None
    if not _shallow(told):
        raise RunFolderError(f"{path} cannot be read: it has more than {LEVELS} levels")
    return told


def _shallow(told: Any, levels: int = LEVELS) -> bool:
    """Whether JSON has few levels, so that whoever goes down them comes back."""
    inner = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    return levels > 0 and all(_shallow(each, levels - 1) for each in inner)


def _claims(path: Path) -> list[dict[str, str]]:
    told = _json(path) or []
    try:
        return [
            {key: str(c[key]) for key in ("text", "evidence", "verdict")}
            | {"after_holm": str(c.get("after_holm", "–"))}
            for c in told
        ]
    except (KeyError, TypeError, AttributeError):
        raise RunFolderError(f"{path} holds no claims as rove writes them") from None


def _sweep(path: Path) -> dict[str, Any] | None:
    told = _json(path)
    if told is None:
        return None
    try:
        fields = {str(name): list(values) for name, values in told["fields"].items()}
        points = [
            {
                "settings": {name: point["settings"][name] for name in fields},
                "scores": _scores(point["scores"]),
                "confirmed": _scores(point.get("confirmed")),
            }
            for point in told["points"]
        ]
        return told | {"fields": fields, "points": points}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFolderError(f"{path} is not a sweep as rove writes it: {error!r}") from None


def _scores(told: list[Any] | None) -> list[float]:
    """Of lanes: −∞ where one diverged, and has null."""
    return [-math.inf if score is None else float(score) for score in told or []]


def _picture(path: Path) -> bytes | None:
    """The figure that an experiment has drawn."""
    drawn = sorted(file for file in path.glob("*.png") if file.is_file())
    return drawn[0].read_bytes() if drawn else None
