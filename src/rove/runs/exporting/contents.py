"""The contents of an exported policy: its arrays, and a description of them."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rove.core.folding import Folded
from rove.environments import HostEnvironment, Task
from rove.environments.action_masks import KEY
from rove.environments.encoding import channels_first, without_unsized_parts
from rove.errors import ConfigError
from rove.parts.layers import Linear
from rove.parts.masks import unmasked
from rove.parts.normalising import CLIP
from rove.training.outcomes import Outcome


def contents(outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of a policy by name, and a description of them."""
    job, task = outcome.job, outcome.job.environment
    folded, statistics = _folded(outcome), _statistics(outcome)
    arrays: dict[str, Any] = actions(task) | {"unit": unit(task)}
    if folded.support is not None:
        arrays["support"] = folded.support
    if statistics is not None:
        arrays |= {"mean": statistics.mean, "std": statistics.std}
    for i, (scale, networks) in enumerate(folded.stacks):
        arrays[f"{i}.scale"] = scale
        for number, layer in enumerate(networks):
            parts = _layer_arrays(layer)
            arrays |= {f"{i}.{name}.{number}": array for name, array in parts.items()}
    about = {
        "run": job.name,
        "step": int(outcome.lane.step),
        "policy": "greedy on the posterior mean",
        "observation": _described(task),
        "masked": task.masked,
        "clip": CLIP,
        "depths": [len(networks) for _, networks in folded.stacks],
    }
    return {name: np.asarray(array) for name, array in arrays.items()}, about


def _layer_arrays(layer: Any) -> dict[str, Any]:
    """Return the arrays of a stack of layers: y = x·weight + bias, where a convolution's x are the
    inputs that its window covers at each position."""
    if isinstance(layer, Linear):
        return {"weight": layer.weight, "bias": layer.bias[:, None]}
    numbers = layer.window.patches(jnp.arange(layer.inputs, dtype=jnp.float32)).astype(jnp.int32)
    return {"patches": numbers, "weight": layer.weight[:, None], "bias": layer.bias[:, None, None]}


def unit(task: Task) -> np.ndarray:
    """Return the network's input for an encoded observation of ones: pixels may be scaled."""
    given = np.ones(task.observation_size, np.float32)
    if isinstance(task, HostEnvironment):
        space = task.source.spaces[0]
        if not isinstance(space, spaces.Box):
            return given
        given = np.ones(space.shape, space.dtype)
        given = [given] * task.frame_stack if task.frame_stack > 1 else given
    mask = np.ones(task.num_actions, bool) if task.masked else None
    return np.asarray(unmasked(task.observation(given, mask)), np.float32)


def _folded(outcome: Outcome) -> Folded:
    """Return the policy as a sum of networks; raise `ConfigError` if it is not one."""
    agent = outcome.job.agent
    folded = agent.folded(outcome.lane.agent)
    if folded is None:
        reason = "its values are not those of ordinary layers. Use the format stablehlo, "
        message = f"{outcome.job.name} has no policy that NumPy or ONNX can compute: {reason}"
        raise ConfigError("formats", "numpy", reason, f"{message}which JAX can load")
    return folded


def _statistics(outcome: Outcome) -> Any:
    """Return the statistics that normalise observations, or None."""
    return getattr(outcome.lane.environment, "statistics", None)


def actions(task: Task) -> dict[str, np.ndarray]:
    """Return all actions of the environment, or the bounds of continuous ones."""
    if task.continuous:
        space: Any = task.action_space
        return {"low": space.low, "high": space.high}
    chosen = [task.action(jnp.asarray(i)) for i in range(task.num_actions)]
    return {"actions": np.stack(list(map(np.asarray, chosen)))}


def _described(task: Task) -> dict[str, Any]:
    """Return how observations are encoded, for `policy.encode`."""
    if not isinstance(task, HostEnvironment):
        return {"kind": "box", "channels_first": False}
    space = without_unsized_parts(task.source.spaces[0], None if task.ignore_mask else KEY)
    encoding = _encoding(space)
    if task.frame_stack == 1:
        return encoding
    channels = (task.image.channels if task.image else task.size) // task.frame_stack
    return {"kind": "frames", "each": encoding, "channels": channels}


def _encoding(space: Any) -> dict[str, Any]:
    if isinstance(space, spaces.Dict):
        parts = [[key, _encoding(part)] for key, part in space.spaces.items()]
        return {"kind": "dict", "parts": parts}
    if isinstance(space, spaces.Tuple):
        return {"kind": "tuple", "parts": [_encoding(part) for part in space.spaces]}
    if isinstance(space, spaces.Discrete):
        return {"kind": "one-hot", "first": [int(space.start)], "sizes": [int(space.n)]}
    if isinstance(space, spaces.MultiDiscrete):
        first, sizes = space.start.ravel().tolist(), space.nvec.ravel().tolist()
        return {"kind": "one-hot", "first": first, "sizes": sizes}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "box", "channels_first": False}
    if isinstance(space, spaces.Box):
        return {"kind": "box", "channels_first": channels_first(space)}
    message = f"observations of {space} cannot be exported: flatten them with a wrapper"
    raise ConfigError("observation_space", space, "Box, Discrete, Multi…, Dict or Tuple", message)
