"""JAX configuration: correct sums, one thread per seed, and a cache of compiled programs."""

import gc
import hashlib
import os
import warnings
from pathlib import Path

import jax
from jax._src import xla_bridge
from platformdirs import user_cache_path

_LIBRARY_FUSIONS = "xla_cpu_experimental_ynn_fusion_type"
"""XLA's CPU backend in jaxlib 0.10 fuses some reductions into kernels that give wrong sums, without
an error (jax-ml/jax issue 39103). An empty value for this flag switches those kernels off."""

_FLAGS = {
    "xla_cpu_multi_thread_eigen": "false",
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}
"""One thread per seed, and operations in an order for one thread: the default order is for several,
and takes 10% longer for a step of a Gymnasium environment. (512-bit vectors would save 15% of a
step of GE, but make XLA's compiler run out of memory on some small matrix products, such as one of
16 × 17 and 17 × 31 numbers.)"""


def set_correct_sums() -> None:
    """Switch off the XLA kernels that compute wrong sums.

    `import rove` calls this. XLA reads its flags once, when JAX is first used: if that has already
    happened, a warning is issued.
    """
    flags = os.environ.get("XLA_FLAGS", "").strip()
    inline = not flags or flags.startswith("-")  # otherwise, the name of a file of flags
    words = flags.split() if inline else _flags_in(Path(flags))
    values = [word.partition("=")[2] for word in words if word.startswith(f"--{_LIBRARY_FUSIONS}")]
    used = xla_bridge.backends_are_initialized()
    if values and values[-1] == "":
        return
    if not used and inline and not values:
        os.environ["XLA_FLAGS"] = f"{flags} --{_LIBRARY_FUSIONS}=".strip()
        return
    reason = (
        "JAX was used before rove was imported: import rove first, or set XLA_FLAGS in the "
        "environment"
        if used
        else f"XLA_FLAGS sets it to {values[-1]!r}"
        if values
        else f"XLA_FLAGS names a file, {flags}: add the flag to it"
    )
    warnings.warn(
        f"Without the XLA flag --{_LIBRARY_FUSIONS}= (empty), JAX {jax.__version__} computes some "
        f"sums wrongly on CPUs, and rove's results may be wrong. {reason}.",
        stacklevel=3,
    )


def _flags_in(file: Path) -> list[str]:
    """Return the flags listed in a file, or none if it cannot be read (XLA reports that)."""
    try:
        return file.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []


def prepare(lanes: int | None = None) -> None:
    """Configure JAX before its first use, without overriding what the user has set.

    `lanes` is the maximum number of seeds this process will run at once, if that is known.
    """
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if not flags or flags.startswith("-"):  # otherwise, the name of a file of flags
        missing = [f"--{flag}={value}" for flag, value in _FLAGS.items() if flag not in flags]
        os.environ["XLA_FLAGS"] = " ".join([*flags.split(), *missing])
    # LAPACK's threads wait for each other by spinning: a decomposition took 200 times as long when
    # another seed occupied the core of one of them. The library reads these variables when it is
    # loaded, so they have no effect if scipy.linalg was imported earlier.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(name, "1")
    if lanes == 1:
        # XLA needs one thread per seed; with a single seed, more threads only slow it down. The
        # results are bit-identical.
        os.environ.setdefault("NPROC", "1")
        # For the same reason, the calling thread runs the programs: a step of a Gymnasium
        # environment would otherwise wait for two more threads.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def clear_programs() -> None:
    """Discard compiled programs if this process holds very many of them.

    Each takes about a hundred memory mappings, and Linux allows 65,530 per process: beyond that,
    XLA crashes with a segmentation fault. Programs that are needed again are loaded from disk.
    """
    try:
        mapped = Path("/proc/self/maps").read_bytes().count(b"\n")
        allowed = int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return
    if mapped > allowed // 2:
        jax.clear_caches()
        gc.collect()


def fingerprint(root: Path = Path(__file__).parents[1]) -> str:
    """Return a hash of the names and contents of all source files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


CODE = fingerprint()
"""Fingerprint of the imported rove; workers must have the same."""


def cache_folder() -> Path:
    """Return the folder of compiled programs: $ROVE_CACHE, or rove in the user's cache folder."""
    return Path(os.environ.get("ROVE_CACHE") or user_cache_path("rove"))
