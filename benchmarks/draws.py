"""What GE learns with a θ for every row of a minibatch, and with one θ for all of its rows.

    python benchmarks/draws.py [--seeds 10] [TASK ...]

For each task, on seeds that nothing was chosen by: the mean score over all episodes, with its 95%
interval, the difference and its p-value, and the seeds that solved the task, where that is defined.
Writes docs/data/draws.json. Run folders in .bench/draws, from which a second call resumes.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import rove
from rove.analysis.intervals import mean_and_interval

EPISODES = {
    "chain-50": 200,
    "chain-100": 300,
    "sparse-cartpole": 400,
    "sparse-mountain-car": 600,
    "sparse-acrobot": 200,
}
FIRST_SEED = 500
ROOT = Path(__file__).parent.parent
DATA = ROOT / "docs" / "data" / "draws.json"


def trained(task: str, draws: str, seeds: int) -> rove.Run:
    """Train GE with the defaults of a task."""
    return rove.train(
        "ge",
        task,
        seeds=range(FIRST_SEED, FIRST_SEED + seeds),
        episodes=EPISODES[task],
        out=ROOT / ".bench" / "draws" / f"{task}-{draws}",
        draws=draws,
        progress=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", choices=[*EPISODES, []], default=[])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    found = json.loads(DATA.read_text("utf-8")) if DATA.exists() else {}
    print("| task | row | minibatch | difference |\n|---|---|---|---|")
    for task in options.tasks or EPISODES:
        row, minibatch = (trained(task, draws, options.seeds) for draws in ("row", "minibatch"))
        difference = rove.difference(minibatch, row)
        cells = []
        for run in (row, minibatch):
            support = run.config.environment.score_range
            text = mean_and_interval(np.nanmean(run.scores, axis=1), support)
            if run.config.environment.optimum is not None:
                text += f"; {sum(at is not None for at in run.solved_at)} solved"
            cells.append(text)
        found[task] = {
            "row": {"scores": _means(row), "solved_at": list(row.solved_at)},
            "minibatch": {"scores": _means(minibatch), "solved_at": list(minibatch.solved_at)},
            "difference": difference._asdict(),
            "score": row.config.environment.score_label,
            "episodes": EPISODES[task],
        }
        print(f"| {task} | {' | '.join(cells)} | {difference} |", flush=True)
        DATA.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _means(run: rove.Run) -> list[float]:
    return np.nanmean(run.scores, axis=1).round(4).tolist()


if __name__ == "__main__":
    main()
