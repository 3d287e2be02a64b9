"""The verdicts of the full experiments, as published in docs/results.

`published.write("docs/data")` collects them again from the claims of the full runs.
"""

import functools
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

FILE = "published.json"


@functools.cache
def verdicts() -> dict[str, dict[str, str]]:
    """Return, for each experiment and claim, the verdict of the full run and its number of seeds:
    "supported, n = 10"."""
    return json.loads((resources.files("rove.paper") / FILE).read_text("utf-8"))


def collected(folder: Path) -> dict[str, dict[str, str]]:
    """Collect the verdicts from the files NAME-claims.json in a folder."""
    files = sorted(folder.glob("*-claims.json"))
    return {
        file.name.removesuffix("-claims.json"): {
            claim["text"]: f"{claim['verdict']}, n = {_seeds(claim)}"
            for claim in json.loads(file.read_text("utf-8"))
        }
        for file in files
    }


def _seeds(claim: dict[str, Any]) -> str:
    """Return the number of seeds that a claim's evidence names."""
    match = re.search(r"n = (\d+)|of (\d+) seeds", claim["evidence"])
    return next(n for n in match.groups() if n) if match else "?"


def write(folder: str | Path) -> None:
    """Write the verdicts that are collected from a folder to the package."""
    text = json.dumps(collected(Path(folder)), indent=1, ensure_ascii=False)
    (Path(__file__).parent / FILE).write_text(text + "\n", "utf-8")
