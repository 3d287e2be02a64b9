"""`rove demo`: two tasks that defeat ε-greedy, and a page that shows what happened."""

import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from rove.agents import label_of
from rove.analysis import panels, plots
from rove.analysis.estimates import median_episodes_to_solve
from rove.errors import LaneError
from rove.parts.files import publish
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.runs.result import Run
from rove.training.progress import Report, ignore
from rove.training.solving import episodes_to_solve

CHAIN, SEA = "chain-100", "deep-sea-10"
TASKS = {CHAIN: (("dqn", "noisynet", "ge"), 250), SEA: (("dqn", "ige"), 400)}
"""The agents and the number of episodes on each task."""
SEEDS = 5
NEXT = (
    ("train ge chain-100 --agent.resample episode", "sample θ once per episode"),
    ("train bootstrapped_dqn deep-sea-20", "a harder task, another agent"),
    ("train ge gym/CartPole-v1 --steps 20000", "any Gymnasium environment"),
)
"""What to try next, as arguments of rove, with what it shows."""


@dataclass(frozen=True)
class Row:
    """The results of an agent on a task."""

    task: str
    agent: str
    solved: int
    seeds: int
    median: float
    """Median number of episodes until the task was solved; infinite if most seeds did not."""
    values: int
    """Number of these seeds whose network's values depend on the state."""
    policies: int
    """Number of these seeds whose greedy policy depends on the state."""
    greedy: float
    """Mean return of the greedy policies of all seeds at the end."""
    optimum: float


def configs() -> list[Config]:
    """Return what the demo trains; the longest runs come first."""
    return [
        replace(
            configure(agent, task, seeds=SEEDS, episodes=episodes, until_solved=True),
            delivers=True,
        )
        for task, (agents, episodes) in TASKS.items()
        for agent in reversed(agents)
    ]


def run(
    out: Path, report: Report = ignore, workers: int | None = None, rove: str = "rove"
) -> list[Row]:
    """Train everything, or resume, write the page, and return the table. `rove` is how the page's
    commands begin."""
    chosen = configs()
    plan = [(c, out / "runs" / f"{c.agent_name}-{c.environment.name}") for c in chosen]
    runs = run_all(plan, report, workers, "processes")
    if errors := [error for run in runs for error in run.errors]:
        raise LaneError("\n".join(map(str, errors)))
    by_name = {(run.config.environment.name, run.config.agent_name): run for run in runs}
    ordered = {(task, a): by_name[task, a] for task, (agents, _) in TASKS.items() for a in agents}
    rows = [row(run) for run in ordered.values()]
    publish(out / "index.html", _page(ordered, rows, rove).encode())
    return rows


def row(run: Run) -> Row:
    """Return the results of a run."""
    environment = run.config.environment
    optimum = environment.optimum
    assert optimum is not None
    scores = [outcome.scores for outcome in run.outcomes]
    solved_at = [episodes_to_solve(row, optimum) for row in scores]
    times = [len(s) if at is None else at for s, at in zip(scores, solved_at, strict=True)]
    solved = np.array([at is not None for at in solved_at])
    networks = [x for x, good in zip(run.networks, solved, strict=True) if good and x is not None]
    return Row(
        task=environment.name,
        agent=run.config.agent_name,
        solved=int(solved.sum()),
        seeds=len(solved),
        median=median_episodes_to_solve(np.array(times, float), solved).value,
        values=sum(not x.values_constant for x in networks),
        policies=sum(not x.policy_constant for x in networks),
        greedy=float(np.mean([np.mean(scores) for scores in run.greedy])),
        optimum=optimum,
    )


def cells(row: Row) -> tuple[str, ...]:
    """Return the row's texts, in the order of `HEAD`."""
    median = f"{row.median:g}" if np.isfinite(row.median) else "–"
    of_solved = (f"{n} of {row.solved}" if row.solved else "–" for n in (row.values, row.policies))
    return (
        row.task,
        label_of(row.agent),
        f"{row.solved} of {row.seeds}",
        median,
        *of_solved,
        f"{round(row.greedy, 2) + 0.0:.2f} of {row.optimum:g}",  # + 0.0: no −0.00
    )


HEAD = (
    "task", "agent", "solved", "median episodes", "values vary", "policy varies", "greedy return",
)  # fmt: skip
NOTE = (
    "Values vary, policy varies: on how many of the solved seeds the values of the network, and "
    "its greedy actions, depend on the state. On the chain, “right” everywhere is optimal."
)


