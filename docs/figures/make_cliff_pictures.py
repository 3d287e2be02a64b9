"""Draw docs/figures/cliff.svg: two ways along the cliff, and the distributions of their returns.

    python docs/figures/make_cliff_pictures.py

The distributions are exact: distributional value iteration with γ = 1, in which costs are multiples
of 0.1.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from style import BLUE, FAINT, GREEN, LINE, RED, save

import rove
from rove.environments.cliff import COLUMNS, GOAL, MOVES, ROWS, START

LEVEL, SIZE = 0.1, 60
UNIT = 0.1
"""The cost of a step."""


def value(laws: np.ndarray, level: float | None) -> np.ndarray:
    """Return minus the mean of costs, or of the fraction `level` of the highest ones."""
    costs = np.arange(laws.shape[-1])
    if level is None:
        return -laws @ costs
    above = np.cumsum(laws[..., ::-1], axis=-1)[..., ::-1]
    return -np.sum(costs * np.clip(level - (above - laws), 0.0, laws), axis=-1) / level


def plan(cliff: rove.Cliff, level: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return a policy that is greedy for the mean or the CVaR, and the law of its costs."""
    falls, nothing = cliff.falls > 0, np.eye(SIZE)[0]
    laws = np.tile(nothing, (cliff.bins, 1))
    policy = np.zeros(cliff.bins, int)
    for _ in range(SIZE - 1):
        laws[falls | (np.arange(cliff.bins) == GOAL)] = nothing
        laws[falls] = np.roll(nothing, round(cliff.fall / UNIT))
        q = cliff.transitions @ np.roll(laws, 1, axis=1)
        policy = value(q, level).argmax(axis=1)
        laws = q[np.arange(cliff.bins), policy]
    return policy, laws[START]


def way(policy: np.ndarray) -> np.ndarray:
    """Return the rows and columns from the start to the goal, without wind."""
    cells = [np.array(divmod(START, COLUMNS))]
    while len(cells) < SIZE and tuple(cells[-1]) != divmod(GOAL, COLUMNS):
        row, column = cells[-1]
        moved = cells[-1] + MOVES[policy[row * COLUMNS + column]]
        cells.append(np.clip(moved, 0, (ROWS - 1, COLUMNS - 1)))
    return np.array(cells)


def main() -> None:
    cliff = rove.Cliff()
    figure = Figure(figsize=(8.4, 3.0), layout="constrained")
    board, *panels = figure.subplots(1, 3, width_ratios=(1.15, 1, 1))
    for row in range(ROWS):
        for column in range(COLUMNS):
            off = cliff.falls[row * COLUMNS + column] > 0
            style = {"facecolor": RED, "alpha": 0.35} if off else {"facecolor": "none"}
            board.add_patch(Rectangle((column, row), 1, 1, edgecolor=FAINT, lw=0.8, **style))
    board.text(0.5, ROWS - 0.12, "start", ha="center", size=8)
    board.text(COLUMNS - 0.5, ROWS - 0.12, "goal", ha="center", size=8, color=GREEN)
    board.text(COLUMNS / 2, ROWS - 0.4, "cliff", ha="center", color=RED)
    board.set(xlim=(-0.1, COLUMNS + 0.1), ylim=(ROWS + 0.1, -0.1), aspect="equal")
    board.set_axis_off()
    names = {None: ("highest mean", BLUE), LEVEL: ("highest CVaR", GREEN)}
    pairs = zip(panels, names.items(), strict=True)
    for shift, (axes, (level, (title, colour))) in enumerate(pairs):
        policy, law = plan(cliff, level)
        rows, columns = way(policy).T
        at = 0.44 + 0.12 * shift
        board.plot(columns + at, rows + at, color=colour, lw=2, marker="o", ms=3)
        costs = np.arange(SIZE)
        axes.bar(-UNIT * costs, law, width=0.08, color=colour, alpha=0.7)
        mean, cvar = UNIT * value(law, None), UNIT * value(law, LEVEL)
        axes.axvline(cvar, color=LINE, ls=":", lw=1)
        axes.set(yscale="log", ylim=(1e-3, 1.5), xlim=(-2.6, -0.6), xlabel="return")
        axes.set_title(f"{title}\nmean {mean:.2f}, CVaR {cvar:.2f}", size=9)
        falls = law[round(cliff.fall / UNIT) :].sum()
        print(f"{title}: mean {mean:.3f}, CVaR {cvar:.3f}, falls {falls:.3f}")
    panels[0].set_ylabel("probability")
    save(figure, "cliff")


if __name__ == "__main__":
    main()
