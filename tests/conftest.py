"""Shared by all tests: programs compiled once and kept on disk between tests and runs."""

import os

import pytest

from rove import platform

# Tests compile more than they run: with fewer passes of the compiler they take less time.
QUICK = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}"
platform.prepare()


LONG = ("test_resume.py", "test_processes.py", "test_host.py", "test_sweep.py", "test_ray.py")


def pytest_collection_modifyitems(items):
    """The longest come first, so that no worker is left with one at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(autouse=True)
def _room_for_programs():
    """A worker compiles more programs than a process can hold."""
    platform.relieve()
