"""Draw docs/figures/environments/*.svg: one schematic picture per environment.

python docs/figures/make_environment_pictures.py
"""

import itertools
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Circle, FancyArrowPatch, Rectangle
from style import BLUE, FAINT, GREEN, LINE, ORANGE, PURPLE, RED, TEXT, save

import rove


def canvas(width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure and axes whose unit is an inch, without ticks."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    return figure, axes


def arrow(axes: Any, start: tuple, end: tuple, colour: str = LINE, **style: Any) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=12, color=colour, lw=1.4, **style
        )
    )


def rod(axes: Any, start: np.ndarray, end: np.ndarray, colour: str) -> None:
    axes.plot(*np.stack([start, end]).T, color=colour, lw=6, solid_capstyle="round")


def cart(axes: Any, x: float, y: float) -> np.ndarray:
    """Draw a cart on a track, and return the point that its pole stands on."""
    axes.plot([x - 1.5, x + 1.5], [y, y], color=FAINT, lw=1)
    axes.add_patch(Rectangle((x - 0.4, y), 0.8, 0.35, color=BLUE))
    return np.array([x, y + 0.35])


def chain() -> None:
    figure, axes = canvas(6.4, 1.7)
    names = ("s₁", "s₂", "s₃", "…", "sₙ₋₁", "s_N")
    xs, y = np.linspace(0.7, 5.7, len(names)), 0.8
    for x, name in zip(xs, names, strict=True):
        ends = {"s₁": ORANGE, "s_N": GREEN, "s₂": BLUE}
        if name != "…":
            axes.add_patch(Circle((x, y), 0.28, fill=False, ec=ends.get(name, LINE), lw=2))
        label = {"s_N": "$s_N$", "sₙ₋₁": "$s_{N-1}$"}.get(name, name)
        axes.text(x, y, label, ha="center", va="center", size=9)
    for left, right in itertools.pairwise(xs):
        if left > xs[0]:
            arrow(axes, (left + 0.25, y + 0.14), (right - 0.25, y + 0.14))
        if right < xs[-1]:
            arrow(axes, (right - 0.25, y - 0.14), (left + 0.25, y - 0.14))
    axes.text(xs[0], 1.3, "0.001 per step", ha="center", color=ORANGE)
    axes.text(xs[1], 1.3, "start", ha="center", color=BLUE)
    axes.text(xs[-1], 1.3, "1 per step", ha="center", color=GREEN)
    axes.text(xs[0], 0.2, "absorbing", ha="center", size=8)
    axes.text(xs[-1], 0.2, "absorbing", ha="center", size=8)
    save(figure, "environments/chain")


def deep_sea() -> None:
    figure, axes = canvas(4.6, 3.0)
    n, side, left, top = 6, 0.42, 0.4, 2.75
    for row in range(n):
        for column in range(n):
            corner = (left + column * side, top - (row + 1) * side)
            reachable = column <= row
            axes.add_patch(
                Rectangle(corner, side, side, fill=False, ec=LINE if reachable else FAINT, lw=0.8,
                          alpha=1.0 if reachable else 0.4)
            )  # fmt: skip
    centres = [(left + (i + 0.5) * side, top - (i + 0.5) * side) for i in range(n)]
    axes.add_patch(Circle(centres[0], 0.11, color=BLUE))
    for start, end in itertools.pairwise(centres):
        arrow(axes, start, end, GREEN, shrinkA=5, shrinkB=5)
    axes.add_patch(Rectangle((centres[-1][0] - 0.12, centres[-1][1] - 0.1), 0.24, 0.2, color=GREEN))
    axes.text(3.1, 2.5, "start", color=BLUE)
    axes.text(3.1, 1.5, "right: −0.01/N", size=9)
    axes.text(3.1, 1.25, "left: 0", size=9)
    axes.text(3.1, 0.3, "treasure: 1", color=GREEN)
    save(figure, "environments/deep-sea")


def bandit() -> None:
    figure = Figure(figsize=(5.6, 2.4), layout="constrained")
    axes, task = figure.subplots(), rove.Bandit(10)
    best = task.means.argmax()
    colours = [GREEN if arm == best else BLUE for arm in range(task.n)]
    low, high = task.means - task.noise_std, task.means + task.noise_std
    axes.vlines(range(task.n), low, high, colors=colours)
    axes.scatter(range(task.n), task.means, c=colours, zorder=3)
    axes.set(xticks=range(task.n), xlabel="arm", ylabel="reward: mean ± σ")
    axes.axhline(task.means[best], color=GREEN, lw=0.8, ls=":")
    save(figure, "environments/bandit")


