"""Writing the pictures and numbers of a run, or all of it, to a folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rove.parts.files import publish
from rove.runs.folder import RunFolder
from rove.runs.recorded import check_created
from rove.training import storage

if TYPE_CHECKING:
    from rove.runs.result import Run


def draw(run: Run, folder: Path) -> None:
    """Write learning-curve.png, diagnostics.png and diagnostics.json to a folder."""
    draw_pictures(run, folder)
    visits = {
        seed: [round(float(share), 6) for share in row]
        for seed, row in zip(run.seeds, run.visits, strict=True)
    }
    policies = {
        outcome.job.seed: outcome.conclusion.as_json()
        for outcome in run.concluded
        if outcome.conclusion is not None
    }
    diagnostics = {
        "alarms": run.alarms,
        "not_watched": run.not_watched,
        "cells": run.config.environment.cells,
        "visits": visits,
        "policies": policies,
    }
    publish(folder / "diagnostics.json", (json.dumps(diagnostics) + "\n").encode())


def draw_pictures(run: Run, folder: Path) -> None:
    """Write learning-curve.png and diagnostics.png to a folder."""
    run.plot(folder / "learning-curve.png")
    run.plot_diagnostics(folder / "diagnostics.png")


def save(run: Run, out: Path) -> Path:
    """Write a run to a new folder, and return its path."""
    folder = RunFolder(out)
    check_created(run.config.environment)
    config = replace(run.config, extendable=False)  # the replay buffers are not in memory
    jobs = {job.seed: job for job in config.jobs(folder.path)}
    with folder.open(config, task=config.environment, delivers=config.delivers):
        for outcome in run.concluded:
            storage.save(outcome._replace(job=jobs[outcome.job.seed]))
        tables = {outcome.job.seed: outcome.tables for outcome in run.outcomes}
        folder.write_tables(run.config, tables)
        draw(run, folder.path)
    return folder.path
