"""Checkpoints: safetensors files that are written atomically."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rove.errors import RunFolderError


def publish(path: Path, data: bytes) -> None:
    """Write a file atomically: after a crash at any moment, it is either the old or the new."""
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()  # which would take up space on a full disk
        raise RunFolderError(f"cannot write {path}: {error.strerror}") from None


def save_arrays(path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
    """Write named arrays and a JSON description to one file."""
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    publish(path, save(whole, metadata={"rove": json.dumps(metadata)}))


def load_arrays(path: Path, prefix: str = "") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays whose names begin with `prefix`, and the description, from a file.

    Nothing in the file is executed.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(json.loads((file.metadata() or {})["rove"]))
            names = [name for name in file.keys() if name.startswith(prefix)]  # noqa: SIM118
            return {name: file.get_tensor(name) for name in names}, metadata
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, OSError) as error:
        raise RunFolderError(
            f"{path} is not a checkpoint of rove: {error}. Remove it to train its seed again"
        ) from None


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Convert a pytree to a dictionary of arrays, named by their paths in it."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(key_path): np.asarray(leaf) for key_path, leaf in leaves}


def incompatible(path: Path, name: str, array: np.ndarray | None, needed: str) -> RunFolderError:
    """An error about an array whose shape or type is not the one that the run needs."""
    actual = "missing" if array is None else f"{array.dtype}{list(array.shape)}"
    return RunFolderError(
        f"{path} was written by another version of rove: {name} is {actual}, but the run needs "
        f"{needed}. Use that version, or remove the file to train its seed again"
    )


def unflatten(template: Any, arrays: dict[str, np.ndarray], path: Path) -> Any:
    """Convert a dictionary of arrays to a pytree with the structure and shapes of `template`."""

    def fill(key_path: Any, leaf: Any) -> jax.Array:
        name = jax.tree_util.keystr(key_path)
        array = arrays.get(name)
        if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise incompatible(path, name, array, f"{leaf.dtype}{list(leaf.shape)}")
        return jnp.array(array)  # a copy, since the compiled program may reuse its memory

    return jax.tree_util.tree_map_with_path(fill, template)
