"""The benchmark: python benchmarks/bench.py [PART ...] [--quick].

Each part is merged into the data file when it ends, and the tables and the picture of the
documentation are written from that file. `--write` only writes them.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import contestants
import entries
import page
import picture
import startup
import sweep
from peers import PEERS

ROOT = Path(__file__).resolve().parents[1]
DATA, PICTURE = Path("docs/data/benchmarks.json"), Path("docs/figures/benchmarks.svg")
SCALES = {
    "quick": "6 rounds in place of 30, and the ends of the curves",
    "trial": "2 rounds of a few contestants, to see that everything runs",
}


def interleaved(
    choose: Callable[[str], list[contestants.Entry]], one_by_one: str | None = None
) -> Callable[[str, set[str]], dict[str, Any]]:
    """Return a part that measures contestants side by side.

    With `one_by_one`, a field of entries, only those that share its value are started together:
    all of them at once would not fit in memory.
    """

    def part(scale: str, without: set[str]) -> dict[str, Any]:
        chosen = [entry for entry in choose(scale) if entry.library not in without]
        groups: dict[Any, list[contestants.Entry]] = {}
        for entry in chosen:
            groups.setdefault(getattr(entry, one_by_one) if one_by_one else None, []).append(entry)
        result: dict[str, Any] = {
            "rounds": entries.ROUNDS[scale],
            "rows": [],
            "errors": {},
            "versions": {},
        }
        for group in groups.values():
            rows, errors, versions = contestants.measure(group, result["rounds"])
            result["rows"] += rows
            result["errors"] |= errors
            result["versions"] |= versions
        return result

    return part


def profile(scale: str) -> dict[str, Any]:
    """Where the microseconds of a step go (parts.py)."""
    agents = [] if scale == "full" else ["dqn", "ge"] if scale == "quick" else ["dqn"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "profile.json"
        script = Path(__file__).parent / "parts.py"
        subprocess.run([sys.executable, str(script), *agents, "--json", str(file)], check=True)
        return {"agents": json.loads(file.read_text("utf-8"))}


PARTS: dict[str, Callable[[str, set[str]], dict[str, Any]]] = {
    "peers": interleaved(entries.peers),
    "agents": interleaved(entries.agents),
    "gymnasium": interleaved(entries.gymnasium),
    "seeds": interleaved(entries.seeds),
    "width": interleaved(entries.width, one_by_one="width"),
    "batch": interleaved(entries.batch, one_by_one="batch"),
    "size": interleaved(entries.size),
    "profile": lambda scale, without: profile(scale),
    "start": lambda scale, without: startup.measure(scale),
    "sweep": lambda scale, without: sweep.measure(scale),
}


def about(scale: str) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "scale": scale,
        "cores": contestants.CORES,
        "cpu": contestants.proc("cpuinfo", "model name"),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }


def write(data: dict[str, Any], out: Path) -> None:
    """Write the pages and the picture from the data."""
    for name in page.PAGES:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(page.filled((ROOT / name).read_text("utf-8"), data), "utf-8")
    picture.draw(data, out / PICTURE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: {', '.join(PARTS)}")
    scales = parser.add_mutually_exclusive_group()
    for scale, text in SCALES.items():
        scales.add_argument(
            f"--{scale}", action="store_const", const=scale, dest="scale", help=text
        )
    parser.add_argument("--missing", action="store_true", help="skip parts that are in the data")
    parser.add_argument("--without", nargs="*", default=[], choices=PEERS, help="leave these out")
    parser.add_argument("--write", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--out", type=Path, default=ROOT, help="where docs/ and README.md are")
    parser.set_defaults(scale="full")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(unknown)}; parts: {', '.join(PARTS)}")
    file = options.out / DATA
    data = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for part in () if options.write else options.parts or PARTS:
        if options.missing and part in data:
            continue
        print(f"{part} ({options.scale})", file=sys.stderr)
        header, began = about(options.scale), time.perf_counter()
        result = PARTS[part](options.scale, set(options.without))
        data[part] = header | {"seconds_taken": time.perf_counter() - began} | result
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
        fresh.replace(file)
        write(data, options.out)
    if options.write:
        write(data, options.out)


if __name__ == "__main__":
    main()
