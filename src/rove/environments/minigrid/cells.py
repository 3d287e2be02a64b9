"""Cells of a MiniGrid: what they contain, what an action does to them, and which are in view.

A cell is stored as one integer. As in MiniGrid it has three numbers: the kind of its object, the
object's colour, and the state of a door. The first index of a grid is x, which points right, and
the second is y, which points down.
"""

from typing import NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Int

from rove.parts import noise
from rove.parts.noise import Key

Number = TypeVar("Number", int, Array)

KINDS, COLOURS, STATES = 11, 6, 3
"""Numbers of kinds of objects, of colours and of a door's states, in MiniGrid."""
RED, GREEN, BLUE, PURPLE, YELLOW, GREY = range(COLOURS)
OPEN, CLOSED, LOCKED = range(STATES)
_COLOUR, _STATE = 16, 128
"""Factors of the colour and of the state in a cell's integer."""
_DOOR, _KEY = 4, 5

UNSEEN, EMPTY, WALL, GOAL = 0, 1, 2 + _COLOUR * GREY, 8 + _COLOUR * GREEN
VIEW = 7
"""Width and height of the view, in cells."""
DIRECTIONS = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)], np.int32)
"""Unit vectors of the directions: right, down, left, up."""
TURN_LEFT, TURN_RIGHT, FORWARD, PICK_UP, DROP, TOGGLE, DONE = range(7)


class GridState(NamedTuple):
    """A grid and the agent in it."""

    cells: Int[Array, "width height"]
    """The cells' integers."""
    position: Int[Array, "2"]
    """The agent's x and y."""
    direction: Int[Array, ""]
    """The agent's direction: right, down, left or up."""
    carried: Int[Array, ""]
    """The object that the agent carries, or EMPTY."""
    time: Int[Array, ""]
    """Number of steps taken in the episode."""


def key_of(colour: Number) -> Number:
    """Return a cell with a key."""
    return _KEY + _COLOUR * colour


def door(colour: Number, state: int) -> Number:
    """Return a cell with a door."""
    return _DOOR + _COLOUR * colour + _STATE * state


def numbers(cells: Int[Array, "*n"]) -> Int[Array, "*n 3"]:
    """Return the kind, colour and state of cells, as in MiniGrid's images."""
    return jnp.stack([cells % _COLOUR, cells % _STATE // _COLOUR, cells // _STATE], axis=-1)


def without_colour(cells: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """Return cells with colour 0."""
    return cells % _COLOUR + cells // _STATE * _STATE


def is_open_door(cells: Int[Array, "*n"]) -> Bool[Array, "*n"]:
    """Whether a cell has a door that is open."""
    return without_colour(cells) == door(0, OPEN)


def walled(width: int, height: int) -> Int[np.ndarray, "width height"]:
    """Return a grid that is empty, except for walls around it."""
    cells = np.full((width, height), WALL, np.int32)
    cells[1:-1, 1:-1] = EMPTY
    return cells


def random_index(allowed: Bool[Array, "..."], key: Key) -> Int[Array, ""]:
    """Draw one of the allowed entries uniformly; return its index in the flat array."""
    return jnp.argmax(jnp.where(allowed, noise.uniform(key, allowed.shape), 0.0))


def random_cell(allowed: Bool[Array, "width height"], key: Key) -> Int[Array, "2"]:
    """Draw one of the allowed cells uniformly; return its x and y."""
    return jnp.stack(jnp.divmod(random_index(allowed, key), allowed.shape[1])).astype(jnp.int32)


def after_action(state: GridState, action: Int[Array, ""]) -> GridState:
    """Return the state after an action, by MiniGrid's rules."""
    cells, position, direction, carried, time = state
    front = position + jnp.asarray(DIRECTIONS)[direction]
    ahead = cells[front[0], front[1]]
    kind, colour, door_state = numbers(ahead)
    free = (ahead == EMPTY) | (ahead == GOAL) | is_open_door(ahead)
    picked = (action == PICK_UP) & (kind == _KEY) & (carried == EMPTY)
    dropped = (action == DROP) & (ahead == EMPTY)
    toggled = (action == TOGGLE) & (kind == _DOOR)
    opens = (door_state == CLOSED) | ((door_state == LOCKED) & (carried == key_of(colour)))
    closes = door_state == OPEN
    changed = jnp.where(picked, EMPTY, jnp.where(dropped, carried, ahead))
    changed = jnp.where(toggled & opens, door(colour, OPEN), changed)
    changed = jnp.where(toggled & closes, door(colour, CLOSED), changed)
    turn = jnp.where(action == TURN_RIGHT, 1, jnp.where(action == TURN_LEFT, -1, 0))
    return GridState(
        cells=cells.at[front[0], front[1]].set(changed),
        position=jnp.where((action == FORWARD) & free, front, position),
        direction=(direction + turn) % 4,
        carried=jnp.where(picked, ahead, jnp.where(dropped, EMPTY, carried)),
        time=time + 1,
    )


def view(state: GridState, through_walls: bool) -> Int[Array, "view view"]:
    """Return the cells in the agent's view; those that it cannot see are UNSEEN.

    The agent is in the middle of the last row, at [3, 6], and looks towards row 0. Its own cell
    shows what it carries.
    """
    forward = jnp.asarray(DIRECTIONS)[state.direction]
    right = jnp.stack([-forward[1], forward[0]])
    across, along = np.arange(VIEW) - VIEW // 2, VIEW - 1 - np.arange(VIEW)
    x, y = (
        state.position[i] + right[i] * across[:, None] + forward[i] * along[None, :]
        for i in range(2)
    )
    width, height = state.cells.shape
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    seen = state.cells[jnp.clip(x, 0, width - 1), jnp.clip(y, 0, height - 1)]
    seen = jnp.where(inside, seen, WALL)
    if not through_walls:
        seen = jnp.where(visible(seen), seen, UNSEEN)
    return seen.at[VIEW // 2, VIEW - 1].set(state.carried)


def visible(seen: Int[Array, "view view"]) -> Bool[Array, "view view"]:
    """Return which cells of a view the agent can see, by MiniGrid's rule.

    Light spreads from the agent's cell, row by row away from it: within a row first to the right
    and then to the left, and from each cell that it passes through to the row beyond, straight and
    diagonally. Walls and doors that are not open are seen, but stop it. A row is a word of bits.
    """
    bit = 1 << np.arange(VIEW)
    doors = seen % _COLOUR == _DOOR
    clear = (seen != WALL) & (~doors | is_open_door(seen))
    clear_rows = jnp.sum(jnp.where(clear, bit[:, None], 0), axis=0)
    all_bits, first, last = (1 << VIEW) - 1, 1, 1 << (VIEW - 1)
    lit, rows = jnp.int32(1 << (VIEW // 2)), []
    for row in reversed(range(VIEW)):
        for _ in range(VIEW - 1):
            lit = lit | ((lit & clear_rows[row]) << 1) & all_bits
        rightwards = lit & clear_rows[row] & ~last
        for _ in range(VIEW - 1):
            lit = lit | ((lit & clear_rows[row]) >> 1)
        leftwards = lit & clear_rows[row] & ~first
        rows.append(lit)
        lit = rightwards | (rightwards << 1) | leftwards | (leftwards >> 1)
    # The barrier computes the words once, not once for each cell.
    words = lax.optimization_barrier(jnp.stack(rows[::-1]))
    return (words[None, :] & bit[:, None]) != 0
