"""A sweep: values, points, one program, chosen on some seeds and confirmed on others, kill -9."""

import csv
import dataclasses
import json
import math
import random
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import killing
import rove
from helpers import SMALL, compilations
from rove.cli import main as cli
from rove.errors import ConfigError, LaneError, RunFolderError
from rove.runs.configure import configure
from rove.search import space, sweep, sweep_plan, trials
from rove.search.sweep_plot import BEST, CONFIRMED, MEAN
from rove.search.sweep_result import Point, Sweep
from rove.search.trials import Rung
from rove.training import checkpoint, progress, storage

GE = rove.GE()
AGENT = rove.GE(**SMALL)
FIELDS = {"rho": (-6.0, -3.0), "sigma": (1e-3, 1e-2)}


@pytest.mark.parametrize(
    ("field", "given", "values"),
    [
        ("rho", "-10:-1:10", tuple(map(float, range(-10, 0)))),
        ("sigma", "1e-8:1e-1:log8", tuple(float(f"1e-{k}") for k in range(8, 0, -1))),
        ("lr", "1e-5,1e-4,1e-3", (1e-5, 1e-4, 1e-3)),
        ("rho", "1:0:3", (1.0, 0.5, 0.0)),
        ("rho", "-4,", (-4.0,)),
        ("target_period", "10:1000:log3", (10, 100, 1000)),
        ("target_period", "1:4:3", (1, 2, 4)),
        ("resample", "step,episode,5", ("step", "episode", 5)),
        ("rho", [-3, -4.0], (-3.0, -4.0)),
        ("rho", np.array([-3.0, -4.0], np.float32), (-3.0, -4.0)),
        ("target_period", np.array([8, 16]), (8, 16)),
        ("hidden", [[4], [3]], ((4,), (3,))),
    ],
)
def test_values(field, given, values):
    parsed = space.values(GE, field, given)
    assert parsed == values
    assert list(map(type, parsed)) == list(map(type, values))


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        ({"rho": "-4:-4:3"}, {}, "rho='-4:-4:3' must be a range whose ends differ"),
        ({"rho": "-4:-1:0"}, {}, "a range of 2 to 10,000 values"),
        ({"rho": "-4:-1:1"}, {}, "a range of 2 to 10,000 values"),
        ({"rho": "-4:-1:log3"}, {}, "must have both ends above 0"),
        ({"sigma": "0:1:log3"}, {}, "must have both ends above 0"),
        ({"rho": "-4:-1"}, {}, "must be a:b:n for n evenly spaced values"),
        ({"rho": "-4:-1:2:3"}, {}, "must be a:b:n for n evenly spaced values"),
        ({"rho": "-4:x:2"}, {}, "must be a:b:n for n evenly spaced values"),
        ({"rho": "-4:inf:2"}, {}, "must be a:b:n for n evenly spaced values"),
        ({"rho": "-4,nan"}, {}, "finite numbers"),
        ({"rho": "-4,,-3"}, {}, "lacks a value before or after a comma"),
        ({"lr": "1e308:-1e308:3"}, {}, "must be a:b:n for n evenly spaced values"),
        ({"batch_size": "-1.7e308:1.7e308:3"}, {}, "must be a:b:n for n evenly spaced values"),
        ({"lr": "1,1" + "0" * 400}, {}, "finite numbers"),
        ({"rho": "-4,-3,-4"}, {}, "must have distinct values"),
        ({"rho": [-4, -4.0]}, {}, "must have distinct values"),
        ({"target_period": "1:2:5"}, {}, "must have distinct values"),
        ({"rho": []}, {}, "at least one value"),
        ({"rho": 3}, {}, "a list of values"),
        ({"rho": np.array(3)}, {}, "a list of values"),
        ({"roh": "-4:-1:2"}, {}, "Did you mean 'rho'"),
        ({"hidden": "8,8"}, {}, "can be swept only in Python, by rove.sweep"),
        ({"sigma": "-1,1"}, {}, "sigma must be a finite number of at least 1e-08, got -1.0"),
        ({"lr": "-1:1:3"}, {}, "lr must be a finite number above 0, got -1.0"),
        ({"rho": "-4,-1"}, {"rho": -3.0}, "is also swept: either sweep it or set it"),
        ({}, {}, "fields must be a mapping from at least one setting"),
        ({"rho": "-4,-1"}, {"workers": 0}, "workers must be an integer of at least 1, got 0"),
        (
            {"rho": "-4,-1"},
            {"on": "threds"},
            "on must be threads, processes, ray or ray://HOST:PORT, got 'threds'",
        ),
        (
            {"rho": "-9:0:1000", "sigma": "1e-8:1:log1000"},
            {},
            "the grid has 1,000,000 points, more than 10,000",
        ),
        (
            {"rho": "-4,-1"},
            {"method": "random"},
            "method='random' needs a number of points",
        ),
        (
            {"rho": "-4,-1"},
            {"method": "random", "points": 0},
            "points must be an integer between 1 and 10,000, got 0",
        ),
        ({"rho": "-4,-1"}, {"method": "random", "points": 10**6}, "between 1 and 10,000"),
        ({"rho": "-4,-1"}, {"points": 1}, "method='grid', which tries all points"),
        ({"rho": "-4,-1"}, {"method": "gird"}, "Did you mean 'grid'"),
        ({"rho": "-4,-1"}, {"method": "halving", "seeds": 1}, "at least 2 with method='halving'"),
        (
            {"rho": "-4,-1"},
            {"seeds": 0},
            "seeds must be an integer between 1 and 100,000, got 0",
        ),
        ({"rho": "-4,-1"}, {"confirm_seeds": 1001}, "between 0 and 1,000"),
    ],
)
def test_refused_before_a_folder_is_made(fields, options, message, tmp_path):
    with pytest.raises(ConfigError) as error:
        rove.sweep("ge", "chain-5", fields, episodes=5, out=tmp_path / "s", **options)
    assert message in str(error.value)
    assert not (tmp_path / "s").exists()


