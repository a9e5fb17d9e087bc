"""A first codebook, proposed from one site's data for a person to complete.

It shows of the data what a codebook must say: levels, ranges that are rounded outwards, decimals,
and numbers that look like codes for missing. Nothing else.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.statistics.codebook.entries import Entry
from securecomp.statistics.codebook.findings import suspicious
from securecomp.statistics.schema import decimals_of
from securecomp.statistics.site_table import Level, Table

_FEW = 10  # distinct whole numbers that are rather levels
_LEVELS = 50
_DIGITS = 2


def draft(table: Table) -> tuple[dict[str, Entry], tuple[str, ...]]:
    """Return an entry for each column, and the columns that identify a row.

    Raises:
        ParameterError: There are no columns, or no rows.
    """
    if not table.columns or not table.rows:
        raise ParameterError(f"{table.source}: a codebook is drafted from rows; there are none")
    entries = {name: _entry(table, name) for name in table.columns}
    named = [name for name, entry in entries.items() if entry.kind == "identifier"]
    unique = [name for name in named if len(set(table.keys([name]))) == table.rows]
    return entries, tuple(unique[:1])


def _entry(table: Table, name: str) -> Entry:
    if table.not_numbers(name).any():
        return _of_levels(table, name)
    values = table.numbers(name).present()
    if values.dtype.kind == "b" or (len(values) and all(isinstance(v, bool) for v in values)):
        return _of_levels(table, name)
    codes = suspicious(values)
    kept = values[~np.isin(values.astype(np.float64), codes)] if codes else values
    distinct = np.unique(kept.astype(np.float64))
    whole = bool((distinct == np.floor(distinct)).all())
    if whole and len(kept) == table.rows == len(distinct) > _FEW and _named_as_key(name):
        return Entry("identifier")
    if whole and 0 < len(distinct) <= _FEW:
        levels = {str(int(level)): "" for level in distinct}
        return Entry("category", levels=levels, missing=tuple(codes))
    low, high = _range(kept)
    return Entry(
        "number",
        lower=low,
        upper=high,
        decimals=decimals_of(kept) or 0,
        missing=tuple(codes),
    )


def _of_levels(table: Table, name: str) -> Entry:
    try:
        present: Sequence[Level] = table.categories(name).present
    except ParameterError:
        return Entry("identifier")  # dates and the like; a person decides
    if not 0 < len(present) <= min(_LEVELS, max(1, table.rows // 2)):
        return Entry("identifier")
    written = sorted(
        str(level).lower() if isinstance(level, bool) else str(level) for level in present
    )
    return Entry("category", levels=dict.fromkeys(written, ""))


def _named_as_key(name: str) -> bool:
    words = name.lower().replace("-", "_").split("_")
    return any(
        word in ("id", "key", "number", "no", "mrn", "rownames", "patient") for word in words
    )


def _range(values: npt.NDArray[np.float64]) -> tuple[int | float, int | float]:
    """Return the least and the greatest value, rounded outwards to two digits."""
    if not len(values):
        return 0, 0
    low, high = (Decimal(str(v)) for v in (min(values.tolist()), max(values.tolist())))
    return _rounded(low, ROUND_FLOOR), _rounded(high, ROUND_CEILING)


def _rounded(value: Decimal, way: str) -> int | float:
    if not value.is_finite():
        raise ParameterError("a column holds an infinite number; correct it")
    if value == 0:
        return 0
    step = Decimal(1).scaleb(value.adjusted() - _DIGITS + 1)
    number = float((value / step).to_integral_value(rounding=way) * step)
    return int(number) if math.isclose(number, round(number), abs_tol=0) else number
