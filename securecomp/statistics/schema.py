"""Schema that the sites agree on before anything is summed: bounds, grids and levels.

All of it is public. What is not declared is taken from the study's data, which shows the largest
absolute value of a column, its number of decimals, or which categories occur at some site; every
result lists what was taken so.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import MAX_BITS, MAX_DECIMALS, FixedPoint, Number, shown
from securecomp.errors import ParameterError, RangeError
from securecomp.statistics.site_table import Level, Table

MAX_LEVELS = 1000
MAX_ROWS = (1 << 31) - 1
"""Rows of one site; public, so that no site's size shows in what is agreed."""
_MAX_DECIMALS = 9
_MANTISSA = 53
Needs = npt.NDArray[np.int64]


STUDY_FILE = "study file"
"""Name of the document that sites in different places agree on."""


@dataclass(frozen=True, slots=True)
class Column:
    """Declared facts about a column; every part is optional and public.

    Attributes:
        bound: Largest absolute value that can occur.
        decimals: Decimals of the values; 0 for integers. Sums are exact.
        bits: Instead of decimals: values are rounded to multiples of 2^-bits.
        levels: All categories that can occur, for grouping.
    """

    bound: Number | None = None
    decimals: int | None = None
    bits: int | None = None
    levels: Sequence[Level] | None = None

    def __post_init__(self) -> None:
        if self.decimals is not None and self.bits is not None:
            raise ParameterError("declare decimals or bits, not both")
        # Building a grid of them checks each for what it is.
        bound = 0 if self.bound is None else self.bound
        FixedPoint.decimal(bound, 0 if self.decimals is None else self.decimals)
        FixedPoint.binary(bound, 0 if self.bits is None else self.bits)
        if self.levels is not None:
            if isinstance(self.levels, str):
                raise ParameterError(f"levels are a list, not one text: {self.levels!r}")
            plain = [v.item() if isinstance(v, np.generic) else v for v in self.levels]
            if any(not isinstance(v, str | int) for v in plain):
                raise ParameterError("levels are text, integers or booleans")
            object.__setattr__(self, "levels", tuple(plain))


