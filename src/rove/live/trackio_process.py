"""Trackio's own process: a script, which knows nothing of rove (see `trackio`)."""

import json
import os
import signal
import sys
from datetime import UTC, datetime
from typing import Any


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # anything may print
    from trackio.sqlite_storage import SQLiteStorage  # pyrefly: ignore

    for line in sys.stdin:
        try:
            told = {"done": _obey(SQLiteStorage, json.loads(line))}
        except Exception as error:
            told = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), file=answers, flush=True)


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
    main()
