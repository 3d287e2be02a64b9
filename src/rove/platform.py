"""How JAX is set up for rove: right sums, one thread per lane, compiled programs kept on disk."""

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

_FLAGS = {"xla_cpu_multi_thread_eigen": "false"}
"""One thread per lane. (Vectors of 512 bits, which XLA does not use by itself, would save 8% of a
step of GE, but with them its compiler runs out of memory on some small matrix products.)"""


def set_correct_sums() -> None:
    """Switch off the kernels of XLA that give wrong sums. `import rove` calls this; XLA reads its
    flags once, when JAX is first used, so a warning says if that was before."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    inline = not flags or flags.startswith("-")  # else it is the name of a file that has them
    words = flags.split() if inline else _words(Path(flags))
    values = [word.partition("=")[2] for word in words if word.startswith(f"--{_LIBRARY_FUSIONS}")]
    used = xla_bridge.backends_are_initialized()
    if values and values[-1] == "":
        return
    if not used and inline and not values:
        os.environ["XLA_FLAGS"] = f"{flags} --{_LIBRARY_FUSIONS}=".strip()
        return
    reason = (
        "JAX was used before rove could set it: import rove first, or set XLA_FLAGS in the "
        "environment"
        if used
        else f"XLA_FLAGS sets it to {values[-1]!r}"
        if values
        else f"XLA_FLAGS names a file, {flags}: add the flag to it"
    )
    warnings.warn(
        f"Without the XLA flag --{_LIBRARY_FUSIONS}= (empty), JAX {jax.__version__} computes some "
        f"sums wrongly on a CPU, and results of rove may be wrong. {reason}.",
        stacklevel=3,
    )


def _words(file: Path) -> list[str]:
    """What a file of flags has in it; nothing if it cannot be read, as XLA will say."""
    try:
        return file.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []


def prepare(lanes: int | None = None) -> None:
    """Set up JAX before its first use. What a person has set themselves stays. `lanes` is how
    many this process will ever run at once, if that is known."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if not flags or flags.startswith("-"):  # else it is the name of a file that has them
        missing = [f"--{flag}={value}" for flag, value in _FLAGS.items() if flag not in flags]
        os.environ["XLA_FLAGS"] = " ".join([*flags.split(), *missing])
    # LAPACK's threads too: they wait for each other by spinning, and a decomposition took 200
    # times as long where another lane had the core of one of them. A library reads this when it
    # is loaded: it is of no use where a person has imported scipy.linalg before.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(name, "1")
    if lanes == 1:
        # XLA's pool must have a thread a lane; with one lane, others only get in its way. The
        # bits are the same.
        os.environ.setdefault("NPROC", "1")
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def relieve() -> None:
    """Let go of compiled programs where there are very many. Each takes some hundred mappings of
    memory, of which Linux allows a process 65,530: past that, XLA ends with a segmentation fault.
    Programs that are needed again come from the cache on disk."""
    try:
        mapped = Path("/proc/self/maps").read_bytes().count(b"\n")
        allowed = int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return
    if mapped > allowed // 2:
        jax.clear_caches()
        gc.collect()


def fingerprint(root: Path = Path(__file__).parent) -> str:
    """Of source files, their names and what is in them."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        found.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


CODE = fingerprint()
"""Of rove as it was imported: workers must have the same."""


def cache_folder() -> Path:
    """Where compiled programs are kept: $ROVE_CACHE, or rove in the user's cache folder."""
    return Path(os.environ.get("ROVE_CACHE") or user_cache_path("rove"))
