"""The claims of the full experiments, as they are committed in docs/data.

`published.write("docs/data")` collects them again after a full run.
"""

import json
from importlib import resources
from pathlib import Path
from typing import Any

from rove.paper.claims import Claim

FILE = "published.json"
FIELDS = ("text", "evidence", "verdict", "p", "p_holm")


def claims(experiment: str) -> list[Claim]:
    """Return the claims of an experiment, as its committed full run judged them."""
    text = (resources.files("rove.paper") / FILE).read_text("utf-8")
    return [Claim(**claim) for claim in json.loads(text).get(experiment, [])]


def collected(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Collect the claims of each experiment from the files NAME-claims.json in a folder."""
    return {
        file.name.removesuffix("-claims.json"): [
            {field: claim.get(field) for field in FIELDS}
            for claim in json.loads(file.read_text("utf-8"))
        ]
        for file in sorted(folder.glob("*-claims.json"))
    }


def write(folder: str | Path) -> None:
    """Write the claims that are collected from a folder to the package."""
    text = json.dumps(collected(Path(folder)), indent=1, ensure_ascii=False)
    (Path(__file__).parent / FILE).write_text(text + "\n", "utf-8")
