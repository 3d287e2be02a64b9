"""Sentences that say what results show, for titles and notes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rove.analysis.alarms import rewarded_at_limit
from rove.analysis.comparing import adjusted, compare_means
from rove.analysis.intervals import Comparison, Support
from rove.analysis.seed_scores import TRAINING

LEVEL = 0.05


class Result(NamedTuple):
    """The results of a run that a title states."""

    agent: str
    """Its display name."""
    task: str
    solved: int | None
    """Number of seeds that solved the task; None if its optimum is not known."""
    seeds: int
    final: float
    """Mean score over the last episodes."""
    label: str = "return"
    """The kind of score, such as "return"."""
    evidence: tuple[tuple[float, ...], ...] = ()
    """For each task, one number per seed that agents are compared by: its mean score in training
    within the budget that all of them have or, of several tasks, whether it solved the task."""
    support: Support | None = None
    """The range of the evidence; None if it is not known."""
    compared: str = TRAINING
    """The name of the evidence."""
    lost: int = 0
    """Number of seeds that solved the task and lost it again."""
    times: tuple[float, ...] = ()
    """The episode at which each seed solved the task, infinite if it did not within the budget that
    all agents have; empty if the seeds are of several tasks."""


def ranked(results: Sequence[Result]) -> list[Result]:
    """Sort results: most seeds solved, then the fewest episodes to solve (median), then the highest
    final score."""
    return sorted(results, key=lambda r: (-(r.solved or 0) / r.seeds, _median_time(r), -r.final))


def _median_time(result: Result) -> float:
    return float(np.median(result.times)) if result.times else np.inf


def headline(results: Sequence[Result]) -> str:
    """Say in one line what runs on one task show, such as "GE solves chain-100 on 5 of 5 seeds, DQN
    on 0 of 5". The best come first; of many, only the first three are named. If all solutions were
    lost again, it begins with that. It ends with what a test of the seeds says: see `doubt`."""
    first, *others = ranked(results)
    if first.solved and all(r.lost == r.solved for r in results):
        text = _all_lost(first, results)
        parts = [f"{r.agent} on {r.solved} of {r.seeds}" for r in others]
    elif first.solved == 0:
        text = _unsolved(first, results)
        parts = [f"{r.agent} on 0 of {r.seeds}" for r in others]
    elif first.solved is not None:
        text = f"{first.agent} solves {first.task} on {_seeds(first)}{_lost(first)}"
        p = p_values([first, *others])[1:]
        parts = [
            f"{r.agent} on {r.solved} of {r.seeds}{_later(first, r, p)}{_lost(r)}"
            for r, p in zip(others, p, strict=True)
        ]
    else:
        text = f"{first.agent} on {first.task}: {first.label} {_number(first.final)} at the end"
        parts = [f"{r.agent} {_number(r.final)}" for r in others]
    named = [text, *parts[:2]]
    if len(parts) > 2:
        named.append(f"{len(parts) - 2} more {_kind(results)}{'s' * (len(parts) > 3)}")
    return _joined(named) + doubt(results)


def _seeds(result: Result) -> str:
    """Return how many seeds solved the task, such as "4 of 5 seeds"."""
    return f"{result.solved} of {result.seeds} seed{'s' * (result.seeds > 1)}"


def _all_lost(first: Result, results: Sequence[Result]) -> str:
    """Say that no solution was kept, and on how many seeds the first agent found one."""
    if len(results) == 1:
        return (
            f"{first.agent} keeps no solution of {first.task}: solved and lost on {_seeds(first)}"
        )
    nobody = f"No {_kind(results)} keeps a solution of {first.task}"
    return f"{nobody}: {first.agent} solved and lost it on {_seeds(first)}"


def _unsolved(first: Result, results: Sequence[Result]) -> str:
    """Say that nothing was solved."""
    if len(results) == 1:
        return f"{first.agent} does not solve {first.task}: {_seeds(first)}"
    return f"No {_kind(results)} solves {first.task}: {first.agent} on {_seeds(first)}"


def _later(first: Result, other: Result, p: float | None) -> str:
    """Say if an agent that solved as many seeds as the first one did so later, by the median, and
    their mean scores in training differ significantly."""
    later = _equal_counts(first, other) and _median_time(other) > _median_time(first)
    return " but later" if later and p is not None and p < LEVEL else ""


def _equal_counts(a: Result, b: Result) -> bool:
    """Whether equal fractions of seeds solved the task within the budget that both have."""
    if not a.times or not b.times:
        return False
    return float(np.mean(np.isfinite(a.times))) == float(np.mean(np.isfinite(b.times)))


def _kind(results: Sequence[Result]) -> str:
    """Return what is compared: agents, or settings if all results are of one agent, as in "GE,
    rho=-2"."""
    return "setting" if len({r.agent.partition(", ")[0] for r in results}) == 1 else "agent"


