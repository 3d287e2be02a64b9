"""Alarms about networks whose greedy policy solves its task, on the development half of the suite:
there should be none.

`python benchmarks/network_alarms.py` trains five seeds of three agents, or resumes them from the
folder network-alarms/, and prints a table: seeds, seeds whose greedy policy solves the task, and
alarms about the networks of these and of the others.
"""

import warnings
from pathlib import Path

import numpy as np

import rove
from rove.paper.suite.experiment import Suite
from rove.paper.suite.tasks import BY_NAME, TASKS
from rove.runs.execution import run_all

AGENTS, SEEDS = ("dqn", "auto", "ige"), 5
ABOUT = ("do not depend on the state", "the learned value at the start")


def main() -> None:
    tasks = tuple(task.name for task in TASKS if task.half == "development")
    suite = Suite(tasks=tasks, agents=AGENTS, seeds=SEEDS)
    out = Path("network-alarms")
    configs = suite.configs()
    print("task                     agent  seeds  solved  alarms: of these, of others")
    for task in tasks:
        chosen = {key: config for key, config in configs.items() if key[0] == task}
        plan = [(config, out / "runs" / "-".join(key)) for key, config in chosen.items()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rove.RoveWarning)
            runs = dict(zip(chosen, run_all(plan, on="processes"), strict=True))
        for agent in AGENTS:
            mine = [run for (_, lane), run in runs.items() if lane.rpartition("-")[0] == agent]
            solved, told = [], []
            for run in mine:
                score = float(BY_NAME[task].normalised(np.mean(run.greedy[0])))
                solved.append(score >= BY_NAME[task].solved)
                told.append([a for a in run.alarms if any(text in a for text in ABOUT)])
            on = sum(len(a) for a, good in zip(told, solved, strict=True) if good)
            off = sum(len(a) for a, good in zip(told, solved, strict=True) if not good)
            print(f"{task:<24} {agent:<6} {len(mine):>5}  {sum(solved):>6}  {on:>16}, {off}")
            for alarms, good in zip(told, solved, strict=True):
                for alarm in alarms if good else ():
                    print(f"    {alarm}")


if __name__ == "__main__":
    main()
