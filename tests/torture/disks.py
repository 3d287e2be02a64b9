"""Disks that are full, read-only, slow or gone while a run writes to them.

The command has to end with an error in one sentence, without a traceback, and once the disk is
well again the same command has to end with the bits of a run that had no trouble. Full and
read-only disks are real ones: file systems in memory, mounted where only the run sees them.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from campaign import PYTHON, Tally, kill
from kills import SMALL, content

RUNS = {
    "compiled": ["train", "ge", "chain-10", "--seeds", "2", "--episodes", "900", *SMALL],
    "Gymnasium": ["train", "dqn", "CartPole-v1", "--seeds", "2", "--steps", "2500", *SMALL],
    "sweep": [
        *["sweep", "dqn", "chain-6", "--agent.lr=1e-3,1e-4", "--seeds", "2"],
        *["--episodes", "250", *SMALL],
    ],
}
LAUNCH = """
import os, sys, time
from rove.training import progress
progress.CHECKPOINT_SECONDS = 0.05
delay = float(sys.argv.pop(1))
if delay:
    fsync = os.fsync
    os.fsync = lambda file: (time.sleep(delay), fsync(file))
from rove.cli.main import main
main()
"""


def start(words: list[str], out: Path, delay: float = 0.0) -> subprocess.Popen:
    """Start a command that saves every 50 ms, on a disk that takes `delay` seconds to sync."""
    command = [PYTHON, "-c", LAUNCH, str(delay), *words, "--out", str(out)]
    return subprocess.Popen(
        command, start_new_session=True, text=True, stdout=subprocess.DEVNULL, stderr=-1
    )


def finish(process: subprocess.Popen) -> tuple[int, str]:
    """Return the exit code and what was said."""
    try:
        said = process.communicate(timeout=300)[1]
    except subprocess.TimeoutExpired:
        kill(process)
        return -1, "it hangs"
    return process.returncode, said


def full(words: list[str], disk: Path) -> str:
    """The disk has place for some of what a run writes."""
    return _until_well(words, disk, "size=24k", "size=400m")


def inodes(words: list[str], disk: Path) -> str:
    """The disk has place for a few files only."""
    return _until_well(words, disk, "nr_inodes=6", "nr_inodes=10000")


def _until_well(words: list[str], disk: Path, ill: str, well: str) -> str:
    """Run on a disk that is mounted with one option, then again with the other."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", ill, "tmpfs", disk], check=True)
    code, said = finish(start(words, disk / "run"))
    wrong = _judged(code, said, disk / "run")
    subprocess.run(["mount", "-o", f"remount,{well}", "tmpfs", disk], check=True)
    return wrong or _resumed(words, disk / "run")


def read_only(words: list[str], disk: Path) -> str:
    """The disk turns read-only while the run is under way."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
    process = start(words, disk / "run")
    _wait_for(lambda: list(disk.glob("run/**/*.safetensors")), process)
    deadline = time.monotonic() + 20  # it is busy while a file is open for writing
    while subprocess.run(["mount", "-o", "remount,ro", disk], stderr=subprocess.DEVNULL).returncode:
        if time.monotonic() > deadline or process.poll() is not None:
            kill(process)
            return ""
    code, said = finish(process)
    wrong = _judged(code, said, disk / "run")
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    return wrong or _resumed(words, disk / "run")


def deleted(words: list[str], disk: Path) -> str:
    """The folder is deleted while the run writes to it."""
    process = start(words, disk / "run")
    _wait_for(lambda: list(disk.glob("run/**/*.safetensors")), process)
    shutil.rmtree(disk / "run", ignore_errors=True)
    wrong = _judged(*finish(process), disk / "run")
    shutil.rmtree(disk / "run", ignore_errors=True)
    return wrong or _resumed(words, disk / "run")


def slow(words: list[str], disk: Path) -> str:
    """Every sync takes 0.3 seconds."""
    return _judged(*finish(start(words, disk / "run", delay=0.3)), disk / "run")


def _wait_for(condition: Callable[[], object], process: subprocess.Popen) -> None:
    while not condition() and process.poll() is None:
        time.sleep(0.01)


def _judged(code: int, said: str, out: Path) -> str:
    """Return what is wrong with an end: success with something missing, or an unclear error."""
    if not code:
        return _compared(out)
    clear = code in (1, 2) and said.strip() and "Traceback" not in said
    return "" if clear else f"exit code {code}: {said[-300:]}"


def _resumed(words: list[str], out: Path) -> str:
    code, said = finish(start(words, out))
    return f"cannot be resumed: {said[-300:]}" if code else _compared(out)


def _compared(out: Path) -> str:
    """Compare with the run that had no trouble, which is in `whole` beside the disk."""
    found, whole = content(out), content(out.parent.parent / "whole")
    differing = sorted(k for k in found.keys() | whole.keys() if found.get(k) != whole.get(k))
    return f"other bits in {differing[:3]}" if differing else ""


TROUBLES = {t.__name__: t for t in (full, inodes, read_only, deleted, slow)}
MOUNTED = ("full", "inodes", "read_only")


def run(tally: Tally, folder: Path, rounds: int) -> None:
    """Put every kind of run through every trouble, `rounds` times."""
    for kind, words in RUNS.items():
        place = folder / kind
        place.mkdir()
        code, said = finish(start(words, place / "whole"))
        if code:
            tally.failed(f"{kind}: left alone, it fails: {said[-300:]}")
            return
        for number in range(rounds):
            for trouble in TROUBLES:
                disk = place / f"{trouble}-{number}"
                disk.mkdir()
                own = ["unshare", "-rm"] if trouble in MOUNTED else []
                command = [*own, PYTHON, os.path.abspath(__file__), trouble, disk, *words]
                ended = subprocess.run(command, capture_output=True, text=True, timeout=900)
                tally.attempts += 1
                if wrong := (ended.stdout + ended.stderr).strip():
                    tally.failed(f"{kind}, {trouble}: {wrong[-400:]}")


if __name__ == "__main__":
    print(TROUBLES[sys.argv[1]](sys.argv[3:], Path(sys.argv[2])))
