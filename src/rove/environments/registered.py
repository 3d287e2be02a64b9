"""Environments registered with Gymnasium: gym/ID, or gym/package:ID to import a package first."""

import dataclasses
import inspect
import re
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from rove.environments.faults import environment_error
from rove.errors import ConfigError, nearest

PREFIX = "gym/"
PLAIN = bool | int | float | str
"""Types of the options that a run folder can record."""
_INSTALL = {
    "box2d": 'pip install swig "gymnasium[box2d]"',
    "mujoco": 'pip install "gymnasium[mujoco]"',
    "ale_py": "pip install ale-py",
    "pygame": "pip install pygame",
}


def split(name: str) -> tuple[str, str]:
    """Return the package in a name such as gym/PACKAGE:ID, or "", and the name without it."""
    package, _, identifier = name.removeprefix(PREFIX).rpartition(":")
    return package, PREFIX + identifier


def registration(env: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the name gym/ID and the options with which `gymnasium.make` creates an environment
    equal to a given object. None if the object has further wrappers, another time limit, or options
    that a run folder cannot record."""
    spec = getattr(env, "spec", None) if isinstance(env, gymnasium.Env) else None
    known = gymnasium.registry.get(spec.id) if isinstance(spec, EnvSpec) else None
    if not isinstance(spec, EnvSpec) or known is None:
        return None
    ignored = {"disable_env_checker": known.disable_env_checker, "kwargs": known.kwargs}
    kwargs = {k: v for k, v in spec.kwargs.items() if k != "render_mode"}
    plain = all(isinstance(value, PLAIN) for value in kwargs.values())
    if not plain or dataclasses.replace(spec, **ignored) != known:
        return None
    defaults, any_option = settable(PREFIX + spec.id)
    options = changed(changed(kwargs, known.kwargs), defaults)
    return (PREFIX + spec.id, options) if any_option or set(options) <= set(defaults) else None


def module_of(name: str) -> str:
    """Return the module that defines a registered environment; "" if Gymnasium or rove registers
    it."""
    entry = gymnasium.spec(name.removeprefix(PREFIX)).entry_point
    module = entry.partition(":")[0] if isinstance(entry, str) else getattr(entry, "__module__", "")
    return "" if module.partition(".")[0] in ("gymnasium", "rove") else module


def changed(options: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    return {k: v for k, v in options.items() if k not in defaults or v != defaults[k]}


def settable(name: str) -> tuple[dict[str, Any], bool]:
    """Return the options of a registered environment with their defaults.

    Also returns whether it accepts any other options.
    """
    spec = _spec(name)
    entry, defaults, any_option = spec.entry_point, dict(spec.kwargs), False
    try:
        if isinstance(entry, str):
            entry = gymnasium.envs.registration.load_env_creator(entry)
        parameters = inspect.signature(entry).parameters.values() if entry is not None else ()
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        raise _missing(name, error) from None
    except BaseException as error:
        raise _failed(name, environment_error("its entry point", error)) from error
    for parameter in parameters:
        any_option |= parameter.kind is inspect.Parameter.VAR_KEYWORD
        defaults.setdefault(parameter.name, parameter.default)
    plain = {k: v for k, v in defaults.items() if isinstance(v, PLAIN)}
    return {k: v for k, v in plain.items() if k not in ("render_mode", "family")}, any_option


def _failed(name: str, error: Exception) -> ConfigError:
    """An error about an environment that cannot be created."""
    return ConfigError("environment", name, str(error), f"environment {name}: {error}")


def _spec(name: str) -> Any:
    """Return Gymnasium's specification of a registered environment."""
    identifier = _imported(name.removeprefix(PREFIX))
    try:
        return gymnasium.spec(identifier)
    except gymnasium.error.Error:
        stem, latest = _stem(identifier), {_stem(known): known for known in gymnasium.registry}
        near = stem if stem in latest else nearest(stem, latest)
        package = name.removesuffix(identifier)
        hint = f" Did you mean {package + latest[near]!r}?" if near else ""
        message = f"environment {name!r} is not registered with Gymnasium.{hint} "
        message += "Check the id, or name the package that registers it, as in "
        message += "gym/ale_py:ALE/Pong-v5"
        raise ConfigError("environment", name, "registered with Gymnasium", message) from None


def _stem(identifier: str) -> str:
    """Return an id without its version."""
    return re.sub(r"-v\d+$", "", identifier)


def _imported(identifier: str) -> str:
    """Import the package that an id names, if any, and return the rest of the id."""
    package, _, rest = identifier.rpartition(":")
    if package:
        try:
            __import__(package)
        except ImportError as error:
            reason = f"{error}. If {package}.py is in the current folder, set PYTHONPATH=.; if it "
            reason += "is a package, install it"
            message = f"environment {identifier}: {reason}"
            raise ConfigError("environment", identifier, reason, message) from None
        except BaseException as error:
            raise _failed(identifier, environment_error(f"import {package}", error)) from error
    return rest


def make_registered(name: str, options: dict[str, Any]) -> Any:
    """Create an environment that is registered with Gymnasium."""
    identifier = _imported(name.removeprefix(PREFIX))
    try:
        return gymnasium.make(identifier, disable_env_checker=True, **options)
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        raise _missing(name, error) from None
    except BaseException as error:
        raise _failed(name, environment_error("gymnasium.make", error)) from error


def _missing(name: str, error: Exception) -> ConfigError:
    """An error about a package that an environment needs and that is not installed."""
    text = f"{_spec(name).entry_point} {error}".lower()
    install = next((line for key, line in _INSTALL.items() if key in text), str(error))
    reason = f"needs a package that is not installed: {install}"
    return ConfigError("environment", name, reason, f"environment {name} {reason}")
