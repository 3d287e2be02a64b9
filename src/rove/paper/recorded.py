"""Reading the data files of experiments, such as those in docs/data, to redraw figures."""

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np

Rows = list[dict[str, str]]


def read(path: str | Path) -> Rows:
    """Read a CSV table, which may be compressed by gzip."""
    path = Path(path)
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        return list(csv.DictReader(file))


def grouped(rows: Rows, *columns: str) -> dict[tuple[str, ...], Rows]:
    """Group rows by the values of some columns."""
    groups: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def numbers(rows: Sequence[dict[str, str]], column: str) -> np.ndarray:
    """Return a column as numbers."""
    return np.array([float(row[column]) for row in rows])


def by_seed(rows: Rows, column: str) -> np.ndarray:
    """Return a column as numbers, of shape [seeds, rows of a seed]."""
    seeds = grouped(rows, "seed")
    return np.array([numbers(seeds[seed], column) for seed in sorted(seeds, key=_number)])


def _number(key: tuple[str, ...]) -> int:
    return int(key[0])
