"""Cells as they come from data frames: empty, numbers, codes for missing, or something else."""

import re
import unicodedata
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LARGEST = 330
"""No code for missing has more digits before its point: no float has."""
COMMA = re.compile(r"[+-]?\d+,\d+")


class Codes:
    """Texts and numbers that mean that there is no value."""

    def __init__(self, codes: Sequence[str | int | float]) -> None:
        self.texts = {str(code).strip() for code in codes}
        written = (str(code).strip() for code in codes)
        numbers = [Decimal(text) for text in written if _NUMBER.fullmatch(text)]
        # An integer of a longer one would be written out in full.
        self.numbers = [n for n in numbers if abs(n.adjusted()) <= _LARGEST]

    def __contains__(self, cell: Any) -> bool:
        if isinstance(cell, str):
            return cell.strip() in self.texts
        if isinstance(cell, int | float | Decimal | np.number) and not isinstance(cell, bool):
            return any(cell == _alike(code, cell) for code in self.numbers)
        return False

    def among(self, values: npt.NDArray[Any]) -> Mask:
        """Return which of some numbers are such codes."""
        if values.dtype == object:
            return np.array([value in self for value in values], bool)
        found = np.zeros(len(values), bool)
        for code in self.numbers:
            found |= values == (int(code) if code == int(code) else float(code))
        return found


def _alike(code: Decimal, cell: Any) -> Any:
    """Return a code as a number of a cell's kind: 0.1 is one float, and another decimal."""
    return code if isinstance(cell, Decimal) or code == int(code) else float(code)


NO_CODES = Codes(())


class NotANumber:
    """Stands for a cell that is neither a number nor empty."""


NOT_A_NUMBER = NotANumber()


def as_number(cell: Any, codes: Codes) -> Any:
    """Return a number, None for an empty cell, or `NOT_A_NUMBER`."""
    if is_missing(cell) or cell in codes:
        return None
    if isinstance(cell, str) and codes.texts and _NUMBER.fullmatch(cell.strip()):
        return Decimal(cell.strip())
    number = isinstance(cell, int | float | Decimal | np.number | np.bool_)
    return cell if number else NOT_A_NUMBER


def comparable(cell: Any) -> Hashable:
    """Return a cell so that what people take for the same is equal."""
    if isinstance(cell, str):
        return unicodedata.normalize("NFC", cell).strip() or None
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    return None if cell is None else str(cell)


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_missing(cell: Any) -> bool:
    """Return whether a cell is empty or NaN, in any library's way."""
    if type(cell).__name__ in ("NAType", "NaTType"):  # pandas', which may not be installed
        return True
    if isinstance(cell, Decimal):
        return cell.is_nan()  # a signalling NaN cannot be compared
    return cell is None or (isinstance(cell, float | np.floating) and cell != cell)