def test_the_command_takes_ranges_and_other_options():
    fields, others = space.split_arguments(
        ["ge", "chain-5", "--agent.rho", "-10:-1:10", "--agent.hidden", "8", "8", "--agent.lr=1e-3",
         "--agent.target-period=1,2", "--seeds", "2", "--env.permuted", "False"]
    )  # fmt: skip
    assert fields == {"rho": "-10:-1:10", "target_period": "1,2"}
    assert others == [
        "ge", "chain-5", "--agent.hidden", "8", "8", "--agent.lr=1e-3", "--seeds", "2",
        "--env.permuted", "False",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="cannot be swept: only --agent options can"):
        space.split_arguments(["ge", "chain-5", "--env.horizon=1,2"])
    with pytest.raises(ConfigError, match="is also given as"):
        space.split_arguments(["ge", "chain-5", "--agent.rho=1,2", "--agent.rho=3,4"])


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("--agent.rho=-4:-4:3", "must be a range whose ends differ"),
        ("--agent.rho=-4", "nothing to sweep"),
        ("--agent.roh=1,2", "ge has no setting 'roh'. Did you mean 'rho'?"),
    ],
)
def test_the_command_refuses_with_code_2(field, message, capsys, tmp_path):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["sweep", "ge", "chain-5", field, "--out", str(tmp_path / "s")])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_the_papers_grid_is_one_command():
    fields = {"rho": "-10:-1:10", "sigma": "1e-8:1e-1:log8", "lr": "1e-5,1e-4,1e-3"}
    plan = sweep_plan.plan("ge", "sparse-cartpole", fields, seeds=5, episodes=200)
    assert plan.total == 10 * 8 * 3 * 5 + 5
    assert plan.points[0] == {"rho": -10.0, "sigma": 1e-8, "lr": 1e-5}
    assert plan.points[1] == {"rho": -10.0, "sigma": 1e-8, "lr": 1e-4}
    assert plan.points[-1] == {"rho": -1.0, "sigma": 1e-1, "lr": 1e-3}
    assert len({json.dumps(point) for point in plan.points}) == 240


