"""MiniGrid's FourRooms, MultiRoom-N2-S4 and Unlock: rooms with gaps or doors between them."""

from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.minigrid import cells
from rove.environments.minigrid.base import Coding, MiniGrid, initial_state, on_goal
from rove.environments.minigrid.cells import GridState
from rove.parts import noise
from rove.parts.noise import Key


class MiniGridFourRooms(MiniGrid):
    """MiniGrid's FourRooms: reach a goal at a random place in four rooms joined by random gaps.

    The grid has 19×19 cells; the agent, too, starts at a random place. An episode lasts at most
    100 steps. Observations, reward and score are those of `MiniGrid`.
    """

    coding: Coding = eqx.field(default="one-hot", static=True)
    """Coding of the view: one-hot, or scaled (MiniGrid's integers divided by their maxima)."""
    max_steps: int | None = eqx.field(default=None, static=True)
    """Maximum number of steps per episode. None: 100."""

    @property
    def name(self) -> str:
        return "minigrid-fourrooms"

    @property
    def horizon(self) -> int:
        return self.max_steps or 100

    @property
    def shape(self) -> tuple[int, int]:
        return 19, 19

    @property
    def things(self) -> tuple[int, ...]:
        return cells.UNSEEN, cells.EMPTY, cells.WALL, cells.GOAL

    def start(self, key: Key) -> GridState:
        k_gaps, k_agent, k_direction, k_goal = (noise.fold(key, i) for i in range(4))
        walls = cells.walled(19, 19)
        walls[9, :] = walls[:, 9] = cells.WALL
        up, left, right, down = jnp.array([1, 1, 10, 10]) + noise.integers(k_gaps, (4,), 8)
        middle = jnp.full((), 9, jnp.int32)
        x, y = jnp.stack([middle, left, right, middle]), jnp.stack([up, middle, middle, down])
        grid = jnp.asarray(walls).at[x, y].set(cells.EMPTY)
        empty = grid == cells.EMPTY
        agent = cells.random_cell(empty, k_agent)
        goal = cells.random_cell(empty.at[agent[0], agent[1]].set(False), k_goal)
        grid = grid.at[goal[0], goal[1]].set(cells.GOAL)
        return initial_state(grid, agent, noise.integers(k_direction, (), 4))

    def succeeded(self, state: GridState) -> Bool[Array, ""]:
        return on_goal(state)


class MiniGridMultiRoom(MiniGrid):
    """MiniGrid's MultiRoom-N2-S4: open a door and reach a goal in the room behind it.

    Two rooms of 2×2 cells, with a closed door of a random colour between them, are at a random
    place in a grid of 25×25 cells. An episode lasts at most 40 steps. Observations, reward and
    score are those of `MiniGrid`.
    """

    coding: Coding = eqx.field(default="one-hot", static=True)
    """Coding of the view: one-hot, or scaled (MiniGrid's integers divided by their maxima)."""
    max_steps: int | None = eqx.field(default=None, static=True)
    """Maximum number of steps per episode. None: 40."""

    @property
    def name(self) -> str:
        return "minigrid-multiroom"

    @property
    def horizon(self) -> int:
        return self.max_steps or 40

    @property
    def shape(self) -> tuple[int, int]:
        return 25, 25

    @property
    def things(self) -> tuple[int, ...]:
        doors = (cells.door(cells.RED, state) for state in (cells.OPEN, cells.CLOSED))
        return cells.UNSEEN, cells.EMPTY, cells.WALL, cells.GOAL, *doors

    @property
    def colours(self) -> int:
        return cells.COLOURS

    def start(self, key: Key) -> GridState:
        k_rooms, k_colour, k_agent, k_direction, k_goal = (noise.fold(key, i) for i in range(5))
        plans, cumulative = _plans()
        plan = jnp.searchsorted(cumulative, noise.uniform(k_rooms), method="scan_unrolled")
        first, second, entrance = jnp.asarray(plans)[plan]
        grid = jnp.full(self.shape, cells.EMPTY)
        for corner in (first, second):
            x, y = (jnp.abs(jnp.arange(25) - corner[i] - 1.5) for i in range(2))  # from its middle
            grid = jnp.where(jnp.maximum(x[:, None], y) == 1.5, cells.WALL, grid)
        door = cells.door(noise.integers(k_colour, (), cells.COLOURS), cells.CLOSED)
        goal = second + 1 + noise.integers(k_goal, (2,), 2)
        grid = grid.at[entrance[0], entrance[1]].set(door).at[goal[0], goal[1]].set(cells.GOAL)
        agent = first + 1 + noise.integers(k_agent, (2,), 2)
        return initial_state(grid, agent, noise.integers(k_direction, (), 4))

    def succeeded(self, state: GridState) -> Bool[Array, ""]:
        return on_goal(state)


