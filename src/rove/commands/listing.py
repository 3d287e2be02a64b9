"""`rove list`."""

from rich.table import Table

from rove import environments
from rove.agents import AGENTS
from rove.commands import console, say
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.experiments import EXPERIMENTS


def show(grid: bool = False) -> None:
    """Agents, environments and experiments, each with a line.

    Args:
        grid: instead, return families with parameter families: which pairs work; named agents.
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
    table = Table("q_φ(θ) \\ Z_θ", *grid.RETURNS, box=None, padding=(0, 1, 0, 0))
    for row in grid.POSTERIORS:
        found = (isinstance(pairs[column, row], Agent) for column in grid.RETURNS)
        table.add_row(row, *("✓" if works else "–" for works in found))
    console.print(table)
    say(f"\n{sum(isinstance(x, Agent) for x in pairs.values())} pairs work (✓).")
    for reason in dict.fromkeys(e.allowed for e in pairs.values() if isinstance(e, ConfigError)):
        say(f"– {reason}")
    console.print("\n[underline]agents of a pair[/]")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for (column, row), names in named.items():
        table.add_row(f"{column} × {row}", ", ".join(names))
    console.print(table)
