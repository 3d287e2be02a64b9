"""Where a Gymnasium environment comes from, and how it is created."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from rove.environments import registered
from rove.environments.actions import Decode
from rove.environments.encoding import Encode
from rove.environments.faults import environment_error
from rove.errors import RoveError


@dataclasses.dataclass(frozen=True)
class Source:
    """The origin of an environment: a registered id with options, or an object from the user."""

    name: str
    options: str = "{}"
    """The options of a registered id, as JSON."""
    object_id: int = 0
    """The identity of the user's object; 0 if it was created from its name."""
    package: str = dataclasses.field(default="", compare=False)
    """The package that has to be imported to register the id, if the user named it."""
    build: Callable[[], Any] = dataclasses.field(default=lambda: None, compare=False)
    """Creates an environment."""
    spaces: tuple[Any, Any] = dataclasses.field(default=(None, None), compare=False)
    """The spaces of observations and actions."""
    encode: Encode = dataclasses.field(default=np.asarray, compare=False)
    """Converts an observation without its mask to columns."""
    decode: Decode = dataclasses.field(default=int, compare=False)
    """Converts a learner's action to the environment's."""

    @property
    def registered(self) -> bool:
        """Whether the environment is one that Gymnasium creates from `name` and `options`."""
        return self.name.startswith(registered.PREFIX)

    @property
    def full_name(self) -> str:
        """The name with the package that registers it: gym/PACKAGE:ID."""
        prefix = registered.PREFIX
        package = f"{self.package}:" if self.package else ""
        return prefix + package + self.name.removeprefix(prefix)

    def new(self) -> Any:
        """Create an environment; raise `BadEnvironment` if that fails."""
        try:
            return self.build()
        except RoveError:
            raise
        except BaseException as error:
            raise environment_error("creating the environment", error) from error
