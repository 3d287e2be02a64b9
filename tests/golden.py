"""Records a hash of what every agent does and learns, and compares with it later.

    python tests/golden.py record FILE     writes the hashes to a file
    python tests/golden.py compare FILE    exits with 1 if an agent's hash has changed

Record before a change that should leave every bit as it was, and compare after it. Rounding differs
between machines, so a record holds on the machine that made it, and none is kept here.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import jax
import numpy as np

import rove
from rove.parts import platform

SMALL = {"hidden": (16, 12), "batch_size": 16, "buffer_size": 300, "learning_starts": 40}
CASES = {
    "dqn": {}, "dqn double": {"double": True, "epsilon_steps": 200}, "c51": {}, "qr_dqn": {},
    "noisynet": {}, "noisynet factorised": {"noise": "factorised", "resample": "episode"},
    "ge": {}, "ge episode": {"resample": "episode", "prior_std": None}, "vdqn": {"resample": 7},
    "bbq": {}, "bbq bonus": {"bonus": "disagreement", "bonus_weight": 0.1},
    "bayesian_dqn": {"period": 50},
    "bootstrapped_dqn": {"size": 4},
    "bootstrapped_dqn whole": {"size": 3, "prior": None, "mask": 1.0},
    "parameter_noise": {}, "double_uncertain": {}, "rlsvi": {"period": 50},
    "ige": {"rank": 3, "draws": 5}, "ige diagonal": {"rho": -4.0, "paired": False, "prior": None},
    "psrl": {}, "bayesian_q_learning": {}, "thompson": {},
    "ddpg": {}, "ddpg_noisynet": {}, "ddpg_ge": {"resample": "episode"}, "td3": {},
    "td3 ge": {"critic": "mean_field", "sigma": 1e-3},
    "qr_dqn cvar": {"risk": "cvar"}, "return_density": {},
    "return_density skewed": {"density": "skewed_laplace", "natural": False, "risk": "cvar"},
    "thompson_beta": {}, "thompson_linear": {}, "particles": {"risk": "cvar"},
}  # fmt: skip
PARTS = ("learned", "priors", "fitted")
TABULAR = ("psrl", "bayesian_q_learning", "particles")
BANDIT = {
    "thompson": "bandit-10", "thompson_beta": "bernoulli-bandit-10",
    "thompson_linear": "linear-bandit-4",
}  # fmt: skip


def digest(case: str) -> str:
    name = case.split()[0]
    task = {"environment": "chain-8", "episodes": 40}
    settings = SMALL | CASES[case]
    if name in TABULAR:
        settings = CASES[case]
    if name in BANDIT:
        task, settings = {"environment": BANDIT[name], "episodes": 60}, {}
    if name == "rlsvi":
        settings["hidden"] = ()
    if name.startswith(("ddpg", "td3")):
        task = {"environment": "linear-quadratic-1", "steps": 400}
        settings["random_steps"] = 30
    agent = rove.AGENTS[name](**settings)  # not the tuned defaults, which searches change
    run = rove.train(agent, task.pop("environment"), seeds=2, **task)
    sha = hashlib.sha256()
    for outcome in run.outcomes:
        state = outcome.lane.agent
        actor = jax.tree.leaves((state.actor, state.random))
        phis = (state.phi,) if isinstance(state.phi, rove.Phi) else state.phi
        parameters = [[getattr(phi, part) for phi in phis] for part in PARTS]
        for leaf in [*outcome.episodes, *jax.tree.leaves(parameters), *actor]:
            sha.update(np.ascontiguousarray(leaf).tobytes())
    return sha.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    chosen = parser.parse_args()
    recorded = json.loads(chosen.file.read_text()) if chosen.action == "compare" else {}
    platform.prepare()
    digests = {}
    for case in CASES:
        digests[case] = digest(case)
        print(digests[case], case, flush=True)
    if chosen.action == "record":
        chosen.file.write_text(json.dumps(digests, indent=2) + "\n")
        return
    changed = [case for case in CASES if digests[case] != recorded.get(case)]
    print(f"{len(digests) - len(changed)} of {len(digests)} agents as recorded", *changed, sep="\n")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
