"""JAX as rove sets it up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from rove import platform


def mapped() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.slow
def test_programs_are_let_go_of_before_the_mappings_run_out(monkeypatch):
    """Many small programs, and a limit just above what they take: half of it is too many."""
    programs = [jax.jit(lambda x, i=i: x * i + jax.numpy.sin(x)) for i in range(30)]
    for program in programs:
        program(1.0)
    held = mapped()
    platform.relieve()
    assert mapped() > 0.95 * held, "far from the limit, nothing is let go of"

    read = Path.read_text
    limit = lambda path: str(held) if path.name == "max_map_count" else read(path)  # noqa: E731
    monkeypatch.setattr(Path, "read_text", limit)
    platform.relieve()
    monkeypatch.undo()
    assert mapped() < held - 30
    assert programs[3](2.0) == 2.0 * 3 + jax.numpy.sin(2.0)


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


def test_lapack_has_one_thread_after_a_start_of_its_own():
    """The library's own count, in a process that decomposes a matrix as a lane would."""
    script = """
import ctypes
from rove import platform
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


EIGEN, WIDTH = "--xla_cpu_multi_thread_eigen=false", "--xla_cpu_prefer_vector_width=512"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{EIGEN} {WIDTH}"),
        (f"{EIGEN} {WIDTH}", f"{EIGEN} {WIDTH}"),
        ("--xla_cpu_prefer_vector_width=256", f"--xla_cpu_prefer_vector_width=256 {EIGEN}"),
        ("flags.txt", "flags.txt"),
    ],
)
def test_xlas_flags_are_added_unless_a_person_has_set_them(monkeypatch, before, after):
    monkeypatch.setenv("XLA_FLAGS", before)
    platform.prepare()
    assert os.environ["XLA_FLAGS"] == after
