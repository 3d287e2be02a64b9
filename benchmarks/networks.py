"""What the networks of Figure 2 say: the agents of its panels (a) to (c), trained again with the
same settings, each seed with a look inside its network at the end.

`python benchmarks/networks.py` prints the table of docs/reproduction.md and writes
docs/data/networks.csv. It resumes from the folder networks/.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from rove.analysis.estimates import median_episodes_to_solve
from rove.paper.base import label
from rove.paper.figure_2 import Figure2
from rove.runs.execution import run_all
from rove.runs.result import Run
from rove.runs.tables import as_csv
from rove.training.conclusion import PRINTED

ROOT = Path(__file__).parents[1]
TASKS = ("chain-10", "chain-50", "chain-100")
AGENTS = ("dqn-paper", "dqn", "noisynet", "ge-step", "ge-episode")
COLUMNS = ("task", "agent", "seed", "solved_at", "greedy_score", "values_vary", *PRINTED)


def rows(task: str, agent: str, run: Run) -> list[tuple]:
    """Return a row for each seed."""
    rows = []
    for seed, at, greedy, x in zip(run.seeds, run.solved_at, run.greedy, run.networks, strict=True):
        if x is not None:
            off = " ".join(f"{share:.4g}" for share in x.units_off)
            varies = int(not x.values_constant), off, f"{x.value_range:.4g}", int(x.policy_constant)
            ends = f"{x.value_at_start:.4g}", f"{x.return_from_start:.4g}"
            rows.append((task, agent, seed, at or "", f"{np.mean(greedy):.4g}", *varies, *ends))
    return rows


def summary(task: str, agent: str, run: Run) -> str:
    """Return a line of the Markdown table."""
    solved = np.array([at is not None for at in run.solved_at])
    lengths = [len(outcome.scores) for outcome in run.outcomes]
    times = [n if at is None else at for n, at in zip(lengths, run.solved_at, strict=True)]
    median = median_episodes_to_solve(np.array(times, float), solved).value
    alive = [x for x, good in zip(run.networks, solved, strict=True) if good and x is not None]
    values = sum(not x.values_constant for x in alive)
    policies = sum(not x.policy_constant for x in alive)
    greedy = np.mean([np.mean(scores) for scores in run.greedy])
    learned, earned = (
        np.median([getattr(x, name) for x in run.networks if x is not None])
        for name in ("value_at_start", "return_from_start")
    )
    count = f"{solved.sum()}/{len(solved)}"
    at = f"{median:g}" if np.isfinite(median) else "–"
    varying = f"{values} | {policies}" if solved.any() else "– | –"
    ends = f"{greedy:.2f} | {learned:.3g} / {earned:.3g}"
    return f"| {task} | {label(agent)} | {count} | {at} | {varying} | {ends} |"


def main() -> None:
    configs = {
        key: replace(config, delivers=True)
        for key, config in Figure2().configs().items()
        if key[0] in TASKS and key[1] in AGENTS
    }
    plan = [(config, Path("networks") / "-".join(key)) for key, config in configs.items()]
    runs = dict(zip(configs, run_all(plan, on="processes"), strict=True))
    keys = [(task, agent) for task in TASKS for agent in AGENTS]
    table = [row for key in keys for row in rows(*key, runs[key])]
    (ROOT / "docs" / "data" / "networks.csv").write_text(as_csv(COLUMNS, table))
    head = "task | agent | solved | median | values vary | policy varies | greedy return"
    print(f"| {head} | value at start: learned / earned |")
    print("|---" * 8 + "|")
    for key in keys:
        print(summary(*key, runs[key]))


if __name__ == "__main__":
    main()
