"""`rove demo`."""

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from rove.cli.console import console, optional, prose, say
from rove.parts import platform
from rove.runs.live import Live


def demo(
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("demo"),
    workers: Annotated[int | None, optional("N", "one per core")] = None,
) -> None:
    """Train five agents on two tasks that ε-greedy agents fail, and write a page that shows why.

    Args:
        out: Folder for the runs and the page; running the command again resumes from it.
        workers: Number of seeds to train at the same time.
    """
    from rove.reporting import demo as demonstration

    platform.prepare(lanes=1)  # the seeds train in worker processes
    began = time.monotonic()
    # After `make demo`, rove is in a virtual environment that may not be active.
    rove = "rove" if shutil.which("rove") else os.path.relpath(sys.argv[0])
    rove = "python -m rove" if rove.endswith("__main__.py") else rove
    jobs = [job for config in demonstration.configs() for job in config.jobs(None)]
    with Live(console, jobs) as bars:
        rows = demonstration.run(out, bars.report, workers, rove)
    table = Table(box=None, padding=(0, 1))
    for name in demonstration.HEAD:
        table.add_column(
            name.replace(" ", "\n"),
            vertical="bottom",
            justify="left" if name in ("task", "agent") else "right",
        )
    for row in rows:
        table.add_row(*demonstration.cells(row))
    say("")
    console.print(table)
    say(f"\n{demonstration.sentence(rows)}")
    prose(console, demonstration.NOTE)
    say(f"Page: {out / 'index.html'} ({time.monotonic() - began:.0f} s). Try next:")
    width = max(len(command) for command, _ in demonstration.NEXT) + len(rove) + 1
    for command, purpose in demonstration.NEXT:
        say(f"  {f'{rove} {command}':<{width}}  {purpose}")
