"""The campaign against kills, bad values, bad environments and hostile files: `make torture`.

python tests/torture                 about 30 minutes on two cores
python tests/torture --quick         about 5 minutes
python tests/torture --only kills    one part
python tests/torture --record FILE   also writes the table as Markdown

Exits with 1 if anything failed.
"""

import argparse
import datetime
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from campaign import PYTHON, Tally  # noqa: E402

# Attempts: kills, values in Python, mutations of folders, seconds of soaking.
FULL, QUICK = (200, 2000, 300, 600), (16, 300, 40, 60)
TESTS = {
    "environments": ["tests/environments/test_bad_environments.py"],
    "reports in a browser": ["tests/report/test_browser.py"],
    "disk full, read-only, signals": [
        *["tests/runs/test_resume.py", "tests/training/test_processes.py"],
        "tests/training/test_checkpoint.py",
    ],
    "Ray": ["tests/training/test_ray.py"],
}
"""Parts that are tests as well, slow ones included."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    kills, values, files, seconds = QUICK if options.quick else FULL
    own = {"values": values, "files": files, "neighbours": None, "kills": kills, "soak": seconds}
    tallies = []
    for name in (*own, *TESTS):
        if options.only and name not in options.only:
            continue
        print(f"{name} …", flush=True)
        tally = Tally(name)
        if name in own:
            _own(tally, own[name])
        else:
            _tests(tally, TESTS[name], options.quick)
        tally.took = tally.seconds
        tallies.append(tally)
    table = _table(tallies)
    print(table)
    if options.record:
        options.record.write_text(_page(table, options.quick), "utf-8")
    return int(any(tally.failures for tally in tallies))


def _own(tally: Tally, amount: float | None) -> None:
    """Run a part in an empty folder."""
    part = __import__(tally.name)
    with tempfile.TemporaryDirectory(prefix="rove-torture-") as folder:
        place = Path(folder) / "place"
        place.mkdir()
        part.run(tally, place, *([] if amount is None else [amount]))


def _tests(tally: Tally, paths: list[str], quick: bool) -> None:
    """Run tests, and count them."""
    chosen = ["-m", "not slow"] if quick else []
    command = [PYTHON, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *chosen, *paths]
    ended = subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True)
    counts = dict(re.findall(r"(\d+) (passed|failed|errors?)", ended.stdout)[::-1])
    found = {kind: int(count) for count, kind in counts.items()}
    tally.attempts = sum(found.values())
    for line in ended.stdout.splitlines():
        if line.startswith(("FAILED", "ERROR")):
            tally.failed(line)
    if ended.returncode and not tally.failures:
        tally.failed(f"pytest ended with code {ended.returncode}")


def _table(tallies: list[Tally]) -> str:
    lines = ["| what | attempts | failures | minutes |", "|---|---|---|---|"]
    lines += [
        f"| {t.name} | {t.attempts:,} | {len(t.failures)} | {t.took / 60:.1f} |" for t in tallies
    ]
    return "\n".join(lines)


def _page(table: str, quick: bool) -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE
    ).stdout.strip()
    command = "make torture" + " QUICK=1" * quick
    return (
        f"# Torture\n\n`{command}`, {datetime.date.today()}, commit {commit}, two cores. What each "
        f"part does is in `tests/torture`.\n\n{table}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
