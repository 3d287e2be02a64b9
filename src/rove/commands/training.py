"""`rove train` and `rove sweep`."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from rove import display, environments, live, platform, runner, spans, sweeps
from rove.commands import console, errors, optional, say
from rove.errors import ConfigError, LaneError, RoveError
from rove.run import Run
from rove.training import lanes
from rove.tuned import tuned

USAGE = {
    "train": "rove train AGENT ENVIRONMENT [--seeds N] [--episodes N | --steps N] [--out DIR]\n"
    "                  [--agent.FIELD VALUE ...] [--env.FIELD VALUE ...]\n"
    "       for example: rove train ge chain-100 --seeds 5 --episodes 250 --out runs/a\n"
    "       the fields:  rove train ge chain-100 --help",
    "sweep": "rove sweep AGENT ENVIRONMENT --agent.FIELD=VALUES ... [--seeds N] [--out DIR]\n"
    "       VALUES: a:b:n (evenly spaced), a:b:logn (geometrically), or a list a,b,c\n"
    "       for example: rove sweep ge sparse-cartpole --agent.rho=-10:-1:10 "
    "--agent.sigma=1e-8:1e-1:log8\n"
    "       the fields:  rove sweep ge sparse-cartpole --help",
}


DEFAULTS = {
    True: "Defaults are the settings tuned for this environment, or for the nearest that was.",
    False: "Plain defaults: nothing was tuned for this agent here.",
}
"""Where they are from, by whether a search has found some."""
USUAL = {True: {"steps": 50_000}, False: {"episodes": 250}}
"""What a lane gets if nothing is said, by whether actions are continuous."""


@dataclasses.dataclass(frozen=True)
class Budget:
    episodes: Annotated[
        int | None, optional("N", "250, or 50,000 steps where actions are continuous")
    ] = None
    """Stop every lane (a lane is the run of one seed) after so many episodes."""
    steps: Annotated[int | None, optional("N")] = None
    """Stop every lane after so many steps instead."""
    until_solved: bool = False
    """Stop a lane early, at ten optimal episodes in a row."""
    workers: Annotated[int | None, optional("N", "one a core; on threads, all of gym/ID")] = None
    """Lanes at once."""
    on: Annotated[str, tyro.conf.arg(metavar="{processes,threads,ray,ray://HOST:PORT}")] = (
        "processes"
    )
    """Where lanes run: processes, threads of this one, or a Ray cluster. Results are the same."""
    log: Annotated[Literal["tensorboard", "trackio"] | None, optional("{tensorboard,trackio}")] = (
        None
    )
    """Follow it in one of these; what they show is kept in the folder."""


@dataclasses.dataclass(frozen=True)
class Train(Budget):
    seeds: int = 1
    """How many seeds (0, 1, …); each is a lane."""
    out: Annotated[Path | None, optional("DIR", "runs/AGENT-ENVIRONMENT")] = None
    """Run folder, which the same command goes on from."""


@dataclasses.dataclass(frozen=True)
class Sweep(Budget):
    seeds: int = 3
    """How many tuning seeds (1000, 1001, …)."""
    confirm_seeds: Annotated[int | None, optional("N", "as many as tuning seeds")] = None
    """On how many other seeds (0, 1, …) the best is run again."""
    method: Literal["grid", "random", "halving"] = "grid"
    """All points; --points of them; or all on one seed, the better half on two, and so on."""
    points: Annotated[int | None, optional("N")] = None
    """How many points to draw from the grid, for random and halving."""
    out: Annotated[Path | None, optional("DIR", "sweeps/AGENT-ENVIRONMENT")] = None
    """Folder, which the same command goes on from."""


def _told(
    command: str, kind: type, arguments: list[str], about: str = ""
) -> tuple[Any, environments.Task]:
    """What a person asks of an agent on an environment: the fields of --agent and --env depend on
    the two names. `about` ends the help's first lines."""
    names = arguments[: next((i for i, a in enumerate(arguments) if a.startswith("-")), 2)][:2]
    if len(names) < 2:
        usage = f"usage: {USAGE[command]}\n\nrove list shows the names."
        if "-h" in arguments or "--help" in arguments:
            say(usage)
            sys.exit(0)
        got = f", and got: {' '.join(arguments)}" if arguments else ""
        raise RoveError(f"rove {command} needs an agent and an environment first{got}\n{usage}")
    environment = environments.make(names[1])
    settable = environments.settings(environment)
    settings = runner.default_settings(names[0], environment)
    defaults = DEFAULTS[bool(tuned(names[0], environment.name))]
    made = dataclasses.make_dataclass(
        kind.__name__,
        [
            ("agent", type(settings), dataclasses.field(default_factory=lambda: settings)),
            ("env", type(settable), dataclasses.field(default_factory=lambda: settable)),
        ],
        bases=(kind,),
        frozen=True,
    )
    told: Any = tyro.cli(
        made,
        args=arguments[2:],
        prog=f"rove {command} {names[0]} {names[1]}",
        description=f"{type(settings).__doc__}\n\n{defaults}{about}",
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )
    chosen = environments.configured(environment, told.env)
    if chosen.name.rpartition("-")[2] != environment.name.rpartition("-")[2]:
        what = f"the size in the name; write {chosen.name} in place of {environment.name}"
        raise ConfigError("env.n", getattr(chosen, "n", None), what)
    if told.episodes is not None and told.steps is not None:
        raise ConfigError("steps", told.steps, "not with --episodes: give one of the two")
    if told.episodes is None and told.steps is None:
        told = dataclasses.replace(told, **USUAL[chosen.continuous])
    return told, chosen


