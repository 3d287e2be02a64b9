"""Draw docs/figures/returns-and-posteriors.svg and docs/figures/exploration.svg.

    python docs/figures/make_concept_pictures.py

The first is an illustration with made-up numbers. The second has exact probabilities for agents
that act at random, and measured episodes from docs/data.
"""

import csv
import gzip
from collections import defaultdict

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, FAINT, FOLDER, GREEN, ORANGE, PURPLE, RED, save

DATA = FOLDER.parent / "data"


def returns_and_posteriors() -> None:
    """Return distributions of two actions: of one θ, of many θ early, and of many θ late."""
    figure = Figure(figsize=(8.4, 2.5), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    x, generator = np.linspace(-1, 3, 300), np.random.default_rng(3)
    titles = ("one θ: a return for each action", "q(θ) early: draws disagree",
              "q(θ) late: draws agree")  # fmt: skip
    for axes, title, spread, draws in zip(panels, titles, (0, 0.55, 0.06), (1, 7, 7), strict=True):
        for mean, colour, name in ((0.6, BLUE, "left"), (1.3, ORANGE, "right")):
            for i in range(draws):
                centre = mean + spread * generator.standard_normal()
                label = name if i == 0 else None
                density = np.exp(-0.5 * ((x - centre) / 0.3) ** 2)
                axes.plot(x, density, color=colour, lw=1.6, alpha=0.9 if draws == 1 else 0.55,
                          label=label)  # fmt: skip
                axes.plot([centre] * 2, [0, 0.06], color=colour, lw=1.6)
        axes.set(title=title, yticks=[], xlabel="return")
        axes.spines["left"].set_visible(False)
    panels[0].legend(loc="upper right")
    save(figure, "returns-and-posteriors")


def chance_of_reaching(n: int, right: float) -> float:
    """The probability of reaching s_N in an episode if every step goes right with a probability."""
    law = np.zeros(n)
    law[1] = 1.0
    for _ in range(n + 9):
        inner = law[1:-1].copy()
        law[1:-1] = 0.0
        law[2:] += right * inner
        law[:-2] += (1 - right) * inner
    return law[-1]


def solved(rows: list[dict[str, str]]) -> float:
    """The episode that completes ten optimal ones in a row, for the episodes of one seed."""
    run = 0
    for row in rows:
        run = run + 1 if float(row["score"]) > 10.99 else 0
        if run == 10:
            return float(row["episode"])
    return np.inf


def median_episodes(agent: str) -> dict[int, float]:
    """Median over seeds of the episodes until the chain was solved, by N, from Figure 2's data."""
    episodes = defaultdict(list)
    with gzip.open(DATA / "figure-2.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["agent"] == agent:
                episodes[int(row["environment"].split("-")[1]), row["seed"]].append(row)
    sizes = sorted({n for n, _ in episodes if n != 128})
    return {n: float(np.median([solved(r) for (m, _), r in episodes.items() if m == n]))
            for n in sizes}  # fmt: skip


def psrl() -> dict[int, float]:
    """Mean over seeds of PSRL's episodes until the chain was solved, from the scoreboard's data."""
    values = defaultdict(list)
    with open(DATA / "scoreboard.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["agent"] == "psrl" and row["environment"].startswith("chain-"):
                values[int(row["environment"].split("-")[1])].append(float(row["value"]))
    return {n: float(np.mean(values[n])) for n in sorted(values)}


def exploration() -> None:
    """Episodes that are needed on chains of N states: random actions, and a θ for an episode."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes, sizes = figure.subplots(), np.arange(4, 101)
    dithering = {
        "ε-greedy around “left”, ε = 0.1 (exact)": (0.05, RED),
        "uniformly random actions (exact)": (0.5, ORANGE),
    }
    for label, (right, colour) in dithering.items():
        chances = np.array([chance_of_reaching(n, right) for n in sizes])
        axes.plot(sizes, 1 / chances, color=colour, lw=1.8, label=label)
    measured = {
        "PSRL, an MDP per episode (measured)": (psrl(), PURPLE),
        "GE, θ resampled every episode (measured)": (median_episodes("ge-episode"), GREEN),
    }
    for label, (points, colour) in measured.items():
        axes.plot(points.keys(), points.values(), "o-", color=colour, lw=1.8, label=label)
        print(label, points)
    for n in (10, 50, 100):
        print(n, {k: f"{1 / chance_of_reaching(n, p):.3g}" for k, (p, _) in dithering.items()})
    axes.set(yscale="log", ylim=(1, 1e30), xlabel="N, number of states",
             ylabel="episodes", xlim=(4, 102))  # fmt: skip
    axes.grid(alpha=0.3, color=FAINT)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.1), fontsize=8)
    save(figure, "exploration")


if __name__ == "__main__":
    returns_and_posteriors()
    exploration()
