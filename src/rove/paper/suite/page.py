"""The tables of the suite in Markdown, and the page of the documentation that shows them."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from rove.analysis.intervals import MIN_SEEDS, Comparison, proportion_interval
from rove.paper.claims import adjusted, as_json, as_markdown
from rove.paper.suite import statistics
from rove.paper.suite.judging import WITHIN, behind, claims
from rove.paper.suite.results import AGENTS, DEFAULT, RANDOM, ResultTable, SeedResult, label, read
from rove.paper.suite.tasks import HALVES, SuiteTask

_BLOCK = re.compile(r"(<!-- suite: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
PAGE, DATA = Path("results") / "suite.md", Path("data") / "suite.csv.gz"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; columns after the first are centred."""
    lines = [header, ["---"] + [":---:"] * (len(header) - 1), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def solved_table(table: ResultTable) -> str:
    """Return how many seeds of each agent solved each task, with the interval of Clopper and
    Pearson, and in the last rows how many tasks each agent solved."""
    rows = []
    for task in table.tasks:
        cells = [_count(table.cell(task.name, agent)) for agent in table.agents]
        steps = max(r.steps for r in table.results if r.task is task)
        rows.append([f"{task.name} ({steps / 1000:g}k)", *cells])
    for name, number in (
        ("**tasks solved by most seeds**", _most),
        ("**tasks solved, mean over seeds**", lambda x: f"{statistics.tasks_solved(x):.1f}"),
    ):
        totals = [
            f"**{number(table.solved(agent))}**" if table.complete(agent) else ""
            for agent in table.agents
        ]
        rows.append([f"{name} of {len(table.tasks)}", *totals])
    return markdown(["task (steps)", *map(label, table.agents)], rows)


def _most(solved: Sequence[np.ndarray]) -> str:
    return str(sum(np.mean(row) > 0.5 for row in solved))


def _count(cell: Sequence[SeedResult]) -> str:
    """Return '8/10 (44–97%)', without the interval of few seeds."""
    if not cell:
        return ""
    count, n = sum(r.solved for r in cell), len(cell)
    if n < MIN_SEEDS:
        return f"{count}/{n}"
    low, high = proportion_interval(count, n)
    return f"{count}/{n} ({low * 100:.0f}–{high * 100:.0f}%)"


def differences_table(table: ResultTable, first: str = DEFAULT) -> str:
    """Return the differences between one agent and every other one, with 95% intervals: in tasks
    solved and in the mean score in training, both on these tasks and with p-values that are not
    adjusted, and in the score at the end if the tasks are drawn anew."""
    rows = []
    for agent in table.agents:
        if agent != first and table.complete(first, agent):
            solved = statistics.solved_difference(table.solved(first), table.solved(agent))
            scores = statistics.score_difference(table.scores(first), table.scores(agent))
            training = table.compared(first, agent)
            names = f"{label(first)} − {label(agent)}"
            on_these = difference_text(solved, 1), difference_text(training)
            rows.append([names, *on_these, _signed(scores)])
    head = ("tasks solved", "mean score in training", "score at the end, other tasks like these")
    return markdown(["difference", *head], rows)


def difference_text(difference: Comparison, digits: int = 2) -> str:
    """Format a difference as '+0.30 (+0.05 to +0.58), p = 0.02'."""
    return f"{_signed(difference, digits)}, {difference.p_text}"


def _signed(difference: Comparison, digits: int = 2) -> str:
    numbers = (f"{x:+.{digits}f}" for x in (difference.value, difference.low, difference.high))
    value, low, high = (number.replace("-", "−") for number in numbers)
    return f"{value} ({low} to {high})"


def delivered_table(table: ResultTable) -> str:
    """Return the mean score of the last training episodes and that of the delivered policy, for
    each task and agent that delivers one; bold if the policy is behind."""
    agents = [agent for agent in table.agents if agent != RANDOM]
    rows = []
    for task in table.tasks:
        cells = []
        for agent in agents:
            cell = table.cell(task.name, agent)
            behaviour, policy = (
                float(np.mean(x)) if x else float("nan")
                for x in ([r.score for r in cell], [r.delivered_score for r in cell if r.policy])
            )
            text = "" if np.isnan(policy) else f"{behaviour:.2f} → {policy:.2f}"
            cells.append(f"**{text}**" if text and behind(cell) else text)
        rows.append([task.name, *cells])
    return markdown(["task", *map(label, agents)], rows)


def scales_table(tasks: Sequence[SuiteTask]) -> str:
    """Return a table of the tasks: environment, budget, scale of scores and threshold."""
    rows = [[t.name, f"{t.environment}", f"{t.steps:,}", t.scale, f"{t.solved:g}"] for t in tasks]
    return markdown(["task", "environment", "steps", "scores 0 and 1", "solved from"], rows)


def tables(results: Iterable[SeedResult]) -> dict[str, str]:
    """Return all tables by name."""
    table = ResultTable(results)
    parts = {half: part for half in HALVES if (part := table.half(half)).tasks}
    blocks = {}
    for half, part in parts.items():
        blocks[f"solved-{half}"] = solved_table(part)
        blocks[f"differences-{half}"] = differences_table(part)
        blocks[f"delivered-{half}"] = delivered_table(part)
        blocks[f"scales-{half}"] = scales_table(part.tasks)
    blocks["claims"] = as_markdown(adjusted(claims(table)))
    return blocks


def summary(results: Sequence[SeedResult]) -> str:
    """Return all tables as one Markdown text."""
    headings = {
        "solved": "Seeds that solve a task",
        "differences": "Differences",
        "delivered": f"Last episodes → delivered policy (bold: more than {WITHIN:.0%} below)",
        "scales": "Scores",
        "claims": "Claims",
    }
    text = "# Suite\n"
    for name, body in tables(results).items():
        kind, _, half = name.partition("-")
        text += f"\n## {headings[kind]}{f', {half}' * bool(half)}\n\n{body}"
    return text


def filled(text: str, results: Sequence[SeedResult]) -> str:
    """Return a page with updated blocks; a block without results is left unchanged."""
    written = tables(results) | {"picture": _picture(results)}

    def block(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        return f"{begin}{written[name]}{end}" if name in written else match[0]

    return _BLOCK.sub(block, text)


def _picture(results: Sequence[SeedResult]) -> str:
    """Return the picture, with a sentence on the agents and seeds."""
    table = ResultTable(results)
    seeds = {len(table.cell(t.name, a)) for t in table.tasks for a in table.agents} - {0}
    missing = [label(agent) for agent in AGENTS if agent not in table.agents]
    counts = " to ".join(str(n) for n in sorted({min(seeds), max(seeds)}))
    without = f" Not run: {', '.join(missing)}." if missing else ""
    text = "Fraction of runs with a score above τ, for each agent and half of the tasks"
    return (
        f"![{text}](../figures/suite.svg)\n\n{text}, with 95% bands over seeds; {len(table.tasks)} "
        f"tasks, seeds: {counts}.{without} [Data](../{DATA}).\n"
    )


def publish(docs: str | Path) -> None:
    """Update the page, the figure and the claims of the documentation from its data, without
    training. `rove.paper.published.write` then collects the claims."""
    from rove.paper.suite import picture  # imported here because Matplotlib is slow to import

    results = read(Path(docs) / DATA)
    page = Path(docs) / PAGE
    page.write_text(filled(page.read_text("utf-8"), results), "utf-8")
    picture.write(ResultTable(results), Path(docs) / "figures")
    text = as_json(adjusted(claims(ResultTable(results))))
    (Path(docs) / "data" / "suite-claims.json").write_text(text, "utf-8")
