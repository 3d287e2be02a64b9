"""Creation of training environments from gymnax environments, given by name or as objects."""

import dataclasses
import inspect
import json
from typing import Annotated, Any

import numpy as np
from typing_extensions import Doc

from rove.environments.gymnax.environment import (
    GymnaxEnvironment,
    GymnaxSource,
    bounds_of,
    is_box,
    is_discrete,
)
from rove.environments.gymnax.integers import integers_of
from rove.errors import (
    ConfigError,
    check_flag,
    check_integer,
    check_number,
    nearest,
    unknown_option,
)

PREFIX = "gymnax/"
ROVE_OPTIONS: dict[str, tuple[Any, str]] = {
    "optimum": (
        float | None,
        "Best possible score of an episode, if known. Without it, rove cannot tell whether the "
        "task is solved.",
    ),
    "score_range": (
        tuple[float, float] | None,
        "Minimum and maximum score of an episode, if known; confidence intervals use them.",
    ),
}
"""The options that rove adds to a gymnax environment, with their types and descriptions."""
_MEMBERS = ("step_env", "reset_env", "default_params", "observation_space", "action_space")
_PLAIN = bool | int | float | str
"""Types of the options that a run folder can record."""


def is_gymnax(environment: Any) -> bool:
    """Whether an object has gymnax's interface."""
    return not isinstance(environment, type) and all(hasattr(environment, x) for x in _MEMBERS)


def adopt_gymnax(
    environment: Any,
    params: Any = None,
    *,
    optimum: float | None = None,
    score_range: tuple[float, float] | None = None,
) -> GymnaxEnvironment:
    """Use a gymnax environment, or any object with the same interface, for training.

    **Arguments**
    - `environment`: an object with the members of `gymnax.environments.environment.Environment`,
      version 1.0 or later. For one of gymnax's own by its name, use `rove.make("gymnax/NAME")`:
      a run then records it by name.
    - `params`: its parameters. Defaults to `environment.default_params`.
    - `optimum`: the best possible score of an episode, if it is known: needed to tell whether the
      task is solved.
    - `score_range`: the minimum and maximum score of an episode, if they are known: intervals of
      few seeds, and `rove.difference`, rely on them.

    **Example**
    >>> env, params = gymnax.make("Catch-bsuite", rows=5)
    >>> rove.adopt_gymnax(env, params, optimum=1.0).observation_size
    25
    """
    if not is_gymnax(environment):
        hint = (
            f'. By name: rove.make("gymnax/{environment}")' if isinstance(environment, str) else ""
        )
        members = ", ".join(_MEMBERS)
        allowed = f"an object with gymnax's interface ({members} and is_truncated)"
        raise ConfigError.must_be("environment", environment, allowed, hint)
    params = environment.default_params if params is None else params
    described = json.dumps(_fields(params), sort_keys=True)
    source = GymnaxSource(
        type(environment).__name__, described, id(environment), environment, params
    )
    return _checked(source, {"optimum": optimum, "score_range": score_range})


def from_gymnax_name(name: str, **options: Any) -> GymnaxEnvironment:
    """Create the environment of a name such as gymnax/Breakout-MinAtar.

    Options other than those of rove (see `adopt_gymnax`) are passed to the environment's class or,
    if that does not have them, to its parameters.
    """
    rove_options = {key: options.pop(key) for key in ROVE_OPTIONS if key in options}
    environment = _create(name)
    defaults = _constructor_options(environment)
    chosen = _checked_options(name, {k: v for k, v in options.items() if k in defaults}, defaults)
    environment = _create(name, **chosen) if chosen else environment
    params = environment.default_params
    rest = {k: v for k, v in options.items() if k not in defaults}
    defaults |= _plain_fields(params)
    rest = _checked_options(name, rest, defaults)
    params = dataclasses.replace(params, **rest)
    changed = {k: v for k, v in (chosen | rest).items() if v != defaults[k]}
    text = json.dumps(changed, sort_keys=True)
    return _checked(GymnaxSource(name, text, 0, environment, params), rove_options)


def reconfigured(environment: GymnaxEnvironment, values: dict[str, Any]) -> GymnaxEnvironment:
    """Return the environment with other values of the options that `gymnax_settings` returns.

    Unchanged options are left to gymnax, since some defaults depend on other options.
    """
    before = gymnax_settings(environment)
    changed = {k: v for k, v in values.items() if v != getattr(before, k)}
    return from_gymnax_name(environment.name, **environment.options() | changed)


def gymnax_settings(environment: GymnaxEnvironment) -> Any:
    """Return the options of a gymnax environment as a dataclass, for the command line."""
    source = environment.source
    rove_options = {
        key: (kind, getattr(environment, key), text) for key, (kind, text) in ROVE_OPTIONS.items()
    }
    others = _constructor_options(source.environment) | _plain_fields(source.params)
    others |= json.loads(source.options)
    passed = {key: (type(x), x, "Passed to gymnax.") for key, x in others.items()}
    fields = [
        (key, Annotated[kind, Doc(text)], dataclasses.field(default=default))
        for key, (kind, default, text) in (rove_options | passed).items()
    ]
    return dataclasses.make_dataclass("Options", fields, frozen=True)()


