"""Any Gymnasium environment, as training sees it: `make("gym/CartPole-v1")`, or one's own."""

import copy
import dataclasses
import functools
import inspect
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import gymnasium
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.environments.base import GRID, Coordinate, State, Task, cell
from rove.environments.guard import BadEnvironment, Decode, Encode, Guard, encoder, raised, sized
from rove.errors import (
    ConfigError,
    RoveError,
    check_flag,
    check_integer,
    check_number,
    did_you_mean,
)
from rove.noise import Key

PREFIX = "gym/"
LONGEST_EPISODE = 100_000
OWN = ("normalise", "longest_episode", "sparse", "axes")
"""Options that are rove's."""
PROBES = 3
CLIP = 10.0
"""How far from its mean a normalised number may be, in standard deviations."""
EDGE, HUGE = 3.0, 1e6
"""Cells of an entry that has no bounds, or any beyond ±HUGE, are from −EDGE to EDGE."""

_SPACES = ("observation_space", "action_space")
_INSTALL = {
    "box2d": 'pip install swig "gymnasium[box2d]"',
    "mujoco": 'pip install "gymnasium[mujoco]"',
    "ale_py": "pip install ale-py",
    "pygame": "pip install pygame",
}


class Statistics(NamedTuple):
    """Of the observations a lane has seen so far."""

    count: Float[Array, ""]
    mean: Float[Array, " features"]
    squares: Float[Array, " features"]
    """Sum of the squared distances from the mean."""

    def seen(self, x: Float[Array, " features"]) -> "Statistics":
        """With one more (Welford 1962)."""
        count = self.count + 1.0
        mean = self.mean + (x - self.mean) / count
        return Statistics(count, mean, self.squares + (x - self.mean) * (x - mean))

    def normalised(self, x: Float[Array, " features"]) -> Float[Array, " features"]:
        std = jnp.sqrt(self.squares / jnp.maximum(self.count, 1.0) + 1e-8)
        return jnp.clip((x - self.mean) / std, -CLIP, CLIP)


class Noted(NamedTuple):
    """What a lane keeps of its observations, as they come."""

    statistics: Statistics | None
    """If they are normalised."""
    place: Float[Array, "2"] | None
    """The two entries of the last one that cells are of, if there are cells."""


@dataclasses.dataclass(frozen=True)
class Source:
    """Where environments come from: a registered id and its options, or what a person gave."""

    name: str
    options: str = "{}"
    """As JSON."""
    given: int = 0
    """What tells one given object from another; 0 for a registered id."""
    build: Callable[[], Any] = dataclasses.field(default=lambda: None, compare=False)
    spaces: tuple[Any, Any] = dataclasses.field(default=(None, None), compare=False)
    """Of observations and of actions."""
    encode: Encode = dataclasses.field(default=np.asarray, compare=False)
    decode: Decode = dataclasses.field(default=int, compare=False)

    def new(self) -> Any:
        """One more; or an error that says what it raised."""
        try:
            return self.build()
        except RoveError:
            raise
        except BaseException as error:
            raise raised("environment", error) from error


