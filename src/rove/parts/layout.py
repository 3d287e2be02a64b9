"""The layout of the rows of a replay buffer."""

import equinox as eqx
from jax import Array

from rove.parts import masks
from rove.parts.integers import Integers
from rove.parts.onehot import Features, from_columns, width


class Layout(eqx.Module):
    """The layout of a row: s, s′, a, r, its end, the cached prior values at s and s′, the cell of
    s′, and the mask of the actions at s′.

    The end is 1 if the episode terminated after the transition, −1 if it was truncated, and 0 if it
    continued.
    """

    features: int = eqx.field(static=True)
    """Size of an observation."""
    actions: int = eqx.field(default=1, static=True)
    """Size of an action's vector; 1 for discrete actions."""
    cached: int = eqx.field(default=0, static=True)
    """Number of cached values of the prior functions per observation."""
    coded: bool = eqx.field(default=False, static=True)
    """Whether observations are `OneHot`, of which only the index is stored."""
    n_step: int = eqx.field(default=1, static=True)
    """Maximum number of steps of a transition from the buffer. Rows are always single steps."""
    cells: bool = eqx.field(default=False, static=True)
    """Whether the cell of s′ is stored."""
    stride: int = eqx.field(default=1, static=True)
    """Number of rows from one step of an episode to the next: the number of environments that take
    turns in adding transitions."""
    masked: int = eqx.field(default=0, static=True)
    """Number of actions of the mask; 0 if actions are not masked."""
    integers: Integers | None = eqx.field(default=None, static=True)
    """The form of observations of integers, which are stored as bytes instead of columns."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each part."""
        s = 0 if self.integers else width(self.features, self.coded)
        cached, cell = self.cached, int(self.cells)
        return (s, s, self.actions, 1, 1, cached, cached, cell, masks.width(self.masked))

    @property
    def bytes(self) -> int:
        """Number of bytes of s and s′ together; 0 if they are columns."""
        return 2 * self.integers.width(self.features) if self.integers else 0

    def observation(self, columns: Array) -> Features:
        """Return observations from their columns, or from their bytes."""
        if self.integers:
            return self.integers.from_bytes(columns, self.features)
        return from_columns(columns, self.features, self.coded)
