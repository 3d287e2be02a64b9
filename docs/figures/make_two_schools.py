"""Compare posterior sampling with intrinsic rewards: docs/concepts/two-schools.md.

    python docs/figures/make_two_schools.py          train, write docs/data/two-schools.csv, draw
    python docs/figures/make_two_schools.py --draw   draw from the data alone, and print the table

Training takes about twenty minutes of processor time. Runs are kept in runs/two-schools, and
interrupted ones resume.
"""

import csv
import sys
import warnings
from pathlib import Path
from statistics import median

import numpy as np
from matplotlib.figure import Figure
from style import BLUE, FAINT, FOLDER, GREEN, ORANGE, PURPLE, RED, TEXT, save

import rove
from rove.analysis.intervals import proportion_interval

DATA = FOLDER.parent / "data" / "two-schools.csv"
SEEDS = 5
TASKS = {"chain-100": 250, "deep-sea-20": 1500, "sparse-mountain-car": 300}
"""Number of episodes on each task."""
AGENTS = {
    "DQN": ("dqn", {}),
    "DQN + counts": ("dqn", {"bonus": "counts", "epsilon": 0.1}),
    "DQN + RND": ("dqn", {"bonus": "rnd", "epsilon": 0.1}),
    "GE": ("ge", {}),
    "Index GE": ("ige", {}),
}
COLOURS = dict(zip(AGENTS, (RED, ORANGE, PURPLE, GREEN, BLUE), strict=True))
EVALUATION = 20
"""Number of episodes of the greedy policy, after training."""


def train() -> None:
    """Train every agent on every task, and write one row per seed."""
    rows = []
    for task, episodes in TASKS.items():
        for label, (agent, settings) in AGENTS.items():
            name = label.lower().replace(" + ", "-").replace(" ", "-")
            out = Path("runs") / "two-schools" / f"{name}-{task}"
            run = rove.train(
                agent, task, seeds=SEEDS, episodes=episodes, out=out, workers=1, **settings
            )
            optimum = run.config.environment.optimum
            greedy = run.evaluate(EVALUATION, policy="mean").mean(axis=1)
            for seed, scores, score in zip(run.seeds, run.scores, greedy, strict=True):
                successes = np.flatnonzero(scores >= 0.5 * optimum)
                found = int(successes[0]) + 1 if len(successes) else ""
                rows.append([task, label, seed, found, f"{score:.4g}", score >= 0.9 * optimum])
            print(*rows[-SEEDS:], sep="\n", flush=True)
    with DATA.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "agent", "seed", "found", "greedy", "solved"])
        writer.writerows(rows)


def read() -> dict[tuple[str, str], list[dict[str, str]]]:
    """Return the rows of each task and agent."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    with DATA.open(newline="") as file:
        for row in csv.DictReader(file):
            groups.setdefault((row["task"], row["agent"]), []).append(row)
    return groups


def table() -> str:
    """Return the table of the page: solved seeds with exact intervals, and the first successes."""
    groups = read()
    lines = ["| agent | " + " | ".join(f"{t}, {n:,} episodes" for t, n in TASKS.items()) + " |"]
    lines.append("|---" * (len(TASKS) + 1) + "|")
    for agent in AGENTS:
        cells = []
        for task in TASKS:
            rows = groups[task, agent]
            solved = sum(row["solved"] == "True" for row in rows)
            low, high = proportion_interval(solved, len(rows))
            found = [int(row["found"]) for row in rows if row["found"]]
            first = f"{median(found):.0f}" if found else "–"
            share = f"{100 * low:.0f}–{100 * high:.0f}%"
            cells.append(f"{solved} of {len(rows)} ({share}); found {len(found)}, {first}")
        lines.append(f"| {agent} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw() -> None:
    """Draw the episode of the first success of each seed."""
    groups = read()
    figure = Figure(figsize=(8.4, 2.9), layout="constrained")
    for axes, (task, episodes) in zip(
        figure.subplots(1, len(TASKS), sharey=True), TASKS.items(), strict=True
    ):
        never = 1.35 * episodes
        axes.axvline(episodes, color=FAINT, lw=0.8, ls=":")
        for y, agent in enumerate(AGENTS):
            for i, row in enumerate(groups[task, agent]):
                x, at = float(row["found"] or never), y + 0.12 * (i - (SEEDS - 1) / 2)
                filled = COLOURS[agent] if row["solved"] == "True" else "none"
                mark = "o" if row["found"] else "x"
                colour = {"color": COLOURS[agent]} if mark == "x" else {"edgecolor": COLOURS[agent]}
                axes.scatter(x, at, s=28, marker=mark, facecolor=filled, linewidths=1.2, **colour)
        axes.set(title=task, xlabel="episode of the first success", xscale="log")
        axes.set(
            xlim=(1, 1.7 * episodes), yticks=range(len(AGENTS)), ylim=(len(AGENTS) - 0.5, -0.5)
        )
        axes.set_yticklabels(AGENTS, color=TEXT)
    save(figure, "two-schools")


if __name__ == "__main__":
    if "--draw" not in sys.argv:
        warnings.simplefilter("ignore", rove.RoveWarning)
        train()
    draw()
    print(table())
