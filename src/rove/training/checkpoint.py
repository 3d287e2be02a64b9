"""Checkpoints: safetensors files that are written atomically."""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from rove.errors import RoveWarning, RunFolderError
from rove.parts.files import check_regular, is_regular, publish


def save_arrays(path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
    """Write named arrays and a JSON description to one file, with a checksum of both.

    The checkpoint that it replaces is kept; see `previous`.
    """
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    description = metadata | {"checksum": _checksum(contiguous, metadata)}
    publish(path, save(contiguous, metadata={"rove": json.dumps(description)}), previous(path))


def previous(path: Path) -> Path:
    """Return the path of the second-latest checkpoint."""
    return path.parent / "previous" / path.name


def load_arrays(
    path: Path, prefix: str | tuple[str, ...] = ""
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays whose names begin with `prefix`, or one of several, and the description, from
    a file.

    If the file is not a checkpoint, or if any bit of it has changed since it was written, the
    previous one is read instead, with a warning; without a previous one, `RunFolderError` is
    raised. Nothing in the file is executed.
    """
    try:
        arrays, metadata = _load(path)
    except RunFolderError as error:
        if not is_regular(previous(path)):
            raise
        try:
            arrays, metadata = _load(previous(path))
        except RunFolderError:
            raise error from None
        warnings.warn(f"{path} is damaged; the previous checkpoint is used instead", RoveWarning, 2)
    return {k: array for k, array in arrays.items() if k.startswith(prefix)}, metadata


def _load(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read a checkpoint; raise `RunFolderError` if it is damaged."""
    try:
        check_regular(path)
        with safe_open(path, framework="numpy") as file:
            metadata = dict(json.loads((file.metadata() or {})["rove"]))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, OSError) as error:
        raise RunFolderError(
            f"{path} is not a checkpoint of rove: {error}. Remove it to train its seed again"
        ) from None
    if metadata.pop("checksum", None) != _checksum(arrays, metadata):
        raise RunFolderError(
            f"{path} is damaged (its checksum differs). Remove it to train its seed again"
        )
    return arrays, metadata


def _checksum(arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> str:
    """Return the SHA-256 checksum of arrays, with their names, types and shapes, and a description.

    It detects damage; it does not prove who wrote a file.
    """
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Convert a pytree to a dictionary of arrays, named by their paths in it."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(key_path): np.asarray(leaf) for key_path, leaf in leaves}


def incompatible(path: Path, name: str, array: np.ndarray | None, needed: str) -> RunFolderError:
    """Return the error for an array whose shape or type is not what the run needs."""
    difference = f"does not contain {name.lstrip('.')}"
    if array is not None:
        actual = f"{array.dtype}{list(array.shape)}"
        difference = f"contains {name.lstrip('.')} as {actual} instead of {needed}"
    return RunFolderError(
        f"{path} {difference}, because it was written by another version of rove. Use that "
        "version, or remove the file to train its seed again"
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
