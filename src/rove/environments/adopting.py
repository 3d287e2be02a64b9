"""Creation of training environments from Gymnasium environments, given by name or as objects."""

import copy
import dataclasses
import functools
import json
from typing import Annotated, Any

import gymnasium
import numpy as np
from typing_extensions import Doc

from rove.environments.actions import action_count
from rove.environments.cells import MOST_STATES, grid_of, one_hot_of
from rove.environments.encoding import image_of, integers_of
from rove.environments.faults import BadEnvironment
from rove.environments.frames import check_stack
from rove.environments.guard import Guard
from rove.environments.host import LONGEST_EPISODE, PROBES, ROVE_OPTIONS, HostEnvironment
from rove.environments.registered import (
    changed,
    make_registered,
    registration,
    settable,
    split,
)
from rove.environments.source import Source
from rove.errors import ConfigError, check_integer, unknown_option
from rove.parts.images import joined_image

ALIASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "sparse-inverted-pendulum": (
        "gym/InvertedPendulum-v5",
        {"sparse": -1.0},
        "MuJoCo's inverted pendulum with a single reward: −1 when it falls.",
    ),
    "sparse-inverted-double-pendulum": (
        "gym/InvertedDoublePendulum-v5",
        {"sparse": -1.0},
        "MuJoCo's inverted double pendulum with a single reward: −1 when it falls.",
    ),
}
"""Short names: the Gymnasium environment, its options, and a description."""


_OPTIONS: dict[str, tuple[Any, str]] = {
    "normalise": (bool, "Normalise observations by their running mean and standard deviation."),
    "time_limit": (
        int | None,
        "Number of steps after which an episode is truncated. None: only the environment's own "
        "limit, if it has one.",
    ),
    "longest_episode": (int, "Number of steps after which an unfinished episode is an error."),
    "sparse": (
        float | None,
        "Reward on termination, in place of all other rewards: for example 1 if termination is a "
        "success, -1 if it is a failure. None: the rewards of the environment.",
    ),
    "optimum": (
        float | None,
        "Best possible score of an episode, if known. Without it, rove cannot tell whether the "
        "task is solved. With a positive --env.sparse, it is 1 unless it is given.",
    ),
    "score_range": (
        tuple[float, float] | None,
        "Minimum and maximum score of an episode, if known; confidence intervals use them. With a "
        "positive --env.sparse, they are 0 and 1 unless they are given.",
    ),
    "axes": (
        tuple[int, int] | None,
        "Indices of two entries of an observation, horizontal and vertical, whose ranges are "
        "divided into cells in which visits are counted.",
    ),
    "frame_stack": (
        int,
        "Number of observations, up to the current one, that the agent sees together.",
    ),
    "ignore_mask": (bool, "Ignore the environment's action masks, and choose from all actions."),
    "copies": (
        int,
        "Number of copies of the environment that each seed is trained on, side by side. Steps and "
        "episodes are counted over all copies.",
    ),
}
"""The options that rove adds to a Gymnasium environment, with their types and descriptions."""


def from_name(name: str, **options: Any) -> HostEnvironment:
    """Create the environment of a name such as gym/CartPole-v1.

    Options are passed to `gymnasium.make`, except those of rove (see `adopt`).
    """
    rove_options: dict[str, Any] = {}
    if name in ALIASES:
        rove_options["alias"] = name
        name, shared, _ = ALIASES[name]
        options = shared | options
    rove_options |= {key: options.pop(key) for key in ROVE_OPTIONS if key in options}
    defaults, any_option = settable(name)
    for key, value in options.items():
        if key not in defaults and not any_option:
            raise unknown_option(name, key, value, [*ROVE_OPTIONS, *defaults])
    options = changed(options, defaults)
    build = functools.partial(make_registered, name, options)
    package, name = split(name)
    text = json.dumps(options, sort_keys=True)
    return _checked(Source(name, text, package=package, build=build), rove_options)


