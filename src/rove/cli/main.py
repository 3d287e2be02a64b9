"""The `rove` command."""

import gc
import io
import signal
import sys
from collections.abc import Sequence

import tyro
from rich.table import Table

from rove.cli import demo, listing, reproducing, showing, training
from rove.cli.console import console, errors, say
from rove.errors import LaneError, RoveError, did_you_mean

COMMANDS = {
    "demo": "see what exploration does, in about a minute",
    "list": "list the agents, environments and experiments",
    "train": "train an agent on an environment",
    "sweep": "try many settings of an agent and confirm the best on fresh seeds",
    "reproduce": "run an experiment, such as a figure of the paper, and check its claims",
    "watch": "record a video of a trained policy",
    "tune": "repeat the searches behind the default settings of the agents",
    "report": "write an offline HTML report of runs, experiments and sweeps",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command. Exits with code 2 after a usage error and with code 1 after a failed run."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):  # print ? for characters the terminal lacks
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if argv is None:  # treat a scheduler's SIGTERM like Ctrl-C; also in a background job
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        gc.freeze()  # imported modules stay alive: keep the collector off them while tracing
    try:
        _dispatch(arguments)
    except RoveError as error:
        errors.print("[bold red]error:[/]", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1 if isinstance(error, LaneError) else 2)
    except OSError as error:  # such as a closed pipe; run folders raise RunFolderError
        errors.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("stopped; run the same command again to resume from the last checkpoint")
        sys.exit(130)


def _dispatch(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _help()
        return
    command, rest = arguments[0], arguments[1:]
    if command == "--version":
        from rove import __version__

        say(f"rove {__version__}")
    elif command == "demo":
        tyro.cli(demo.demo, args=rest, prog="rove demo")
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
        hint = did_you_mean(command, COMMANDS)
        raise RoveError(f"unknown command {command!r}{hint or '.'} Commands: {', '.join(COMMANDS)}")


def _help() -> None:
    console.print("[bold]rove[/]: exploration in reinforcement learning\n")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, text in COMMANDS.items():
        table.add_row(f"rove {name}", text)
    console.print(table)
    say(f"\nto start: {training.USAGE['train']}\n       for details: rove COMMAND --help")


if __name__ == "__main__":
    main()