@dataclass(slots=True)
class Schema:
    """The agreed facts on the columns that a computation uses.

    Attributes:
        declared: What was declared.
        from_data: Facts that were taken from the data, in words.
        rows: The most rows of a site, where that was declared.
        closed: Name of the document that declares all facts, such as "codebook"; then nothing
            is taken from the data.
    """

    tables: Sequence[Table]
    declared: Mapping[str, Column]
    from_data: dict[str, str] = field(default_factory=dict)
    rows: int | None = None
    closed: str = ""
    _grids: dict[str, FixedPoint] = field(default_factory=dict)
    _levels: dict[str, tuple[Level, ...]] = field(default_factory=dict)

    def grid(self, column: str) -> FixedPoint:
        """Return a numeric column's grid.

        Raises:
            ParameterError: The column is missing or is not numeric at a site.
            RangeError: All values are too small for the finest grid, and no grid is declared.
        """
        if column not in self._grids:
            self._grids[column] = self._agree_grid(column)
        return self._grids[column]

    def most_rows(self) -> int:
        """Return the most rows of a site: at least 1.

        A site that shares rows fills up to so many, so that its own number does not show.

        Raises:
            RangeError: A site has more rows than was declared.
        """
        if self.rows is None:
            if self.closed == STUDY_FILE:
                raise ParameterError(f"the {self.closed} declares no rows; add them, and sign it")
            most = max(1, *(table.rows for table in self.tables))
            self.from_data["most rows of a site"] = f"{most:,}"
            return most
        for table in self.tables:
            if table.rows > self.rows:
                raise RangeError(
                    f"{table.source}: more rows than the {self.rows:,} that were declared for a "
                    "site; declare more"
                )
        return self.rows

    def levels(self, column: str) -> tuple[Level, ...]:
        """Return a categorical column's levels, in order.

        Raises:
            ParameterError: The column is missing, has no levels, too many, or two that look alike.
        """
        if column not in self._levels:
            levels = self._agree_levels(column)
            self._check_alike(column, levels)
            self._levels[column] = levels
        return self._levels[column]

    def is_text(self, column: str) -> bool:
        """Return whether a column is categorical by itself: text at a site, or declared as text.

        A site where it has no values, or where there are no rows, has no say.

        Raises:
            ParameterError: The column is missing at a site.
        """
        declared = self.declared.get(column, Column()).levels or ()
        if self.closed == STUDY_FILE:  # the tables of the other sites are elsewhere
            return any(isinstance(level, str) for level in declared)
        found = [table.is_text(column) for table in self.tables]
        return any(found) or any(isinstance(level, str) for level in declared)

    def _agree_grid(self, column: str) -> FixedPoint:
        declared = self.declared.get(column, Column())
        bound, decimals, bits = declared.bound, declared.decimals, declared.bits
        parts = [table.numbers(column) for table in self.tables]
        if bound is None:
            self._refuse_if_closed(column, "numbers")
            bound = max((_largest(p.present()) for p in parts), default=0)
            self.from_data[f"bound of {column}"] = shown(bound)
        if decimals is None and bits is None and self.closed == STUDY_FILE:
            self._refuse_if_closed(column, "decimals or bits")
        if decimals is None and bits is None:
            decimals, bits = self._finest(column)
            whole = decimals == 0 or bits == 0
            step = f"multiples of 2^-{bits}" if decimals is None else f"{decimals} decimals"
            self.from_data[f"grid of {column}"] = "integers" if whole else step
        try:
            if bits is not None:
                return FixedPoint.binary(bound, bits)
            return FixedPoint.decimal(bound, decimals or 0)
        except ParameterError as error:
            raise ParameterError(f"column {column!r}: {error}") from None

    def _finest(self, column: str) -> tuple[int | None, int | None]:
        """Return the decimals that hold every value, or else the bits; the other is None.

        The finest value decides, and not the widest: totals of any width are exact, and one wide
        value takes no digit from the others.

        Raises:
            RangeError: No grid holds a value; it names the row.
        """
        parts = [table.numbers(column).values for table in self.tables]
        found = [decimals_of(values) for values in parts]
        if None not in found:
            return max((d for d in found if d is not None), default=0), None
        # A decimal such as 0.1 is on no binary grid. A float beside one is what it prints as.
        cells = (v for values in parts if values.dtype.kind == "O" for v in values)
        written = any(isinstance(v, Decimal) and _own_decimals(v) for v in cells)
        finest, most = (_decimals, MAX_DECIMALS) if written else (_bits, MAX_BITS)
        largest = 0
        for table, values in zip(self.tables, parts, strict=True):
            needs = finest(values)
            beyond = needs > most
            if beyond.any():
                step = f"{most} decimals" if written else f"multiples of 2^-{most}"
                raise RangeError(
                    f"{table.where(column)}: row {table.row(beyond)} has more digits than the "
                    f"finest grid, of {step}, holds; multiply the column by a power of ten at all "
                    "sites, or declare bits to have it rounded"
                )
            largest = max(largest, int(needs.max(initial=0)))
        return (largest, None) if written else (None, largest)

    def _agree_levels(self, column: str) -> tuple[Level, ...]:
        declared = self.declared.get(column, Column()).levels
        if declared is None:
            self._refuse_if_closed(column, "levels")
            return self._levels_of_data(column)
        levels = tuple(declared)
        if not levels or len(set(levels)) != len(levels):
            twice = ": one is there twice" if levels else ""
            raise ParameterError(
                f"column {column!r}: the declared levels must be distinct, not none{twice}"
            )
        return levels

    def _refuse_if_closed(self, column: str, what: str) -> None:
        if self.closed:
            raise ParameterError(
                f"column {column!r}: the {self.closed} declares no {what} for it; add them, and "
                "sign it"
            )

    def _check_alike(self, column: str, levels: tuple[Level, ...]) -> None:
        """Refuse two texts that people take for one; they would be two groups."""
        seen: dict[str, str] = {}
        for level in levels:
            if not isinstance(level, str):
                continue
            other = seen.setdefault(unicodedata.normalize("NFC", level).strip(), level)
            if other != level:
                one, two = (f"{text!r} ({self._holder(column, text)})" for text in (other, level))
                raise ParameterError(
                    f"column {column!r}: {one} and {two} differ only in white space or in how "
                    "Unicode writes an accent; agree on one of them"
                )

    def _holder(self, column: str, level: str) -> str:
        """Name the first site that has a level."""
        having = (t.source for t in self.tables if level in t.categories(column).present)
        return next(having, "declared")

    def _levels_of_data(self, column: str) -> tuple[Level, ...]:
        found: set[Level] = set()
        kinds: dict[type, str] = {}  # True and 1 are one element of a set
        for table in self.tables:
            categories = table.categories(column)
            found.update(categories.present)
            for level in categories.present:
                kinds.setdefault(type(level), table.source)
        if len(kinds) > 1:
            coded = sorted((kind.__name__, source) for kind, source in kinds.items())
            names = " and ".join(kind for kind, _ in coded)
            where = ", ".join(f"{kind} in {source}" for kind, source in coded)
            raise ParameterError(
                f"column {column!r} is coded as {names} at different sites ({where}); agree on one "
                "coding"
            )
        if len(found) > MAX_LEVELS:
            raise ParameterError(
                f"column {column!r} has {len(found)} different values, which is no grouping; use "
                "a histogram, or declare its levels"
            )
        ordered = self._levels_of_types(column)
        if ordered is not None and found <= set(ordered):
            return ordered  # the data frame's own declaration, say an Enum's
        if not found:
            raise ParameterError(f"column {column!r} has no values at any site; declare its levels")
        levels = tuple(sorted(found))
        self.from_data[f"levels of {column}"] = ", ".join(map(str, levels))
        return levels

    def _levels_of_types(self, column: str) -> tuple[Level, ...] | None:
        """Return the levels that data frames' own types declare, ordered; None if none does.

        Raises:
            ParameterError: Two sites' types declare others, or another order: which level is the
                first, with which others are compared, must not depend on who is asked first.
        """
        found: dict[tuple[Level, ...], list[str]] = {}
        for table in self.tables:
            declared = table.categories(column).declared
            if declared:
                found.setdefault(declared, []).append(table.source)
        if len(found) > 1:
            sides = " and ".join(", ".join(sources) for sources in found.values())
            order = len({frozenset(levels) for levels in found}) == 1
            raise ParameterError(
                f"column {column!r}: the ordered categories of {sides} differ"
                f"{' in their order' if order else ''}; give all sites the same in the same order, "
                "or declare the column's levels (--levels)"
            )
        return next(iter(found), None)


