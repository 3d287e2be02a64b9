"""What the commands of `rove` do."""

from typing import Any

import tyro
from rich.console import Console

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


def say(text: str) -> None:
    """Plain text, as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def optional(metavar: str, unless: str = "") -> Any:
    """An option that may be left out, and what holds unless it is given."""
    hint = f"(default: {unless})" if unless else ""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint)
