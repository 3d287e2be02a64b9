"""`rove export`: a trained policy as files that are used without rove."""

import importlib.resources
import io
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rove.core.folding import Folded
from rove.environments import HostEnvironment, Task
from rove.environments.action_masks import KEY
from rove.environments.guard import without_unsized_parts
from rove.errors import ConfigError, RoveWarning, RunFolderError, check_choice
from rove.parts.files import publish
from rove.parts.masks import masked
from rove.parts.normalising import CLIP
from rove.runs.delivery import recorded
from rove.runs.exporting.onnx import Graph
from rove.runs.recorded import check_created
from rove.runs.result import Run
from rove.training.outcomes import Outcome

Format = Literal["numpy", "onnx", "stablehlo"]
FORMATS = get_args(Format)


def export(
    run: Run,
    out: str | Path,
    *,
    seed: int | None = None,
    formats: Sequence[Format] = ("numpy", "onnx"),
) -> list[Path]:
    """Write one seed's greedy policy as files that are used without rove; return their paths.

    The policy is greedy on the posterior mean. The preparation of observations, such as
    normalisation, and the conversion of actions are included.

    **Arguments**
    - `run`: a run, from `rove.train` or `rove.load`.
    - `out`: the folder to write to.
    - `seed`: the seed whose policy is written; by default the first one.
    - `formats`: the kinds of files.
        - "numpy": policy.py, a function that needs only NumPy, with policy.npz and policy.json.
        - "onnx": policy.onnx, for ONNX Runtime and others.
        - "stablehlo": policy.stablehlo, for `jax.export.deserialize`. This works for every agent;
          the others need a network of fully connected layers.
    """
    if not isinstance(run, Run):
        raise ConfigError.must_be("run", run, "a run, from rove.train or rove.load")
    for name in formats:
        check_choice("formats", name, FORMATS)
    outcome, folder = run.only(run.seeds[0] if seed is None else seed).outcomes[0], Path(out)
    check_created(outcome.job.environment)
    known = recorded(run.path, outcome)
    if known and known.delivered.policy != "mean":
        text = f"seed {outcome.job.seed} delivers the policy {known.delivered.policy!r}, which is "
        text += "better; the exported one is 'mean', greedy on the posterior mean"
        warnings.warn(text, RoveWarning, 2)
    files: dict[str, bytes] = {}
    for name in formats:
        files |= _WRITERS[name](outcome)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            publish(folder / name, content)
    except OSError as error:
        raise RunFolderError(f"cannot write to {folder}: {error.strerror or error}") from None
    return [folder / name for name in files]


def _numpy_files(outcome: Outcome) -> dict[str, bytes]:
    """Return policy.py, policy.npz and policy.json."""
    arrays, about = _contents(outcome)
    file = io.BytesIO()
    np.savez(file, **arrays)
    loader = importlib.resources.files(__name__).joinpath("policy.py").read_bytes()
    text = (json.dumps(about, indent=2) + "\n").encode()
    return {"policy.py": loader, "policy.npz": file.getvalue(), "policy.json": text}


