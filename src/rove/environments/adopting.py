"""How a Gymnasium environment comes to training: by its name, or as one's own."""

import copy
import dataclasses
import functools
import json
import math
from typing import Any

import gymnasium
import numpy as np

from rove.environments.base import Coordinate
from rove.environments.guard import BadEnvironment, Guard, encoder
from rove.environments.host import LONGEST_EPISODE, OWN, PROBES, HostEnvironment, Source
from rove.environments.registered import made, settable
from rove.errors import ConfigError, did_you_mean

EDGE, HUGE = 3.0, 1e6
"""Cells of an entry that has no bounds, or any beyond ±HUGE, are from −EDGE to EDGE."""

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
    build = functools.partial(made, name, options)
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


def host_settings(environment: HostEnvironment) -> Any:
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
