"""JAX as rove sets it up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from rove.parts import platform


def mapped() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.slow
def test_programs_are_let_go_of_before_the_mappings_run_out(monkeypatch):
    """Many small programs, and a limit just above what they take: half of it is too many."""
    programs = [jax.jit(lambda x, i=i: x * i + jax.numpy.sin(x)) for i in range(30)]
    for program in programs:
        program(1.0)
    held = mapped()
    platform.clear_programs()
    assert mapped() > 0.95 * held, "far from the limit, nothing is let go of"

    read = Path.read_text
    limit = lambda path: str(held) if path.name == "max_map_count" else read(path)  # noqa: E731
    monkeypatch.setattr(Path, "read_text", limit)
    platform.clear_programs()
    monkeypatch.undo()
    assert mapped() < held - 30
    assert programs[3](2.0) == 2.0 * 3 + jax.numpy.sin(2.0)


SUMS = """
import warnings
warnings.simplefilter("error")
{first}
import rove
import jax, jax.numpy as jnp, numpy as np
rows = np.zeros((32_769, 3), np.float32)
rows[:, 0] = np.arange(32_769)
squares = jax.jit(jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2)))(rows)
print(int(squares[-1]))
"""


def python(script: str, **environment: str) -> subprocess.CompletedProcess:
    inherited = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, capture_output=True, text=True, env=inherited | environment, timeout=120
    )


@pytest.mark.slow
def test_sums_are_right_after_import_rove():
    """XLA gives 1071645696 or 1065369600 for 32768² without the flag that `import rove` sets."""
    done = python(SUMS.format(first=""))
    assert done.stdout.split() == ["1073741824"], done.stderr
    others = python(SUMS.format(first=""), XLA_FLAGS="--xla_cpu_multi_thread_eigen=false")
    assert others.stdout.split() == ["1073741824"], others.stderr


@pytest.mark.slow
def test_a_warning_says_if_jax_was_used_before_rove_could_set_its_flags():
    early = SUMS.format(first="import jax; jax.numpy.ones(3) + 1")
    assert "import rove first" in python(early).stderr
    assert python(early, XLA_FLAGS="--xla_cpu_experimental_ynn_fusion_type=").returncode == 0


@pytest.mark.slow
def test_a_warning_says_if_flags_are_in_a_file_or_wrong(tmp_path):
    (tmp_path / "flags").write_text("--xla_cpu_multi_thread_eigen=false")
    plain = SUMS.format(first="")
    assert "add the flag to it" in python(plain, XLA_FLAGS=f"{tmp_path}/flags").stderr
    (tmp_path / "flags").write_text("--xla_cpu_experimental_ynn_fusion_type=")
    assert python(plain, XLA_FLAGS=f"{tmp_path}/flags").returncode == 0
    wrong = python(plain, XLA_FLAGS="--xla_cpu_experimental_ynn_fusion_type=X")
    assert "XLA_FLAGS sets it to 'X'" in wrong.stderr


def test_a_fingerprint_is_of_names_and_of_what_is_in_them(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1")
    (tmp_path / "y.py").write_text("2")
    before = platform.fingerprint(tmp_path)
    assert before == platform.fingerprint(tmp_path) != platform.CODE
    (tmp_path / "y.py").write_text("3")
    changed = platform.fingerprint(tmp_path)
    (tmp_path / "y.py").rename(tmp_path / "z.py")
    assert len({before, changed, platform.fingerprint(tmp_path)}) == 3


@pytest.mark.slow
def test_lapack_has_one_thread_after_a_start_of_its_own():
    """The library's own count, in a process that decomposes a matrix as a lane would."""
    script = """
import ctypes
from rove.parts import platform
platform.prepare()
import jax.numpy as jnp
jnp.linalg.qr(jnp.ones((3, 3)))
paths = {line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line}
counts = []
for path in paths:
    library = ctypes.CDLL(path)
    if hasattr(library, "scipy_openblas_get_num_threads"):
        counts.append(library.scipy_openblas_get_num_threads())
print(counts)
"""
    told = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=told, check=True)
    counts = json.loads(done.stdout)
    if not counts:
        pytest.skip("SciPy has another LAPACK here")
    assert counts == [1]


def test_libraries_beside_xla_get_one_thread_unless_a_person_says_else(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    platform.prepare()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    platform.prepare()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"


EIGEN = "--xla_cpu_multi_thread_eigen=false"
ORDER = "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{EIGEN} {ORDER}"),
        (EIGEN, f"{EIGEN} {ORDER}"),
        ("--xla_cpu_multi_thread_eigen=true", f"--xla_cpu_multi_thread_eigen=true {ORDER}"),
        (f"{ORDER} --xla_foo=1", f"{ORDER} --xla_foo=1 {EIGEN}"),
        ("flags.txt", "flags.txt"),
    ],
)
def test_xlas_flags_are_added_unless_a_person_has_set_them(monkeypatch, before, after):
    monkeypatch.setenv("XLA_FLAGS", before)
    platform.prepare()
    assert os.environ["XLA_FLAGS"] == after


SIDE_BY_SIDE = """
import rove
small = {"hidden": (16,), "batch_size": 16, "learning_starts": 40, "period": 50}
rove.train("bayesian_dqn", "chain-8", seeds=2, episodes=40, workers=2, **small)
"""


@pytest.mark.slow
def test_lanes_on_threads_that_decompose_matrices_do_not_wait_for_each_other_forever():
    """XLA runs a batch of decompositions on the pool that the lanes themselves run on."""
    done = python(SIDE_BY_SIDE, NPROC="2")
    assert done.returncode == 0, done.stderr
