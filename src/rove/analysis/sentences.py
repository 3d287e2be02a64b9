"""Sentences that say what results show, for titles and notes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rove.analysis.alarms import rewarded_at_limit
from rove.analysis.intervals import (
    MIN_SEEDS,
    Support,
    counts_test,
    difference_test,
    holm,
    mean_interval,
)
from rove.analysis.ranks import rank_test

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
    evidence: tuple[float, ...] = ()
    """One number per seed that agents are compared by: whether it solved the task, or its final
    score, within the budget that all of them have."""
    support: Support | None = None
    """The range of the evidence; None if it is not known."""
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
    lost again, it begins with that; if the seeds do not tell the best from others, it says so."""
    first, *others = ranked(results)
    if first.solved and all(r.lost == r.solved for r in results):
        text = _all_lost(first, results)
        parts = [f"{r.agent} on {r.solved} of {r.seeds}" for r in others]
    elif first.solved == 0:
        text = _unsolved(first, results)
        parts = [f"{r.agent} on 0 of {r.seeds}" for r in others]
    elif first.solved is not None:
        text = f"{first.agent} solves {first.task} on {_seeds(first)}{_lost(first)}"
        tests = p_values([first, *others])[1:]
        parts = [
            f"{r.agent} on {r.solved} of {r.seeds}{_later(first, r, p)}{_lost(r)}"
            for r, p in zip(others, tests, strict=True)
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
    """Say if an agent that solved as many seeds as the first one did so significantly later."""
    return " but later" if _equal_counts(first, other) and p is not None and p < LEVEL else ""


def _equal_counts(a: Result, b: Result) -> bool:
    """Whether equal fractions of seeds solved the task within the budget that both have, so that
    agents are compared by when they did."""
    timed = a.times and b.times
    return bool(timed) and float(np.mean(a.evidence)) == float(np.mean(b.evidence))


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


def p_values(results: Sequence[Result]) -> list[float | None]:
    """Return, for each result, the p-value of its difference from the first one of `ranked`,
    adjusted for all of these comparisons (Holm); None for the first one."""
    first = ranked(results)[0]
    others = [result for result in results if result is not first]
    adjusted = iter(holm([_p_value(first, other) for other in others]))
    return [None if result is first else next(adjusted) for result in results]


def doubt(results: Sequence[Result]) -> str:
    """Say, in brackets, from which agents the seeds do not tell the best one; empty if from none.
    Differences are tested at the level of 5% over all of the comparisons: see `p_values`."""
    first, *others = ordered = ranked(results)
    pairs = zip(ordered, p_values(ordered), strict=True)
    alike = [result.agent for result, p in pairs if p is not None and p >= LEVEL]
    if not alike:
        return ""
    if len(alike) == len(others):
        return f" (too few seeds to rank {'them' if len(alike) < 3 else f'the {_kind(results)}s'})"
    names = [*alike[:2], *([f"{len(alike) - 2} more"] if len(alike) > 2 else [])]
    return f" (the seeds do not tell {_joined(names)} from {first.agent})"


def _p_value(a: Result, b: Result) -> float:
    """Return the p-value of a difference: for counts, Fisher's, and for equal counts that of the
    rank test of the episodes to solve the task. If the range of the scores is not known, it is 0 or
    1: whether the intervals of the means are disjoint."""
    x, y = np.array(a.evidence), np.array(b.evidence)
    if _equal_counts(a, b):
        return rank_test(np.array(a.times), np.array(b.times)).p
    if a.solved is not None and b.solved is not None:
        return counts_test(int(x.sum()), len(x), int(y.sum()), len(y))
    if a.support is not None and b.support is not None and len(x) and len(y):
        return difference_test(x, y, a.support, b.support).p
    if min(len(x), len(y)) < MIN_SEEDS:
        return 1.0
    (low, high), (other_low, other_high) = mean_interval(x, None), mean_interval(y, None)
    return float(low <= other_high and other_low <= high)


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
