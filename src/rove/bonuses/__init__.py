"""Families of intrinsic rewards."""

from rove.bonuses.base import Bonus, NoBonus
from rove.bonuses.counts import Counts
from rove.bonuses.disagreement import Disagreement
from rove.bonuses.rnd import RND

__all__ = ["RND", "Bonus", "Counts", "Disagreement", "NoBonus"]
