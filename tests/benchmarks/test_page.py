"""Tables and picture from a small data file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import bench
import page
from contestants import Entry, Measured, spread

HEADER = {"date": "2026-01-02T03:04:05+00:00", "scale": "full", "cores": 2, "cpu": "a CPU"}
HEADER |= {"load_before": 0.1}


def row(micros, *args, **fields):
    entry = vars(Entry(*args, **fields))
    return dict(entry) | spread([micros, micros, 2 * micros]) | {"peak_MB": 300.0}


def part(*rows):
    versions = {"rove": {"rove": "0.1.0", "jax": "0.10.2"}}
    return HEADER | {"rounds": 3, "rows": list(rows), "errors": {}, "versions": versions}


def grown(field, *values):
    names = (("rove", "dqn"), ("rove", "ge"), ("rejax", "dqn"))
    rows = [
        row(100.0 * (i + 1), *name, **{field: value})
        for name in names
        for i, value in enumerate(values)
    ]
    return part(*rows)


@pytest.fixture
def data():
    gym = "gym/CartPole-v1"
    peers = [row(100.0, "rove"), row(250.0, "rove", environment=gym)]
    peers += [row(t, "sb3", environment=gym, threads=n) for t, n in ((1500.0, 1), (2000.0, None))]
    times = {event: spread([2.0, 3.0]) for event in ("progress", "episodes", "end")}
    start = HEADER | {"imports": {"rove": spread([1.0])}, "command": "rove train x"}
    sweep = HEADER | {
        "runs": 1200,
        "seconds": 1500.0,
        "processor_seconds": 2850.0,
        "computing": 0.95,
    }
    return {
        "peers": part(*peers),
        "agents": part(
            row(100.0, "rove"),
            row(220.0, "rove", "ge"),
            row(500.0, "rove", "bootstrapped_dqn"),
            row(8.0, "rove", "psrl", "chain-4"),
        ),
        "gymnasium": part(*peers[1:3]),
        "seeds": grown("seeds", 1, 2),
        "width": grown("width", 32, 512),
        "batch": grown("batch", 32, 64),
        "size": grown("environment", "deep-sea-10", "deep-sea-50"),
        "profile": HEADER | {"agents": {"dqn": {"replay": 10.2, "a step": 100.0}}},
        "start": start | {"warm": times | {"starts": 2}, "cold": times | {"starts": 1}},
        "sweep": sweep | {"command": "rove sweep ge chain-50", "programs": 1},
    }


def test_every_block_of_the_pages_is_written(data):
    names = set()
    for name in page.PAGES:
        text = (bench.ROOT / name).read_text("utf-8")
        names |= {match[2] for match in page._BLOCK.finditer(text)}
        written = page.filled(text, data)
        assert "Not measured" not in written
        assert page.filled(written, data) == written
    assert names == set(page.BLOCKS)


def test_figures_of_the_tables(data):
    peers = page.peers(data["peers"])
    sb3 = "| stable-baselines3 | Gymnasium | 1 | 1,500 (1,500 to 2,250) | 667 | 15.0 | 6.0 |"
    assert sb3 in peers.splitlines()
    assert "Measured on 2026-01-02: 3 rounds, cores: 2 (a CPU), load average 0.1" in peers
    assert "| `ge` | cartpole | 220 (220 to 330) | 4,545 | 2.20 | 300 |" in page.agents(
        data["agents"]
    )
    row = "| rove `dqn` | CartPole-v1 | 1 | 1 | 250 (250 to 375) | 4,000 | 6.0 |"
    assert row in page.gymnasium(data["gymnasium"])
    size = page.BLOCKS["size"][1](data["size"]).splitlines()
    assert size[0] == "|  | 10 | 50 |"
    assert size[2] == "| rove `dqn` | 100 (100 to 150) | 200 (200 to 300) |"
    seeds = page.BLOCKS["seeds"][1](data["seeds"]).splitlines()
    assert seeds[2] == "| rove `dqn` | 10,000 (6,667 to 10,000) | 5,000 (3,333 to 5,000) |"
    assert "| 1200 | 25.0 | 47.5 | 95% | 1 |" in page.sweep(data["sweep"])
    assert "| `import rove` | 1.00 (1.00 to 1.00) |" in page.start(data["start"])
    assert "GE: 2.3, by opposite quartiles 1.5 to 3.4, 3 rounds | supported |" in page.cost(
        data["agents"]
    )
    assert "SB3's DQN takes 667 steps per second, rove's 4,000 with one seed and – with five" in (
        page.migrating(data["gymnasium"])
    )
    assert page.choosing(data["agents"]).splitlines()[2] == "| `psrl` | 8 µs |"
    assert page.readme(data["peers"]).splitlines()[2:] == [
        "| stable-baselines3 | Gymnasium | 667 |",
        "| rove | Gymnasium | 4,000 |",
        "| rove | compiled | 10,000 |",
    ]


def test_speeds_for_users_of_sb3_are_those_of_one_copy_of_the_environment(data):
    """Wherever the rows with more copies stand."""
    gym, own = "gym/CartPole-v1", page.migrating(data["gymnasium"])
    copies = [row(t, name, environment=gym, copies=8) for t, name in ((1.0, "rove"), (2.0, "sb3"))]
    rows = data["gymnasium"]["rows"]
    for order in ([*rows, *copies], [*copies, *rows]):
        assert page.migrating(data["gymnasium"] | {"rows": order}) == own
    published = json.loads((bench.ROOT / bench.DATA).read_text("utf-8"))["gymnasium"]
    medians = {
        r["library"]: 1e6 / r["median"]
        for r in published["rows"]
        if (r["environment"], r["copies"], r["seeds"]) == (gym, 1, 1)
    }
    text = (bench.ROOT / "docs" / "how-to" / "from-stable-baselines3.md").read_text("utf-8")
    for library in ("sb3", "rove"):
        assert f" {medians[library]:,.0f} " in text


def test_a_contestant_that_was_left_out_is_named(data):
    data["peers"]["errors"] = {"Entry(library='sbx')": "no module"}
    assert "Left out: Entry(library='sbx')" in page.peers(data["peers"])


def test_a_block_without_data_stays():
    text = "a\n<!-- bench: peers -->\nold\n<!-- end -->\nb"
    assert page.filled(text, {}) == text


def test_the_command_writes_pages_and_picture(data, tmp_path):
    file = tmp_path / bench.DATA
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(data))
    script = Path(bench.__file__)
    command = [sys.executable, str(script), "--write", "--out", str(tmp_path)]
    subprocess.run(command, check=True)
    picture = (tmp_path / bench.PICTURE).read_text("utf-8")
    assert all(f">{label}</text>" in picture for label in ("rove dqn", "rejax", "µs per step"))
    assert "1,500 (1,500 to 2,250)" in (tmp_path / "docs/results/benchmarks.md").read_text("utf-8")


def test_parts_are_merged_into_the_data(data, tmp_path, monkeypatch):
    file = tmp_path / bench.DATA
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"peers": data["peers"]}))
    calls = []

    def measured(scale, without):
        calls.append((scale, without))
        return data["agents"]

    monkeypatch.setattr(bench, "PARTS", {"peers": pytest.fail, "agents": measured})
    options = ["--quick", "--missing", "--without", "sbx", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench.py", *options])
    bench.main()
    assert calls == [("quick", {"sbx"})]
    merged = json.loads(file.read_text())
    assert merged["peers"] == data["peers"]
    assert merged["agents"]["rows"] == data["agents"]["rows"]


def test_values_of_a_curve_are_measured_one_by_one(monkeypatch):
    groups = []

    def measure(chosen, rounds):
        groups.append({(entry.width, rounds) for entry in chosen})
        return Measured([row(1.0, "rove")], {str(len(groups)): "failed"}, {"rove": {}})

    monkeypatch.setattr(bench.contestants, "measure", measure)
    result = bench.PARTS["width"]("quick", {"rejax", "sb3"})
    assert groups == [{(32, 6)}, {(512, 6)}]
    assert (len(result["rows"]), set(result["errors"])) == (2, {"1", "2"})
