"""A lane on disk: one safetensors file, published whole or not at all."""

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
    """Write beside and rename: a reader, or a run that is killed, sees the old or the new."""
    beside = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()  # of a full disk it would keep a part
        raise RunFolderError(f"cannot write {path}: {error.strerror}") from None


def save_arrays(path: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """Publish named arrays and a JSON description as one file."""
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    publish(path, save(whole, metadata={"rove": json.dumps(about)}))


def load_arrays(path: Path, start: str = "") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays (those whose names start so) and the description of a file. Nothing in it is
    run."""
    try:
        with safe_open(path, framework="numpy") as file:
            about = dict(json.loads((file.metadata() or {})["rove"]))
            names = [name for name in file.keys() if name.startswith(start)]  # noqa: SIM118
            return {name: file.get_tensor(name) for name in names}, about
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, OSError) as error:
        raise RunFolderError(
            f"{path} is not a checkpoint of rove: {error}; remove it to train its lane again"
        ) from None


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """A pytree as arrays named by their place in it."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(place): np.asarray(leaf) for place, leaf in leaves}


def unlike(path: Path, name: str, found: np.ndarray | None, want: str) -> RunFolderError:
    """What to say of an array that is not as the run needs it."""
    was = "missing" if found is None else f"{found.dtype}{list(found.shape)}"
    return RunFolderError(
        f"{path} was written by another version of rove: {name} is {was}, where the run needs "
        f"{want}. Go on with that version, or remove the file to train its lane again"
    )


def unflatten(template: Any, arrays: dict[str, np.ndarray], path: Path) -> Any:
    """The pytree shaped like `template` (arrays or their shapes) with these arrays in it."""

    def fill(place: Any, leaf: Any) -> jax.Array:
        name = jax.tree_util.keystr(place)
        found = arrays.get(name)
        if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise unlike(path, name, found, f"{leaf.dtype}{list(leaf.shape)}")
        return jnp.array(found)  # a copy: the program may reuse its memory

    return jax.tree_util.tree_map_with_path(fill, template)