class _Plans(NamedTuple):
    """The possible positions of two rooms of 4×4 cells, walls included, and of the door."""

    corners: Int[np.ndarray, "plans 3 2"]
    """x and y of the upper left corners of the first and the second room, and of the door."""
    cumulative: Float[np.ndarray, " plans"]
    """The cumulative probabilities of the plans."""


@cache
def _plans() -> _Plans:
    """Return MiniGrid's distribution of plans.

    The first room is uniform over the grid. Up to eight times, MiniGrid draws a door to the right
    of it, below it or above it and a second room behind the door, until the second room is inside
    the grid; failing that, it starts again.
    """
    plans, weights = [], []
    for x in range(22):
        for y in range(21):
            tries = [
                plan
                for offset in (1, 2)
                for back in (1, 2)
                for plan in (
                    ((x, y), (x + 3, y + offset - back), (x + 3, y + offset)),
                    ((x, y), (x + offset - back, y + 3), (x + offset, y + 3)),
                    ((x, y), (x + offset - back, y - 3), (x + offset, y)),
                )
            ]
            inside = [plan for plan in tries if _fits(*plan[1])]
            success = 1 - (1 - len(inside) / len(tries)) ** 8
            plans += inside
            weights += [success / len(inside)] * len(inside)
    cumulative = np.cumsum(weights) / np.sum(weights)
    return _Plans(np.array(plans, np.int32), cumulative.astype(np.float32))


def _fits(x: int, y: int) -> bool:
    """Whether MiniGrid allows a room of 4×4 cells at a position; it leaves out the last row."""
    return 0 <= x <= 21 and 0 <= y <= 20


class MiniGridUnlock(MiniGrid):
    """MiniGrid's Unlock: fetch the key and open the locked door, which ends the task.

    The agent and the key are at random places in the left one of two rooms, in a grid of 11×6
    cells. The door and the key share a random colour. An episode lasts at most 288 steps.
    Observations, reward and score are those of `MiniGrid`.
    """

    coding: Coding = eqx.field(default="one-hot", static=True)
    """Coding of the view: one-hot, or scaled (MiniGrid's integers divided by their maxima)."""
    max_steps: int | None = eqx.field(default=None, static=True)
    """Maximum number of steps per episode. None: 288."""

    @property
    def name(self) -> str:
        return "minigrid-unlock"

    @property
    def horizon(self) -> int:
        return self.max_steps or 288

    @property
    def shape(self) -> tuple[int, int]:
        return 11, 6

    @property
    def things(self) -> tuple[int, ...]:
        doors = (cells.door(cells.RED, state) for state in (cells.OPEN, cells.LOCKED))
        return cells.UNSEEN, cells.EMPTY, cells.WALL, cells.key_of(cells.RED), *doors

    @property
    def colours(self) -> int:
        return cells.COLOURS

    @property
    def score_label(self) -> str:
        return "door opened"

    def start(self, key: Key) -> GridState:
        k_colour, k_door, k_key, k_agent = (noise.fold(key, i) for i in range(4))
        walls = cells.walled(11, 6)
        walls[5, :] = cells.WALL
        colour = noise.integers(k_colour, (), cells.COLOURS)
        row = 1 + noise.integers(k_door, (), 4)
        grid = jnp.asarray(walls).at[5, row].set(cells.door(colour, cells.LOCKED))
        left = (jnp.arange(11) < 5)[:, None] & (walls == cells.EMPTY)
        at = cells.random_cell(left, k_key)
        grid = grid.at[at[0], at[1]].set(cells.key_of(colour))
        # The agent does not start in front of the key or the door.
        ahead = jnp.stack([jnp.roll(grid, (-x, -y), (0, 1)) for x, y in cells.DIRECTIONS], axis=-1)
        plain = (ahead == cells.EMPTY) | (ahead == cells.WALL)
        allowed = plain & (left & (grid == cells.EMPTY))[..., None]
        position, direction = jnp.divmod(cells.random_index(allowed, k_agent), 4)
        return initial_state(grid, jnp.stack(jnp.divmod(position, 6)), direction)

    def succeeded(self, state: GridState) -> Bool[Array, ""]:
        return jnp.any(cells.is_open_door(state.cells))