class HostEnvironment(Task):
    """A Gymnasium environment. It is stepped on the host; the state that training carries for it
    is what it has noted of its observations."""

    source: Source = eqx.field(static=True)
    size: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    first: Float[Array | np.ndarray, "probes features"]
    """Some first observations."""
    normalise: bool = eqx.field(default=False, static=True)
    """Show the agent observations less their running mean, by their standard deviation."""
    vectors: bool = eqx.field(default=False, static=True)
    """Whether actions are vectors, of so many numbers."""
    longest_episode: int = eqx.field(default=LONGEST_EPISODE, static=True)
    """Steps after which an episode that has not ended is an error."""
    alias: str = eqx.field(default="", static=True)
    """Another name that a person can type."""
    sparse: float | None = eqx.field(default=None, static=True)
    """One reward, where the task ends, in place of its own: 1 for a goal, −1 for a fall."""
    axes: tuple[int, int] | None = eqx.field(default=None, static=True)
    """The two entries of an observation, across and up, in whose cells visits are counted."""
    sides: tuple[Coordinate, ...] = eqx.field(default=(), static=True)
    """The coordinates of those cells."""

    def __check_init__(self) -> None:
        check_flag("normalise", self.normalise)
        if self.sparse is not None:
            check_number("sparse", self.sparse, at_least=-1e6, at_most=1e6)
        check_integer("longest_episode", self.longest_episode, at_least=1)

    @property
    def name(self) -> str:
        return self.alias or self.source.name

    @property
    def observation_size(self) -> int:
        return self.size

    @property
    def num_actions(self) -> int:
        return self.actions

    @property
    def continuous(self) -> bool:
        return self.vectors

    @property
    def optimum(self) -> None:
        """None: nobody has said."""
        return None

    @property
    def score_label(self) -> str:
        if self.sparse is None:
            return "return"
        return "goal reached" if self.sparse > 0 else "episode length"

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        """Of a task made sparse: whether the goal was reached, or how long it was to the fall."""
        if self.sparse is None:
            return returns
        return terminated.astype(int) if self.sparse > 0 else length

    @property
    def bins(self) -> int:
        return math.prod(self.cells)

    @property
    def cells(self) -> tuple[int, ...]:
        return (GRID, GRID) if self.axes else (0,)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self.sides

    def bin(self, state: Noted) -> Int[Array, ""]:
        assert state.place is not None
        across, up = state.place
        return cell(self.sides, (up, across))

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """First observations of some episodes."""
        names = ("start", *(f"start {i + 1}" for i in range(1, PROBES)))
        return {name: jnp.asarray(x) for name, x in zip(names, self.first, strict=False)}

    def reset(self, key: Key) -> tuple[State, Float[Array, " features"]]:
        """Before the first episode: nothing was seen yet, and the observation is to come."""
        nought, none = jnp.zeros(self.size), jnp.zeros(())
        statistics = Statistics(none, nought, nought) if self.normalise else None
        return Noted(statistics, self._place(nought)), nought

    def noted(self, state: Noted, observation: Float[Array, " features"]) -> Noted:
        """The state with an observation in it."""
        statistics = state.statistics and state.statistics.seen(observation)
        return Noted(statistics, self._place(observation))

    def _place(self, observation: Float[Array, " features"]) -> Float[Array, "2"] | None:
        return observation[jnp.array(self.axes)] if self.axes else None

    def shown(
        self, state: Noted, observation: Float[Array, " features"]
    ) -> Float[Array, " features"]:
        return state.statistics.normalised(observation) if state.statistics else observation

    def vector(self, observation: Any) -> np.ndarray:
        try:
            return self.source.encode(observation)
        except BadEnvironment as error:
            raise ConfigError("observation", observation, str(error)) from None

    def action(self, chosen: Array) -> int | np.ndarray:
        action = self.source.decode(chosen)
        return action if self.continuous else int(action)

    def make(self) -> Guard:
        """A new one, with the spaces of the first, checked at every step."""
        env = self.source.new()
        ours = id(env) != self.source.given
        guard = Guard(env, self.longest_episode, ours, self.sparse)
        for field, first in zip(_SPACES, self.source.spaces, strict=True):
            found = getattr(env, field)
            if sized(found) != sized(first):
                guard.close()
                raise BadEnvironment(field, f"is {found}, where it was {first} before")
        return guard

    def viewable(self) -> gymnasium.Env:
        """A new one that can be drawn."""
        if not self.source.given:
            made = json.loads(self.source.options) | {"render_mode": "rgb_array"}
            return _made(self.source.name, made)
        env = self.source.new()
        if getattr(env, "render_mode", None) != "rgb_array":
            raise ConfigError("render_mode", getattr(env, "render_mode", None), "rgb_array")
        return env

    def options(self) -> dict[str, Any]:
        """What the name leaves open, as JSON has it."""
        shared = {name: getattr(self, name) for name in OWN}
        shared["axes"] = self.axes and list(self.axes)
        described = dict(zip(_SPACES, map(str, self.source.spaces), strict=True))
        return shared | (described if self.source.given else json.loads(self.source.options))


ALIASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "sparse-inverted-pendulum": (
        "gym/InvertedPendulum-v5",
        {"sparse": -1.0},
        "MuJoCo's inverted pendulum with a single reward: −1 for the fall.",
    ),
    "sparse-inverted-double-pendulum": (
        "gym/InvertedDoublePendulum-v5",
        {"sparse": -1.0},
        "MuJoCo's inverted double pendulum with a single reward: −1 for the fall.",
    ),
}
"""Names for a Gymnasium environment and options; and a line on it."""


def from_name(name: str, **options: Any) -> HostEnvironment:
    """The environment of a name such as gym/CartPole-v1. Options other than rove's own go to
    `gymnasium.make`."""
    own: dict[str, Any] = {}
    if name in ALIASES:
        own["alias"] = name
        name, shared, _ = ALIASES[name]
        options = shared | options
    own |= {key: options.pop(key) for key in OWN if key in options}
    known, others = settable(name)
    for key, value in options.items():
        if key not in known and not others:
            hint = ", ".join(known) + did_you_mean(key, known)
            raise ConfigError(key, value, f"an unknown option; {name} has {hint}")
    options = {k: v for k, v in options.items() if k not in known or v != known[k]}
    build = functools.partial(_made, name, options)
    return _checked(Source(name, json.dumps(options, sort_keys=True), build=build), own)


def adopt(
    environment: Any,
    *,
    normalise: bool = False,
    longest_episode: int = LONGEST_EPISODE,
    sparse: float | None = None,
    axes: tuple[int, int] | None = None,
) -> HostEnvironment:
    """One's own Gymnasium environment: an instance, of which every seed gets a copy, or a function
    that makes one.

    **Arguments**
    - `normalise`: show the agent observations less their running mean, by their standard
      deviation.
    - `longest_episode`: steps after which an episode that has not ended is an error.
    - `sparse`: one reward, where the task ends, in place of its own: 1 for a goal, −1 for a fall.
    - `axes`: the two entries of an observation, across and up, in whose cells visits are counted;
      of a box of two entries that are bounded, these.
    """
    own: dict[str, Any] = {"normalise": normalise, "longest_episode": longest_episode}
    own |= {"sparse": sparse, "axes": axes}
    if isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv):
        build = functools.partial(_copied, environment)
    elif callable(environment):
        build = environment
    else:
        allowed = "a name, a rove.Environment, a gymnasium.Env, or a function that makes one"
        raise ConfigError("environment", environment, allowed)
    return _checked(Source("", given=id(environment), build=build), own)


def settable(name: str) -> tuple[dict[str, Any], bool]:
    """The options of a registered environment that a person can set, and their defaults; and
    whether it may take others."""
    spec = _spec(name)
    entry, known, others = spec.entry_point, dict(spec.kwargs), False
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


def settings(environment: HostEnvironment) -> Any:
    """The options of a registered environment as a dataclass, for the command."""
    kinds = {"normalise": bool, "longest_episode": int, "sparse": float | None}
    kinds["axes"] = tuple[int, int] | None
    own: dict[str, tuple[Any, Any]] = {key: (kinds[key], getattr(environment, key)) for key in OWN}
    known = settable(environment.source.name)[0]
    others = {key: (type(default), default) for key, default in known.items()}
    fields = [(k, kind, dataclasses.field(default=x)) for k, (kind, x) in (own | others).items()]
    kind = dataclasses.make_dataclass("Options", fields, frozen=True)
    kind.__doc__ = (
        "Show observations normalised (normalise); steps after which an episode that has not "
        "ended is an error (longest-episode); one reward, where the task ends, in place of its "
        "own: 1 for a goal, -1 for a fall (sparse); the two entries of an observation in whose "
        "cells visits are counted (axes); the others go to gymnasium.make."
    )
    return kind()


def _spec(name: str) -> Any:
    """What is registered under a name."""
    try:
        return gymnasium.spec(_imported(name.removeprefix(PREFIX)))
    except gymnasium.error.Error:
        known = [f"{PREFIX}{known}" for known in gymnasium.registry]
        allowed = "gym/ID of an environment that is registered with Gymnasium (package:ID imports "
        raise ConfigError(
            "environment", name, f"{allowed}the package first){did_you_mean(name, known)}"
        ) from None


