"""What people see while lanes run, where there is no terminal."""

import contextlib
import io

from rich.console import Console

from rove.cli import display
from rove.runs.configure import configure
from rove.training.progress import Progress


def test_a_lane_whose_first_episode_goes_on_shows_a_dash():
    (job,) = configure("ge", "chain-5", episodes=10).jobs(None)
    told = io.StringIO()
    with display.Live(Console(file=told, width=200), [job]) as live:
        live.report(Progress(job, 7, 0, float("nan"), 100.0, False, float("nan")))
        live._last_line = -10.0
        live.report(Progress(job, 40, 3, 0.5, 100.0, False, float("nan")))
    assert "seed 0: 0 of 10 episodes, return –, 100 steps/s" in told.getvalue()
    assert "3 of 10 episodes, return 0.500" in told.getvalue()
    assert "nan" not in told.getvalue()


def test_a_line_that_cannot_be_written_costs_no_lane():
    (job,) = configure("ge", "chain-5", episodes=10).jobs(None)
    with open("/dev/full", "w") as full:
        console = Console(file=full, width=200)
        with display.Live(console, [job]) as live:
            live.report(Progress(job, 40, 3, 0.5, 100.0, True, float("nan")))
        with contextlib.suppress(OSError):
            full.close()
