"""`rove list`."""

from rich.table import Table

from rove import environments
from rove.agents import AGENTS
from rove.cli.console import console, say
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.paper import EXPERIMENTS


def show(grid: bool = False) -> None:
    """List the agents, environments and experiments, with one line on each.

    Args:
        grid: Show which pairs of a return family and a posterior work, and the agents they form.
    """
    if grid:
        _grid()
        return
    tables = {
        "agents (sections and algorithms are those of the paper)": {
            name: kind.__doc__ for name, kind in AGENTS.items()
        },
        "environments": dict(
            zip(
                environments.names(),
                (f.doc for f in environments.ENVIRONMENTS.values()),
                strict=True,
            )
        )
        | {name: doc for name, (_, _, doc) in environments.ALIASES.items()}
        | {
            "gym/ID": "Any environment of Gymnasium; CartPole-v1 is short for gym/CartPole-v1.",
            "gymnax/NAME": "Any environment of gymnax, compiled, such as gymnax/Breakout-MinAtar.",
        },
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
    from rove.agents import grid

    named: dict[tuple[str, str], list[str]] = {}
    for name, settings in AGENTS.items():
        if isinstance(agent := settings().compose(), Agent):  # tabular agents are not on the grid
            named.setdefault(grid.families_of(agent), []).append(name)
    pairs = grid.working()
    numbers = [str(number) for number, _ in enumerate(grid.RETURNS, 1)]
    columns = zip(numbers, grid.RETURNS, strict=True)
    console.print("returns: " + ", ".join(f"{number}={name}" for number, name in columns) + "\n")
    table = Table("posterior \\ return", *numbers, box=None, padding=(0, 1, 0, 0))
    for row in grid.POSTERIORS:
        works = (isinstance(pairs[column, row], Agent) for column in grid.RETURNS)
        table.add_row(row, *("✓" if work else "–" for work in works))
    console.print(table)
    say(f"\n{sum(isinstance(x, Agent) for x in pairs.values())} pairs work (✓).")
    for reason in dict.fromkeys(e.allowed for e in pairs.values() if isinstance(e, ConfigError)):
        say(f"– {reason}")
    console.print("\n[underline]named agents of each pair[/]")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for (column, row), names in named.items():
        table.add_row(f"{column} × {row}", ", ".join(names))
    console.print(table)