def _create(name: str, **options: Any) -> Any:
    """Create one of gymnax's environments; raise `ConfigError` if that fails."""
    try:
        import gymnax  # pyrefly: ignore
    except ImportError as error:
        reason = f"needs gymnax: pip install gymnax ({_one_line(error)})"
        raise _unusable(name, reason) from None
    known = {identifier: PREFIX + identifier for identifier in gymnax.registered_envs}
    if name.removeprefix(PREFIX) not in known:
        near = nearest(name.removeprefix(PREFIX), known)
        hint = f" Did you mean {known[near]!r}?" if near else ""
        allowed = "one of " + ", ".join(known.values())
        message = f"unknown environment {name!r}.{hint} Use {allowed}"
        raise ConfigError("environment", name, allowed, message)
    try:
        return gymnax.make(name.removeprefix(PREFIX), **options)[0]
    except Exception as error:
        raise _unusable(name, f"cannot be created: {_one_line(error)}") from error


def _constructor_options(environment: Any) -> dict[str, Any]:
    """Return the options of an environment's class that are numbers, words or flags."""
    parameters = inspect.signature(type(environment)).parameters.values()
    return {p.name: p.default for p in parameters if isinstance(p.default, _PLAIN)}


def _checked(source: GymnaxSource, rove_options: dict[str, Any]) -> GymnaxEnvironment:
    """Create a training environment, after checking its interface and its spaces."""
    environment, params, name = source.environment, source.params, source.name
    if not hasattr(environment, "is_truncated"):
        problem = "has no is_truncated, so that a time limit cannot be told from the end of the "
        problem += "task: use gymnax 1.0 or later, or add the method"
        raise _unusable(name, problem)
    try:
        spaces = environment.observation_space(params), environment.action_space(params)
    except Exception as error:
        raise _unusable(name, f"has no spaces: {_one_line(error)}") from error
    observations, actions = spaces
    if not is_discrete(observations) and not is_box(observations):
        problem = f"has observations in {observations}, but they must be in a Discrete or Box space"
        raise _unusable(name, f"{problem}: join their parts into one array with a wrapper")
    if is_box(observations) and min(observations.shape, default=1) < 1:
        problem = f"has observations of shape {tuple(observations.shape)}, which have no entries"
        raise _unusable(name, f"{problem}: change its options")
    if not is_discrete(actions) and not is_box(actions):
        problem = f"has actions in {actions}, but they must be in a Discrete or Box space"
        raise _unusable(name, f"{problem}: convert them with a wrapper")
    if is_box(actions) and not np.isfinite(bounds_of(actions)).all():
        problem = f"has actions in {actions}, but the bounds must be finite"
        raise _unusable(name, f"{problem}: declare a bounded Box")
    if (limits := rove_options.get("score_range")) is not None:
        if not isinstance(limits, list | tuple) or len(limits) != 2:
            raise ConfigError.must_be("score_range", limits, "two numbers, for example 0 1")
        rove_options["score_range"] = (limits[0], limits[1])
    source = dataclasses.replace(source, observations=observations, actions=actions)
    if is_box(observations):
        low, high = bounds_of(observations)
        integers = integers_of(environment, params, float(low.min()), float(high.max()))
        source = dataclasses.replace(source, integers=integers)
    return GymnaxEnvironment(source, **rove_options)


def _unusable(name: str, problem: str) -> ConfigError:
    return ConfigError("environment", name, problem, f"environment {name} {problem}")


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _checked_options(
    name: str, options: dict[str, Any], defaults: dict[str, Any]
) -> dict[str, Any]:
    """Return options converted to the types of their defaults; raise `ConfigError` if one is
    unknown or has another type."""
    for key, value in options.items():
        if key not in defaults:
            known = [*ROVE_OPTIONS, *defaults]
            raise unknown_option(name, key, value, known)
        default = defaults[key]
        if isinstance(default, bool):
            check_flag(key, value)
        elif isinstance(default, int):
            check_integer(key, value, at_least=-(2**31), at_most=2**31 - 1)
        elif isinstance(default, float):
            check_number(key, value)
        elif not isinstance(value, str):
            raise ConfigError.must_be(key, value, "a word")
    return {key: type(defaults[key])(value) for key, value in options.items()}


def _fields(params: Any) -> dict[str, Any]:
    """Return the parameters of an environment in a form that JSON can represent."""
    if not dataclasses.is_dataclass(params):
        return {"params": repr(params)}
    values = {f.name: getattr(params, f.name) for f in dataclasses.fields(params)}
    return {k: v if isinstance(v, _PLAIN) else np.asarray(v).tolist() for k, v in values.items()}


def _plain_fields(params: Any) -> dict[str, Any]:
    """Return the parameters that are numbers, words or flags."""
    return {k: v for k, v in _fields(params).items() if isinstance(v, _PLAIN)}
