"""Tasks of MiniGrid (Chevalier-Boisvert et al. 2023), compiled: rooms, doors, keys and a goal."""

from rove.environments.minigrid.base import MiniGrid
from rove.environments.minigrid.goals import MiniGridDoorKey, MiniGridEmpty
from rove.environments.minigrid.rooms import (
    MiniGridFourRooms,
    MiniGridMultiRoom,
    MiniGridUnlock,
)

__all__ = [
    "MiniGrid",
    "MiniGridDoorKey",
    "MiniGridEmpty",
    "MiniGridFourRooms",
    "MiniGridMultiRoom",
    "MiniGridUnlock",
]
