"""The campaign against kills, bad values, bad environments and hostile files: `make torture`.

python tests/torture                 about 40 minutes on two cores
python tests/torture --quick         about 5 minutes
python tests/torture --only kills    one part
python tests/torture --soak 60       minutes of training whose memory is watched meanwhile
python tests/torture --record FILE   also writes the table as Markdown; rows of other parts stay

Exits with 1 if anything failed.
"""

import argparse
import datetime
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from campaign import PYTHON, Tally  # noqa: E402

# How much of each part, in full and in quick form: bad values in Python, mutations of folders,
# every n-th environment, companies of a seed, rounds of disks, kills.
AMOUNTS = {
    "values": (2000, 300),
    "files": (300, 20),
    "environments": (1, 6),
    "neighbours": (4, 1),
    "disks": (2, 1),
    "kills": (200, 12),
}
SOAK_MINUTES = (30, 4)
TESTS = {
    "reports in a browser": ["tests/report/test_browser.py"],
    "signals and damaged checkpoints": [
        *["tests/runs/test_resume.py", "tests/runs/test_hostile_folders.py"],
        *["tests/training/test_processes.py", "tests/training/test_checkpoint.py"],
    ],
    "Ray": ["tests/training/test_ray.py"],
}
"""Parts that are tests as well, slow ones included in full form."""
_RECORDING = threading.Lock()
PARTS = (*AMOUNTS, *TESTS, "soak")
HEADER = (
    "| part | attempts | failures | minutes | when, commit | details |",
    "|---|---|---|---|---|---|",
)
PAGE = """# Reliability

`make torture` kills runs, passes bad values, trains on environments that misbehave, damages run
folders and disks, and watches memory. Every attempt has to end as documented: results with the bits
of an undisturbed run, or an error in one sentence; no code of a run folder is executed, nothing
outside of the folder changes, nothing hangs and nothing is left behind. What each part does is in
`tests/torture`. On two cores:

{table}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", choices=PARTS)
    parser.add_argument("--soak", type=float, metavar="MINUTES")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    chosen = options.only or PARTS
    soak = Tally("soak")
    minutes = options.soak or SOAK_MINUTES[options.quick]
    soaking = threading.Thread(target=_soak, args=(soak, 60 * minutes, options))
    if "soak" in chosen:
        soaking.start()  # at low priority, beside the other parts
    tallies = []
    for name in [name for name in chosen if name != "soak"]:
        print(f"{name} …", flush=True)
        tallies.append(tally := Tally(name))
        if name in AMOUNTS:
            _own(tally, AMOUNTS[name][options.quick])
        else:
            _tests(tally, TESTS[name], options.quick)
        _record(tally, options)
    if "soak" in chosen:
        print("soak …", flush=True)
        soaking.join()
        tallies.append(soak)
    print("\n".join([*HEADER, *(_row(tally, options.quick) for tally in tallies)]))
    return int(any(tally.failures for tally in tallies))


def _soak(tally: Tally, seconds: float, options: argparse.Namespace) -> None:
    """Run the part that goes on beside the others, and record it."""
    _own(tally, seconds)
    _record(tally, options)


def _record(tally: Tally, options: argparse.Namespace) -> None:
    """Write a part's row to the page, if one was asked for."""
    if not options.record:
        return
    with _RECORDING:
        rows = _recorded(options.record) | {tally.name: _row(tally, options.quick)}
        table = "\n".join([*HEADER, *(rows[name] for name in PARTS if name in rows)])
        options.record.write_text(PAGE.format(table=table), "utf-8")


def _own(tally: Tally, amount: float) -> None:
    """Run a part in an empty folder."""
    part = __import__(tally.name)
    with tempfile.TemporaryDirectory(prefix="rove-torture-") as folder:
        place = Path(folder) / "place"
        place.mkdir()
        part.run(tally, place, amount)
    tally.took = tally.seconds


def _tests(tally: Tally, paths: list[str], quick: bool) -> None:
    """Run tests, and count them."""
    chosen = ["-m", "not slow"] if quick else []
    command = [PYTHON, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *chosen, *paths]
    ended = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True)
    counts = dict(re.findall(r"(\d+) (passed|failed|errors?)", ended.stdout)[::-1])
    found = {kind: int(count) for count, kind in counts.items()}
    tally.attempts, tally.took = sum(found.values()), tally.seconds
    for line in ended.stdout.splitlines():
        if line.startswith(("FAILED", "ERROR")):
            tally.failed(line)
    if ended.returncode and not tally.failures:
        tally.failed(f"pytest ended with code {ended.returncode}")


def _row(tally: Tally, quick: bool) -> str:
    """Return a part's row of the table."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE
    ).stdout.strip()
    when = f"{datetime.date.today()}, {commit}" + ", quick" * quick
    measured = [f"{tally.attempts:,}", f"{len(tally.failures)}", f"{tally.took / 60:.1f}", when]
    return f"| {' | '.join([tally.name, *measured, '; '.join(tally.notes)])} |"


def _recorded(page: Path) -> dict[str, str]:
    """Return the rows of a page that was written before, by part."""
    lines = page.read_text("utf-8").splitlines() if page.exists() else []
    rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    return {name: row for name, row in rows.items() if name in PARTS}


if __name__ == "__main__":
    sys.exit(main())
