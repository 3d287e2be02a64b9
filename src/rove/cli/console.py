"""Printing to the terminal, for all commands."""

from typing import Any

import tyro
from rich.console import Console

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


def say(text: str) -> None:
    """Print text verbatim, without markup or highlighting."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def optional(metavar: str, default: str = "", help: str | None = None) -> Any:
    """Describe an optional argument; `default` says in words what applies if it is omitted."""
    hint = f"(default: {default})" if default else ""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint, help=help)
