"""`rove report`: show run, experiment and sweep folders in one HTML file that works offline."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rove.errors import RunFolderError
from rove.parts.files import publish
from rove.report.data import report_data
from rove.report.folders import NothingYet, read
from rove.report.page import page

UPDATE_PERIOD = 5.0
"""Minimum seconds between two updates in `follow`."""


def write(paths: Sequence[Path | str], out: Path | str = "report.html") -> Path:
    """Write a report of run, experiment and sweep folders to one HTML file.

    **Example**
    >>> for agent in ("ge", "dqn"):
    ...     run = rove.train(agent, "chain-10", episodes=20, out=f"runs/{agent}")
    >>> path = rove.report.write(["runs/ge", "runs/dqn"], "report.html")
    """
    _write(paths, Path(out))
    return Path(out)


def follow(
    paths: Sequence[Path | str],
    out: Path | str = "report.html",
    every: float = UPDATE_PERIOD,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Write a report repeatedly until all runs have finished; a page that is open in a browser
    reloads itself.

    **Arguments**
    - `paths`: run, experiment and sweep folders.
    - `out`: the .html file to write.
    - `every`: the minimum number of seconds between two updates.
    - `say`: called with a message after each update, or while there is nothing to show yet.
    """
    finished = False
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
    return write(paths, out)


def _write(paths: Sequence[Path | str], out: Path, every: float | None = None) -> bool:
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