def _largest(values: Any) -> Number:
    if len(values) == 0:
        return 0
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        if values.dtype.kind == "f":
            # An infinite value would be a useless bound; `encode` names its place.
            values = values[np.isfinite(values)]
            return float(np.abs(values).max()) if len(values) else 0
        return max(abs(int(values.max())), abs(int(values.min())))
    # `abs` of a decimal would round it to the digits of the thread's context.
    finite = [
        v.copy_abs() if isinstance(v, Decimal) else abs(v)
        for v in values
        if not isinstance(v, float | Decimal) or _is_finite(v)
    ]
    return max(finite, default=0)


def _is_finite(value: float | Decimal) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else bool(np.isfinite(value))


def decimals_of(values: Any) -> int | None:
    """Return the fewest decimals that hold every value exactly; None if 9 are too few."""
    if len(values) == 0:
        return 0
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return 0
    for decimals in range(_MAX_DECIMALS + 1):
        try:
            FixedPoint.decimal(_largest(values), decimals).encode(values)
        except RangeError:
            continue
        return decimals
    return None


def _bits(values: Any) -> Needs:
    """Return for each number the fewest bits after the point that hold it exactly."""
    if values.dtype.kind == "f":
        finite = np.where(np.isfinite(values), values, 0)
        fractions, exponents = np.frexp(finite)
        mantissas = np.ldexp(fractions, _MANTISSA).astype(np.int64)
        lowest = mantissas & -mantissas
        zeros = np.frexp(lowest.astype(np.float64))[1] - 1
        return np.where(mantissas == 0, 0, np.maximum(0, _MANTISSA - exponents - zeros))
    ratios = (
        v.as_integer_ratio() if isinstance(v, float) and _is_finite(v) else (0, 1) for v in values
    )
    return np.array([below.bit_length() - 1 for _, below in ratios], np.int64)


def _decimals(values: Any) -> Needs:
    """Return for each number the fewest decimals that hold it, a float as it prints."""
    return np.array([_own_decimals(v) for v in values.tolist()], np.int64)


def _own_decimals(value: Any) -> int:
    if not isinstance(value, float | Decimal) or not _is_finite(value):
        return 0
    _, digits, exponent = (Decimal(repr(value)) if isinstance(value, float) else value).as_tuple()
    zeros = next((i for i, digit in enumerate(reversed(digits)) if digit), len(digits))
    return max(0, -int(exponent) - zeros) if any(digits) else 0
