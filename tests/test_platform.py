"""JAX as rove sets it up."""

import os
from pathlib import Path

import jax

from rove import platform


def mapped() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


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


def test_libraries_beside_xla_get_one_thread_unless_a_person_says_else(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    platform.prepare()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    platform.prepare()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"
