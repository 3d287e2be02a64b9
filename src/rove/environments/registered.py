"""Environments that are registered with Gymnasium: gym/ID, or gym/package:ID."""

import inspect
import re
from typing import Any

import gymnasium

from rove.environments.guard import raised
from rove.errors import ConfigError, nearest

PREFIX = "gym/"
_INSTALL = {
    "box2d": 'pip install swig "gymnasium[box2d]"',
    "mujoco": 'pip install "gymnasium[mujoco]"',
    "ale_py": "pip install ale-py",
    "pygame": "pip install pygame",
}


def settable(name: str) -> tuple[dict[str, Any], bool]:
    """The options of a registered environment that a person can set, and their defaults; and
    whether it may take others."""
    found = _spec(name)
    entry, known, others = found.entry_point, dict(found.kwargs), False
    try:
        if isinstance(entry, str):
            entry = gymnasium.envs.registration.load_env_creator(entry)
        parameters = inspect.signature(entry).parameters.values() if entry is not None else ()
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        raise _missing(name, error) from None
    except BaseException as error:
        raise ConfigError("environment", name, str(raised("its entry point", error))) from error
    for parameter in parameters:
        others |= parameter.kind is inspect.Parameter.VAR_KEYWORD
        known.setdefault(parameter.name, parameter.default)
    plain = {k: v for k, v in known.items() if isinstance(v, bool | int | float | str)}
    return {k: v for k, v in plain.items() if k not in ("render_mode", "family")}, others


def _spec(name: str) -> Any:
    """What is registered under a name."""
    identifier = _imported(name.removeprefix(PREFIX))
    try:
        return gymnasium.spec(identifier)
    except gymnasium.error.Error:
        allowed = "gym/ID of an environment that is registered with Gymnasium (package:ID imports "
        stem, latest = _stem(identifier), {_stem(known): known for known in gymnasium.registry}
        near = stem if stem in latest else nearest(stem, latest)
        package = name.removesuffix(identifier)
        hint = f". Did you mean {package + latest[near]!r}?" if near else ""
        raise ConfigError("environment", name, f"{allowed}the package first){hint}") from None


def _stem(identifier: str) -> str:
    """An id without its version."""
    return re.sub(r"-v\d+$", "", identifier)


def _imported(told: str) -> str:
    """The part of an id after its package, which is imported."""
    package, _, rest = told.rpartition(":")
    if package:
        try:
            __import__(package)
        except ImportError as error:
            raise ConfigError("environment", told, f"{error}: pip install {package}") from None
        except BaseException as error:
            what = str(raised(f"import {package}", error))
            raise ConfigError("environment", told, what) from error
    return rest


def made(name: str, options: dict[str, Any]) -> Any:
    """A new one."""
    identifier = _imported(name.removeprefix(PREFIX))
    try:
        return gymnasium.make(identifier, disable_env_checker=True, **options)
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        raise _missing(name, error) from None
    except BaseException as error:
        raise ConfigError("environment", name, str(raised("gymnasium.make", error))) from error


def _missing(name: str, error: Exception) -> ConfigError:
    """A package that an environment needs is not installed."""
    where = f"{_spec(name).entry_point} {error}".lower()
    install = next((line for key, line in _INSTALL.items() if key in where), str(error))
    return ConfigError("environment", name, f"it needs a package that is not installed: {install}")
