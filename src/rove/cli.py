"""The `rove` command."""

import contextlib
import dataclasses
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from rove import display, environments, live, platform, runner, spans, sweeps
from rove.agents import AGENTS
from rove.algorithm import Agent
from rove.errors import ConfigError, LaneError, RoveError, did_you_mean
from rove.experiments import EXPERIMENTS
from rove.training import lanes

COMMANDS = {
    "list": "agents, environments and experiments, each with a line",
    "train": "train an agent on an environment",
    "sweep": "try many settings of an agent, and confirm the best",
    "reproduce": "run an experiment, such as a figure of the paper, and check its claims",
    "watch": "a film of a trained policy",
    "tune": "search the settings of agents with one budget for all",
    "report": "one HTML file of runs, experiments and sweeps, that opens offline",
}
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
    "reproduce": "rove reproduce [EXPERIMENT] [--quick] [--out DIR]",
}

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command. Exit code 2 for a mistake in what was asked, 1 for a lane that failed."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # a scheduler's SIGTERM is a Ctrl-C, which a shell's & ignores: save and stop
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        gc.freeze()  # what is imported stays: no need to go over it while a program is traced
    try:
        _dispatch(arguments)
    except RoveError as error:
        errors.print("[bold red]error:[/]", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1 if isinstance(error, LaneError) else 2)
    except KeyboardInterrupt:
        errors.print("stopped; run the same command again to go on from the last checkpoint")
        sys.exit(130)


