"""How JAX is set up for rove: one thread a lane, wide vectors, compiled programs kept on disk."""

import gc
import hashlib
import os
import warnings
from pathlib import Path

import jax
from jax._src import xla_bridge

_RIGHT = "xla_cpu_experimental_ynn_fusion_type"
"""XLA's CPU backend in jaxlib 0.10 fuses some reductions into kernels that give wrong sums, without
an error (jax-ml/jax issue 39103). An empty value for this flag switches those kernels off."""

# One thread a lane; and vectors as wide as the processor has, which XLA does not use by itself (a
# step of GE took 252 µs in place of 273 on an AMD EPYC with AVX-512, 2026-11-16).
_FLAGS = {"xla_cpu_multi_thread_eigen": "false", "xla_cpu_prefer_vector_width": "512"}


def correct() -> None:
    """Keep XLA from computing wrong sums. `import rove` calls this; XLA reads its flags once, when
    JAX is first used, so a warning says if that was before."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if _RIGHT in flags:
        return
    advice = (
        f"Without the XLA flag --{_RIGHT}= (empty), JAX {jax.__version__} computes some sums "
        "wrongly on a CPU, and results of rove may be wrong."
    )
    if xla_bridge.backends_are_initialized():
        warnings.warn(
            f"{advice} JAX was used before rove could set it: import rove first, or set XLA_FLAGS "
            "in the environment.",
            stacklevel=3,
        )
    elif flags and not flags.startswith("-"):
        warnings.warn(
            f"{advice} XLA_FLAGS names a file, {flags}: add the flag to it.", stacklevel=3
        )
    else:
        os.environ["XLA_FLAGS"] = f"{flags} --{_RIGHT}=".strip()


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
    if own := os.environ.get("ROVE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rove"
