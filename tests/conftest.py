"""Shared by all tests: programs compiled once and kept on disk between tests and runs."""

import gc
import itertools

import pytest

from rove.parts import platform
from rove.runs import outputs

platform.prepare()
_draw_pictures, outputs.draw_pictures = outputs.draw_pictures, lambda run, folder: None


LONG = (
    "test_protocol.py", "test_grid.py", "test_resume.py", "test_algorithm.py", "test_cli.py",
    "test_actor_critic.py", "test_runs.py", "test_learning.py", "test_examples.py", "test_host.py",
    "test_report.py", "test_processes.py", "test_threads.py", "test_sweep.py", "test_ray.py",
    "test_bad_environments.py", "test_families.py",
)  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Mark cases as slow. The longest files come first, so that no worker is left with one at the
    end."""
    unknown = {}
    for item in items:
        for marker in item.iter_markers("fast_cases"):
            unknown.setdefault(item.function, set(marker.args)).discard(item.callspec.id)
            if item.callspec.id not in marker.args:
                item.add_marker(pytest.mark.slow)
    if any(unknown.values()) and not any("::" in arg for arg in config.invocation_params.args):
        wrong = {test.__name__: names for test, names in unknown.items() if names}
        raise pytest.UsageError(f"fast_cases names cases that do not exist: {wrong}")
    order = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONG)))
    gc.freeze()  # modules and tests, which the garbage collector would go through again and again
    gc.set_threshold(50_000, 20, 100)  # tracing makes many objects, most of which stay


@pytest.fixture
def pictures(monkeypatch):
    """At the end of a run in a folder two pictures are drawn, which takes longer than a tiny run:
    in this process that is done only for tests that look at them, and therefore ask for this."""
    monkeypatch.setattr(outputs, "draw_pictures", _draw_pictures)


_tests = itertools.count()


@pytest.fixture(autouse=True)
def _room_for_programs():
    """A worker compiles more programs than a process can hold. To count them takes 15 ms, so that
    it is done before every twentieth test."""
    if next(_tests) % 20 == 0:
        platform.clear_programs()