def _dispatch(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _help()
        return
    command, rest = arguments[0], arguments[1:]
    if command == "--version":
        from rove import __version__

        _say(f"rove {__version__}")
    elif command == "list":
        tyro.cli(_list, args=rest, prog="rove list")
    elif command == "train":
        _train(rest)
    elif command == "sweep":
        _sweep(rest)
    elif command == "reproduce":
        tyro.cli(_reproduce, args=rest, prog="rove reproduce")
    elif command == "watch":
        tyro.cli(_watch, args=rest, prog="rove watch")
    elif command == "tune":
        tyro.cli(_tune, args=rest, prog="rove tune")
    elif command == "report":
        tyro.cli(_report, args=rest, prog="rove report")
    else:
        allowed = "one of " + ", ".join(COMMANDS) + did_you_mean(command, COMMANDS)
        raise ConfigError("command", command, allowed)


def _help() -> None:
    console.print("[bold]rove[/]: exploration in reinforcement learning\n")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, text in COMMANDS.items():
        table.add_row(f"rove {name}", text)
    console.print(table)
    _say(f"\nusage: {USAGE['train']}\n       more on each: rove COMMAND --help")


def _say(text: str) -> None:
    """Plain text, as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _list(grid: bool = False) -> None:
    """Agents, environments and experiments, each with a line.

    Args:
        grid: instead, every return family with every parameter family: the named agents of a
            pair, ✓ where a pair works and has no name, – where it cannot work, and why.
    """
    if grid:
        _grid()
        return
    tables = {
        "agents": {name: kind.__doc__ for name, kind in AGENTS.items()},
        "environments": dict(
            zip(
                environments.names(),
                (f.doc for f in environments.ENVIRONMENTS.values()),
                strict=True,
            )
        )
        | {name: doc for name, (_, _, doc) in environments.ALIASES.items()}
        | {"gym/ID": "Any environment that is registered with Gymnasium: gym/CartPole-v1."},
        "experiments": {name: kind.__doc__ for name, kind in EXPERIMENTS.items()},
    }
    for title, rows in tables.items():
        table = Table(box=None, show_header=False, padding=(0, 2))
        for name, doc in rows.items():
            table.add_row(f"[bold]{name}[/]", (doc or "").strip().splitlines()[0])
        console.print(f"[underline]{title}[/]")
        console.print(table)
        console.print()


def _grid() -> None:
    from rove import grid

    named: dict[tuple[str, str], list[str]] = {}
    for name, settings in AGENTS.items():
        if isinstance(agent := settings().compose(), Agent):  # the tabular ones have no place
            named.setdefault(grid.place(agent), []).append(name)
    pairs = grid.working()
    table = Table("q_φ(θ) \\ Z_θ")
    for column in grid.RETURNS:
        table.add_column(column, overflow="fold")
    for row in grid.POSTERIORS:
        cells = []
        for column in grid.RETURNS:
            works = isinstance(pairs[column, row], Agent)
            cells.append(", ".join(named.get((column, row), ["✓" if works else "–"])))
        table.add_row(row, *cells)
    console.print(table)
    _say(f"{sum(isinstance(x, Agent) for x in pairs.values())} pairs work.")
    for reason in dict.fromkeys(str(x) for x in pairs.values() if not isinstance(x, Agent)):
        _say(f"– {reason}")


@dataclasses.dataclass(frozen=True)
class Budget:
    episodes: int | None = None
    """Stop every lane after so many episodes. If neither this nor --steps is given: 250."""
    steps: int | None = None
    """Stop every lane after so many steps instead; 50,000 where actions are continuous and nothing
    is given: there an episode may be of two steps or of a thousand."""
    until_solved: bool = False
    """Stop a lane early, at ten optimal episodes in a row."""
    workers: int | None = None
    """Lanes (a lane is the run of one seed) at once. If not given: one a core; with --on threads,
    of gym/ID all."""
    on: str = "processes"
    """Where lanes run: each in a process (processes), in threads of this one (threads), or on a
    Ray cluster (ray, ray://HOST:PORT). The results are the same."""
    log: Literal["tensorboard", "trackio"] | None = None
    """Follow it in one of these; what they show is kept in the folder."""


@dataclasses.dataclass(frozen=True)
class Train(Budget):
    seeds: int = 1
    """How many seeds (0, 1, …); each is a lane."""
    out: Path | None = None
    """Run folder, which the same command goes on from. If not given: runs/AGENT-ENVIRONMENT."""


@dataclasses.dataclass(frozen=True)
class Sweep(Budget):
    seeds: int = 3
    """How many tuning seeds (1000, 1001, …)."""
    confirm_seeds: int | None = None
    """On how many other seeds (0, 1, …) the best is run again. If not given: as many."""
    method: Literal["grid", "random", "halving"] = "grid"
    """All points; --points of them; or all on one seed, the better half on two, and so on."""
    points: int | None = None
    """How many points to draw from the grid, for random and halving."""
    out: Path | None = None
    """Folder, which the same command goes on from. If not given: sweeps/AGENT-ENVIRONMENT."""


def _told(command: str, kind: type, arguments: list[str]) -> tuple[Any, environments.Task]:
    """What a person asks of an agent on an environment: the fields of --agent and --env depend on
    the two names."""
    names = arguments[: next((i for i, a in enumerate(arguments) if a.startswith("-")), 2)][:2]
    if len(names) < 2:
        if "-h" in arguments or "--help" in arguments:
            _say(f"usage: {USAGE[command]}\n\nrove list shows the names.")
            sys.exit(0)
        got = " ".join(arguments) or "nothing"
        raise ConfigError(command, got, f"an agent and an environment first\n{USAGE[command]}")
    environment = environments.make(names[1])
    settable = environments.settings(environment)
    settings = runner.default_settings(names[0], environment)
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
        description=f"{type(settings).__doc__}\n\nDefaults are the settings tuned for this "
        "environment, or for the nearest that was.",
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )
    chosen = environments.configured(environment, told.env)
    if chosen.name.rpartition("-")[2] != environment.name.rpartition("-")[2]:
        what = f"the size in the name; write {chosen.name} in place of {environment.name}"
        raise ConfigError("env.n", getattr(chosen, "n", None), what)
    if told.episodes is not None and told.steps is not None:
        raise ConfigError("steps", told.steps, "not with --episodes: give one of the two")
    if told.episodes is None and told.steps is None:
        usual = {"steps": 50_000} if chosen.continuous else {"episodes": 250}
        told = dataclasses.replace(told, **usual)
    return told, chosen


def _train(arguments: list[str]) -> None:
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
        display.closing_table(console, run)
        run.draw(out)
        for alarm in run.alarms:
            errors.print(f"[bold yellow]warning:[/] {alarm}", highlight=False)
    if run.errors:
        raise LaneError("\n".join(map(str, run.errors)))
    _say(
        f"written to {out}: config.json, episodes.csv, learning-curve.png, diagnostics.png and "
        "diagnostics.json, lanes/"
    )


@contextlib.contextmanager
def _followed(log: str | None, out: Path) -> Iterator[live.Tracker | None]:
    """The tracker, and a line on how to see it."""
    with live.opened(log, out) as tracker:
        if log is not None:
            _say(f"to follow it: {live.how_to_watch(log, out)}")
        yield tracker


def _sweep(arguments: list[str]) -> None:
    """`rove sweep`: fields of --agent that are told several values are swept."""
    fields, others = spans.taken_out(arguments)
    told, chosen = _told("sweep", Sweep, others)
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
    _say(f"written to {out}: sweep.csv, sweep.json, sweep.png, points/, confirmed/")


def _reproduce(
    experiment: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="EXPERIMENT")] = "all",
    /,
    quick: bool = False,
    out: Path | None = None,
    workers: int | None = None,
) -> None:
    """Run an experiment, draw its figure and check the claims made of it; or all, and a report.

    Args:
        experiment: which one (see rove list). If not given: all of them, one after the other.
        quick: fewer seeds and episodes: minutes, and still shows the effect.
        out: folder for data, figure and claims. If not given: in reproduction/.
        workers: lanes to run at once. If not given: one a core.
    """
    if experiment != "all" and experiment not in EXPERIMENTS:
        allowed = "one of " + ", ".join(EXPERIMENTS) + did_you_mean(experiment, EXPERIMENTS)
        raise ConfigError("experiment", experiment, allowed)
    platform.prepare(lanes=1)  # all others run in processes of their own
    root = out or Path("reproduction")
    if experiment != "all":
        folder = out or root / (experiment + "-quick" * quick)
        _experiment(experiment, quick, folder, workers)
        return
    folders = {name: root / (name + "-quick" * quick) for name in EXPERIMENTS}
    for name, folder in list(folders.items()):
        if missing := EXPERIMENTS[name].missing():
            _say(f"{name} is left out: {missing}")
            del folders[name]
            continue
        _experiment(name, quick, folder, workers)
    from rove import report

    page = root / ("report-quick.html" if quick else "report.html")
    report.write(list(folders.values()), page)
    _say(f"all of it on one page: {page}")