@pytest.mark.slow
def test_random_points_are_some_of_the_grid_and_stay_the_same():
    fields = {"rho": "-9:0:1000", "sigma": "1e-8:1:log1000"}
    options = {"method": "random", "points": 20, "episodes": 1}
    plan, again = (sweep_plan.plan("ge", "chain-5", fields, **options) for _ in range(2))
    assert plan.points == again.points
    assert len({json.dumps(point) for point in plan.points}) == 20
    assert all(point.keys() == fields.keys() for point in plan.points)
    assert all(p[k] in plan.fields[k] for p in plan.points for k in p)
    assert len({point["rho"] for point in plan.points}) > 10


def test_halving_tries_the_better_half_on_more_seeds():
    assert trials.halving(8, range(5)) == [
        Rung(8, (0,)), Rung(4, (1,)), Rung(2, (2, 3)), Rung(1, (4,)),
    ]  # fmt: skip
    assert trials.halving(1, range(2)) == [Rung(1, (0,)), Rung(1, (1,))]


def test_a_race_keeps_the_right_points():
    """Point 2 is best on the first seed alone; point 5 on all; 0 diverges at once."""
    table = {i: [float(i)] * 4 for i in range(8)}
    table[2] = [9.0, 0.0, 0.0, 0.0]
    table[0] = [-math.inf] * 4
    table[5] = [5.0, 8.0, 8.0, 8.0]
    tried = []

    def attempt(chosen, seeds):
        tried.append(list(chosen))
        return [[table[i][s] for s in seeds] for i in chosen]

    scores = trials.race(8, trials.halving(8, range(4)), attempt)
    assert tried == [list(range(8)), [2, 5, 6, 7], [5, 7]]
    assert trials.ranking(scores)[:2] == [5, 7]
    assert [len(s) for s in scores] == [1, 1, 2, 1, 1, 4, 2, 4]


def test_a_better_mean_of_fewer_seeds_does_not_win():
    assert trials.ranking([[9.0], [1.0, 1.0], [], [2.0, 2.0]]) == [3, 1, 0, 2]


@pytest.mark.slow
def test_one_program_for_all_points():
    """Of points that differ in numbers only. No other test has layers of these sizes."""
    fields = {"rho": "-6:-2:5", "sigma": "1e-4,1", "lr": "1e-4,1e-3", "target_period": "5:50:5"}
    agent = dataclasses.replace(AGENT, hidden=(7,))
    with compilations("run") as programs:
        result = rove.sweep(agent, "chain-4", fields, seeds=1, episodes=2)
    assert len(result.points) == 100
    assert result.path is None
    assert len(programs) == 1
    with compilations("run") as programs:
        rove.sweep(agent, "chain-4", {"hidden": [(7,), (9,)]}, seeds=1, episodes=2)
    assert len(programs) == 1  # a layer of another size is another program


