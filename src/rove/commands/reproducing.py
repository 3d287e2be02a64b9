"""`rove reproduce` and `rove tune`."""

import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from rove import display, platform
from rove.commands import console, optional, say
from rove.errors import ConfigError, did_you_mean
from rove.experiments import EXPERIMENTS
from rove.experiments.base import write_claims
from rove.experiments.claims import Claim, adjusted


def reproduce(
    experiment: Annotated[tyro.conf.Positional[str], optional("EXPERIMENT", "all")] = "all",
    /,
    quick: bool = False,
    out: Annotated[Path | None, optional("DIR", "in reproduction/")] = None,
    workers: Annotated[int | None, optional("N", "one a core")] = None,
) -> None:
    """Run an experiment, draw its figure and check the claims made of it; or all, and a report.

    Args:
        experiment: which one (see rove list), or all of them, one after the other.
        quick: fewer seeds and episodes: minutes, and still shows the effect.
        out: folder for data, figure and claims.
        workers: lanes (a lane is the run of one seed) to run at once.
    """
    if experiment != "all" and experiment not in EXPERIMENTS:
        allowed = "one of " + ", ".join(EXPERIMENTS) + did_you_mean(experiment, EXPERIMENTS)
        raise ConfigError("experiment", experiment, allowed)
    platform.prepare(lanes=1)  # all others run in processes of their own
    root = out or Path("reproduction")
    if experiment != "all":
        folder = out or root / (experiment + "-quick" * quick)
        display.claims_table(console, _experiment(experiment, quick, folder, workers), experiment)
        return
    folders = {name: root / (name + "-quick" * quick) for name in EXPERIMENTS}
    claims = {}
    for name, folder in list(folders.items()):
        if missing := EXPERIMENTS[name].missing():
            say(f"{name} is left out: {missing}")
            del folders[name]
            continue
        claims[name] = _experiment(name, quick, folder, workers)
    for name, found in _adjusted(claims).items():
        write_claims(folders[name], found)
        display.claims_table(console, found, name)
    from rove import report

    page = root / ("report-quick.html" if quick else "report.html")
    report.write(list(folders.values()), page)
    say(f"all of it on one page: {page}")


def _experiment(name: str, quick: bool, folder: Path, workers: int | None) -> list[Claim]:
    began = time.monotonic()
    made = EXPERIMENTS[name](quick=quick)
    with display.Live(console, made.jobs()) as bars:
        claims = made.run(folder, bars.report, workers)
    say(f"{name}: written to {folder} in {time.monotonic() - began:.0f} s")
    return claims


def _adjusted(claims: Mapping[str, Sequence[Claim]]) -> dict[str, list[Claim]]:
    """Holm's adjustment over all experiments, in place of that within each."""
    left = iter(adjusted([claim for found in claims.values() for claim in found]))
    return {name: list(itertools.islice(left, len(found))) for name, found in claims.items()}


def tune(
    search: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SEARCH")],
    /,
    out: Annotated[Path | None, optional("DIR", "in tuning/")] = None,
    workers: Annotated[int | None, optional("N", "one a core")] = None,
) -> None:
    """Search the settings of agents with one budget for all, on seeds of its own.

    Args:
        search: which one: figure-2, figure-3, figure-4, scoreboard or deep-sea.
        out: folder for tuned.json and record.csv, which a second call goes on from.
        workers: lanes (a lane is the run of one seed) to run at once.
    """
    from rove.experiments import tune as searching
    from rove.experiments.searches import SEARCHES

    if search not in SEARCHES:
        allowed = "one of " + ", ".join(SEARCHES) + did_you_mean(search, SEARCHES)
        raise ConfigError("search", search, allowed)
    platform.prepare(lanes=1)  # all others run in processes of their own
    searching.tune(SEARCHES[search], out or Path("tuning") / search, say, workers)
