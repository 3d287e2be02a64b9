"""The claims about the suite."""

from collections.abc import Sequence

import numpy as np

from rove.paper.claims import Claim
from rove.paper.suite import statistics
from rove.paper.suite.results import DEFAULT, ResultTable, SeedResult, label

RIVALS = ("dqn", "sb3-zoo", "sb3")
"""The agents that the default one is compared with."""
NAMED = ("minigrid-doorkey-5", "frozenlake-8x8")
"""Tasks with a separate claim."""
WITHIN = 0.05
"""Maximum distance, on the scale from 0 to 1, of a delivered policy below the last episodes."""


def behind(cell: Sequence[SeedResult]) -> bool:
    """Whether the delivered policies of an agent's seeds on a task score less on average than the
    last training episodes, by more than WITHIN."""
    compared = [r for r in cell if r.policy]
    if not compared:
        return False
    policy = np.mean([r.delivered_score for r in compared])
    return bool(policy < np.mean([r.score for r in compared]) - WITHIN)


def claims(table: ResultTable) -> list[Claim]:
    """Test the claims about the default agent; none of them is in the paper. It is compared with
    others on the held-out half of the tasks."""
    held_out, tested = table.half("held-out"), []
    for rival in RIVALS:
        if held_out.complete(DEFAULT, rival):
            rows = (held_out.solved(DEFAULT), held_out.solved(rival))
            test = statistics.solved_difference(*rows)
            numbers = (statistics.tasks_solved(x) for x in rows)
            evidence = (
                "tasks solved, mean over seeds, {:.2f} and {:.2f} of ".format(*numbers)
                + f"{len(held_out.tasks)}; difference {test.value:.2f}, "
                f"95% interval {test.low:.2f} to {test.high:.2f}, n = {max(map(len, rows[0]))}"
            )
            text = f"ours, held-out tasks: {label(DEFAULT)} solves more than {label(rival)}"
            tested.append(Claim.judge(text, evidence, test.value > 0.0, test.p))
    for name in NAMED:
        if cell := table.cell(name, DEFAULT):
            text, what = f"ours: {label(DEFAULT)} solves {name}", "solved at the end of the budget"
            tested.append(Claim.count(text, what, np.array([r.solved for r in cell])))
    compared = [t for t in table.tasks if any(r.policy for r in table.cell(t.name, DEFAULT))]
    if compared:
        worse = [t.name for t in compared if behind(table.cell(t.name, DEFAULT))]
        text = f"ours: the policy that {label(DEFAULT)} delivers is as good as its last episodes"
        evidence = f"at most {WITHIN:.2f} below them: {len(compared) - len(worse)} of "
        seeds = max(len(table.cell(t.name, DEFAULT)) for t in compared)
        evidence += f"{len(compared)} tasks, n = {seeds}{'; not: ' * bool(worse)}{', '.join(worse)}"
        verdict = "not supported" if worse else "supported"
        tested.append(Claim(text, evidence, verdict))
    return tested