def test_what_a_sweep_leaves(tmp_path):
    standings = []
    found = rove.sweep(
        AGENT, "chain-5", FIELDS, seeds=2, confirm_seeds=3, episodes=8, out=tmp_path,
        report=standings.append,
    )  # fmt: skip
    best = max(found.points, key=lambda p: np.mean(p.scores))
    assert found.best.settings == best.settings
    assert all(point.seeds == [1000, 1001] for point in found.points)
    assert [p.confirmed is not None for p in found.points] == [p is best for p in found.points]
    alone = rove.train(AGENT, "chain-5", seeds=3, episodes=8, **best.settings)
    assert best.confirmed == pytest.approx(alone.scores.mean(axis=1))
    number = found.points.index(best)
    run = rove.load(tmp_path / "points" / f"{number:04d}")
    assert run.seeds == (1000, 1001)
    assert best.scores == pytest.approx(run.scores.mean(axis=1))
    assert rove.load(tmp_path / "confirmed" / f"{number:04d}").seeds == (0, 1, 2)

    told = json.loads((tmp_path / "sweep.json").read_text())
    assert list(told) == ["agent", "environment", "finished", "fields", "points"]
    assert told["finished"]
    assert (told["agent"], told["environment"]) == ("ge", "chain-5")
    assert told["fields"] == {name: list(values) for name, values in FIELDS.items()}
    assert told["points"] == [point._asdict() for point in found.points]
    rows = list(csv.DictReader((tmp_path / "sweep.csv").open()))
    assert len(rows) == 4 * 2 + 3
    assert {r["seed"] for r in rows if r["stage"] == "tuning"} == {"1000", "1001"}
    assert {r["seed"] for r in rows if r["stage"] == "confirmed"} == {"0", "1", "2"}
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")

    assert standings[-1].done == standings[-1].total == 11
    assert standings[-1].best.settings == best.settings
    assert standings[-1].seconds_left == pytest.approx(0.0)
    with pytest.raises(RunFolderError, match="contains a sweep"):
        rove.load(tmp_path)
    with pytest.raises(RunFolderError, match=r"its seeds are \[1000, 1001\], not"):
        rove.sweep(AGENT, "chain-5", FIELDS, seeds=3, confirm_seeds=3, episodes=8, out=tmp_path)
    with pytest.raises(RunFolderError, match="contains a sweep, not a run"):
        rove.train(AGENT, "chain-5", episodes=8, out=tmp_path)


def test_a_point_that_diverges_is_last_and_has_no_score(tmp_path):
    """Nor is it trained again when the sweep goes on, and `train` still tells what happened."""
    standings, again = [], []

    def sweep(heard):
        return rove.sweep(
            AGENT, "chain-5", {"lr": (1e30, 1e-3)}, seeds=2, confirm_seeds=1, episodes=30,
            out=tmp_path, report=heard.append,
        )  # fmt: skip

    found = sweep(standings)
    assert found.best.settings == {"lr": 1e-3}
    assert standings[-1].done == 5
    told = json.loads((tmp_path / "sweep.json").read_text(), parse_constant=pytest.fail)
    assert told["points"][0]["scores"] == [None, None]
    assert ",tuning,1000,\n" in (tmp_path / "sweep.csv").read_text()
    before, table = finished(tmp_path), (tmp_path / "sweep.csv").read_bytes()
    assert len(before) == 5
    assert sweep(again).points == found.points
    assert finished(tmp_path) == before
    assert [standing.done for standing in again] == [1, 2, 3, 4, 5]
    assert (tmp_path / "sweep.csv").read_bytes() == table
    ill = tmp_path / "points" / "0000"
    with pytest.raises(LaneError, match=r"seed 1001: the loss was not a finite .*smaller lr"):
        rove.train(AGENT, "chain-5", seeds=[1000, 1001], episodes=30, lr=1e30, out=ill)
    loaded = rove.load(ill)
    assert loaded.seeds == ()
    assert len(loaded.errors) == 2
    for show in (loaded.plot, loaded.plot_diagnostics, loaded.policy):
        with pytest.raises(LaneError, match="ge on chain-5: every seed diverged"):
            show()
    with pytest.raises(LaneError, match="every seed diverged"):
        loaded.save(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


class PaysNaN(rove.Chain):
    def step(self, state, action, key):
        after = super().step(state, action, key)
        return after._replace(reward=after.reward * jnp.nan)


@pytest.mark.fast_cases("no episode")
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (rove.Chain(5), "seed 0: no episode ended within 10 steps; increase steps"),
        (PaysNaN(5), "seed 0: the reward was not a finite number at step 1"),
    ],
    ids=["no episode", "no reward"],
)
def test_a_lane_without_a_score_that_did_not_diverge_is_an_error(environment, message):
    """An episode of chain-5 has 14 steps."""
    config = configure(rove.PSRL(), environment, steps=10)
    with pytest.raises(LaneError, match=message):
        trials.train([(config, None)], on="threads")


