"""The files of an exported policy, in each format."""

import importlib.resources
import io
import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove.environments.action_masks import KEY
from rove.errors import ConfigError
from rove.parts.masks import masked
from rove.parts.normalising import CLIP
from rove.runs.exporting.contents import actions, contents, unit
from rove.runs.exporting.onnx import Graph
from rove.training.outcomes import Outcome


def _numpy_files(outcome: Outcome) -> dict[str, bytes]:
    """Return policy.py, policy.npz and policy.json."""
    arrays, about = contents(outcome)
    file = io.BytesIO()
    np.savez(file, **arrays)
    loader = importlib.resources.files("rove.runs.exporting").joinpath("policy.py").read_bytes()
    text = (json.dumps(about, indent=2) + "\n").encode()
    return {"policy.py": loader, "policy.npz": file.getvalue(), "policy.json": text}


def _onnx_file(outcome: Outcome) -> dict[str, bytes]:
    """Return policy.onnx, whose input is an encoded observation."""
    arrays, about = contents(outcome)
    task, graph = outcome.job.environment, Graph()
    x = graph.input("observation", np.float32, [task.observation_size])
    x = graph.apply("Mul", x, graph.constant(arrays["unit"]))
    if "mean" in arrays:
        centred = graph.apply("Sub", x, graph.constant(arrays["mean"]))
        x = graph.apply("Div", centred, graph.constant(arrays["std"]))
        limits = [graph.constant(np.float32(sign * CLIP)) for sign in (-1, 1)]
        x = graph.apply("Clip", x, *limits)
    sums, first = [], graph.constant(np.zeros(1, np.int64))
    for i, depth in enumerate(about["depths"]):
        y, count = x, len(arrays[f"{i}.scale"])
        for layer in range(depth):
            y = graph.apply("Relu", y) if layer else y
            weight, bias = (arrays[f"{i}.{name}.{layer}"] for name in ("weight", "bias"))
            patches = arrays.get(f"{i}.patches.{layer}")
            if patches is not None:
                y = graph.apply("Gather", y, graph.constant(patches), axis=-1)
            y = graph.apply("MatMul", y, graph.constant(weight))
            y = graph.apply("Add", y, graph.constant(bias))
            if patches is not None:
                flat = [count, -1, len(patches) * weight.shape[-1]]
                y = graph.apply("Reshape", y, graph.constant(np.array(flat, np.int64)))
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
    arrays, pixel = {k: jnp.asarray(x) for k, x in actions(task).items()}, unit(task)

    def act(x: Any, allowed: Any = None) -> Any:
        observation = task.agent_observation(lane.environment, masked(x * pixel, allowed))
        chosen = job.agent.greedy(lane.agent, observation)
        if not task.continuous:
            return arrays["actions"][chosen]
        low, high = arrays["low"], arrays["high"]
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


WRITERS: dict[str, Callable[[Outcome], dict[str, bytes]]] = {
    "numpy": _numpy_files,
    "onnx": _onnx_file,
    "stablehlo": _stablehlo_file,
}
"""Functions that return the files of a format, by name."""