def adopt(
    environment: Any,
    *,
    normalise: bool = False,
    time_limit: int | None = None,
    longest_episode: int = LONGEST_EPISODE,
    sparse: float | None = None,
    optimum: float | None = None,
    score_range: tuple[float, float] | None = None,
    axes: tuple[int, int] | None = None,
    ignore_mask: bool = False,
    frame_stack: int = 1,
    copies: int = 1,
) -> HostEnvironment:
    """Use a custom Gymnasium environment for training.

    **Arguments**
    - `environment`: an instance, of which every seed gets a copy, or a function that returns one.
      If `gymnasium.make(ID, **options)` creates an equal environment, its name is gym/ID, as on the
      command line; otherwise it is that of its class. To create an environment by its name, use
      `rove.make`.
    - `normalise`: whether to normalise observations by their running mean and standard deviation.
    - `time_limit`: the number of steps after which an episode is truncated. It may not exceed a
      limit that the environment has itself.
    - `longest_episode`: the number of steps after which an unfinished episode raises an error.
    - `sparse`: the only reward, paid on termination; for example 1 if termination means success,
      −1 if failure.
    - `optimum`: the best possible score of an episode, if it is known: needed to tell whether the
      task is solved. With a positive `sparse` it is 1, for an episode that reaches the goal.
    - `score_range`: the minimum and maximum score of an episode, if they are known: intervals of
      few seeds, and `rove.difference`, rely on them. With a positive `sparse` they are 0 and 1.
    - `axes`: the two entries of an observation, horizontal and vertical, whose ranges are divided
      into 40 cells each to count visits; an entry with at most 40 integer values has a cell for
      each. Defaults to both entries of a bounded box or a multi-discrete space with two entries. In
      a discrete space, each state is a cell.
    - `ignore_mask`: whether to ignore the environment's action masks, and to choose from all
      actions.
    - `frame_stack`: the number of observations, up to the current one, that the agent sees
      together: images are joined along their channels, vectors are concatenated. At the beginning
      of an episode, the first one is repeated. The policy then takes sequences of observations, as
      `gymnasium.wrappers.FrameStackObservation` returns them.
    - `copies`: the number of copies of the environment that each seed is trained on, side by side.
      They take turns: there is one update per step, and steps and episodes are counted over all
      copies.
    """
    rove_options: dict[str, Any] = {"normalise": normalise, "time_limit": time_limit}
    rove_options |= {"longest_episode": longest_episode}
    rove_options |= {"sparse": sparse, "optimum": optimum, "score_range": score_range, "axes": axes}
    rove_options |= {"ignore_mask": ignore_mask, "frame_stack": frame_stack, "copies": copies}
    if isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv):
        build = functools.partial(_copied, environment)
    elif callable(environment):
        build = environment
    else:
        allowed = "a gymnasium.Env, or a function that returns one"
        hint = "; rove.train also accepts a name, such as 'chain-10'"
        if isinstance(environment, str):
            hint = f". By name: rove.make({environment!r})"
        raise ConfigError.must_be("environment", environment, allowed, hint)
    return _checked(Source("", object_id=id(environment), build=build), rove_options)


def host_settings(environment: HostEnvironment) -> Any:
    """Return the options of a registered environment as a dataclass, for the command line."""
    rove_options = {
        key: (kind, getattr(environment, key), text) for key, (kind, text) in _OPTIONS.items()
    }
    defaults = settable(environment.source.name)[0] | json.loads(environment.source.options)
    others = {key: (type(x), x, "Passed to gymnasium.make.") for key, x in defaults.items()}
    fields = [
        (key, Annotated[kind, Doc(text)], dataclasses.field(default=default))
        for key, (kind, default, text) in (rove_options | others).items()
    ]
    return dataclasses.make_dataclass("Options", fields, frozen=True)()


def _copied(environment: Any) -> Any:
    """Return a copy, or the environment itself if it cannot be copied; in that case only one seed
    can be trained."""
    try:
        return copy.deepcopy(environment)
    except Exception:
        return environment