def _experiment(name: str, quick: bool, folder: Path, workers: int | None) -> None:
    began = time.monotonic()
    made = EXPERIMENTS[name](quick=quick)
    with display.Live(console, made.jobs()) as bars:
        claims = made.run(folder, bars.report, workers)
    display.claims_table(console, claims, name)
    _say(f"written to {folder} in {time.monotonic() - began:.0f} s")


def _watch(
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
    /,
    seed: int | None = None,
    episodes: int = 1,
    out: Path | None = None,
) -> None:
    """Film a trained policy: greedy on the posterior mean, without noise.

    Args:
        run: a run folder, as rove train writes it.
        seed: which lane. If not given: the first.
        episodes: how many, one after the other.
        out: a .gif or .mp4. If not given: watch.gif in the run folder.
    """
    from rove.watching import watch

    if "DISPLAY" not in os.environ:  # what draws has to know before it is imported
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    loaded = runner.load(run)
    path, scores = watch(loaded, seed, out, episodes)
    shown = ", ".join(f"{score:g}" for score in scores)
    _say(f"{loaded.config.environment.score_label}: {shown}\nwritten to {path}")


def _tune(
    search: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SEARCH")],
    /,
    out: Path | None = None,
    workers: int | None = None,
) -> None:
    """Search the settings of agents with one budget for all, on seeds of its own.

    Args:
        search: which one: figure-2, figure-3, figure-4 or scoreboard.
        out: folder for record.csv (a second call goes on from it) and tuned.json. If not given:
            in tuning/.
        workers: lanes to run at once. If not given: one a core.
    """
    from rove.experiments.searches import SEARCHES
    from rove.experiments.tune import tune

    if search not in SEARCHES:
        allowed = "one of " + ", ".join(SEARCHES) + did_you_mean(search, SEARCHES)
        raise ConfigError("search", search, allowed)
    platform.prepare(lanes=1)  # all others run in processes of their own
    tune(SEARCHES[search], out or Path("tuning") / search, _say, workers)


def _report(
    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN…")],
    /,
    out: Path = Path("report.html"),
    follow: bool = False,
) -> None:
    """Write one HTML file that shows runs, experiments and sweeps, and needs no network.

    Args:
        runs: folders that rove train, rove reproduce or rove sweep wrote, or that hold such.
        out: the file.
        follow: write it again every few seconds until the runs are over; an open page follows.
    """
    from rove import report

    if not runs:
        raise ConfigError("RUN", "nothing", "at least one folder, such as runs/ge-chain-10")
    platform.prepare(lanes=1)
    if follow:
        try:
            report.follow(runs, out, say=_say)
        except KeyboardInterrupt:
            report.write(runs, out)
    else:
        report.write(runs, out)
    _say(f"written to {out}: {out.stat().st_size / 1e6:.1f} MB, open it in a browser")


if __name__ == "__main__":
    main()
