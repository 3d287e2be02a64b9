"""The report: run folders to one HTML file that opens offline."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rove.errors import RunFolderError
from rove.report.data import whole
from rove.report.folders import NothingYet, read
from rove.report.page import page
from rove.training.checkpoint import publish

EVERY = 5.0
"""Seconds between two looks at folders that are followed."""


def write(paths: Sequence[Path | str], out: Path | str = "report.html") -> Path:
    """Write a report of run, experiment and sweep folders to one HTML file.

    **Example**
    >>> rove.report.write(["runs/ge-chain-10", "runs/dqn-chain-10"], "report.html")
    """
    _write(paths, Path(out))
    return Path(out)


def follow(
    paths: Sequence[Path | str],
    out: Path | str = "report.html",
    every: float = EVERY,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """The same, again and again until its runs are over; a page that is open reloads itself."""
    over = False
    while not over:
        began = time.monotonic()
        try:
            over = _write(paths, Path(out), every)
            say(f"written to {out}")
        except NothingYet as error:
            say(str(error))
        if not over:
            # A large report takes long to make: leave most of the time to the runs.
            time.sleep(max(every, 4 * (time.monotonic() - began)))
    return write(paths, out)


def _write(paths: Sequence[Path | str], out: Path, every: float | None = None) -> bool:
    """Write it; whether everything in it is over."""
    if out.is_dir():
        raise RunFolderError(f"{out} is a folder: give --out the name of a file")
    if out.suffix.lower() not in (".html", ".htm"):
        raise RunFolderError(f"{out}: give --out the name of an .html file")
    sources = read(paths)
    title = ", ".join(Path(path).resolve().name for path in paths)
    told = whole(sources, title) | {"follow": every}
    # A name that is no Unicode, as a folder's may be, is a legal escape in JSON.
    publish(out, page(told).encode(errors="backslashreplace"))
    return all(source.finished for source in sources)
