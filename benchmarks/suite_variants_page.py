"""The tables of `suite_variants.py` on docs/results/suite.md, from docs/data/suite-variants.csv.

python benchmarks/suite_variants_page.py
"""

import csv
import gzip
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from rove.analysis.intervals import Comparison, proportion_interval
from rove.paper.suite import statistics
from rove.paper.suite.page import markdown

DOCS = Path(__file__).parent.parent / "docs"
DATA, PAGE = DOCS / "data" / "suite-variants.csv", DOCS / "results" / "suite.md"
SUITE = DOCS / "data" / "suite.csv.gz"
FIRST = "auto"
_BLOCK = re.compile(r"(<!-- variants: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Results:
    """The results of one study."""

    def __init__(self, rows: Sequence[dict[str, str]], study: str):
        own = [row for row in rows if row["study"] == study]
        self.variants = list(dict.fromkeys(row["variant"] for row in own))
        self.tasks = list(dict.fromkeys(row["task"] for row in own))
        self._cells: dict[tuple[str, str], list[dict[str, str]]] = {}
        for row in own:
            self._cells.setdefault((row["variant"], row["task"]), []).append(row)

    def solved(self, variant: str) -> list[Bool[np.ndarray, " seeds"]]:
        """Return which seeds of a variant solved each task."""
        return [np.array([r["solved"] == "True" for r in cell]) for cell in self._of(variant)]

    def scores(self, variant: str) -> list[Float[np.ndarray, " seeds"]]:
        """Return the scores of a variant, task by task."""
        return [np.array([float(r["score"]) for r in cell]) for cell in self._of(variant)]

    def _of(self, variant: str) -> list[list[dict[str, str]]]:
        return [self._cells[variant, task] for task in self.tasks]


def search_table(results: Results) -> str:
    """Return the variants of `dqn`, the best one first."""
    lines = []
    for variant in results.variants:
        solved = statistics.tasks_solved(results.solved(variant))
        score = float(np.mean([np.mean(row) for row in results.scores(variant)]))
        lines.append((solved, score, variant))
    rows = [[_code(v), f"{solved:.1f}", f"{score:.2f}"] for solved, score, v in sorted(lines)[::-1]]
    return markdown(["settings", f"tasks solved, of {len(results.tasks)}", "mean score"], rows)


def solved_table(results: Results) -> str:
    """Return how many seeds of each variant solve each task."""
    rows = []
    for i, task in enumerate(results.tasks):
        rows.append([task, *(_count(results.solved(v)[i]) for v in results.variants)])
    totals = (f"**{statistics.tasks_solved(results.solved(v)):.1f}**" for v in results.variants)
    rows.append([f"**tasks solved, mean over seeds** of {len(results.tasks)}", *totals])
    return markdown(["task", *map(_code, results.variants)], rows)


def differences_table(results: Results, invaders: Results) -> str:
    """Return the differences between the first variant and every other one, and that of the last
    one with Space Invaders as well."""
    own, rows = results.solved(FIRST), []
    for variant in results.variants:
        if variant == FIRST:
            continue
        solved = statistics.solved_difference(own, results.solved(variant))
        scores = statistics.score_difference(results.scores(FIRST), results.scores(variant))
        rows.append([f"{_code(FIRST)} − {_code(variant)}", _signed(solved, 1), _signed(scores, 2)])
    last = results.variants[-1]
    (task,) = invaders.tasks
    solved_by = [of_suite(task, FIRST), *invaders.solved(last)]
    more = [*own, solved_by[0]], [*results.solved(last), solved_by[1]]
    counts = " and ".join(f"{int(np.sum(solved))}" for solved in solved_by)
    name = f"{_code(FIRST)} − {_code(last)}, with Space Invaders (solved by {counts} seeds)"
    difference = _signed(statistics.solved_difference(*more), 1)
    return markdown(["difference", "tasks solved", "mean score"], [*rows, [name, difference, ""]])


def of_suite(task: str, agent: str) -> Bool[np.ndarray, " seeds"]:
    """Return which seeds of an agent solve a task in the suite's own results."""
    with gzip.open(SUITE, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["task"], row["agent"]) == (task, agent)]
    return np.array([row["solved"] == "1" for row in rows])


def _code(variant: str) -> str:
    return {"dqn": "`dqn`", "auto": "`auto`"}.get(variant, variant)


def _count(solved: Bool[np.ndarray, " seeds"]) -> str:
    count, n = int(np.sum(solved)), len(solved)
    low, high = proportion_interval(count, n)
    return f"{count}/{n} ({low * 100:.0f}–{high * 100:.0f}%)"


def _signed(difference: Comparison, digits: int) -> str:
    numbers = (f"{x:+.{digits}f}" for x in (difference.value, difference.low, difference.high))
    value, low, high = (number.replace("-", "−") for number in numbers)
    return f"{value} ({low} to {high})"


def main() -> None:
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    ablation = Results(rows, "ablation")
    tables = {
        "search": search_table(Results(rows, "search")),
        "solved": solved_table(ablation),
        "differences": differences_table(ablation, Results(rows, "invaders")),
    }
    text = PAGE.read_text("utf-8")
    PAGE.write_text(_BLOCK.sub(lambda m: m[1] + tables[m[2]] + m[3], text), "utf-8")


if __name__ == "__main__":
    main()
