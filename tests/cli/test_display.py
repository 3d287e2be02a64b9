"""The live display: rows in a terminal, lines where the output is none."""

import contextlib
import dataclasses
import io
import re

import pytest
from rich.console import Console

import rove
from rove.cli.console import prose, word
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


TOTAL = r"total .* starting, 0:00 \(compiling takes about 10 s\)"


@pytest.mark.parametrize("width", [80, 120])
def test_rows_tell_waiting_seeds_from_running_ones_and_fit_the_terminal(width):
    jobs = configure("ge", "chain-100", seeds=3, episodes=250).jobs(None)
    console = terminal(width)
    with live.Live(console, jobs) as shown:
        shown._progress.refresh()
        assert any(re.fullmatch(TOTAL, line) for line in last_screen(console))
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


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [1_000.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    return now


def total(console, shown):
    """The text of the last row, as it is drawn now."""
    shown._progress.refresh()
    return re.sub(r"^total [━╸╺ ]+", "", last_screen(console)[-1])


def test_the_time_since_the_start_goes_on_while_nothing_is_reported(clock):
    jobs = configure("ge", "chain-100", seeds=2, episodes=250).jobs(None)
    console = terminal(100)
    with live.Live(console, jobs) as shown:
        clock[0] += 12.0
        assert total(console, shown) == "starting, 0:12 (compiling takes about 10 s)"
        shown.report(Progress(jobs[0], 0, 0, float("nan"), 0.0, False, float("nan")))
        clock[0] += 5.0
        assert total(console, shown) == "0% starting, 0:17 (compiling takes about 10 s)"
        shown.report(Progress(jobs[0], 100, 2, 0.0, 50.0, False, float("nan")))
        clock[0] += 50.0
        assert total(console, shown) == "0% 1:07 so far"
        for job in jobs:
            shown.report(Progress(job, 9_000, 250, 0.0, 50.0, True, float("nan")))
        clock[0] += 50.0
        assert total(console, shown) == "100% done in 1:07"


def test_the_time_left_is_that_of_training_without_compilation(clock):
    """Each of two seeds has 100 episodes of 10 steps and learns from step 100. After 30 s of
    compilation the first 9 episodes take no time, after 20 s more a second has 10 episodes."""
    agent = rove.GE(learning_starts=100)
    jobs = configure(agent, "chain-5", seeds=2, episodes=100).jobs(None)
    console = terminal(100)

    def report(episode, **changed):
        for job in jobs:
            progress = Progress(job, 10 * episode, episode, 0.0, 100.0, False, float("nan"))
            shown.report(progress._replace(**changed))

    with live.Live(console, jobs) as shown:
        report(0, steps_per_second=0.0)
        clock[0] += 30.0
        report(9)
        assert total(console, shown) == "9% 0:30 so far"
        clock[0] += 20.0
        for episode in (10, 20, 30):
            report(episode)
            clock[0] += 1.0
        assert total(console, shown) == "30% 0:53 so far, 0:07 left"


def test_waiting_seeds_are_expected_to_be_as_fast_as_the_first(clock):
    """One of four seeds has 10 episodes a second; the others follow it, one at a time."""
    agent = rove.GE(learning_starts=1)
    jobs = configure(agent, "chain-5", seeds=4, episodes=100).jobs(None)
    console = terminal(100)
    with live.Live(console, jobs) as shown:
        for episode in (10, 20, 30, 100):
            at = Progress(jobs[0], 9 * episode, episode, 0.0, 90.0, episode == 100, float("nan"))
            shown.report(at)
            clock[0] += 1.0 if episode < 30 else 7.0
        shown.report(Progress(jobs[1], 9, 1, 0.0, 90.0, False, float("nan")))
        assert total(console, shown) == "25% 0:16 so far, 0:30 left"


def test_the_time_left_does_not_jump_when_one_seed_follows_another(clock):
    """Two of four seeds have 10 episodes a second each, and end together; one of the next two has
    not begun."""
    agent = rove.GE(learning_starts=1)
    jobs = configure(agent, "chain-5", seeds=4, episodes=100).jobs(None)
    console = terminal(100)
    with live.Live(console, jobs) as shown:
        for episode in (10, 20, 100):
            for job in jobs[:2]:
                ended = episode == 100
                shown.report(Progress(job, 9 * episode, episode, 0.0, 90.0, ended, float("nan")))
            clock[0] += 1.0 if episode < 20 else 8.0
        shown.report(Progress(jobs[2], 9, 1, 0.0, 90.0, False, float("nan")))
        assert total(console, shown) == "50% 0:17 so far, 0:10 left"


@pytest.mark.parametrize(("width", "bar"), [(80, 14), (100, 34), (200, 60)])
def test_bars_have_the_width_that_the_text_leaves(width, bar):
    """The longest status that is usual has 50 columns; at 80, nothing is cut or wrapped."""
    jobs = configure("ge", "chain-5", seeds=3, episodes=120).jobs(None)
    console = terminal(width)
    with live.Live(console, jobs) as shown:
        for job in jobs:
            shown.report(Progress(job, 360, 120, 0.0, 23_456.0, False, 0.1, coverage=5))
    rows = last_screen(console)[-4:]
    assert max(map(len, rows)) <= width
    assert rows[0].count("━") == bar
    assert rows[0].endswith("120/120 return 0.000, 5 of 5 cells, 23,456 steps/s")


def test_cells_over_coordinates_need_not_all_be_reachable():
    for name, text in (("mountain-car", "12 cells"), ("chain-20", "12 of 20 cells")):
        (job,) = configure("dqn", name, episodes=10).jobs(None)
        progress = Progress(job, 140, 2, 0.0, 100.0, False, float("nan"), coverage=12)
        assert live._score([progress]).endswith(f" 0.000, {text}")


def test_prose_wraps_at_words_and_keeps_paths_and_commands_whole():
    path, command = "runs/a folder/" + "x" * 40, "tensorboard --logdir 'runs/a folder'"
    text = f"written to {word(path)}: config.json and episodes.csv\nfollow: {word(command)} (live)"
    console = terminal(30)
    prose(console, text)
    assert last_screen(console) == [
        "written to",
        f"{path}:",
        "config.json and episodes.csv",
        "follow:",
        command,
        "(live)",
    ]
    file = Console(file=io.StringIO(), width=30)
    prose(file, text, label="warning:")
    assert file.file.getvalue() == "warning: " + text.replace("\N{NO-BREAK SPACE}", " ") + "\n"


def test_prose_is_printed_as_it_is():
    console = terminal(80)
    prose(console, "seed 1: [bold]scores[/] :smile: 1.5", label="warning:")
    assert last_screen(console) == ["warning: seed 1: [bold]scores[/] :smile: 1.5"]
    assert "\x1b[1;33mwarning:\x1b[0m" in console.file.getvalue()
