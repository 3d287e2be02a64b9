"""A sweep of 100 points: how many programs it compiles, and two cores beside one.

Each is a `rove sweep` of its own from start to end, with a cache of programs that is empty before;
what is compared is the time from the first lane's end to the last one's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

POINTS = ["--agent.rho=-10:-1:10", "--agent.sigma=1e-8:1e-1:log10"]
FIXED = ["--seeds", "1", "--confirm-seeds", "0", "--episodes", "100", "--method", "grid"]


def swept(workers: int, folder: Path) -> dict[str, float]:
    """Seconds and lanes between the first lane's end and the last one's; programs compiled."""
    command = [str(Path(sys.executable).parent / "rove"), "sweep", "ge", "chain-10"]
    command += [*POINTS, *FIXED, "--workers", str(workers), "--out", str(folder / "sweep")]
    environment = os.environ | {"ROVE_CACHE": str(folder / "cache")}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    lanes = sorted(f.stat().st_mtime for f in folder.glob("sweep/points/*/lanes/*.safetensors"))
    programs = len(list((folder / "cache").glob("jit_run-*-cache")))
    return {"seconds": lanes[-1] - lanes[0], "lanes": len(lanes) - 1, "programs": programs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            found[f"workers: {workers}"] = swept(workers, Path(folder))
    rates = [each["lanes"] / each["seconds"] for each in found.values()]
    programs = {each["programs"] for each in found.values()}
    print(f"programs for 100 points: {programs}; lanes/s {rates[0]:.2f} and {rates[1]:.2f}")
    print(f"two workers, at least 1.8 times one: {rates[1] / rates[0]:.2f}")
    if options.json:
        about = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "sweep": POINTS + FIXED}
        told = about | found | {"ratio": rates[1] / rates[0]}
        options.json.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
