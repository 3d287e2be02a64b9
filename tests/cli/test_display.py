"""The live display: rows in a terminal, lines where the output is none."""

import contextlib
import dataclasses
import io
import re

import pytest
from rich.console import Console

import rove
from rove.runs import live
from rove.runs.configure import configure
from rove.training.progress import Progress


def test_a_seed_whose_first_episode_goes_on_has_no_score():
    (job,) = configure("ge", "chain-5", episodes=10).jobs(None)
    output = io.StringIO()
    with live.Live(Console(file=output, width=200), [job]) as shown:
        shown.report(Progress(job, 7, 0, float("nan"), 100.0, False, float("nan")))
        shown.report(Progress(job, 20, 1, 0.25, 100.0, False, float("nan")))
        shown.report(Progress(job, 140, 10, 0.5, 100.0, True, float("nan")))
    begun, first, last = output.getvalue().splitlines()  # within 5 seconds, only the end is a line
    assert begun == "ge on chain-5: starting (compiling takes about 10 s the first time)"
    assert first.endswith("seed 0: 0 of 10 episodes, 100 steps/s")
    assert last.endswith("seed 0: 10 of 10 episodes, return 0.500 of 11, 100 steps/s")


def test_a_line_that_cannot_be_written_costs_no_lane():
    (job,) = configure("ge", "chain-5", episodes=10).jobs(None)
    with open("/dev/full", "w") as full:
        console = Console(file=full, width=200)
        with pytest.raises(OSError, match="No space left"):
            console.print("a line")  # so that the lines below cannot be written either
        with live.Live(console, [job]) as shown:
            shown.report(Progress(job, 40, 3, 0.5, 100.0, True, float("nan")))
        with contextlib.suppress(OSError):
            full.close()


def terminal(width):
    return Console(file=io.StringIO(), width=width, force_terminal=True, legacy_windows=False)


def last_screen(console):
    """The rows as they were drawn last, without colours."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())
    return [line.rstrip() for line in text.replace("\r", "\n").splitlines() if line.strip()]


@pytest.mark.parametrize("width", [80, 120])
def test_rows_tell_waiting_seeds_from_running_ones_and_fit_the_terminal(width):
    jobs = configure("ge", "chain-100", seeds=3, episodes=250).jobs(None)
    console = terminal(width)
    with live.Live(console, jobs) as shown:
        shown._progress.refresh()
        assert any("total" in line and live.COMPILING in line for line in last_screen(console))
        shown.report(Progress(jobs[0], 0, 0, float("nan"), 0.0, False, float("nan")))
        shown._progress.refresh()
        assert any(re.search("seed 0 .* starting", line) for line in last_screen(console))
        shown.report(Progress(jobs[0], 13_625, 125, 10.9876, 23_456.0, False, 0.1))
    *_, first, second, third, total = last_screen(console)
    assert re.fullmatch(r"seed 0 .* 125/250 return 10.988 of 11, 23,456 steps/s", first)
    assert re.fullmatch(r"seed 1 .* waiting", second)
    assert re.fullmatch(r"seed 2 .* waiting", third)
    assert re.match(r"total .* 17%", total)
    assert max(map(len, last_screen(console))) <= width


def test_many_seeds_share_a_row(capsys):
    jobs = configure("dqn", "chain-5", seeds=20, episodes=10).jobs(None)
    console = terminal(80)
    with live.Live(console, jobs) as shown:
        for job in jobs[:5]:
            shown.report(Progress(job, 140, 10, 0.5, 100.0, True, float("nan")))
    row, total = last_screen(console)[-2:]
    assert re.fullmatch(r"dqn on chain-5 .* 5/20 seeds return 0.500 of 11", row)
    assert "25%" in total


def test_runs_of_one_name_are_counted_apart():
    """Such as those of Figure 5, which differ in their settings."""
    jobs = [*configure("dqn", "chain-5", seeds=10, episodes=10).jobs(None)] * 2
    jobs = [dataclasses.replace(job) for job in jobs]
    console = terminal(80)
    with live.Live(console, jobs) as shown:
        for job in jobs:
            shown.report(Progress(job, 140, 10, 0.5, 100.0, True, float("nan")))
    row, total = last_screen(console)[-2:]
    assert "20/20 seeds" in row
    assert "100%" in total


def test_nothing_is_shown_quietly():
    (job,) = configure("ge", "chain-5", episodes=10).jobs(None)
    output = io.StringIO()
    for console in (Console(file=output), Console(file=output, force_terminal=True)):
        with live.Live(console, [job], quiet=True) as shown:
            shown.report(Progress(job, 140, 10, 0.5, 100.0, True, float("nan")))
    assert re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.getvalue()).strip() == ""


def test_train_shows_its_progress_if_asked(capsys):
    settings = {"hidden": (8,), "learning_starts": 8, "batch_size": 8, "buffer_size": 64}
    rove.train("dqn", "chain-5", episodes=3, progress=True, **settings)
    assert "dqn on chain-5, seed 0: 3 of 3 episodes" in capsys.readouterr().err
    rove.train("dqn", "chain-5", episodes=3, **settings)  # not a terminal
    assert capsys.readouterr().err == ""
    with pytest.raises(rove.ConfigError, match="progress must be True or False"):
        rove.train("dqn", "chain-5", episodes=3, progress="yes", **settings)
