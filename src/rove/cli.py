"""The `rove` command."""

import gc
import io
import signal
import sys
from collections.abc import Sequence

import tyro
from rich.table import Table

from rove.commands import console, errors, listing, reproducing, say, showing, training
from rove.errors import ConfigError, LaneError, RoveError, did_you_mean

COMMANDS = {
    "list": "agents, environments and experiments, each with a line",
    "train": "train an agent on an environment",
    "sweep": "try many settings of an agent, and confirm the best",
    "reproduce": "run an experiment, such as a figure of the paper, and check its claims",
    "watch": "a film of a trained policy",
    "tune": "search the settings of agents with one budget for all",
    "report": "one HTML file of runs, experiments and sweeps, that opens offline",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command. Exit code 2 for a mistake in what was asked, 1 for a lane that failed."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):  # a terminal that has no θ shows something in its place
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if argv is None:  # a scheduler's SIGTERM is a Ctrl-C, which a shell's & ignores: save and stop
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        gc.freeze()  # what is imported stays: no need to go over it while a program is traced
    try:
        _dispatch(arguments)
    except RoveError as error:
        errors.print("[bold red]error:[/]", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1 if isinstance(error, LaneError) else 2)
    except OSError as error:  # such as an output that cannot be written to; runs have their own
        errors.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(1)
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

        say(f"rove {__version__}")
    elif command == "list":
        tyro.cli(listing.show, args=rest, prog="rove list")
    elif command == "train":
        training.train(rest)
    elif command == "sweep":
        training.sweep(rest)
    elif command == "reproduce":
        tyro.cli(reproducing.reproduce, args=rest, prog="rove reproduce")
    elif command == "watch":
        tyro.cli(showing.watch, args=rest, prog="rove watch")
    elif command == "tune":
        tyro.cli(reproducing.tune, args=rest, prog="rove tune")
    elif command == "report":
        tyro.cli(showing.report, args=rest, prog="rove report")
    else:
        allowed = "one of " + ", ".join(COMMANDS) + did_you_mean(command, COMMANDS)
        raise ConfigError("command", command, allowed)


def _help() -> None:
    console.print("[bold]rove[/]: exploration in reinforcement learning\n")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, text in COMMANDS.items():
        table.add_row(f"rove {name}", text)
    console.print(table)
    say(f"\nusage: {training.USAGE['train']}\n       more on each: rove COMMAND --help")


if __name__ == "__main__":
    main()
