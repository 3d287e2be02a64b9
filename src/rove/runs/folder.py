"""The run folder: config.json, episodes.csv, one checkpoint per seed, and errors.json."""

import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from rove.agents.settings import Settings
from rove.core.learner import Learner
from rove.environments import Task
from rove.errors import ConfigError, RunFolderError, check_flag, check_integer
from rove.parts.files import publish, read_text
from rove.runs.config import (
    EXTENDABLE,
    OPTIONAL,
    Config,
    agent_from,
    check_optional,
    environment_from,
    with_network,
)
from rove.runs.extending import budget, extends, first_difference
from rove.runs.recorded import RecordedTask, check_facts, check_parts, facts_of
from rove.runs.tables import episodes_csv, evaluations_csv, read_scores
from rove.training.outcomes import UNLIMITED, Job, Tables

SCHEMA = 3
_PACKAGES = ("rove", "jax", "jaxlib", "equinox", "optax", "numpy")


class Identified(Protocol):
    """Anything that a run folder can be claimed for, such as a `Config` or a sweep."""

    def identity(self) -> dict[str, Any]:
        """Return, as JSON, all that distinguishes it from others."""
        ...


class DifferentRun(RunFolderError):
    """A folder contains a run that is neither the expected one nor one that it extends."""

    def __init__(self, path: Path, content: str):
        self.content = content
        super().__init__(f"{path} contains {content}. Choose another output folder")