def sentence(rows: Sequence[Row]) -> str:
    """Say in one sentence how many seeds each agent solved."""
    parts = []
    for task in TASKS:
        best, *others = sorted((r for r in rows if r.task == task), key=lambda r: -r.solved)
        rest = " and ".join(f"{label_of(r.agent)} {r.solved}" for r in others)
        first = f"{label_of(best.agent)} solved {best.solved} of {best.seeds} seeds"
        if constant := best.solved - best.values:
            which = "networks that say" if constant > 1 else "a network that says"
            first += f" ({constant} with {which} the same in every state)"
        parts.append(f"on {task} {first}" + (f", {rest}" if rest else ""))
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _page(runs: dict[tuple[str, str], Run], rows: Sequence[Row], rove: str) -> str:
    """Return the page: one sentence, the table, three pictures, and what to try next."""
    table = ""
    for r in rows:
        pairs = zip(HEAD, map(html.escape, cells(r)), strict=True)
        row = "".join(f'<td data-label="{name}">{text}</td>' for name, text in pairs)
        table += f"<tr>{row}</tr>"
    commands = "".join(
        f"<li><code>{html.escape(f'{rove} {words}')}</code> <span>{html.escape(what)}</span></li>"
        for words, what in NEXT
    )
    template = (resources.files("rove.reporting") / "demo.html").read_text("utf-8")
    for name, text in {
        "sentence": html.escape(sentence(rows)),
        "note": html.escape(NOTE),
        "head": "".join(f"<th>{name}</th>" for name in HEAD),
        "table": table,
        "curves": _curves(runs),
        "visits": _visits(runs),
        "posterior": _posterior(runs[CHAIN, "ge"]),
        "commands": commands,
    }.items():
        template = template.replace(f"{{{{{name}}}}}", text)
    return template


def _curves(runs: dict[tuple[str, str], Run]) -> str:
    """Draw the learning curves, one panel per task. A seed that solved its task keeps its score."""

    def draw(axes: Any, task: str) -> None:
        agents, episodes = TASKS[task]
        environment = runs[task, agents[0]].config.environment
        curves = {}
        for agent in agents:
            table = np.full((SEEDS, episodes), environment.optimum or 0.0)
            for line, outcome in zip(table, runs[task, agent].outcomes, strict=True):
                line[: len(outcome.scores)] = outcome.scores
            curves[agent] = table
        support = environment.score_range
        plots.learning_curves(axes, curves, environment.optimum, support=support, seeds=True)
        axes.set_title(task, loc="left")
        plots.legend(axes.figure)

    return _panels([partial(draw, task=task) for task in TASKS], height=2.8)


def _visits(runs: dict[tuple[str, str], Run]) -> str:
    """Draw where DQN and GE went on the chain, from early to late in training."""

    def draw(axes: Any, agent: str) -> None:
        outcomes = runs[CHAIN, agent].outcomes
        histories = [outcome.history for outcome in outcomes]
        panels.visit_history(axes, histories, [len(outcome.scores) for outcome in outcomes])
        axes.set_title(f"{label_of(agent)}, {len(outcomes)} seeds", loc="left")

    return _panels([partial(draw, agent=agent) for agent in ("dqn", "ge")], height=2.5)


def _posterior(run: Run) -> str:
    """Draw how much more one seed of GE expects of "right" than of "left", for sampled θ."""
    outcome, environment = run.outcomes[0], run.config.environment
    values = np.asarray(outcome.lane.snapshots.values)
    count = len(outcome.scores).bit_length()
    probes = list(environment.probes())[:2]  # the start and the middle of the chain

    def draw(axes: Any, probe: int) -> None:
        left, right = np.moveaxis(values[:count, :, probe], -1, 0)
        panels.differences(axes, right - left, 2 ** np.arange(count))
        axes.set_title(f"Q(right) − Q(left), state “{probes[probe]}”", loc="left")

    return _panels([partial(draw, probe=i) for i in range(len(probes))], height=2.4)


def _panels(draws: Sequence[Callable[[Any], None]], height: float) -> str:
    """Draw each panel as a figure of its own, so that they stand one below the other on a phone."""
    drawings = []
    for draw in draws:
        figure = plots.figure(width=4.8, height=height)
        draw(figure.axes[0])
        drawings.append(_svg(figure))
    return "".join(drawings)


def _svg(figure: plots.Figure) -> str:
    """Return a figure as inline SVG whose text and axes have the colour of the page's text."""
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawing = text.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    for black in ("#000000", "black"):
        drawing = drawing.replace(f": {black}", ": currentColor")
    return drawing.replace("<text ", '<text fill="currentColor" ')
