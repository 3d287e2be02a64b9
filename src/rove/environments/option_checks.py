"""Checks of rove's own options of a Gymnasium environment."""

from typing import TYPE_CHECKING

from rove.environments.frames import check_stack
from rove.errors import check_flag, check_integer, check_number

if TYPE_CHECKING:
    from rove.environments.host import HostEnvironment

MOST_COPIES = 256
"""Maximum number of copies of an environment: as many episodes fit in the log of a lane."""


def check_options(environment: "HostEnvironment") -> None:
    """Raise `ConfigError` if an option has a value that is not allowed."""
    check_flag("normalise", environment.normalise)
    check_flag("ignore_mask", environment.ignore_mask)
    if environment.sparse is not None:
        check_number("sparse", environment.sparse, at_least=-1e6, at_most=1e6)
    if environment.optimum is not None:
        check_number("optimum", environment.optimum, at_least=-1e9, at_most=1e9)
    if environment.score_range is not None:
        low, high = environment.score_range
        check_number("score_range", low, at_least=-1e9, at_most=1e9)
        check_number("score_range", high, above=low, at_most=1e9)
    check_integer("longest_episode", environment.longest_episode, at_least=1)
    check_integer("copies", environment.copies, at_least=1, at_most=MOST_COPIES)
    check_stack(environment.frame_stack, environment.name, environment.discrete)
