"""Shared by all tests: programs compiled once and kept on disk between tests and runs."""

import pytest

from rove import platform

platform.prepare()


@pytest.fixture(autouse=True)
def _room_for_programs():
    """A worker compiles more programs than a process can hold."""
    platform.relieve()