def _contents(outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of a policy by name, and a description of them."""
    job, task = outcome.job, outcome.job.environment
    folded, statistics = _folded(outcome), _statistics(outcome)
    arrays: dict[str, Any] = _actions(task)
    if folded.support is not None:
        arrays["support"] = folded.support
    if statistics is not None:
        arrays |= {"mean": statistics.mean, "std": statistics.std}
    for i, (scale, networks) in enumerate(folded.stacks):
        arrays[f"{i}.scale"] = scale
        for layer, (weight, bias) in enumerate(networks):
            arrays |= {f"{i}.weight.{layer}": weight, f"{i}.bias.{layer}": bias[:, None]}
    about = {
        "agent": job.agent.name,
        "environment": task.name,
        "seed": job.seed,
        "step": int(outcome.lane.step),
        "policy": "greedy on the posterior mean",
        "observation": _described(task),
        "masked": task.masked,
        "clip": CLIP,
        "depths": [len(networks) for _, networks in folded.stacks],
    }
    return {name: np.asarray(array) for name, array in arrays.items()}, about


def _folded(outcome: Outcome) -> Folded:
    """Return the policy as a sum of networks; raise `ConfigError` if it is not one."""
    agent = outcome.job.agent
    folded = agent.folded(outcome.lane.agent)
    if folded is None:
        reason = "its values are not those of fully connected layers. Use the format stablehlo, "
        message = f"{outcome.job.name} has no policy that NumPy or ONNX can compute: {reason}"
        raise ConfigError("formats", "numpy", reason, f"{message}which JAX can load")
    return folded


def _statistics(outcome: Outcome) -> Any:
    """Return the statistics that normalise observations, or None."""
    return getattr(outcome.lane.environment, "statistics", None)


def _actions(task: Task) -> dict[str, np.ndarray]:
    """Return all actions of the environment, or the bounds of continuous ones."""
    if task.continuous:
        space: Any = task.action_space
        return {"low": space.low, "high": space.high}
    chosen = [task.action(jnp.asarray(i)) for i in range(task.num_actions)]
    return {"actions": np.stack(list(map(np.asarray, chosen)))}


def _described(task: Task) -> dict[str, Any]:
    """Return how observations are encoded, for `policy.encode`."""
    if not isinstance(task, HostEnvironment):
        return {"kind": "box"}
    space = task.source.spaces[0]
    return _encoding(without_unsized_parts(space, None if task.ignore_mask else KEY))


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
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return {"kind": "box"}
    message = f"observations of {space} cannot be exported: flatten them with a wrapper"
    raise ConfigError("observation_space", space, "Box, Discrete, Multi…, Dict or Tuple", message)


def _onnx_file(outcome: Outcome) -> dict[str, bytes]:
    """Return policy.onnx, whose input is an encoded observation."""
    arrays, about = _contents(outcome)
    task, graph = outcome.job.environment, Graph()
    x = graph.input("observation", np.float32, [task.observation_size])
    if "mean" in arrays:
        centred = graph.apply("Sub", x, graph.constant(arrays["mean"]))
        x = graph.apply("Div", centred, graph.constant(arrays["std"]))
        limits = [graph.constant(np.float32(sign * CLIP)) for sign in (-1, 1)]
        x = graph.apply("Clip", x, *limits)
    sums, first = [], graph.constant(np.zeros(1, np.int64))
    for i, depth in enumerate(about["depths"]):
        y = x
        for layer in range(depth):
            y = graph.apply("Relu", y) if layer else y
            y = graph.apply("MatMul", y, graph.constant(arrays[f"{i}.weight.{layer}"]))
            y = graph.apply("Add", y, graph.constant(arrays[f"{i}.bias.{layer}"]))
        scaled = graph.apply("Mul", y, graph.constant(arrays[f"{i}.scale"][:, None, None]))
        sums.append(graph.apply("ReduceSum", scaled, first, keepdims=0))
    z = graph.apply("Sum", *sums)
    if "low" in arrays:
        _continuous_output(graph, z, arrays)
    else:
        _discrete_output(graph, z, arrays, task.masked)
    return {"policy.onnx": graph.model(outcome.job.name)}


def _continuous_output(graph: Graph, z: str, arrays: dict[str, np.ndarray]) -> None:
    """Add the output `action` of a policy with continuous actions."""
    low, high = arrays["low"], arrays["high"]
    shape = graph.constant(np.array([-1, *low.shape], np.int64))
    unit = graph.apply("Reshape", graph.apply("Tanh", z), shape)
    scaled = graph.apply("Mul", unit, graph.constant(((high - low) / 2).astype(np.float32)))
    y = graph.apply("Add", scaled, graph.constant(((high + low) / 2).astype(np.float32)))
    y = graph.apply("Max", y, graph.constant(low.astype(np.float32)))
    y = graph.apply("Min", y, graph.constant(high.astype(np.float32)))
    graph.output("action", y, np.float32, low.shape)


def _discrete_output(graph: Graph, z: str, arrays: dict[str, np.ndarray], masked: bool) -> None:
    """Add the outputs `values` and `action` of a policy with discrete actions."""
    actions = arrays["actions"]
    if "support" in arrays:
        sizes = [-1, len(actions), len(arrays["support"])]
        z = graph.apply("Reshape", z, graph.constant(np.array(sizes, np.int64)))
        z = graph.apply("Softmax", z, axis=-1)
        z = graph.apply("MatMul", z, graph.constant(arrays["support"]))
    graph.output("values", z, np.float32, [len(actions)])
    if masked:
        allowed = graph.input(KEY, np.bool_, [len(actions)])
        z = graph.apply("Where", allowed, z, graph.constant(np.float32(-np.inf)))
    best = graph.apply("ArgMax", z, axis=1, keepdims=0)
    action = graph.apply("Gather", graph.constant(actions), best, axis=0)
    graph.output("action", action, actions.dtype, actions.shape[1:])


def _stablehlo_file(outcome: Outcome) -> dict[str, bytes]:
    """Return policy.stablehlo, a function of encoded observations and, if there are masks, of the
    actions that are allowed."""
    job, lane, task = outcome.job, outcome.lane, outcome.job.environment
    actions = {name: jnp.asarray(array) for name, array in _actions(task).items()}

    def act(x: Any, allowed: Any = None) -> Any:
        shown = task.agent_observation(lane.environment, masked(x, allowed))
        chosen = job.agent.greedy(lane.agent, shown)
        if not task.continuous:
            return actions["actions"][chosen]
        low, high = actions["low"], actions["high"]
        inside = (low + high) / 2 + (high - low) / 2 * chosen.reshape(low.shape)
        return jnp.clip(inside, low, high)

    (batch,) = jax.export.symbolic_shape("batch")
    shapes = [jax.ShapeDtypeStruct((batch, task.observation_size), jnp.float32)]
    if task.masked:
        shapes.append(jax.ShapeDtypeStruct((batch, task.num_actions), jnp.bool_))
    exported = jax.export.export(jax.jit(jax.vmap(act)), platforms=("cpu", "cuda", "tpu"))(*shapes)
    try:
        return {"policy.stablehlo": bytes(exported.serialize())}
    except ImportError:
        message = "the format stablehlo needs flatbuffers: pip install flatbuffers"
        raise ConfigError("formats", "stablehlo", "flatbuffers", message) from None


_WRITERS: dict[str, Callable[[Outcome], dict[str, bytes]]] = {
    "numpy": _numpy_files,
    "onnx": _onnx_file,
    "stablehlo": _stablehlo_file,
}