def train(arguments: list[str]) -> None:
    """`rove train`."""
    told, chosen = _told("train", Train, arguments)
    hosted = isinstance(chosen, environments.HostEnvironment)  # its lanes take turns
    platform.prepare(lanes=1 if hosted else min(told.seeds, told.workers or lanes.cores()))
    config = runner.configure(
        told.agent,
        chosen,
        seeds=told.seeds,
        episodes=told.episodes,
        steps=told.steps,
        until_solved=told.until_solved,
    )
    out = told.out or config.default_folder
    with _followed(told.log, out) as tracker, display.Live(console, config.jobs(None)) as bars:
        run = runner.run_all([(config, out)], bars.report, told.workers, told.on, tracker)[0]
    if run.outcomes:
        run.draw(out)
        display.closing_table(console, run)
        for alarm in run.alarms:
            errors.print(f"[bold yellow]warning:[/] {alarm}", highlight=False)
        _warn_untrained(run)
    if run.errors:
        raise LaneError("\n".join(map(str, run.errors)))
    say(
        f"written to {out}: config.json, episodes.csv, learning-curve.png, diagnostics.png and "
        "diagnostics.json, lanes/"
    )


def _warn_untrained(run: Run) -> None:
    """A run may be over before learning starts."""
    starts = int(run.outcomes[0].job.agent.learning_starts)
    most = max(int(outcome.lane.step) for outcome in run.outcomes)
    if most < starts and not run.errors:
        told = f"nothing was learned: learning starts at step {starts:,}, and the run has {most:,}"
        errors.print(f"[bold yellow]warning:[/] {told}", highlight=False)


@contextlib.contextmanager
def _followed(log: str | None, out: Path) -> Iterator[live.Tracker | None]:
    """The tracker, and a line on how to see it."""
    with live.opened(log, out) as tracker:
        if log is not None:
            say(f"to follow it: {live.how_to_watch(log, out)}")
        yield tracker


def sweep(arguments: list[str]) -> None:
    """`rove sweep`: fields of --agent that are told several values are swept."""
    fields, others = spans.taken_out(arguments)
    about = f"\n\nA field of --agent is swept if it has several values: {spans.SPELLING}."
    told, chosen = _told("sweep", Sweep, others, about)
    if not fields:
        raise RoveError(f"nothing to sweep: no --agent.FIELD has several values ({spans.SPELLING})")
    plan = sweeps.plan(
        told.agent,
        chosen,
        fields,
        seeds=told.seeds,
        confirm_seeds=told.confirm_seeds,
        method=told.method,
        points=told.points,
        episodes=told.episodes,
        steps=told.steps,
        until_solved=told.until_solved,
    )
    out = told.out or Path("sweeps") / plan.base.default_folder.name
    with _followed(told.log, out) as tracker, display.SweepLive(console, plan.total) as bar:
        found = sweeps.run(plan, out, bar.report, told.workers, told.on, tracker)
    display.sweep_table(console, found)
    say(f"written to {out}: sweep.csv, sweep.json, sweep.png, points/, confirmed/")
