"""Whether the delivered policy is as good as the last training episodes, on the task of
examples/key_and_door.py, with a run folder and without, and with evaluations and without.

`python benchmarks/delivered.py` prints a table and writes docs/data/delivered.json.
"""

import importlib.util
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np

import rove

ROOT = Path(__file__).parents[1]
SEEDS, STEPS, EVERY = 10, 15_000, 1_000
CASES = [(folder, every) for folder in (False, True) for every in (None, EVERY)]


def task():
    """Return the example's task."""
    path = ROOT / "examples" / "key_and_door.py"
    spec = importlib.util.spec_from_file_location("key_and_door", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return rove.adopt(example.KeyAndDoor(), optimum=1.0, score_range=(0.0, 1.0))


def rows(folder: bool, every: int | None) -> list[dict]:
    """Train ten seeds, and return what each delivers."""
    with tempfile.TemporaryDirectory() as out, warnings.catch_warnings():
        warnings.simplefilter("ignore", rove.RoveWarning)
        path = Path(out) / "run" if folder else None
        run = rove.train("auto", task(), seeds=SEEDS, steps=STEPS, eval_every=every, out=path)
    alarms = [alarm for alarm in run.alarms if "delivered policy" in alarm]
    return [
        {
            "folder": folder,
            "eval_every": every,
            "seed": outcome.job.seed,
            "last_50": float(np.mean(outcome.scores[-50:])),
            "policy": delivered.policy,
            "delivered": float(np.mean(scores)),
            "alarm": any(alarm.startswith(f"seed {outcome.job.seed}:") for alarm in alarms),
        }
        for outcome, delivered, scores in zip(
            run.outcomes, run.delivered, run.evaluated, strict=True
        )
    ]


def main() -> None:
    results = []
    print("out  eval_every  within 0.05  of the others with an alarm  policies")
    for folder, every in CASES:
        case = rows(folder, every)
        results += case
        below = [row for row in case if row["delivered"] < row["last_50"] - 0.05]
        alarms = sum(row["alarm"] for row in below)
        names = [row["policy"] for row in case]
        policies = ", ".join(f"{name} {names.count(name)}" for name in sorted(set(names)))
        print(
            f"{'yes' if folder else 'no':<4} {every or '–'!s:<11} {SEEDS - len(below)} of {SEEDS}"
            f"      {alarms} of {len(below)}                        {policies}",
            flush=True,
        )
    data = json.dumps(results, indent=1) + "\n"
    (ROOT / "docs" / "data" / "delivered.json").write_text(data)


if __name__ == "__main__":
    main()
