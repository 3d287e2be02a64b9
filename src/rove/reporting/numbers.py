"""Numbers for the page: few digits, and strings for numbers that JSON cannot represent."""

import math
from typing import Any

import numpy as np

DIGITS = 4


def number(value: Any, digits: int = DIGITS) -> int | float | str | None:
    """Round to some significant digits. NaN becomes None and infinity becomes "inf"."""
    value = float(value)
    if not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def plain(value: Any) -> Any:
    """Replace the numbers that JSON cannot represent by strings, at any depth."""
    if isinstance(value, dict):
        return {str(name): plain(child) for name, child in value.items()}
    if isinstance(value, list):
        return [plain(child) for child in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def numbers(values: np.ndarray, digits: int = DIGITS) -> list[Any]:
    """Convert an array of any shape to nested lists of rounded numbers."""
    if values.ndim == 1:
        return [number(value, digits) for value in values.tolist()]
    return [numbers(row, digits) for row in values]