def _checked(source: Source, rove_options: dict[str, Any]) -> HostEnvironment:
    """Create a training environment, after checking its spaces and a few first observations."""
    name, frames = source.name or "given", rove_options.get("frame_stack", 1)
    check_stack(frames, name, coded=False)
    try:
        env = source.new()
        if source.object_id:
            name, options = registration(env) or (_description(env), {})
            source = dataclasses.replace(
                source, name=name, options=json.dumps(options, sort_keys=True)
            )
        # Do not close an environment that the user passed in.
        owned = id(env) != source.object_id
        longest = rove_options.get("longest_episode", LONGEST_EPISODE)
        ignore_mask = rove_options.get("ignore_mask")
        guard = Guard(env, longest, owned, None, None, bool(ignore_mask), frames)
        initial = np.unique([guard.reset(seed) for seed in range(PROBES)], axis=0)
    except BadEnvironment as error:
        message = str(error) if "environment" in error.field else f"environment {name}: {error}"
        raise ConfigError("environment", name, str(error), message) from error
    _check_time_limit(name, env, rove_options.get("time_limit"))
    spaces = (env.observation_space, env.action_space)
    source = dataclasses.replace(source, spaces=spaces, encode=guard.encode, decode=guard.decode)
    guard.close()
    rove_options["axes"], grid = grid_of(env.observation_space, rove_options.get("axes"))
    discrete = isinstance(env.observation_space, gymnasium.spaces.Discrete)
    states = int(env.observation_space.n) if discrete else 0
    first_state = int(env.observation_space.start) if discrete else 0
    sparse = rove_options.get("sparse")
    if isinstance(sparse, float | int) and sparse > 0:  # the only reward is that of the goal
        if rove_options.get("optimum") is None:
            rove_options["optimum"] = 1.0
        rove_options["score_range"] = rove_options.get("score_range") or (0.0, 1.0)
    rove_options["score_range"] = _pair(rove_options.get("score_range"))
    actions, masked = action_count(guard.action_space), bool(guard.mask.present)
    return HostEnvironment(
        source,
        states if discrete else initial.shape[1] - actions * masked,
        actions,
        initial,
        discrete=discrete,
        masked=masked,
        vector_actions=isinstance(guard.action_space, gymnasium.spaces.Box),
        grid=grid,
        states=states if states <= MOST_STATES else 0,
        first_state=first_state,
        image=joined_image(image_of(env.observation_space), frames),
        values=integers_of(env.observation_space),
        one_hot=one_hot_of(env.observation_space),
        **rove_options,
    )


def _check_time_limit(name: str, env: Any, limit: Any) -> None:
    """Raise `ConfigError` if a time limit is not a number of steps, or would have no effect."""
    if limit is None:
        return
    check_integer("time_limit", limit, at_least=1)
    shorter = getattr(env.spec, "max_episode_steps", None)
    if shorter is not None and limit > shorter:
        reason = f"at most {shorter}, the time limit of {name}"
        hint = ". To extend it, use gymnasium.make(…, max_episode_steps=…) and rove.adopt"
        raise ConfigError.must_be("time_limit", limit, reason, hint)


def _pair(value: Any) -> tuple[float, float] | None:
    """Return the minimum and maximum score as a tuple."""
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ConfigError.must_be("score_range", value, "two numbers, for example 0 1")
    if all(isinstance(number, int | float) for number in value) and value[0] >= value[1]:
        allowed = "a minimum and a larger maximum, for example 0 1"
        raise ConfigError.must_be("score_range", value, allowed)
    return value[0], value[1]


def _description(env: Any) -> str:
    """Return a name for an environment object: its registered id, or its class."""
    spec = getattr(env, "spec", None) if isinstance(env, gymnasium.Env) else None
    return spec.id if spec is not None else type(getattr(env, "unwrapped", env)).__name__
