"""How often 95% intervals hold the truth, on data like ours: a Markdown table.

    python benchmarks/coverage.py --json docs/data/coverage.json

Each kind of interval is computed for many samples of 5, 10 and 30 seeds from laws whose truth is
known, and the share of intervals that hold it is counted. Verdicts rest on the first four kinds.
"""

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rove.analysis import curves, estimates, intervals
from rove.analysis.estimates import Estimate

SIZES = (5, 10, 30)
DRAWS = 4000
"""Monte Carlo draws of an interval: fewer than verdicts have, for there are many intervals."""
UNIT = (0.0, 1.0)
Draw = Callable[[np.random.Generator, int], np.ndarray]
"""A sample of so many seeds, scores from 0 to 1."""


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    """Scores about a half, as of seeds that all learn alike."""
    return np.clip(rng.normal(0.5, 0.15, n), 0.0, 1.0)


def bimodal(rng: np.random.Generator, n: int) -> np.ndarray:
    """20% of seeds succeed, the others earn nothing."""
    return (rng.random(n) < 0.2).astype(float)


def mixture(rng: np.random.Generator, n: int) -> np.ndarray:
    """Areas under curves on the chain: 30% of seeds are stuck near 0, the others near 0.8."""
    stuck = rng.random(n) < 0.3
    return np.clip(np.where(stuck, rng.normal(0.01, 0.005, n), rng.normal(0.8, 0.08, n)), 0.0, 1.0)


def rare(rng: np.random.Generator, n: int) -> np.ndarray:
    """One seed of 20 fails, the others are alike near the top."""
    return np.where(rng.random(n) < 0.05, 0.02, np.clip(rng.normal(0.9, 0.03, n), 0.0, 1.0))


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Episodes to the goal as a part of the budget: most seeds early, some late, a few never."""
    return np.minimum(rng.lognormal(-1.8, 0.9, n), 1.0)


def constant(_: np.random.Generator, n: int) -> np.ndarray:
    """All seeds alike, with the mean of `bimodal`."""
    return np.full(n, 0.2)


LAWS: dict[str, Draw] = {
    "normal": normal, "20% succeed": bimodal, "30% stuck": mixture, "5% fail": rare,
    "skewed": skewed,
}  # fmt: skip
PAIRS: dict[str, tuple[Draw, Draw]] = {
    **{name: (law, law) for name, law in LAWS.items()},
    "constant and 20% succeed": (constant, bimodal),
    "20% succeed and constant": (bimodal, constant),
    "30% stuck and 5% fail": (mixture, rare),
    "normal and skewed": (normal, skewed),
}


class Kind(NamedTuple):
    """A kind of interval, measured on some cases: a sample to an interval, and the truth."""

    name: str
    judges: bool
    """Whether verdicts rest on it."""
    cases: dict[str, tuple[Callable[[np.random.Generator, int], tuple[float, float]], float]]


def big(law: Draw) -> np.ndarray:
    """So many that what is computed from them is the truth."""
    return law(np.random.default_rng(12345), 2_000_000)


def ends(found: Estimate | intervals.Comparison) -> tuple[float, float]:
    return found.low, found.high


def mean(law: Draw, support: intervals.Support | None, rng: np.random.Generator, n: int):
    low, high = intervals.mean_interval(law(rng, n), support, draws=DRAWS)
    return float(low), float(high)


def difference(pair: tuple[Draw, Draw], factor: int, rng: np.random.Generator, n: int):
    """Of groups of n seeds, or one of more."""
    a, b = pair[0](rng, n * factor), pair[1](rng, n)
    return ends(intervals.difference_test(a, b, UNIT, draws=DRAWS))


def count(chance: float, rng: np.random.Generator, n: int):
    return intervals.proportion_interval(int(rng.binomial(n, chance)), n)


def variance(pair: tuple[Draw, Draw], rng: np.random.Generator, n: int):
    """Of groups of n seeds, which make n // 2 pairs."""
    pairs = [curves.pair_variances(law(rng, n)[:, None]) for law in pair]
    return ends(intervals.difference_test(*pairs, (0.0, 0.5), draws=DRAWS))


def bootstrap(law: Draw, statistic: estimates.Statistic, rng: np.random.Generator, n: int):
    return ends(estimates.estimate([law(rng, n)], statistic, resamples=1000))


def improvement(pair: tuple[Draw, Draw], rng: np.random.Generator, n: int):
    a, b = (law(rng, n) for law in pair)
    return ends(estimates.probability_of_improvement([a], [b], resamples=1000))


def profile(law: Draw, rng: np.random.Generator, n: int):
    _, (low, high) = estimates.performance_profile([law(rng, n)], np.array([0.5]), resamples=1000)
    return float(low[0]), float(high[0])


def survival(law: Draw, rng: np.random.Generator, n: int):
    """The share unsolved after half of the budget."""
    times = law(rng, n)
    when, _, (low, high) = estimates.kaplan_meier(times, times < 1.0, resamples=1000)
    at = int(np.searchsorted(when, 0.5, side="right")) - 1
    return (1.0, 1.0) if at < 0 else (float(low[at]), float(high[at]))


