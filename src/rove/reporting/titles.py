"""Titles of the page and of its parts, which state the results."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rove.agents import label_of
from rove.analysis.sentences import Result, doubt, headline, p_values, ranked, sweep_headline
from rove.reporting.folders import Results
from rove.reporting.groups import Group
from rove.search.sweep_result import label

NAMED = 2
"""Maximum number of parts, or of tasks, that a title names."""
SOLVED = "fraction of solved seeds"
"""What agents are compared by on more than two tasks: scores of tasks may differ in their units."""


def of_page(titles: Sequence[str]) -> str:
    """Join the titles of the parts; of many, the first two."""
    rest = len(titles) - NAMED
    more = [f"{rest} more"] if rest > 0 else []
    return "; ".join([*titles[:NAMED], *more])


def of_source(source: Results, groups: Sequence[Group]) -> str:
    """Say what an experiment, a sweep or a set of runs shows."""
    if source.claims:
        return f"{source.name}: {_of_claims(source.claims)}"
    if source.sweep is not None:
        return _of_sweep(source.sweep)
    if len(groups) == 1:
        return headline(groups[0].results())
    if groups:
        agents = {run.name for group in groups for run in group.runs}
        return _of_tasks([group.results() for group in groups], len(agents))
    failed = [f"{label_of(run.name)} on {run.environment}" for run in source.failed]
    return f"{', '.join(failed[:NAMED])} failed" if failed else source.name


def _of_claims(claims: Sequence[dict[str, str]]) -> str:
    """Count the claims that were supported."""
    count = sum(claim["verdict"] == "supported" for claim in claims)
    return f"{count} of {len(claims)} claims supported"


def _of_tasks(tasks: Sequence[Sequence[Result]], agents: int) -> str:
    """Say what several tasks show. For two, name the first agent of each; for more, count the
    solved seeds of each agent that was run on all tasks with a known optimum. Runs of one agent
    with different settings have different labels, and count as different agents."""
    if len(tasks) <= NAMED:
        return "; ".join(map(_of_task, tasks))
    solvable, totals = _solvable(tasks), _totals(tasks)
    if not totals:
        return f"{agents} agent{'s' * (agents > 1)} on {len(tasks)} tasks"
    first, *rest = ranked(totals)
    counts = [f"{r.agent} {r.solved} of {r.seeds}" for r in rest[:2]]
    count = f"{len(solvable)} of {len(tasks)}" if len(solvable) < len(tasks) else f"{len(tasks)}"
    text = f"{first.agent} solves {first.solved} of {first.seeds} seeds on {count} tasks"
    more = [f"{len(rest) - 2} more"] if len(rest) > 2 else []
    return ", ".join([text, *counts, *more]) + doubt(totals)


def _of_task(results: Sequence[Result]) -> str:
    """Say what one of two tasks shows: its first agent, or that none solved it."""
    first, *others = ranked(results)
    if others and first.solved == 0:
        return f"No agent solves {first.task}"
    return headline([first]) + doubt(results)


def ranking(source: Results, groups: Sequence[Group]) -> list[tuple[Result, float | None]]:
    """Return the evidence for a title about more than two tasks: the solved seeds of each agent on
    all tasks, and the p-value of the difference from the first; empty for other titles."""
    if source.claims or source.sweep is not None or len(groups) <= NAMED:
        return []
    totals = _totals([group.results() for group in groups])
    return list(zip(totals, p_values(totals), strict=True)) if len(totals) > 1 else []


def _solvable(tasks: Sequence[Sequence[Result]]) -> list[Sequence[Result]]:
    """Return the tasks whose optimum is known."""
    return [results for results in tasks if results[0].solved is not None]


def _totals(tasks: Sequence[Sequence[Result]]) -> list[Result]:
    """Return the results over all tasks with a known optimum, of the agents that were run on all of
    them; empty for a single such task."""
    by_agent: dict[str, list[Result]] = {}
    solvable = _solvable(tasks)
    for result in (result for results in solvable for result in results):
        by_agent.setdefault(result.agent, []).append(result)
    everywhere = [results for results in by_agent.values() if len(results) == len(solvable)]
    return [_total(results) for results in everywhere] if len(solvable) > 1 else []


def _total(results: Sequence[Result]) -> Result:
    """Return the results of an agent on several tasks as one, with the seeds of all of them."""
    return results[0]._replace(
        final=0.0,  # of tasks with different scores there is none
        solved=sum(r.solved or 0 for r in results),
        seeds=sum(r.seeds for r in results),
        evidence=tuple(tuple(float(np.isfinite(at)) for at in r.times) for r in results),
        support=(0.0, 1.0),
        compared=SOLVED,
        times=(),
    )


def _of_sweep(sweep: dict[str, Any]) -> str:
    """Name the best point: that with the highest mean among those tried on the most seeds."""
    agent, task = label_of(str(sweep.get("agent", ""))), str(sweep.get("environment", ""))
    points = [point for point in sweep["points"] if point["scores"]]
    if not points:
        return f"Sweep of {agent} on {task}"
    first = max(points, key=lambda p: (len(p["scores"]), sum(p["scores"]) / len(p["scores"])))
    at, fresh = label(first["settings"]), first["confirmed"]
    return sweep_headline(agent, task, len(sweep["points"]), at, fresh)
