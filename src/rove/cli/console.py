"""Printing to the terminal, for all commands."""

import textwrap
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.text import Text

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)
_JOINT = "\N{NO-BREAK SPACE}"
"""Replaces the spaces of a path or a command, so that it is not wrapped."""


def say(text: str) -> None:
    """Print text verbatim, without markup or highlighting."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def prose(console: Console, text: str, label: str = "") -> None:
    """Print sentences, after a highlighted label if one is given.

    In a terminal, lines are wrapped between words.
    """
    text = f"{label} {text}" if label else text
    if console.is_terminal:
        unbroken = {"break_long_words": False, "break_on_hyphens": False}
        lines = [textwrap.fill(line, console.width, **unbroken) for line in text.split("\n")]
        text = "\n".join(lines)
    styled = Text(text.replace(_JOINT, " "))
    styled.stylize("bold yellow", 0, len(label))
    console.print(styled, soft_wrap=True)


def word(text: str | Path) -> str:
    """Return a path or a command in a form that `prose` does not wrap."""
    return str(text).replace(" ", _JOINT)


def optional(metavar: str, default: str = "", help: str | None = None) -> Any:
    """Describe an optional argument; `default` says in words what applies if it is omitted."""
    hint = f"(default: {default})" if default else ""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint, help=help)