def _lost(result: Result) -> str:
    return f" ({result.lost} lost it again)" if result.lost else ""


def sweep_headline(
    agent: str, task: str, points: int, best: str, fresh: Sequence[float] | None
) -> str:
    """Say in one line which of the points of a sweep is the best, and its mean score on fresh
    seeds, if it was confirmed on any."""
    text = f"{agent} on {task}: best of {points} points at {best}"
    if not fresh:
        return text
    seeds = f"{len(fresh)} fresh seed{'s' * (len(fresh) > 1)}"
    if not np.all(np.isfinite(fresh)):
        return f"{text}, which diverged on {seeds}"
    return f"{text}, mean score {_number(float(np.mean(fresh)))} on {seeds}"


def _joined(words: Sequence[str]) -> str:
    return " and ".join([*([", ".join(words[:-1])] if len(words) > 1 else []), words[-1]])


def tests(results: Sequence[Result]) -> list[Comparison | None]:
    """Return, for each result, the comparison of the first one of `ranked` with it, by the numbers
    in `evidence`; None for the first one. See `rove.analysis.comparing.compare_means`."""
    first = ranked(results)[0]
    return [None if result is first else _test(first, result) for result in results]


def _test(a: Result, b: Result) -> Comparison:
    x, y = ([np.array(row) for row in result.evidence] for result in (a, b))
    return compare_means(x, y, a.support, a.compared)


def p_values(results: Sequence[Result]) -> list[float | None]:
    """Return, for each result, the p-value of its difference from the first one of `ranked`,
    adjusted for all of these comparisons if there are several (Holm); None for the first one."""
    return adjusted(tests(results))


def doubt(results: Sequence[Result]) -> str:
    """Say, in brackets, whether the seeds tell the first agent from others by their mean score in
    training, or of several tasks by the tasks solved. Of two agents, it gives the difference and
    its p-value; of more, it names those that differ from the first one by chance at the level of 5%
    over all of these comparisons (see `p_values`), and is empty if there are none."""
    first, *others = ordered = ranked(results)
    if not others:
        return ""
    if len(others) == 1:
        test = _test(first, others[0])
        value = f"{'+' if test.value > 0 else ''}{_number(test.value)}"
        few = "too few seeds to rank them: " if test.p >= LEVEL else ""
        return f" ({few}difference in {first.compared} {value}, {test.p_text})"
    pairs = zip(ordered, p_values(ordered), strict=True)
    alike = [result.agent for result, p in pairs if p is not None and p >= LEVEL]
    if not alike:
        return ""
    by = f"by {first.compared}"
    if len(alike) == len(others):
        return f" (too few seeds to rank the {_kind(results)}s {by})"
    names = [*alike[:2], *([f"{len(alike) - 2} more"] if len(alike) > 2 else [])]
    return f" ({by}, the seeds do not tell {_joined(names)} from {first.agent})"


def _number(value: float) -> str:
    """Format a score with three significant digits, and a minus sign."""
    text = f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
    return text.replace("-", "−")


def note_above_optimum(
    values: np.ndarray,
    optimum: float | None,
    scores: np.ndarray,
    terminated: np.ndarray,
    label: str = "return",
    intrinsic: bool = False,
) -> str | None:
    """Return a note if values exceed the optimum although episodes end by a time limit, or because
    they include `intrinsic` rewards, or None.
    `values` are values of Q or Z, `scores` and `terminated` are those of all episodes, and `label`
    is the kind of score: only a return can be compared."""
    if optimum is None or label != "return" or not np.any(values > optimum):
        return None
    if intrinsic:
        return f"Values above the optimum of {optimum:g} include intrinsic rewards."
    if np.all(terminated):
        return None
    first = "Before there are data, values come from the initial network or the prior."
    if not rewarded_at_limit(scores, terminated):
        return (
            f"Values above the optimum of {optimum:g} are overestimates: no episode scores more, "
            f"and those that the time limit ended had no reward. {first}"
        )
    return (
        f"Values above the optimum of {optimum:g} need not be an error. {first} Where a time limit "
        "ends episodes, targets bootstrap past it, so that Q and Z include rewards after the end, "
        "which a score does not."
    )
