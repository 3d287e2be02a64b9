"""What the commands of `rove` do."""

from rich.console import Console

console = Console(emoji=False)
errors = Console(stderr=True, emoji=False)


def say(text: str) -> None:
    """Plain text, as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
