"""The contestants' side of a benchmark: steps on order. Needs nothing but Python.

A contestant is started with its entry as JSON (see contestants.py), where `seeds` is a list. It
warms up, prints one line of JSON, and then answers each line of its standard input, a number of
steps, with another line.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

WARM_UP = 1_000


def entry() -> dict[str, Any]:
    """Return the entry that the contestant was started with."""
    return json.loads(sys.argv[1])


def serve(learn: Callable[[int], Any], seeds: int, packages: tuple[str, ...]) -> None:
    """Take slices on order; `learn` trains each of the seeds for a number of steps."""
    answers, sys.stdout = sys.stdout, sys.stderr

    def answer(fields: dict[str, Any]) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    learn(WARM_UP)
    answer({"versions": {package: version(package) for package in packages}})
    for line in sys.stdin:
        steps = int(line)
        cpu, began = time.process_time(), time.perf_counter()
        learn(steps)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        answer({"steps": steps * seeds, "seconds": seconds, "cpu": cpu})
