"""Tiny runs for the report, trained once, and a browser, started once."""

import json
import shutil

import numpy as np
import pytest
from browser import Browser, found
from made import HOSTILE, sweep_of, write_run

import rove
from helpers import SMALL as SMALLEST
from rove import report
from rove.paper.claims import Claim, as_json

SMALL = SMALLEST | {"learning_starts": 20}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A folder of three runs: two agents on a chain, and atoms of returns on a board."""
    folder = tmp_path_factory.mktemp("runs")
    for name, agent, place, seeds in (
        ("ge", rove.GE(**SMALL, rho=-3.0), "chain-5", 3),
        ("dqn", rove.DQN(**SMALL), "chain-5", 3),
        ("c51", rove.C51(**SMALL), "deep-sea-4", 1),
    ):
        rove.train(agent, place, seeds=seeds, episodes=40, out=folder / name)
    return folder


@pytest.fixture(scope="session")
def experiment(runs, tmp_path_factory):
    """The same runs, as an experiment's folder."""
    folder = tmp_path_factory.mktemp("experiments") / "figure-2-quick"
    folder.mkdir()
    (folder / "runs").symlink_to(runs)
    claims = [
        Claim.judge("GE is ahead", "by 1.2, n = 3", above=True, p=0.01),
        Claim("DQN is stuck", "0.1, n = 3", "inconclusive"),
    ]
    (folder / "claims.json").write_text(as_json(claims))
    rove.load(runs / "ge").plot(folder / "figure-2.png")
    return folder


@pytest.fixture(scope="session")
def five(runs, tmp_path_factory):
    """Two runs of five seeds, without checkpoints, of which all and two of five solve the task."""
    folder = tmp_path_factory.mktemp("five")
    for agent, late in (("ge", 10), ("dqn", 25)):
        scores = np.zeros((5, 30))
        for seed in range(5 if agent == "ge" else 2):
            scores[seed, late + seed - 10 :] = 11.0
        write_run(folder / agent, runs, agent, "chain-5", scores / 11.0)
    return folder


@pytest.fixture(scope="session")
def sweeps(tmp_path_factory):
    """Sweeps over one, two and three fields."""
    folder = tmp_path_factory.mktemp("sweeps")
    fields = {"rho": [-6.0, -4.0, -2.0], "sigma": [1e-4, 1e-3, 1e-2, 0.1], "lr": [1e-4, 1e-3]}
    for count in (1, 2, 3):
        (folder / f"over-{count}").mkdir()
        chosen = dict(list(fields.items())[:count])
        (folder / f"over-{count}" / "sweep.json").write_text(json.dumps(sweep_of(chosen)))
    return folder


@pytest.fixture(scope="session")
def hostile(runs, tmp_path_factory):
    """A run, claims and a sweep whose every name tries to be markup."""
    folder = tmp_path_factory.mktemp("bad") / "<img src=x onerror=window.hacked=1>"
    run = folder / "runs" / "<b>run<"
    run.mkdir(parents=True)
    told = json.loads((runs / "ge" / "config.json").read_text())
    told["environment"] = {"name": HOSTILE, "options": {HOSTILE: HOSTILE}}
    told["agent"] = {"name": HOSTILE, "settings": {HOSTILE: HOSTILE, "x": float("nan")}}
    told["versions"] = {HOSTILE: HOSTILE}
    told["task"] = {
        "score_label": HOSTILE,
        "cells": [1, 5],
        "coordinates": [[HOSTILE, 0.0, 1.0], [HOSTILE, 0.0, 1.0]],
        "action_names": [HOSTILE],
        "probes": [HOSTILE],
    }
    shutil.copytree(runs / "ge" / "lanes", run / "lanes")
    (run / "errors.json").write_text(json.dumps({"0": HOSTILE}))
    (run / "config.json").write_text(json.dumps(told))
    (run / "episodes.csv").write_text((runs / "ge" / "episodes.csv").read_text())
    claim = {"text": HOSTILE, "evidence": HOSTILE, "verdict": HOSTILE}
    (folder / "claims.json").write_text(json.dumps([claim]))
    swept = folder.parent / "swept"
    swept.mkdir()
    told = sweep_of({HOSTILE: [HOSTILE, "b"], "y": [1.0, 2.0], "z": [1.0, 2.0]}, lambda a, b, c: b)
    told |= {"agent": HOSTILE, "environment": HOSTILE}
    (swept / "sweep.json").write_text(json.dumps(told))
    return folder.parent


@pytest.fixture(scope="session")
def page(experiment, sweeps, tmp_path_factory):
    """A report of everything that is not hostile."""
    return report([experiment, sweeps], tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def browser():
    if found() is None:
        pytest.skip("there is no Chromium: on Debian, apt-get install chromium")
    started = Browser()
    yield started
    started.close()