def better(pair: tuple[Draw, Draw]) -> float:
    """P(X > Y) + ½P(X = Y)."""
    a, b = (law(np.random.default_rng(i), 2_000_000) for i, law in enumerate(pair))
    return float(0.5 * np.mean(np.sign(a - b) + 1.0))


def kinds() -> list[Kind]:
    laws = {name: (law, float(big(law).mean())) for name, law in LAWS.items()}

    def gap(pair: tuple[Draw, Draw], of: Callable[[np.ndarray], float] = np.mean) -> float:
        return 0.0 if pair[0] is pair[1] else float(of(big(pair[0])) - of(big(pair[1])))

    trimmed = estimates.interquartile_mean
    return [
        Kind(
            "mean (Gaffke)",
            True,
            {name: (partial(mean, law, UNIT), truth) for name, (law, truth) in laws.items()},
        ),
        Kind(
            "difference of means (melded)",
            True,
            {name: (partial(difference, pair, 1), gap(pair)) for name, pair in PAIRS.items()}
            | {
                f"{name}; 3n and n": (partial(difference, pair, 3), gap(pair))
                for name, pair in PAIRS.items()
                if pair[0] is not pair[1]
            },
        ),
        Kind(
            "count (Clopper–Pearson)",
            True,
            {f"chance {p:g}": (partial(count, p), p) for p in (0.05, 0.2, 0.5, 0.9)},
        ),
        Kind(
            "difference of variances (melded pairs)",
            True,
            {name: (partial(variance, pair), gap(pair, np.var)) for name, pair in PAIRS.items()},
        ),
        Kind(
            "mean (Student's t)",
            False,
            {name: (partial(mean, law, None), truth) for name, (law, truth) in laws.items()},
        ),
        Kind(
            "mean (bootstrap)",
            False,
            {
                name: (partial(bootstrap, law, estimates.mean), truth)
                for name, (law, truth) in laws.items()
            },
        ),
        Kind(
            "interquartile mean (bootstrap)",
            False,
            {
                name: (partial(bootstrap, law, trimmed), float(trimmed(big(law))))
                for name, law in LAWS.items()
            },
        ),
        Kind(
            "probability of improvement (bootstrap)",
            False,
            {
                name: (partial(improvement, pair), better(pair))
                for name, pair in PAIRS.items()
                if constant not in pair
            },
        ),
        Kind(
            "profile at a half (bootstrap)",
            False,
            {
                name: (partial(profile, law), float(np.mean(big(law) > 0.5)))
                for name, law in LAWS.items()
            },
        ),
        Kind(
            "unsolved at half the budget (Kaplan–Meier, bootstrap)",
            False,
            {"skewed": (partial(survival, skewed), float(np.mean(big(skewed) > 0.5)))},
        ),
    ]


def measure(kind: Kind, replications: int) -> dict[str, dict[str, float]]:
    """For each case, by the number of seeds, the share of intervals that hold the truth."""
    found: dict[str, dict[str, float]] = {}
    for case, (interval, truth) in kind.cases.items():
        found[case] = {}
        for n in SIZES:
            rng = np.random.default_rng([n, len(case)])
            made = (interval(rng, n) for _ in range(replications))
            held = sum(low - 1e-9 <= truth <= high + 1e-9 for low, high in made)
            found[case][str(n)] = held / replications
    return found


def resolution(n: int) -> float:
    """The least difference, as a part of the range, by which two groups of n seeds each are told
    apart that do not differ within."""
    for gap in np.arange(0.02, 1.01, 0.02):
        a, b = np.full(n, 0.5 + gap / 2), np.full(n, 0.5 - gap / 2)
        if intervals.difference_test(a, b, UNIT).p < 0.05:
            return round(float(gap), 2)
    return float("inf")


def as_markdown(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """Two tables: by the laws that all kinds have, and the cases that only some have. A cell has
    the coverage in percent for 5, 10 and 30 seeds."""

    def cell(cases: dict[str, dict[str, float]], case: str) -> str:
        return (
            " / ".join(f"{100 * share:.1f}" for share in cases[case].values())
            if case in cases
            else ""
        )

    lines = ["| interval | " + " | ".join(LAWS) + " |", "|---" * (1 + len(LAWS)) + "|"]
    for kind, cases in found.items():
        if any(name in cases for name in LAWS):
            lines.append(f"| {kind} | " + " | ".join(cell(cases, name) for name in LAWS) + " |")
    lines += ["", "| interval | data | coverage |", "|---|---|---|"]
    lines += [
        f"| {kind} | {case} | {cell(cases, case)} |"
        for kind, cases in found.items()
        for case in cases
        if case not in LAWS
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=2000, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    all_kinds = kinds()
    found = {kind.name: measure(kind, options.replications) for kind in all_kinds}
    print(as_markdown(found))
    judging = {kind.name for kind in all_kinds if kind.judges}
    shares = [x for name in judging for case in found[name].values() for x in case.values()]
    print(f"least of those that verdicts rest on: {100 * min(shares):.1f}%; at least 93% is asked")
    gaps = {str(n): resolution(n) for n in SIZES}
    print(f"least difference of equal seeds that is told apart, as a part of the range: {gaps}")
    if options.json:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"date": date, "replications": options.replications, "draws": DRAWS}
        told = about | {"judging": sorted(judging), "resolution": gaps, "coverage": found}
        options.json.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
