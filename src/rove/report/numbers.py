"""Numbers as the page has them: few digits, and words for what JSON has no number for."""

import math
from typing import Any

import numpy as np

DIGITS = 4


def number(value: Any, digits: int = DIGITS) -> int | float | str | None:
    """A number of so many significant digits; nothing for NaN, "inf" for infinity."""
    value = float(value)
    if not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def plain(value: Any) -> Any:
    """Any JSON, with words for the numbers that JSON does not have."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def numbers(values: np.ndarray, digits: int = DIGITS) -> list[Any]:
    """An array, of any shape, as lists of such numbers."""
    if values.ndim == 1:
        return [number(value, digits) for value in values.tolist()]
    return [numbers(row, digits) for row in values]
