"""What every named agent has in common."""

import dataclasses
from typing import ClassVar

from rove.learner import Learner


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a named agent can be told. `compose` makes the agent."""

    name: ClassVar[str]
    """What a person types."""
    label: ClassVar[str]
    """What a picture says."""

    def compose(self) -> Learner:
        raise NotImplementedError
