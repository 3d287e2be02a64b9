"""The script that runs in Trackio's process (see `trackio`); it does not import rove."""

import contextlib
import inspect
import json
import os
import signal
import sys
from datetime import UTC, datetime
from typing import Any


def main() -> None:
    """Answer requests from stdin until it is closed."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent handles these and ends this process
        signal.signal(number, signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)  # any module may print to stdout

    def answer(**message: Any) -> None:
        os.write(answers, f"{json.dumps(message)}\n".encode())

    try:
        from trackio.sqlite_storage import SQLiteStorage  # pyrefly: ignore

        _check(SQLiteStorage)
    except Exception as error:
        answer(error=_one_line(error))
        return
    answer(done=None)
    for line in sys.stdin:
        try:
            answer(done=_handle(SQLiteStorage, json.loads(line)))
        except Exception as error:
            answer(error=_one_line(error))


def _check(storage: Any) -> None:
    """Raise `TypeError` if Trackio's storage, an internal class, has changed its interface."""
    inspect.signature(storage.get_logs).bind("", "", run_id="")
    inspect.signature(storage.get_run_config).bind("", "", run_id="")
    inspect.signature(storage.bulk_log).bind("", "", [], [], config={}, log_ids=[], run_id="")


def _one_line(error: Exception) -> str:
    """Describe an error in one line, without the path that an ImportError ends with."""
    message = str(error).removesuffix(f" ({getattr(error, 'path', None)})")
    return " ".join(f"{type(error).__name__}: {message}".split())


def _handle(storage: Any, request: dict[str, Any]) -> dict[str, int] | None:
    """Write the request's points; if it has none, return the last step of each curve."""
    project, run = request["project"], request["run"]
    if "points" not in request:
        last: dict[str, int] = {}
        for row in storage.get_logs(project, run, run_id=run):
            last |= {key: row["step"] for key in row if key not in ("step", "timestamp")}
        return last
    settings = None
    if storage.get_run_config(project, run, run_id=run) is None:
        about = {"_Group": request["group"], "_Created": datetime.now(UTC).isoformat()}
        settings = request["settings"] | about
    steps = [step for step, _ in request["points"]]
    values = [values for _, values in request["points"]]
    # Points have unique names: one that exists already is not written again.
    names = [f"{run} {step} {' '.join(v)}" for step, v in zip(steps, values, strict=True)]
    storage.bulk_log(project, run, values, steps, config=settings, log_ids=names, run_id=run)
    return None


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        main()
