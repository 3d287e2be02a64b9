"""Random kill -9 of whole process groups: in the end, the bits of a run that was never killed."""

import gzip
import itertools
import random
import subprocess
import time
from collections import Counter
from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from campaign import PYTHON, Tally, kill, processes_with
from safetensors import safe_open

LAUNCH = """
import sys
from rove.training import progress
period = float(sys.argv.pop(1))
progress.CHECKPOINT_SECONDS = period or progress.CHECKPOINT_SECONDS
from rove.cli.main import main
main()
"""
SHIPPED = 0.0
"""Stands for the period of checkpoints that rove is shipped with."""
SMALL = ["--agent.hidden", "16", "--agent.learning-starts", "100", "--agent.buffer-size", "2000"]
KINDS = {
    "compiled": ["train", "ge", "chain-10", "--seeds", "2", "--episodes", "900", *SMALL],
    "one seed": ["train", "ige", "deep-sea-6", "--seeds", "1", "--episodes", "1200", *SMALL],
    "steps": ["train", "bootstrapped_dqn", "chain-8", "--seeds", "2", "--steps", "6000", *SMALL],
    "table": ["train", "psrl", "chain-20", "--seeds", "2", "--episodes", "4000"],
    "Gymnasium": ["train", "dqn", "CartPole-v1", "--seeds", "2", "--steps", "2500", *SMALL],
    "normalised": [
        *["train", "dqn", "FrozenLake-v1", "--seeds", "2", "--episodes", "200"],
        *["--env.normalise", *SMALL],
    ],
    "sweep": [
        *["sweep", "dqn", "chain-6", "--agent.lr=1e-3,1e-4", "--seeds", "2"],
        *["--episodes", "250", *SMALL],
    ],
    "threads": [
        *["train", "ge", "chain-10", "--seeds", "2", "--episodes", "900", "--on", "threads"],
        *SMALL,
    ],
    "Ray": ["train", "ge", "chain-10", "--seeds", "2", "--episodes", "900", "--on", "ray", *SMALL],
    "reproduce": ["reproduce", "figure-5", "--quick"],
}


def content(folder: Path) -> dict[str, bytes]:
    """Return what a run leaves: the episodes, and every array of the last checkpoints."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if "previous" in path.parts or not path.is_file():
            continue
        if path.suffix in (".csv", ".gz"):
            data = path.read_bytes()
            found[name] = gzip.decompress(data) if path.suffix == ".gz" else data
        elif path.suffix == ".safetensors":
            with safe_open(path, framework="numpy") as file:
                for key in file.keys():  # noqa: SIM118
                    found[f"{name}:{key}"] = file.get_tensor(key).tobytes()
    return found


def start(kind: str, folder: Path, period: float) -> subprocess.Popen:
    command = [PYTHON, "-c", LAUNCH, str(period), *KINDS[kind], "--out", str(folder)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, start_new_session=True, text=True, **pipes)


def run(tally: Tally, folder: Path, kills: int) -> None:
    """Kill every kind of run until `kills` are reached, with a short period of checkpoints and with
    the shipped one, two runs at a time, and compare each end with a run that was left alone."""
    whole, seconds = {}, {}
    for kind in KINDS:
        began, process = time.monotonic(), start(kind, folder / f"{kind}-whole", SHIPPED)
        error = process.communicate(timeout=900)[1]
        if process.returncode:
            tally.failed(f"{kind}: left alone, it fails: {error[-300:]}")
            return
        seconds[kind] = time.monotonic() - began
        whole[kind] = content(folder / f"{kind}-whole")
    of_kind: Counter[str] = Counter()
    shipped: Counter[str] = Counter()
    raylets = set(processes_with("raylet"))

    def one(number: int, kind: str, period: float) -> None:
        if tally.attempts < kills:
            out = folder / f"{kind}-{number}"
            killed = _until_done(tally, kind, out, period, seconds[kind], whole[kind], number)
            tally.attempts += killed
            of_kind[kind] += killed
            shipped[kind] += killed * (period == SHIPPED)

    rounds = itertools.product(range(kills), (0.2, SHIPPED), KINDS)
    with ThreadPoolExecutor(2) as pool:
        for number, (_, period, kind) in enumerate(rounds):
            pool.submit(one, number, kind, period)
    if orphans := _orphans("raylet", raylets):
        tally.failed(f"Ray: orphans {orphans} after all kills")
    counts = [f"{kind} {of_kind[kind]} ({shipped[kind]})" for kind in sorted(of_kind)]
    tally.notes = [f"kills by kind (with the shipped period): {', '.join(counts)}"]


def _until_done(
    tally: Tally,
    kind: str,
    out: Path,
    period: float,
    seconds: float,
    whole: dict[str, bytes],
    seed: int,
) -> int:
    """Kill a run several times at random moments, let it finish, and return how often it was killed
    while it was at work."""
    generator, killed = random.Random(seed), 0
    for _ in range(generator.randint(3, 6)):
        process = start(kind, out, period)
        time.sleep(generator.uniform(0.1, seconds))
        at_work = process.poll() is None
        kill(process)
        killed += at_work
        if orphans := _orphans(str(out)):
            tally.failed(f"{kind}: orphans {orphans} after a kill")
        if not at_work:
            break
    process = start(kind, out, period)
    error = process.communicate(timeout=900)[1]
    found = content(out)
    if process.returncode:
        tally.failed(f"{kind}: cannot be resumed: {error[-300:]}")
    elif found != whole:
        differing = sorted(k for k in found.keys() | whole.keys() if found.get(k) != whole.get(k))
        tally.failed(f"{kind}, period {period}: other bits in {differing[:3]}")
    return killed


def _orphans(text: str, known: Set[int] = frozenset()) -> set[int]:
    """Return the new processes whose command line contains a text, after 20 seconds."""
    deadline = time.monotonic() + 20
    while (found := set(processes_with(text)) - known) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found
