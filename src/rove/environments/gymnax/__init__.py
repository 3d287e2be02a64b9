"""gymnax environments, which are compiled with the agent: `make("gymnax/Breakout-MinAtar")`."""

from rove.environments.gymnax.creation import (
    PREFIX,
    adopt_gymnax,
    from_gymnax_name,
    gymnax_settings,
    is_gymnax,
    reconfigured,
)
from rove.environments.gymnax.environment import GymnaxEnvironment

__all__ = [
    "PREFIX",
    "GymnaxEnvironment",
    "adopt_gymnax",
    "from_gymnax_name",
    "gymnax_settings",
    "is_gymnax",
    "reconfigured",
]
