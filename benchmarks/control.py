"""Control: the compiled and the host loop beside stable-baselines3's DQN and DDPG, in one run.

As throughput.py: every contestant is a process of its own that takes short slices in turn.
"""

import argparse
import json
import os
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from throughput import HERE, Contestant, peer_python, proc

CONTESTANTS = {
    # What it is: an agent, an environment, and the lanes that take turns in its process.
    "rove dqn, compiled CartPole": ("dqn", "cartpole", 1),
    "rove dqn, gym/CartPole-v1": ("dqn", "gym/CartPole-v1", 1),
    "rove dqn, gym/CartPole-v1, 5 lanes": ("dqn", "gym/CartPole-v1", 5),
    "rove ddpg, gym/InvertedPendulum-v5": ("ddpg", "gym/InvertedPendulum-v5", 1),
}
PEERS = {
    f"sb3 {agent}, threads: {threads}": (agent, threads)
    for agent in ("dqn", "ddpg")
    for threads in ("1", "default")
}
STEPS, PEER_STEPS, WARM_UP = 300, 100, 1000
SETTINGS: dict[str, dict[str, Any]] = {
    "dqn": {"hidden": (100, 100), "batch_size": 64, "buffer_size": 50_000, "target_period": 100},
    "ddpg": {"hidden": (100, 100), "batch_size": 64, "buffer_size": 50_000},
}
AIMS = (
    ("compiled CartPole, at least 12× SB3 DQN", "rove dqn, compiled CartPole", "sb3 dqn", 12),
    ("one lane on the host, at least 4×", "rove dqn, gym/CartPole-v1", "sb3 dqn", 4),
    ("five lanes, at least 10×", "rove dqn, gym/CartPole-v1, 5 lanes", "sb3 dqn", 10),
    ("ddpg, at least 3× SB3 DDPG", "rove ddpg, gym/InvertedPendulum-v5", "sb3 ddpg", 3),
)


def worker(agent: str, environment: str, lanes: int) -> None:
    """Answers "learn N" on stdin with one line of JSON: N steps of every lane."""
    from rove.agents import settings_of
    from rove.agents.settings import with_settings
    from rove.environments import HostEnvironment, make
    from rove.parts import platform
    from rove.runs.configure import configure
    from rove.training import host, outcomes
    from rove.training.chunks import advance

    platform.prepare(lanes=1)  # as rove's own workers
    answers, sys.stdout = sys.stdout, sys.stderr
    settings, place = with_settings(settings_of(agent)(), SETTINGS[agent]), make(environment)
    jobs = configure(settings, place, seeds=lanes, steps=2**30).jobs(None)
    if isinstance(place, HostEnvironment):
        nothing = lambda *told: None  # noqa: E731
        flights = [host._Trainer(job, nothing, nothing) for job in jobs]
        for flight in flights:
            flight.begin()

        def learn(steps: int) -> None:
            for _ in range(steps):
                for flight in flights:
                    flight.step()
    else:
        flight = outcomes.fresh(jobs[0])

        def learn(steps: int) -> None:
            nonlocal flight
            done = int(flight.lane.step) + steps
            while (left := done - int(flight.lane.step)) > 0:  # a full log ends a chunk as well
                lane = advance([flight], [int(flight.lane.step)], left)[0]
                flight = flight._replace(lane=lane)

    learn(WARM_UP)
    print(json.dumps({}), file=answers, flush=True)
    for line in sys.stdin:
        steps = int(line.split()[1])
        cpu, began = time.process_time(), time.perf_counter()
        learn(steps)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        print(
            json.dumps({"steps": steps * lanes, "seconds": seconds, "cpu": cpu}),
            file=answers,
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="6 rounds in place of 30")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        agent, environment, lanes = options.worker
        return worker(agent, environment, int(lanes))
    this = [sys.executable, str(HERE / "control.py"), "--worker"]
    commands = {
        label: [[peer_python(), str(HERE / "peer_sb3.py"), threads, agent]]
        for label, (agent, threads) in PEERS.items()
    }
    for label, (agent, environment, lanes) in CONTESTANTS.items():
        commands[label] = [[*this, agent, environment, str(lanes)]]
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "cpu": proc("cpuinfo", "model name")},
        "rounds": 6 if options.quick else 30,
        "load_before": os.getloadavg()[0],
    }
    everyone = [Contestant(label, command) for label, command in commands.items()]
    shuffle = random.Random(0).shuffle
    for _ in range(about["rounds"]):
        shuffle(everyone)
        for x in everyone:
            time.sleep(0.02)
            x.run("learn", PEER_STEPS if x.label in PEERS else STEPS)
    rows = {x.label: x.summary("learn") for x in everyone}
    for label in commands:
        print(f"{label}: {rows[label]['median']:,.0f} µs a step, {rows[label]['steps/s']:,.0f}/s")
    checks = []
    for text, mine, peer, least in AIMS:
        best = min(row["median"] for label, row in rows.items() if label.startswith(peer))
        ratio = best / rows[mine]["median"]
        checks.append({"check": text, "figure": ratio, "met": ratio >= least})
        print(f"{text}: {ratio:.2f}, {'met' if ratio >= least else 'not met'}")
    if options.json:
        options.json.write_text(
            json.dumps(about | {"contestants": rows, "checks": checks}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