def test_halving_end_to_end(tmp_path):
    fields = {"rho": (-6.0, -5.0, -4.0, -3.0)}
    found = rove.sweep(
        AGENT, "chain-5", fields, seeds=3, confirm_seeds=0, episodes=8, method="halving",
        out=tmp_path,
    )  # fmt: skip
    first = sorted(found.points, key=lambda p: -p.scores[0])
    assert sorted(len(p.scores) for p in found.points) == [1, 1, 2, 3]
    assert {id(p) for p in first[:2]} == {id(p) for p in found.points if len(p.scores) > 1}
    assert found.best.seeds == [1000, 1001, 1002]
    assert found.best.confirmed is None


def test_the_map_of_two_fields_takes_values_of_any_kind(tmp_path):
    plan = sweep_plan.plan(
        AGENT, "chain-4", {"hidden": [[4], [3]], "lr": [1e-3, 1e-2]}, seeds=1, episodes=3
    )
    points = [Point(at, [float(i)], [1000]) for i, at in enumerate(plan.points)]
    drawn = Sweep(plan, points).plot()
    assert {text.get_text() for text in drawn.axes[0].texts} == {"0", "1", "2", "3"}


@pytest.mark.parametrize("fields", [["rho"], ["rho", "sigma", "lr"]], ids=len)
@pytest.mark.parametrize(
    ("counts", "said"), [((5, 5, 5, 5), "5"), ((1, 6, 1, 5), "1 to 6"), ((4, 4, 4, 4), "4")]
)
def test_pictures_of_one_field_and_of_three(fields, counts, said, tmp_path):
    """They tell how many seeds points had, and draw no interval of fewer than five."""
    values = {"rho": (-6.0, -5.0, -4.0, -3.0), "sigma": (1e-3,), "lr": (1e-3,)}
    chosen = {name: values[name] for name in fields}
    plan = sweep_plan.plan(AGENT, "chain-4", chosen, seeds=6, episodes=3)
    points = [
        Point(at, [i + k for k in (0.0, 1.0, 2.0, 3.0, 1.5, 2.5)][:n], list(plan.base.seeds[:n]))
        for i, (at, n) in enumerate(zip(plan.points, counts, strict=True))
    ]
    drawn = Sweep(plan, points).plot(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    intervals = sum(n >= 5 for n in counts)
    assert f"{said} tuning seeds{', 95% intervals' * bool(intervals)}<" in text
    assert [t.get_text() for t in drawn.legends[0].get_texts()] == [MEAN, BEST]
    assert ("rho=-3, sigma" in text) == (len(fields) == 3)
    shapes = drawn.axes[0].collections
    if len(fields) == 1 and intervals == len(counts):
        assert [isinstance(shape, PolyCollection) for shape in shapes] == [True]
    else:
        bars = [bar for each in shapes for bar in each.get_segments()]
        assert len(bars) == intervals
        assert all(np.ptp(bar, axis=0).max() > 0.5 for bar in bars)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("seeds", [2, 5])
def test_the_picture_says_and_marks_what_is_best_on_fresh_seeds(count, seeds, tmp_path):
    values = {"rho": (-6.0, -5.0, -4.0), "sigma": (1e-3, 1e-2), "lr": (1e-3, 1e-2)}
    plan = sweep_plan.plan(
        AGENT, "chain-4", dict(list(values.items())[:count]), seeds=2, episodes=3
    )
    points = [Point(at, [1.0, 3.0], [1000, 1001]) for at in plan.points]
    fresh = [4.0 + 0.25 * k for k in range(seeds)]
    points[1] = points[1]._replace(scores=[5.0, 7.0], confirmed=fresh)
    drawn = Sweep(plan, points).plot(tmp_path / "a.svg")
    title = drawn.get_suptitle().replace("\n", " ")
    assert title.startswith(f"GE on chain-4: best of {len(points)} points at {points[1].label}")
    assert title.endswith(f"mean score {np.mean(fresh):.3g} on {seeds} fresh seeds")
    assert (drawn._suptitle.get_weight(), drawn._suptitle.get_ha()) == ("bold", "left")
    axes = drawn.axes[0]
    named = [t.get_text() for t in drawn.legends[0].get_texts()]
    assert named == (
        [f"{BEST}, with its mean on fresh seeds"] if count == 2 else [MEAN, BEST, CONFIRMED]
    )
    assert any(f"{np.mean(fresh):.3g}" in text.get_text() for text in axes.texts)
    if count == 2:
        (box,) = axes.patches
        assert box.get_bbox().bounds == (0.5, -0.5, 1.0, 1.0)
        return
    score = 1 if count == 1 else 0  # the axis of scores

    def marked(kind):
        (line,) = [line for line in axes.lines if line.get_marker() == kind]
        return line.get_xydata()[0]

    assert marked("D")[score] == np.mean(fresh)
    rings = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    assert [list(ring.get_xydata()[0])[score] for ring in rings] == [6.0]
    bars = [line for line in axes.lines if line.get_marker() == "None" and line.get_color() == RED]
    assert len(bars) == (seeds >= 5)


RED = "#c44e52"


def sweep_in_short_chunks(out: Path) -> None:
    progress.CHUNK_SECONDS = 0.02
    fields = {"rho": (-6.0, -4.0, -2.0), "sigma": (1e-3, 1e-2)}
    options = {"seeds": 4, "confirm_seeds": 2, "episodes": 300}
    made = sweep_plan.plan(AGENT, "chain-6", fields, **options)
    sweep.run(made, out, workers=2, on="threads")


def is_done(file: Path) -> bool:
    config = json.loads((file.parents[1] / "config.json").read_text())
    about = checkpoint.load_arrays(file, "episodes.")[1]
    return storage.is_done(about, 2**31, config["episodes"], 2**31)


def finished(out: Path) -> dict[Path, tuple[int, int]]:
    """The files of the lanes that are done; a lane that is done again has another file."""
    files = [f for f in out.glob("*/*/lanes/*") if f.suffix == ".safetensors"]
    done = [f for f in files if is_done(f)]
    return {f.relative_to(out): (f.stat().st_ino, f.stat().st_mtime_ns) for f in done}


@pytest.mark.slow
def test_killed_ten_times_no_finished_lane_is_repeated_and_the_table_is_the_same(tmp_path):
    """A kill comes some random lanes, and a random moment, after the last one."""
    whole, out = tmp_path / "whole", tmp_path / "killed"
    killing.finish(sweep_in_short_chunks, whole)
    rng, before, between, total = random.Random(0), {}, 0, 6 * 4 + 2
    for _ in range(10):
        process = killing.start(sweep_in_short_chunks, out)
        goal = len(before) + rng.randint(0, 1)
        while process.is_alive() and len(list(out.glob("*/*/lanes/*.safetensors"))) < goal:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        assert process.is_alive(), "it got to its end before it could be killed"
        process.kill()
        process.join()
        after = finished(out)
        assert before.items() <= after.items()
        between += 0 < len(after) < total
        before = after
    assert between >= 5, "too few kills fell between the first lane and the last"
    killing.finish(sweep_in_short_chunks, out)
    assert before.items() <= finished(out).items()
    assert len(finished(out)) == total
    for name in ("sweep.csv", "sweep.json"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
