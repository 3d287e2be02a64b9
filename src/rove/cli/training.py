"""`rove train` and `rove sweep`."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from rove import environments
from rove.agents.tuned import tuned
from rove.cli import display
from rove.cli.console import console, errors, optional, say
from rove.errors import ConfigError, LaneError, RoveError
from rove.parts import platform
from rove.runs import tracking
from rove.runs.configure import configure, default_settings
from rove.runs.execution import run_all
from rove.runs.result import Run
from rove.search import space
from rove.search import sweep as sweeps
from rove.training.executors import cores

USAGE = {
    "train": "rove train AGENT ENVIRONMENT [--seeds N] [--episodes N | --steps N] [--out DIR]\n"
    "                  [--agent.FIELD VALUE ...] [--env.FIELD VALUE ...]\n"
    "       for example: rove train ge chain-100 --seeds 5 --episodes 250 --out runs/a\n"
    "       all options: rove train ge chain-100 --help",
    "sweep": "rove sweep AGENT ENVIRONMENT --agent.FIELD=VALUES ... [--seeds N] [--out DIR]\n"
    "       VALUES: -6:-2:5 (evenly spaced), 1e-4:1e-1:log4 (geometrically), or a list 1,2,3\n"
    "       for example: rove sweep ge sparse-cartpole --agent.rho=-10:-1:10 "
    "--agent.sigma=1e-8:1e-1:log8\n"
    "       all options: rove sweep ge sparse-cartpole --help",
}


DEFAULTS = {
    True: "Defaults are the settings tuned for this environment or the most similar tuned one.",
    False: "Defaults are generic: this agent has not been tuned for this environment.",
}
"""Where the default settings come from, by whether tuned ones exist."""
DEFAULT_BUDGET = {True: {"steps": 50_000}, False: {"episodes": 250}}
"""The training budget if none is given, by whether actions are continuous."""


@dataclasses.dataclass(frozen=True)
class SharedOptions:
    """Options that `rove train` and `rove sweep` share."""

    episodes: Annotated[
        int | None, optional("N", "250, or 50,000 steps with continuous actions")
    ] = None
    """Number of episodes to train each seed for."""
    steps: Annotated[int | None, optional("N")] = None
    """Number of steps to train each seed for, instead of a number of episodes."""
    until_solved: bool = False
    """Stop a seed after ten episodes in a row with the best return; needs a known optimum."""
    workers: Annotated[
        int | None,
        optional("N", "one per core; all seeds with --on threads and a Gymnasium environment"),
    ] = None
    """Number of seeds to train at the same time."""
    on: Annotated[str, tyro.conf.arg(metavar="{processes,threads,ray,ray://HOST:PORT}")] = (
        "processes"
    )
    """Train in processes, in threads or on a Ray cluster; results are identical."""
    log: Annotated[Literal["tensorboard", "trackio"] | None, optional("{tensorboard,trackio}")] = (
        None
    )
    """Log to this tracker while training; its files are written to the output folder."""


@dataclasses.dataclass(frozen=True)
class TrainOptions(SharedOptions):
    """Options of `rove train`."""

    seeds: int = 1
    """Number of seeds (0, 1, …); each is trained independently."""
    out: Annotated[Path | None, optional("DIR", "runs/AGENT-ENVIRONMENT")] = None
    """Run folder; running the same command again resumes from it."""


@dataclasses.dataclass(frozen=True)
class SweepOptions(SharedOptions):
    """Options of `rove sweep`."""

    seeds: int = 3
    """Number of seeds to tune on (1000, 1001, …)."""
    confirm_seeds: Annotated[int | None, optional("N", "the value of --seeds")] = None
    """Number of fresh seeds (0, 1, …) to confirm the best point on; 0: none."""
    method: Literal["grid", "random", "halving"] = "grid"
    """grid: try all points; random: try --points of them; halving: repeatedly keep the better half
    and try it on more seeds."""
    points: Annotated[int | None, optional("N")] = None
    """Number of points to draw, at most the whole grid; only with --method random or halving."""
    out: Annotated[Path | None, optional("DIR", "sweeps/AGENT-ENVIRONMENT")] = None
    """Sweep folder; running the same command again resumes from it."""


def _parse(
    command: str, kind: type, arguments: list[str], about: str = ""
) -> tuple[Any, environments.Task]:
    """Parse the command line into options and an environment. Which --agent and --env options exist
    depends on the two names. `about` is appended to the description in the help."""
    names = arguments[: next((i for i, a in enumerate(arguments) if a.startswith("-")), 2)][:2]
    if len(names) < 2:
        usage = f"usage: {USAGE[command]}\n\nrove list shows all agents and environments."
        if "-h" in arguments or "--help" in arguments:
            say(usage)
            sys.exit(0)
        got = f", got: {' '.join(arguments)}" if arguments else ""
        raise RoveError(f"rove {command} needs an agent and an environment first{got}\n{usage}")
    environment = environments.make(names[1])
    settable = environments.settings(environment)
    settings = default_settings(names[0], environment)
    defaults = DEFAULTS[bool(tuned(names[0], environment.name))]
    options = dataclasses.make_dataclass(
        kind.__name__,
        [
            ("agent", type(settings), dataclasses.field(default_factory=lambda: settings)),
            ("env", type(settable), dataclasses.field(default_factory=lambda: settable)),
        ],
        bases=(kind,),
        frozen=True,
    )
    parsed: Any = tyro.cli(
        options,
        args=arguments[2:],
        prog=f"rove {command} {names[0]} {names[1]}",
        description=f"{type(settings).__doc__}\n\n{defaults}{about}",
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )
    chosen = environments.configured(environment, parsed.env)
    if chosen.name.rpartition("-")[2] != environment.name.rpartition("-")[2]:
        message = f"the size is part of the name: write {chosen.name} instead of {environment.name}"
        raise ConfigError("env.n", getattr(chosen, "n", None), chosen.name, message)
    if parsed.episodes is not None and parsed.steps is not None:
        raise RoveError("give either --episodes or --steps, not both")
    if parsed.episodes is None and parsed.steps is None:
        parsed = dataclasses.replace(parsed, **DEFAULT_BUDGET[chosen.continuous])
    return parsed, chosen


def train(arguments: list[str]) -> None:
    """Run `rove train`."""
    options, chosen = _parse("train", TrainOptions, arguments)
    # Seeds of a Gymnasium environment share one device.
    hosted = isinstance(chosen, environments.HostEnvironment)
    platform.prepare(lanes=1 if hosted else min(options.seeds, options.workers or cores()))
    config = configure(
        options.agent,
        chosen,
        seeds=options.seeds,
        episodes=options.episodes,
        steps=options.steps,
        until_solved=options.until_solved,
    )
    out = options.out or config.default_folder
    with (
        _open_tracker(options.log, out) as tracker,
        display.Live(console, config.jobs(None)) as bars,
    ):
        run = run_all([(config, out)], bars.report, options.workers, options.on, tracker)[0]
    if run.outcomes:
        run.draw(out)
        display.closing_table(console, run)
        for alarm in run.alarms:
            errors.print(f"[bold yellow]warning:[/] {alarm}", highlight=False)
        _warn_untrained(run)
    if run.errors:
        raise LaneError("\n".join(map(str, run.errors)))
    say(
        f"written to {out}: config.json, episodes.csv, learning-curve.png, diagnostics.png, "
        "diagnostics.json and lanes/ (checkpoints)"
    )


def _warn_untrained(run: Run) -> None:
    """Warn if the run ended before learning started."""
    starts = int(run.outcomes[0].job.agent.learning_starts)
    most = max(int(outcome.lane.step) for outcome in run.outcomes)
    if most < starts and not run.errors:
        message = (
            f"nothing was learned: learning starts at step {starts:,}, but the run ended after "
            f"{most:,} steps"
        )
        errors.print(f"[bold yellow]warning:[/] {message}", highlight=False)


@contextlib.contextmanager
def _open_tracker(log: str | None, out: Path) -> Iterator[tracking.Tracker | None]:
    """Open the tracker and print how to view it."""
    with tracking.opened(log, out) as tracker:
        if log is not None:
            say(f"to follow training: {tracking.how_to_watch(log, out)}")
        yield tracker


def sweep(arguments: list[str]) -> None:
    """Run `rove sweep`: an --agent option with several values is swept."""
    fields, others = space.split_arguments(arguments)
    for field in fields:
        if any(word.partition("=")[0] == f"--agent.{field.replace('_', '-')}" for word in others):
            raise RoveError(f"--agent.{field} is given twice: with one value and with several")
    about = f"\n\nAn --agent option with several values is swept: {space.SPELLING}."
    options, chosen = _parse("sweep", SweepOptions, others, about)
    if not fields:
        what = "nothing to sweep: give at least one --agent option several values"
        raise RoveError(f"{what}, written as {space.SPELLING}")
    plan = sweeps.plan(
        options.agent,
        chosen,
        fields,
        seeds=options.seeds,
        confirm_seeds=options.confirm_seeds,
        method=options.method,
        points=options.points,
        episodes=options.episodes,
        steps=options.steps,
        until_solved=options.until_solved,
    )
    out = options.out or Path("sweeps") / plan.base.default_folder.name
    with _open_tracker(options.log, out) as tracker, display.SweepLive(console, plan.total) as bar:
        result = sweeps.run(plan, out, bar.report, options.workers, options.on, tracker)
    display.sweep_table(console, result)
    say(f"written to {out}: sweep.csv, sweep.json, sweep.png, points/, confirmed/")
