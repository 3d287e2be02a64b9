"""Trackio's own process: a script, which knows nothing of rove (see `trackio`)."""

import contextlib
import inspect
import json
import os
import signal
import sys
from datetime import UTC, datetime
from typing import Any


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent's to handle: this ends with it
        signal.signal(number, signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)  # anything may print

    def answer(**told: Any) -> None:
        os.write(answers, f"{json.dumps(told)}\n".encode())

    try:
        from trackio.sqlite_storage import SQLiteStorage  # pyrefly: ignore

        _check(SQLiteStorage)
    except Exception as error:
        answer(error=_why(error))
        return
    answer(done=None)
    for line in sys.stdin:
        try:
            answer(done=_obey(SQLiteStorage, json.loads(line)))
        except Exception as error:
            answer(error=_why(error))


def _check(storage: Any) -> None:
    """Fail if it is not the storage that `_obey` knows: Trackio's own, which may change."""
    inspect.signature(storage.get_logs).bind("", "", run_id="")
    inspect.signature(storage.get_run_config).bind("", "", run_id="")
    inspect.signature(storage.bulk_log).bind("", "", [], [], config={}, log_ids=[], run_id="")


def _why(error: Exception) -> str:
    """In one line, without the file that an ImportError names."""
    told = str(error).removesuffix(f" ({getattr(error, 'path', None)})")
    return " ".join(f"{type(error).__name__}: {told}".split())


def _obey(storage: Any, order: dict[str, Any]) -> dict[str, int] | None:
    """Write points, or say of each curve how far it is."""
    project, run = order["project"], order["run"]
    if "points" not in order:
        last: dict[str, int] = {}
        for row in storage.get_logs(project, run, run_id=run):
            last |= {key: row["step"] for key in row if key not in ("step", "timestamp")}
        return last
    settings = None
    if storage.get_run_config(project, run, run_id=run) is None:
        about = {"_Group": order["group"], "_Created": datetime.now(UTC).isoformat()}
        settings = order["settings"] | about
    steps = [step for step, _ in order["points"]]
    values = [values for _, values in order["points"]]
    # What a point is called: one of that name that is there already stays.
    names = [f"{run} {step} {' '.join(v)}" for step, v in zip(steps, values, strict=True)]
    storage.bulk_log(project, run, values, steps, config=settings, log_ids=names, run_id=run)
    return None


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        main()
