"""The `rove` command."""

import gc
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial

from rich.table import Table

from rove.cli import completion, demo, listing, reproducing, run_options, showing, training
from rove.cli.console import console, errors, say
from rove.cli.options import parse
from rove.errors import ConfigError, LaneError, RoveError, nearest
from rove.parts import interrupts

COMMANDS: dict[str, tuple[str, Callable[[list[str]], object]]] = {
    "demo": (
        "see what exploration does, in a minute or two",
        partial(parse, demo.demo, prog="rove demo"),
    ),
    "list": (
        "list the agents, environments and experiments",
        partial(parse, listing.show, prog="rove list"),
    ),
    "train": ("train an agent on an environment", training.train),
    "eval": (
        "play the trained policies of a run and report their scores",
        partial(parse, showing.evaluate, prog="rove eval"),
    ),
    "watch": (
        "record a video of a trained policy",
        partial(parse, showing.watch, prog="rove watch"),
    ),
    "export": (
        "write a trained policy as files that do not need rove",
        partial(parse, showing.export, prog="rove export"),
    ),
    "report": (
        "write an offline HTML report of runs, experiments and sweeps",
        partial(parse, showing.report, prog="rove report"),
    ),
    "sweep": (
        "try many settings of an agent and confirm the best on fresh seeds",
        training.sweep,
    ),
    "reproduce": (
        "run an experiment, such as a figure of the paper, and check its claims",
        reproducing.command,
    ),
    "completion": (
        "print a script for tab completion in bash, zsh or fish",
        lambda rest: say(completion.script(_shell(rest), COMMANDS)),
    ),
}
"""The commands: what each does, and a function that runs it with its arguments."""
ADVICE = {
    "compare": "use rove report FOLDER FOLDER …, or rove.compare(runs, path) and "
    "rove.difference(run, other) in Python",
    "resume": "repeat the rove train command, which resumes from its checkpoints",
    "tune": "use rove sweep; to repeat the searches behind the default settings, use "
    "rove reproduce tuning",
}
"""What to do instead, for commands that rove does not have."""
SYNONYMS = {"evaluate": "eval", "run": "train", "plot": "report", "ls": "list"}
"""The names of commands in other programs, and rove's names for them."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command. Exits with code 2 after a usage error and with code 1 after a failed run."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):  # print ? for characters the terminal lacks
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if argv is None:
        interrupts.install()
        gc.freeze()  # so that the garbage collector skips imported modules while tracing
    try:
        _dispatch(arguments)
        sys.stdout.flush()
    except RoveError as error:
        errors.print("[bold red]error:[/]", end=" ")
        errors.print(_message(error, arguments), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1 if isinstance(error, LaneError) else 2)
    except BrokenPipeError:  # the reader, such as head, has stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        sys.exit(1)
    except OSError as error:  # run folders raise RunFolderError
        errors.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("stopped; repeat the command to resume from the last checkpoint")
        sys.exit(130)


def _dispatch(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _help()
        return
    command, rest = arguments[0], arguments[1:]
    if command == "--version":
        from rove import __version__

        say(f"rove {__version__}")
    elif command in COMMANDS:
        COMMANDS[command][1](rest)
    elif command in ADVICE:
        raise RoveError(f"there is no command {command!r}: {ADVICE[command]}")
    else:
        similar = SYNONYMS.get(command) or nearest(command, COMMANDS)
        hint = f" Did you mean rove {similar}?" if similar else ""
        raise RoveError(f"unknown command {command!r}.{hint} Commands: {', '.join(COMMANDS)}")


def _message(error: RoveError, arguments: Sequence[str]) -> str:
    """Return the text of an error, with the name of the option that the user gave."""
    text = str(error)
    named = isinstance(error, ConfigError) and re.match(
        rf"(every \w+ in )?{re.escape(error.field)}\b", text
    )
    if isinstance(error, ConfigError) and named:
        field = error.field.replace("_", "-")
        for option in (word.partition("=")[0] for word in arguments if word.startswith("--")):
            if option.replace("_", "-").lstrip("-").rpartition(".")[2] == field:
                return (named[1] or "") + option + text[named.end() :]
    return text


def _shell(arguments: list[str]) -> str:
    return parse(completion.shell, arguments, prog="rove completion")


def _help() -> None:
    console.print("[bold]rove[/]: exploration in reinforcement learning\n")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, (text, _) in COMMANDS.items():
        table.add_row(f"rove {name}", text)
    console.print(table)
    say(f"\nusage: {run_options.USAGE['train']}\n       for details: rove COMMAND --help")


if __name__ == "__main__":
    main()
