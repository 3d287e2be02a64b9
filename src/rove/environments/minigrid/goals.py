"""MiniGrid's Empty and DoorKey: a goal in the corner of a room, or behind a locked door."""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool

from rove.environments.minigrid import cells
from rove.environments.minigrid.base import Coding, MiniGrid, initial_state, on_goal
from rove.environments.minigrid.cells import GridState
from rove.errors import check_flag, check_integer
from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import Observation


class GoalInCorner(MiniGrid):
    """A square grid with the goal in its bottom right corner."""

    n: eqx.AbstractVar[int]
    """The width and height of the grid."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n

    @property
    def landmarks(self) -> dict[str, int]:
        return {"goal": (self.n - 2) * self.n + self.n - 2}

    def succeeded(self, state: GridState) -> Bool[Array, ""]:
        return on_goal(state)

    def before_goal(self, state: GridState) -> GridState:
        """Return the state with the agent above the goal, looking at it."""
        above = jnp.array([self.n - 2, self.n - 3], jnp.int32)
        return state._replace(position=above, direction=jnp.ones((), jnp.int32))


class MiniGridEmpty(GoalInCorner):
    """MiniGrid's Empty: reach the goal in the corner of an empty room of N×N cells, walls included.

    An episode starts in the opposite corner and lasts at most 4·N² steps. Observations, reward and
    score are those of `MiniGrid`; here the agent sees through walls.
    """

    n: int = eqx.field(static=True)
    """N, the width and height of the grid, including the walls around it."""
    random_start: bool = eqx.field(default=False, static=True)
    """Start in a random cell and direction (MiniGrid's Empty-Random)."""
    coding: Coding = eqx.field(default="one-hot", static=True)
    """Coding of the view: one-hot, or scaled (MiniGrid's integers divided by their maxima)."""
    max_steps: int | None = eqx.field(default=None, static=True)
    """Maximum number of steps per episode. None: 4·N²."""

    def __check_init__(self) -> None:
        check_integer("n", self.n, at_least=4, at_most=100)
        check_flag("random_start", self.random_start)

    @property
    def name(self) -> str:
        return f"minigrid-empty-{self.n}"

    @property
    def horizon(self) -> int:
        return self.max_steps or 4 * self.n**2

    @property
    def through_walls(self) -> bool:
        return True

    @property
    def things(self) -> tuple[int, ...]:
        return cells.EMPTY, cells.WALL, cells.GOAL

    @property
    def landmarks(self) -> dict[str, int]:
        start = {} if self.random_start else {"start": self.n + 1}
        return start | super().landmarks

    def probes(self) -> Mapping[str, Observation]:
        """Return an initial state, and the one before the goal."""
        start = self.start(noise.root(0))
        return {"start": self.observe(start), "last": self.observe(self.before_goal(start))}

    def start(self, key: Key) -> GridState:
        grid = cells.walled(self.n, self.n)
        grid[self.n - 2, self.n - 2] = cells.GOAL
        if not self.random_start:
            return initial_state(grid, np.array([1, 1]), 0)
        position = cells.random_cell(jnp.asarray(grid == cells.EMPTY), noise.fold(key, 0))
        return initial_state(grid, position, noise.integers(noise.fold(key, 1), (), 4))


class MiniGridDoorKey(GoalInCorner):
    """MiniGrid's DoorKey: fetch the key, unlock the door, and reach the goal behind it.

    A wall at a random column divides a grid of N×N cells. The agent and the key start in random
    cells to the left of it, the locked door is in a random row of it. An episode lasts at most
    10·N² steps. Observations, reward and score are those of `MiniGrid`.
    """

    n: int = eqx.field(static=True)
    """N, the width and height of the grid, including the walls around it."""
    coding: Coding = eqx.field(default="one-hot", static=True)
    """Coding of the view: one-hot, or scaled (MiniGrid's integers divided by their maxima)."""
    max_steps: int | None = eqx.field(default=None, static=True)
    """Maximum number of steps per episode. None: 10·N²."""

    def __check_init__(self) -> None:
        check_integer("n", self.n, at_least=5, at_most=100)

    @property
    def name(self) -> str:
        return f"minigrid-doorkey-{self.n}"

    @property
    def horizon(self) -> int:
        return self.max_steps or 10 * self.n**2

    @property
    def things(self) -> tuple[int, ...]:
        doors = (cells.door(cells.YELLOW, state) for state in range(cells.STATES))
        key = cells.key_of(cells.YELLOW)
        return cells.UNSEEN, cells.EMPTY, cells.WALL, cells.GOAL, key, *doors

    def probes(self) -> Mapping[str, Observation]:
        """Return an initial state, the one before its door with the key, and the one before the
        goal."""
        start = self.start(noise.root(0))
        carried = jnp.asarray(cells.key_of(cells.YELLOW), jnp.int32)
        empty = jnp.where(start.cells == carried, cells.EMPTY, start.cells)
        locked = start.cells == cells.door(cells.YELLOW, cells.LOCKED)
        x, y = jnp.divmod(jnp.argmax(locked), self.n)
        before_door = start._replace(
            cells=empty,
            position=jnp.stack([x - 1, y]).astype(jnp.int32),
            direction=jnp.zeros((), jnp.int32),
            carried=carried,
        )
        opened = jnp.where(locked, cells.door(cells.YELLOW, cells.OPEN), empty)
        last = self.before_goal(before_door._replace(cells=opened))
        states = {"start": start, "door": before_door, "last": last}
        return {name: self.observe(state) for name, state in states.items()}

    def start(self, key: Key) -> GridState:
        k_wall, k_agent, k_direction, k_door, k_key = (noise.fold(key, i) for i in range(5))
        grid = cells.walled(self.n, self.n)
        grid[self.n - 2, self.n - 2] = cells.GOAL
        wall = 2 + noise.integers(k_wall, (), self.n - 4)
        x = jnp.arange(self.n)[:, None]
        grid = jnp.where(x == wall, cells.WALL, jnp.asarray(grid))
        left = (x < wall) & (grid == cells.EMPTY)
        agent = cells.random_cell(left, k_agent)
        row = 1 + noise.integers(k_door, (), self.n - 3)
        grid = grid.at[wall, row].set(cells.door(cells.YELLOW, cells.LOCKED))
        at = cells.random_cell(left.at[agent[0], agent[1]].set(False), k_key)
        grid = grid.at[at[0], at[1]].set(cells.key_of(cells.YELLOW))
        return initial_state(grid, agent, noise.integers(k_direction, (), 4))