def _imported(registered: str) -> str:
    """The part of an id after its package, which is imported."""
    package, _, rest = registered.rpartition(":")
    if package:
        try:
            __import__(package)
        except ImportError as error:
            raise ConfigError(
                "environment", registered, f"{error}: pip install {package}"
            ) from None
        except BaseException as error:
            what = str(raised(f"import {package}", error))
            raise ConfigError("environment", registered, what) from error
    return rest


def _made(name: str, options: dict[str, Any]) -> Any:
    registered = _imported(name.removeprefix(PREFIX))
    try:
        return gymnasium.make(registered, disable_env_checker=True, **options)
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        raise _missing(name, error) from None
    except BaseException as error:
        raise ConfigError("environment", name, str(raised("gymnasium.make", error))) from error


def _missing(name: str, error: Exception) -> ConfigError:
    """A package that an environment needs is not installed."""
    where = f"{_spec(name).entry_point} {error}".lower()
    install = next((line for key, line in _INSTALL.items() if key in where), str(error))
    return ConfigError("environment", name, f"it needs a package that is not installed: {install}")


def _copied(environment: Any) -> Any:
    """A copy; or the thing itself, where it cannot be copied, for the one lane it can serve."""
    try:
        return copy.deepcopy(environment)
    except Exception:
        return environment


def _checked(source: Source, own: dict[str, Any]) -> HostEnvironment:
    """Look at an environment before anything compiles: its spaces and some first observations."""
    name = source.name or "given"
    try:
        env = source.new()
        name = source.name or _description(env)
        ours = id(env) != source.given  # what a person gave is theirs to close
        guard = Guard(env, own.get("longest_episode", LONGEST_EPISODE), ours)
        first = np.unique([guard.reset(seed) for seed in range(PROBES)], axis=0)
        encode = encoder(env.observation_space)
    except BadEnvironment as error:
        raise ConfigError("environment", name, str(error)) from error
    spaces = (env.observation_space, env.action_space)
    source = dataclasses.replace(
        source, name=name, spaces=spaces, encode=encode, decode=guard.decode
    )
    guard.close()
    own["axes"], sides = _board(env.observation_space, own.get("axes"))
    space = guard.action_space
    vectors = isinstance(space, gymnasium.spaces.Box)
    actions = math.prod(space.shape) if vectors else int(space.n)
    return HostEnvironment(
        source, first.shape[1], actions, first, vectors=vectors, sides=sides, **own
    )


def _board(space: Any, axes: Any) -> tuple[tuple[int, int] | None, tuple[Coordinate, ...]]:
    """The entries of an observation in whose cells visits are counted, and the board's sides. If
    nobody has said which: both entries of a box of two that are bounded."""
    box = isinstance(space, gymnasium.spaces.Box)
    low, high = (space.low.ravel(), space.high.ravel()) if box else (np.zeros(0), np.zeros(0))
    bounded = (low >= -HUGE) & (high <= HUGE) & (low < high)
    if axes is None and len(low) == 2 and bounded.all():
        axes = (0, 1)
    if axes is None:
        return None, ()
    known = isinstance(axes, list | tuple) and all(
        isinstance(i, int | np.integer) and not isinstance(i, bool) and i in range(len(low))
        for i in axes
    )
    if not known or not len(axes) == len(set(axes)) == 2:
        raise ConfigError("axes", axes, f"two of the {len(low)} entries of a box, for example 0 1")
    ends = np.where(bounded, (low, high), [[-EDGE], [EDGE]])
    across, up = (Coordinate(f"observation {i}", *ends[:, i].tolist()) for i in axes)
    return (int(axes[0]), int(axes[1])), (up, across)


def _description(env: Any) -> str:
    spec = getattr(env, "spec", None) if isinstance(env, gymnasium.Env) else None
    return spec.id if spec is not None else type(getattr(env, "unwrapped", env)).__name__
