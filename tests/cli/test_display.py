"""Lines of progress, where the output is not a terminal."""

import contextlib
import io

import pytest
from rich.console import Console

from rove.cli import display
from rove.runs.configure import configure
from rove.training.progress import Progress


def test_a_lane_whose_first_episode_goes_on_shows_a_dash():
    (job,) = configure("ge", "chain-5", episodes=10).jobs(None)
    output = io.StringIO()
    with display.Live(Console(file=output, width=200), [job]) as live:
        live.report(Progress(job, 7, 0, float("nan"), 100.0, False, float("nan")))
        live.report(Progress(job, 20, 1, 0.25, 100.0, False, float("nan")))
        live.report(Progress(job, 140, 10, 0.5, 100.0, True, float("nan")))
    first, last = output.getvalue().splitlines()  # within 5 seconds, only the end is a line
    assert first.endswith("seed 0: 0 of 10 episodes, return –, 100 steps/s")
    assert last.endswith("seed 0: 10 of 10 episodes, return 0.500, 100 steps/s")


def test_a_line_that_cannot_be_written_costs_no_lane():
    (job,) = configure("ge", "chain-5", episodes=10).jobs(None)
    with open("/dev/full", "w") as full:
        console = Console(file=full, width=200)
        with pytest.raises(OSError, match="No space left"):
            console.print("a line")  # so that the lines below cannot be written either
        with display.Live(console, [job]) as live:
            live.report(Progress(job, 40, 3, 0.5, 100.0, True, float("nan")))
        with contextlib.suppress(OSError):
            full.close()