class RunFolder:
    """A folder that contains one run, and refuses any other."""

    def __init__(self, path: Path | str, config: str = "config.json"):
        self.path = Path(path)
        self._config = self.path / config

    @contextmanager
    def open(
        self,
        config: Identified,
        extendable: bool = False,
        task: Task | None = None,
        delivers: bool = False,
    ) -> Iterator[None]:
        """Claim and lock the folder for a run, which is new, resumed from it, or extended.

        A folder that contains anything else is refused, and left unchanged. `extendable`: whether
        checkpoints of finished seeds contain all that is needed to train further. `task`: the
        environment, which is described in config.json for reports. `delivers`: see `Config`.
        """
        identity = config.identity()
        lock = FileLock(self.path / ".lock", blocking=False)
        created = [path for path in (self.path, *self.path.parents) if not path.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._contains(identity)
            lock.acquire()
        except (Timeout, OSError, RunFolderError) as error:
            for path in created:  # leave nothing behind
                with suppress(OSError):
                    path.rmdir()
            raise self._refused(error) from None
        try:
            if not self._contains(identity):  # checked again, now that the lock is acquired
                self._claim(identity, extendable, task, delivers)
            elif task is not None:
                self._restate(task)
            yield
            if not (self.path / "config.json").exists():  # the folder was deleted meanwhile
                self._claim(identity, extendable, task, delivers)
        finally:
            lock.release()

    def _refused(self, error: Exception) -> RunFolderError:
        """Convert the reason why a folder cannot be claimed."""
        if isinstance(error, RunFolderError):
            return error
        if isinstance(error, Timeout):
            return RunFolderError(
                f"{self.path} is in use by another process; wait for it, or use another folder"
            )
        if isinstance(error, FileExistsError):
            return RunFolderError(f"{self.path} is a file; give a folder")
        reason = error.strerror if isinstance(error, OSError) else error
        return RunFolderError(f"cannot write to {self.path} ({reason}); use another folder")

    def check(self, config: Identified) -> None:
        """Raise `RunFolderError` if the folder contains anything else than this run, or one that it
        extends."""
        if self.path.is_dir():
            self._contains(config.identity())

    def _contains(self, identity: dict[str, Any]) -> bool:
        """Whether the folder contains this run already. Raises `RunFolderError` if it contains
        anything else than a run that this one extends."""
        for name in ("lanes", "points", "confirmed"):
            if (self.path / name).is_symlink():
                raise RunFolderError(f"{self.path / name} is a symbolic link; remove it")
        if (self.path / "config.json").exists():
            existing = self.read()
            differing = [key for key in identity if existing.get(key) != identity[key]]
            if not differing:
                return True
            if extends(identity, existing, differing):
                return False
            here, there = ("sweep" if "sweep" in x else "run" for x in (identity, existing))
            content = f"a {there}, not a {here}"
            if here == there:
                content = f"a different {here}: {first_difference(existing, identity)}"
            raise DifferentRun(self.path, content)
        # A run that was killed before it wrote config.json leaves at most these files.
        leftovers = {".lock", "config.json.partial"}
        others = [p.name for p in self.path.iterdir() if p.name not in leftovers]
        if others:
            raise RunFolderError(
                f"{self.path} is not empty and contains no rove run (it contains {others[0]}). "
                "Choose another output folder"
            )
        return False

    def _claim(
        self, identity: dict[str, Any], extendable: bool, task: Task | None, delivers: bool
    ) -> None:
        """Write config.json, including the earlier budgets and versions of an extended run."""
        versions: dict[str, Any] = {name: metadata.version(name) for name in _PACKAGES}
        versions["python"] = platform.python_version()
        about = {"schema": SCHEMA, **identity, "extendable": extendable, "versions": versions}
        about |= {"delivers": delivers}
        about |= {} if task is None else {"task": facts_of(task)}
        if (self.path / "config.json").exists():
            before = self.read()
            grown = any(before.get(key) != identity.get(key) for key in EXTENDABLE)
            history = before.get("extended_from")
            history = history if isinstance(history, list) else []
            about["extended_from"] = history + [budget(before)] * grown
        publish(self.path / "config.json", (json.dumps(about, indent=2) + "\n").encode())

    def _restate(self, task: Task) -> None:
        """Update what config.json says about the environment, so that workers, which trust it,
        create the one that the user gave."""
        contents, facts = self.read(), facts_of(task)
        if contents.get("task") != facts:
            text = json.dumps(contents | {"task": facts}, indent=2) + "\n"
            publish(self.path / "config.json", text.encode())

    def read(self) -> dict[str, Any]:
        """Return the contents of config.json."""
        path = self._config
        try:
            contents = json.loads(read_text(path))
        except FileNotFoundError:
            if not self.path.exists():
                raise RunFolderError(
                    f"the folder {self.path} does not exist; give a folder written by rove train"
                ) from None
            inside = sorted(p.parent for p in self.path.glob("*/config.json"))
            hint = "give a folder written by rove train, such as runs/ge-chain-10"
            if inside:
                more = f" or {len(inside) - 3} more" * (len(inside) > 3)
                hint = f"give one of the folders inside: {', '.join(map(str, inside[:3]))}{more}"
            raise RunFolderError(
                f"{self.path} contains no run: config.json is missing; {hint}"
            ) from None
        except NotADirectoryError:
            raise RunFolderError(f"{self.path} is a file, not a run folder") from None
        except (OSError, ValueError, RecursionError) as error:
            raise RunFolderError(f"{path} cannot be read: {error}") from None
        if not isinstance(contents, dict) or "schema" not in contents:
            raise RunFolderError(f"{path} was not written by rove")
        if contents["schema"] != SCHEMA:
            raise RunFolderError(
                f"{path} was written by another version of rove (format {contents['schema']!r}; "
                f"this version reads format {SCHEMA}). Use that version, or train again"
            )
        return contents

    def check_same(self, config: Config) -> None:
        """Raise `RunFolderError` if the agent or the environment of a configuration is not that of
        the run in this folder; the facts that may be stated later may differ."""
        identity, existing = config.identity(), self.read()
        compared = [key for key in ("agent", "environment") if existing.get(key) != identity[key]]
        if compared:
            there, here = ({key: x.get(key) for key in compared} for x in (existing, identity))
            difference = first_difference(there, here)
            raise RunFolderError(f"{self.path} contains a different run: {difference}")

    def config(
        self,
        agent: Settings | Learner | None = None,
        environment: Task | None = None,
        trust: bool = False,
        recorded: bool = False,
    ) -> Config:
        """Return the run's configuration.

        A custom agent or environment cannot be rebuilt from JSON and has to be passed in. `trust`:
        whether to import the package that the environment is from. `recorded`: whether an
        environment that cannot be rebuilt is replaced by what is recorded about it.
        """
        contents = self.read()
        if "sweep" in contents:
            raise RunFolderError(
                f"{self.path} contains a sweep; its runs are in the folders points and confirmed"
            )
        try:
            check_parts(contents)
            _check_budget(contents)
            check_facts(contents.get("task") or {})
            rebuild = self._task if recorded else environment_from
            task = environment or rebuild(contents, trust)
            return Config(
                agent=with_network(agent or agent_from(contents["agent"]), task),
                environment=task,
                seeds=_seeds(contents["seeds"]),
                episodes=contents["episodes"],
                steps=contents["steps"],
                until_solved=contents["until_solved"],
                **{name: contents.get(name) for name in OPTIONAL},
                extendable=contents["extendable"],
                delivers=contents.get("delivers", False),
            )
        except KeyError as error:
            raise RunFolderError(f"{self._config} is invalid: {error} is missing") from None
        except (TypeError, AttributeError, ValueError) as error:
            raise RunFolderError(f"{self._config} is invalid: {error}") from None

    def _task(self, contents: dict[str, Any], trust: bool) -> Task:
        """Return the environment or, if it cannot be rebuilt, what is recorded about it."""
        try:
            return environment_from(contents, trust)
        except RunFolderError as error:
            if "observation_size" not in (contents.get("task") or {}):
                raise
            return RecordedTask(contents, str(error), read_scores(self.path / "episodes.csv"))

    def write_tables(self, config: Config, tables: Mapping[int, Tables]) -> None:
        """Write episodes.csv and, if there are evaluations, evaluations.csv from the current tables
        of each seed."""
        runs = [(config, seed, table.episodes) for seed, table in tables.items()]
        publish(self.path / "episodes.csv", episodes_csv(runs).encode())
        if config.eval_every:
            evaluations = {seed: table.evaluations for seed, table in tables.items()}
            text = evaluations_csv(config, evaluations)
            publish(self.path / "evaluations.csv", text.encode())

    def write_errors(self, errors: Mapping[int, str]) -> None:
        """Write the errors of the seeds that failed to errors.json; remove it if there are none."""
        path = self.path / "errors.json"
        if errors:
            publish(path, (json.dumps(errors, indent=2) + "\n").encode())
        else:
            path.unlink(missing_ok=True)


def _check_budget(contents: dict[str, Any]) -> None:
    """Raise `ConfigError` or `KeyError` unless the budget in a config.json is valid."""
    unit, other = ("steps", "episodes") if contents["episodes"] is None else ("episodes", "steps")
    check_integer(unit, contents[unit], at_least=1, at_most=UNLIMITED - 1)
    if contents[other] is not None:
        raise ConfigError.must_be(other, contents[other], "null")
    check_flag("until_solved", contents["until_solved"])
    check_optional(*(contents.get(name) for name in OPTIONAL))
    check_flag("extendable", contents["extendable"])
    check_flag("delivers", contents.get("delivers", False))


def _seeds(values: Any) -> tuple[int, ...]:
    """Return the seeds of a config.json; raise `ConfigError` if they are not numbers."""
    if not isinstance(values, list) or not values:
        raise ConfigError.must_be("seeds", values, "a list of seeds")
    for seed in values:
        check_integer("seeds", seed, at_least=0, at_most=2**31 - 1)
    return tuple(values)


def read_config(path: Path, trust: bool = False) -> Config:
    """Return the configuration in a run folder, or in a file such as its config.json."""
    folder = RunFolder(path.parent, path.name) if path.is_file() else RunFolder(path)
    return folder.config(trust=trust)


def jobs_in(path: Path) -> list[Job]:
    """Return the jobs of the run in a folder that is being trained, whose environment the process
    that trains it has already created."""
    return RunFolder(path).config(trust=True).jobs(path)
