"""Tables as files."""

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rove.training.checkpoint import publish


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def publish_text(path: Path, text: str) -> None:
    """Compressed, if its name ends in .gz; the same text gives the same bytes."""
    told = text.encode()
    publish(path, gzip.compress(told, mtime=0) if path.suffix == ".gz" else told)
