"""`rove reproduce`: the experiments, and the searches behind the default settings."""

import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from rove.cli import display
from rove.cli.console import console, optional, prose, say, word
from rove.cli.options import parse
from rove.errors import RoveError, check_integer, unknown_name
from rove.paper import EXPERIMENTS
from rove.paper.base import Experiment, write_claims
from rove.paper.claims import Claim, adjusted
from rove.paper.suite import Suite
from rove.parts import platform
from rove.runs.live import Live


def command(arguments: list[str]) -> None:
    """Run `rove reproduce`, `rove reproduce suite` or `rove reproduce tuning`."""
    if arguments[:1] == ["tuning"]:
        parse(tune, arguments[1:], "rove reproduce tuning")
    elif arguments[:1] == ["suite"]:
        parse(suite, arguments[1:], "rove reproduce suite")
    else:
        parse(reproduce, arguments, "rove reproduce")


def reproduce(
    experiment: Annotated[
        tyro.conf.Positional[str], optional("[EXPERIMENT]", "all, if --quick is given")
    ] = "",
    /,
    quick: bool = False,
    out: Annotated[Path | None, optional("DIR", "reproduction/EXPERIMENT")] = None,
    workers: Annotated[int | None, optional("N", "one per core")] = None,
) -> None:
    """Run an experiment, draw its figure and check its claims; or run all experiments and write a
    report.

    To repeat a search behind the default settings, use rove reproduce tuning SEARCH. For the
    options of the suite, see rove reproduce suite --help.

    Args:
        experiment: Name of an experiment (see rove list), or all (hours without --quick).
        quick: Draw the figure from few seeds and episodes, in minutes, and print the claims as the
            committed full run judged them: so few seeds cannot test a claim.
        out: Folder for the data, the figure and the claims.
        workers: Number of seeds to train at the same time.
    """
    if not experiment and not quick:
        raise RoveError(
            "rove reproduce takes hours in full: name an experiment ("
            + ", ".join(EXPERIMENTS)
            + "), use --quick for all in minutes, or write rove reproduce all"
        )
    experiment = experiment or "all"
    if experiment != "all" and experiment not in EXPERIMENTS:
        raise RoveError(unknown_name("experiment", experiment, [*EXPERIMENTS, "tuning", "all"]))
    platform.prepare(lanes=1)  # the seeds train in worker processes
    root = out or Path("reproduction")
    if experiment != "all":
        folder = out or root / (experiment + "-quick" * quick)
        claims = _experiment(experiment, quick, folder, workers)
        display.claims_table(console, claims, experiment, quick)
        return
    if not quick:
        prose(console, "running all experiments in full, which takes hours; --quick takes minutes")
    names = [name for name, kind in EXPERIMENTS.items() if kind.in_all]
    folders = {name: root / (name + "-quick" * quick) for name in names}
    claims_of: dict[str, list[Claim]] = {}
    for name, folder in list(folders.items()):
        if missing := EXPERIMENTS[name].missing():
            prose(console, f"skipping {name}: {missing}")
            del folders[name]
            continue
        claims_of[name] = _experiment(name, quick, folder, workers)
    for name, claims in (claims_of if quick else _adjusted(claims_of)).items():
        if not quick:
            write_claims(folders[name], claims)
        display.claims_table(console, claims, name, quick)
    from rove.reporting import report

    page = root / ("report-quick.html" if quick else "report.html")
    report(list(folders.values()), page)
    prose(console, f"report of all experiments: {word(page)}")


def _experiment(name: str, quick: bool, folder: Path, workers: int | None) -> list[Claim]:
    """Run an experiment with a progress bar and return its claims."""
    return _timed(EXPERIMENTS[name](quick=quick), folder, workers)


def _timed(experiment: Experiment, folder: Path, workers: int | None) -> list[Claim]:
    began = time.monotonic()
    with Live(console, experiment.jobs()) as bars:
        claims = experiment.run(folder, bars.report, workers)
    seconds = time.monotonic() - began
    prose(console, f"{experiment.name}: written to {word(folder)} in {seconds:.0f} s")
    return claims


def suite(
    quick: bool = False,
    tasks: Annotated[tuple[str, ...], optional("[TASK ...]", "all")] = (),
    agents: Annotated[tuple[str, ...], optional("[AGENT ...]", "all")] = (),
    seeds: Annotated[int | None, optional("N", "10")] = None,
    out: Annotated[Path | None, optional("DIR", "reproduction/suite")] = None,
    workers: Annotated[int | None, optional("N", "2")] = None,
) -> None:
    """Run agents on 18 tasks, each agent with one setting for all of them.

    Half of the tasks are for development: default settings may be chosen on them, but not on the
    other, held-out half. The agents are those of rove with their default settings, and
    stable-baselines3's DQN (sb3, sb3-zoo), which is installed into a separate virtual environment
    (about 1 GB). In full, it takes hours.

    Args:
        quick: Use few tasks, steps and seeds, without stable-baselines3 unless it is named.
        tasks: Names of tasks, such as deep-sea-10.
        agents: Names of agents: random, dqn, ge, ige, bootstrapped_dqn, auto, sb3 or sb3-zoo.
        seeds: Number of seeds.
        out: Folder for the data, the figure and the tables; running the command again resumes.
        workers: Number of seeds to train at the same time, at most 2.
    """
    for field, value in (("seeds", seeds), ("workers", workers)):
        if value is not None:
            check_integer(field, value, at_least=1)
    experiment = Suite(quick=quick, tasks=tasks, agents=agents, seeds=seeds, say=say)
    platform.prepare(lanes=1)  # the seeds train in worker processes
    folder = out or Path("reproduction") / ("suite" + "-quick" * quick)
    claims = _timed(experiment, folder, workers)
    display.claims_table(console, claims, experiment.name, quick)


def _adjusted(claims: Mapping[str, Sequence[Claim]]) -> dict[str, list[Claim]]:
    """Apply Holm's adjustment over the claims of all experiments instead of within each one."""
    remaining = iter(adjusted([claim for group in claims.values() for claim in group]))
    return {name: list(itertools.islice(remaining, len(group))) for name, group in claims.items()}


def tune(
    search: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SEARCH")],
    /,
    out: Annotated[Path | None, optional("DIR", "tuning/SEARCH")] = None,
    workers: Annotated[int | None, optional("N", "one per core")] = None,
) -> None:
    """Search the settings of several agents, with the same budget for each agent.

    The seeds of a search are not used by any experiment.

    Args:
        search: Name of the search: figure-2, figure-3, figure-4, scoreboard or deep-sea.
        out: Folder for tuned.json and record.csv; running the command again resumes from it.
        workers: Number of seeds to train at the same time.
    """
    from rove.search import tune as searching
    from rove.search.grids import SEARCHES

    if search not in SEARCHES:
        raise RoveError(unknown_name("search", search, SEARCHES))
    platform.prepare(lanes=1)  # the seeds train in worker processes
    searching.tune(SEARCHES[search], out or Path("tuning") / search, say, workers)
