"""Random kill -9 of whole process groups: in the end, the bits of a run that was never killed."""

import contextlib
import gzip
import os
import random
import signal
import subprocess
import time
from pathlib import Path

from campaign import PYTHON, Tally, processes_with
from safetensors import safe_open

LAUNCH = """
import sys
from rove.training import progress
period = float(sys.argv.pop(1))
progress.CHECKPOINT_SECONDS = period or progress.CHECKPOINT_SECONDS
from rove.cli.main import main
main()
"""
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
    command = [PYTHON, "-c", LAUNCH, str(period), *KINDS[kind], "--quiet", "--out", str(folder)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, start_new_session=True, text=True, **pipes)


def run(tally: Tally, folder: Path, kills: int, seed: int = 0) -> None:
    """Kill every kind of run until `kills` are reached, with a short period of checkpoints and with
    the one that is shipped, and compare each end with a run that was left alone."""
    generator = random.Random(seed)
    whole, seconds = {}, {}
    for kind in KINDS:
        began, process = time.monotonic(), start(kind, folder / f"{kind}-whole", 0.0)
        if process.wait(600):
            tally.failed(f"{kind}: left alone, it fails: {process.stderr.read()[-300:]}")
            return
        seconds[kind] = time.monotonic() - began
        whole[kind] = content(folder / f"{kind}-whole")
    rounds = 0
    while tally.attempts < kills:
        kind = list(KINDS)[rounds % len(KINDS)]
        period = (0.2, 0.0)[rounds // len(KINDS) % 2]  # 0: the shipped one
        out = folder / f"{kind}-{rounds}"
        rounds += 1
        for _ in range(generator.randint(2, 5)):
            process = start(kind, out, period)
            time.sleep(generator.uniform(0.1, 1.2 * seconds[kind]))
            ended = process.poll() is not None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            time.sleep(0.2)
            tally.attempts += not ended
            if orphans := processes_with(str(out)):
                tally.failed(f"{kind}: orphans {orphans} after a kill")
            if ended:
                break
        process = start(kind, out, period)
        error = process.communicate(timeout=600)[1]
        if process.returncode:
            tally.failed(f"{kind}: cannot be resumed: {error[-300:]}")
        elif content(out) != whole[kind]:
            differing = {k for k, v in whole[kind].items() if content(out).get(k) != v}
            tally.failed(f"{kind}, period {period}: other bits in {sorted(differing)[:3]}")
