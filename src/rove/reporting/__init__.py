"""`rove report`: show run, experiment and sweep folders in one HTML file that works offline."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from rove.errors import ConfigError, RunFolderError, as_path
from rove.parts.files import publish
from rove.reporting.data import report_data
from rove.reporting.folders import NothingYet, read
from rove.reporting.page import page
from rove.runs.result import Run

Folders: TypeAlias = str | Path | Run | Sequence[str | Path | Run]
"""One or more folders, or runs that have a folder."""
UPDATE_PERIOD = 5.0
"""Minimum seconds between two updates in `follow`."""


def report(folders: Folders, out: Path | str = "report.html") -> Path:
    """Write a report of runs, experiments and sweeps to one HTML file, and return its path.

    **Arguments**
    - `folders`: one or more folders that contain results, or runs that were saved to a folder.
    - `out`: the .html file to write.

    **Example**
    >>> for agent in ("ge", "dqn"):
    ...     run = rove.train(agent, "chain-10", episodes=20, out=f"runs/{agent}")
    >>> path = rove.report("runs", out="report.html")
    """
    _write(_paths(folders), as_path("out", out))
    return Path(out)


def follow(
    folders: Folders,
    out: Path | str = "report.html",
    every: float = UPDATE_PERIOD,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Write a report repeatedly until all runs have finished; a page that is open in a browser
    reloads itself.

    **Arguments**
    - `folders`: as in `report`.
    - `out`: the .html file to write.
    - `every`: the minimum number of seconds between two updates.
    - `say`: called with a message after each update, or while there is nothing to show yet.
    """
    paths, finished = _paths(folders), False
    while not finished:
        began = time.monotonic()
        try:
            finished = _write(paths, Path(out), every)
            say(f"written to {out}")
        except NothingYet as error:
            say(str(error))
        if not finished:
            # A large report takes long to write: leave most of the time to the runs.
            time.sleep(max(every, 4 * (time.monotonic() - began)))
    return report(paths, out)


def _paths(folders: Folders) -> list[Path]:
    """Return the paths of folders and runs."""
    listed = [folders] if isinstance(folders, str | os.PathLike | Run) else folders
    if not isinstance(listed, Sequence) or not listed:
        raise ConfigError.must_be("folders", folders, "one or more folders or runs")
    for run in listed:
        if isinstance(run, Run) and run.path is None:
            allowed = "saved to a folder first: run.save(), or rove.train(..., out=FOLDER)"
            raise ConfigError.must_be("every run", run, allowed)
    paths = [run.path if isinstance(run, Run) else as_path("folders", run) for run in listed]
    return [path for path in paths if path is not None]


def _write(paths: Sequence[Path], out: Path, every: float | None = None) -> bool:
    """Write a report; return whether everything in it has finished."""
    if out.is_dir():
        raise RunFolderError(f"{out} is a folder; out must be the path of an .html file")
    if out.suffix.lower() not in (".html", ".htm"):
        raise RunFolderError(f"{out} is not an .html file; out must be the path of one")
    sources = read(paths)
    names = ", ".join(Path(path).resolve().name for path in paths)
    data = report_data(sources, names) | {"follow": every}
    # The name of a folder might not be valid Unicode; escapes are valid in JSON.
    publish(out, page(data).encode(errors="backslashreplace"))
    return all(source.finished for source in sources)
