"""Writing tables to CSV files."""

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rove.training.checkpoint import publish


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def publish_text(path: Path, text: str) -> None:
    """Write text to a file, compressed if its name ends in .gz.

    The same text always gives the same bytes.
    """
    data = text.encode()
    publish(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