def cartpole() -> None:
    figure, axes = canvas(4.2, 2.3)
    foot, angle = cart(axes, 2.1, 0.5), 0.15
    rod(axes, foot, foot + 1.3 * np.array([np.sin(angle), np.cos(angle)]), ORANGE)
    axes.plot([2.1, 2.1], [0.85, 2.15], color=FAINT, lw=1, ls=":")
    axes.add_patch(Arc(foot, 2.2, 2.2, theta1=78, theta2=102, color=RED))
    axes.text(2.65, 1.95, "±12°", color=RED, size=9)
    arrow(axes, (1.6, 0.68), (1.0, 0.68), BLUE)
    arrow(axes, (2.6, 0.68), (3.2, 0.68), BLUE)
    for x, label in ((0.6, "−2.4"), (3.6, "2.4")):
        axes.plot([x, x], [0.4, 0.6], color=RED)
        axes.text(x, 0.15, label, ha="center", color=RED, size=9)
    save(figure, "environments/cartpole")


def mountain_car() -> None:
    figure = Figure(figsize=(5.0, 2.2), layout="constrained")
    axes = figure.subplots()
    x = np.linspace(-1.2, 0.6, 200)
    axes.plot(x, np.sin(3 * x), color=LINE, lw=2)
    axes.scatter([-0.5], [np.sin(-1.5) + 0.09], s=130, marker="s", color=BLUE, zorder=3)
    axes.plot([0.5, 0.5], [np.sin(1.5), np.sin(1.5) + 0.5], color=GREEN)
    axes.scatter([0.54], [np.sin(1.5) + 0.42], marker=">", s=90, color=GREEN)
    axes.text(0.42, np.sin(1.5) + 0.25, "goal, 0.5", ha="right", color=GREEN)
    axes.text(-0.5, -0.62, "start", ha="center", color=BLUE)
    axes.set(xlabel="position", yticks=[], ylim=(-1.15, 1.6))
    axes.spines["left"].set_visible(False)
    save(figure, "environments/mountain-car")


def acrobot() -> None:
    figure, axes = canvas(4.0, 2.8)
    pivot, one, two = np.array([1.8, 1.4]), 0.9, 0.7
    elbow = pivot + 0.62 * np.array([np.sin(one), -np.cos(one)])
    tip = elbow + 0.62 * np.array([np.sin(one + two), -np.cos(one + two)])
    axes.plot([0.4, 3.2], [pivot[1] + 0.62] * 2, color=GREEN, ls="--")
    above = "the tip has to reach this line"
    axes.text(3.2, pivot[1] + 0.7, above, ha="right", color=GREEN, size=9)
    axes.plot([pivot[0]] * 2, [pivot[1] - 0.75, pivot[1]], color=FAINT, ls=":")
    rod(axes, pivot, elbow, BLUE)
    rod(axes, elbow, tip, ORANGE)
    axes.add_patch(Circle(pivot, 0.07, color=LINE))
    axes.add_patch(Circle(elbow, 0.07, color=RED))
    axes.text(pivot[0] + 0.1, pivot[1] - 0.5, "θ₁", size=9)
    axes.text(elbow[0] + 0.15, elbow[1] - 0.22, "θ₂, torque", color=RED, size=9)
    axes.text(pivot[0] - 0.12, pivot[1] + 0.05, "pivot", ha="right", size=9)
    save(figure, "environments/acrobot")


def linear_quadratic() -> None:
    figure, axes = canvas(4.2, 1.5)
    axes.plot([0.3, 3.9], [0.55, 0.55], color=FAINT, lw=1)
    axes.plot([2.1, 2.1], [0.4, 0.7], color=GREEN)
    axes.text(2.1, 0.15, "0: at rest", ha="center", color=GREEN)
    axes.add_patch(Circle((3.1, 0.55), 0.16, color=BLUE))
    arrow(axes, (3.1, 0.85), (2.5, 0.85), ORANGE)
    axes.text(2.4, 0.87, "force u", ha="right", color=ORANGE)
    arrow(axes, (3.1, 1.15), (3.5, 1.15), PURPLE)
    axes.text(3.0, 1.15, "velocity v", ha="right", color=PURPLE)
    axes.text(3.35, 0.3, "p", color=BLUE)
    save(figure, "environments/linear-quadratic")


def pendulums() -> None:
    figure, axes = canvas(6.4, 2.4)
    for x, angles in ((1.6, (0.12,)), (4.8, (0.14, -0.18))):
        joint = cart(axes, x, 0.45)
        for angle, colour in zip(angles, (ORANGE, PURPLE), strict=False):
            tip = joint + 1.2 / len(angles) * np.array([np.sin(angle), np.cos(angle)])
            rod(axes, joint, tip, colour)
            joint = tip
        arrow(axes, (x - 0.9, 0.62), (x - 0.42, 0.62), BLUE)
        axes.text(x - 0.95, 0.62, "force", ha="right", va="center", color=BLUE, size=9)
    axes.text(1.6, 0.12, "single", ha="center", color=TEXT)
    axes.text(4.8, 0.12, "double", ha="center", color=TEXT)
    save(figure, "environments/pendulums")


if __name__ == "__main__":
    for draw in (chain, deep_sea, bandit, cartpole, mountain_car, acrobot, linear_quadratic):
        draw()
    pendulums()
