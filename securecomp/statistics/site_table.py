"""One site's data, as numbers and categories with their missing cells marked.

Data frames of pandas, polars and pyarrow come in through narwhals. Nothing here leaves the site.
Errors name site, column and row, never a value. A row is counted from 1, without a header.
"""

import copy
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from securecomp.errors import ParameterError, brief
from securecomp.statistics.cell_values import (
    COMMA,
    NO_CODES,
    NOT_A_NUMBER,
    Codes,
    Mask,
    as_number,
    comparable,
    is_missing,
    is_number,
)

Level = str | int | bool


def check_column(what: str, name: Any) -> None:
    """Refuse what is no column's name.

    Raises:
        ParameterError: It says for what.
    """
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise ParameterError(f"{what} is a column's name, not {brief(repr(name))}")


@dataclass(frozen=True, slots=True)
class Numbers:
    """A numeric column.

    Attributes:
        values: Numbers, shape (rows,); zero where missing. Objects for decimals.
        missing: Where a cell is empty or NaN.
    """

    values: npt.NDArray[Any]
    missing: Mask

    def present(self) -> npt.NDArray[Any]:
        """Return the values that are there."""
        return self.values[~self.missing] if self.missing.any() else self.values


@dataclass(frozen=True, slots=True)
class Categories:
    """A categorical column.

    Attributes:
        present: The distinct values.
        codes: For each row, its index in `present`, -1 where missing.
        declared: The levels that the data frame's own type declares, if it does.
    """

    present: tuple[Level, ...]
    codes: npt.NDArray[np.int64]
    declared: tuple[Level, ...] | None


class Table:
    """One site's rows."""

    def __init__(
        self,
        site: str,
        frame: Any,
        source: str | None = None,
        missing: Mapping[str, Sequence[str | int | float]] | None = None,
        optional: Collection[str] = (),
    ) -> None:
        """Take a data frame of any library that narwhals knows.

        Args:
            site: The site's name.
            frame: Its rows.
            source: What an error calls the site's data, say a file; by default the site.
            missing: Column to texts and numbers that mean that a cell is empty.
            optional: Columns of which all cells are empty where they are not there.

        Raises:
            ParameterError: Not a data frame, or two columns of the same name.
        """
        self.site = site
        self.source = source or site
        if hasattr(frame, "collect") and hasattr(frame, "explain"):
            raise ParameterError(
                f"{self.source}: expected a pandas, polars or pyarrow data frame, got "
                f"{type(frame).__name__}; collect() it"
            )
        names = [str(n) for n in getattr(frame, "column_names", getattr(frame, "columns", ()))]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ParameterError(
                f"{self.source}: two columns are named {', '.join(twice)}; rename one"
            )
        try:
            self._frame = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise ParameterError(
                f"{self.source}: expected a pandas, polars or pyarrow data frame, got "
                f"{type(frame).__name__}"
            ) from None
        except (ValueError, nw.exceptions.NarwhalsError) as error:
            raise ParameterError(f"{self.source}: {error}") from None
        self.rows: int = self._frame.shape[0]
        self._origins = np.arange(1, self.rows + 1)
        self._codes = {name: Codes(codes) for name, codes in (missing or {}).items()}
        self._optional = set(optional) - set(self._frame.columns)
        self._places = {name: i for i, name in enumerate(self._frame.columns)}
        self._numbers: dict[str, Numbers] = {}
        self._categories: dict[str, Categories] = {}
        self._text: dict[str, bool] = {}

    def kept(self, rows: Mask) -> "Table":
        """Return the same table with some of its rows only; errors number them as they were."""
        other = copy.copy(self)
        if self.rows:  # narwhals takes an empty list for no condition at all
            other._frame = self._frame.filter(rows.tolist())
        other.rows = int(rows.sum())
        other._origins = self._origins[rows]
        other._numbers, other._categories, other._text = {}, {}, {}
        return other

    def moved(self, column: str, values: npt.NDArray[Any]) -> "Table":
        """Return the same table with other values in a numeric column."""
        other = copy.copy(self)
        other._numbers = {**self._numbers, column: Numbers(values, self.missing(column, True))}
        return other

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return list(self._places)

    def row(self, place: Any) -> int:
        """Return the number by which the site knows the row at a place, or at the first of some.

        Args:
            place: Counted from 0, or a mask.
        """
        return int(self._origins[np.argmax(place) if np.ndim(place) else place])

    def where(self, column: str) -> str:
        """Return the words that name a column of this site in an error."""
        return f"{self.source}: column {column!r}"

    def numbers(self, column: str) -> Numbers:
        """Return a numeric column.

        Raises:
            ParameterError: There is no such column, or it holds something else than numbers.
        """
        if column not in self._numbers:
            self._numbers[column] = self._read_numbers(column)
        return self._numbers[column]

    def categories(self, column: str) -> Categories:
        """Return a categorical column.

        Raises:
            ParameterError: There is no such column, or its values cannot be categories.
        """
        if column not in self._categories:
            self._categories[column] = self._read_categories(column)
        return self._categories[column]

    def is_text(self, column: str) -> bool:
        """Return whether a column is categories by its type, or has a text that is no number.

        A column without values is no text, whatever its type: what wrote it had nothing to go by.

        Raises:
            ParameterError: There is no such column.
        """
        if column not in self._text:
            self._text[column] = column not in self._optional and self._is_text(column)
        return self._text[column]

    def _is_text(self, column: str) -> bool:
        series = self._series(column)
        dtype = series.dtype
        if dtype == nw.Enum or dtype == nw.Categorical:
            return True
        if dtype != nw.String and dtype != nw.Object:
            return False
        codes = self._codes.get(column, NO_CODES)
        return any(
            isinstance(cell, str) and as_number(cell, codes) is NOT_A_NUMBER
            for cell in series.to_list()
        )

    def missing(self, column: str, numeric: bool) -> Mask:
        """Return where a column has no value."""
        if numeric:
            return self.numbers(column).missing
        return self.categories(column).codes < 0

    def not_numbers(self, column: str) -> Mask:
        """Return where a column has something else than a number, and is not empty either."""
        series = self._series(column)
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            return np.zeros(self.rows, bool)
        return np.array([v is NOT_A_NUMBER for v in self._as_numbers(column, series)], bool)

    def has_dates(self, column: str) -> bool:
        """Whether a column is one of dates or times."""
        series = self._series(column)
        cells = (c for c in series.to_list() if not is_missing(c))
        return bool(series.dtype.is_temporal()) or isinstance(next(cells, None), date)

    def keys(self, columns: Sequence[str]) -> list[Hashable]:
        """Return what some columns have in each row, together; None if a cell is empty.

        Texts are compared without the white space around them, and numbers as they are written.
        """
        found = [[comparable(cell) for cell in cells] for cells in self._cells(columns)]
        return [None if None in key else key for key in zip(*found, strict=True)]

    def cells(self, columns: Sequence[str]) -> list[Hashable]:
        """Return what some columns have in each row, together."""
        return [tuple(map(comparable, row)) for row in zip(*self._cells(columns), strict=True)]

    def _cells(self, columns: Sequence[str]) -> list[list[Any]]:
        found = []
        for column in columns:
            codes = self._codes.get(column, NO_CODES)
            cells = self._series(column).to_list()
            found.append([None if is_missing(c) or c in codes else c for c in cells])
        return found

    def distinct(self, column: str) -> Any:
        """Return a column as arrow's dictionary array: its distinct cells, and which a row has.

        Raises:
            ParameterError: There is no such column, or its cells are of several kinds.
        """
        series = self._series(column)
        try:
            cells = pa.chunked_array([series.to_arrow()]).combine_chunks()
            objects = series.to_list() if series.dtype == nw.Object else ()
            # Of a date and time among dates, arrow drops the time.
            if pa.types.is_date(cells.type) and any(isinstance(o, datetime) for o in objects):
                raise TypeError
            if pa.types.is_dictionary(cells.type):
                cells = cells.dictionary_decode()
            return cells.dictionary_encode()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise ParameterError(
                f"{self.where(column)}: its values are of several kinds; categories are all text "
                "or all integers"
            ) from None

    def check_column(self, column: str) -> None:
        """Refuse a column that is not there.

        Raises:
            ParameterError: It names those that are.
        """
        if column not in self._places:
            known = ", ".join(map(_listed, self.columns[:20])) or "none"
            raise ParameterError(
                f"{self.source}: there is no column {brief(repr(column))}; it has: {known}"
            )

    def _series(self, column: str) -> Any:
        self.check_column(column)
        return self._frame.get_column(column)

    def _read_numbers(self, column: str) -> Numbers:
        if column in self._optional:
            return Numbers(np.zeros(self.rows, np.int64), np.ones(self.rows, bool))
        found = self._read_all_numbers(column)
        codes = self._codes.get(column, NO_CODES)
        if not codes.numbers or found.values.dtype.kind == "b":
            return found
        empty = found.missing | codes.among(found.values)
        values = found.values.copy()
        values[empty] = 0
        return Numbers(values, empty)

    def _read_all_numbers(self, column: str) -> Numbers:
        series = self._series(column)
        dtype = series.dtype
        if self.rows == 0:
            return Numbers(np.zeros(0, np.int64), np.zeros(0, bool))
        machine = dtype.is_numeric() and not dtype.is_decimal()
        if dtype == nw.Boolean or (machine and dtype not in (nw.Int128, nw.UInt128)):
            missing = np.asarray(series.is_null().to_numpy(), bool)
            if dtype.is_float():
                missing = missing | np.asarray(series.is_nan().fill_null(True).to_numpy(), bool)
            filled = (
                series.fill_null(False if dtype == nw.Boolean else 0) if missing.any() else series
            )
            values = np.asarray(filled.to_numpy())
            if values.dtype.kind == "f":
                # Of narrower floats the exact value counts, not the decimal that they print as.
                values = np.where(missing, 0, values.astype(np.float64))
            return Numbers(values, missing)
        return self._from_cells(column, self._as_numbers(column, series), series)

    def _as_numbers(self, column: str, series: Any) -> list[Any]:
        """Return cells: numbers, None for empty ones, and `NOT_A_NUMBER`.

        Where a text means that a cell is empty, the others of its column are read as numbers: a
        file's column with a dot for an empty cell is all texts.
        """
        codes = self._codes.get(column, NO_CODES)
        return [as_number(cell, codes) for cell in series.to_list()]

    def _from_cells(self, column: str, cells: Sequence[Any], series: Any) -> Numbers:
        missing = np.array([is_missing(cell) for cell in cells], bool)
        values = np.empty(len(cells), object)
        for row, cell in enumerate(cells):
            if missing[row]:
                values[row] = 0
            elif isinstance(cell, int | float | Decimal | np.number | np.bool_):
                values[row] = cell
            else:
                codes = self._codes.get(column, NO_CODES)
                given = [None if cell in codes else cell for cell in series.to_list()]
                raise self._not_a_number(column, given, row)
        return Numbers(values, missing)

    def _not_a_number(self, column: str, cells: Sequence[Any], row: int) -> ParameterError:
        kind, hint = type(cells[row]).__name__, ""
        if isinstance(cells[row], str):
            # In a file's column one text makes text of all cells: name the one that did.
            texts = [cell if isinstance(cell, str) else "" for cell in cells]
            row = next((i for i, t in enumerate(texts) if t and not is_number(t)), row)
            kind = "text"
            if COMMA.fullmatch(texts[row].strip()):
                hint = "; if a comma is the decimal mark, say so with --decimal-comma"
        return ParameterError(
            f"{self.where(column)}: row {self.row(row)} is {kind} and not a number; correct it, "
            f"or leave the cell empty and choose to drop missing values{hint}"
        )

    def _read_categories(self, column: str) -> Categories:
        if column in self._optional:
            return Categories((), np.full(self.rows, -1, np.int64), None)
        mean_missing = self._codes.get(column, NO_CODES)
        series = self._series(column)
        dtype = series.dtype
        declared: tuple[Level, ...] | None = None
        if dtype == nw.Enum or dtype == nw.Categorical:
            declared = tuple(dtype.categories) if isinstance(dtype, nw.Enum) else None
        if self.rows == 0:
            return Categories((), np.zeros(0, np.int64), declared)
        encoded = self.distinct(column)
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        positions: dict[Level, int] = {}
        index = np.full(len(encoded.dictionary) + 1, -1, np.int64)  # the last one: missing
        first = np.zeros(len(index), np.int64)
        first[codes[::-1]] = np.arange(self.rows)[::-1]  # the first row of each value stays
        for code, cell in enumerate(encoded.dictionary.to_pylist()):
            if not is_missing(cell) and cell not in mean_missing:
                level = self._level(column, int(first[code]), cell)
                index[code] = positions.setdefault(level, len(positions))
        return Categories(tuple(positions), index[codes], declared)

    def _level(self, column: str, row: int, cell: Any) -> Level:
        if isinstance(cell, np.generic):
            cell = cell.item()
        if isinstance(cell, str | int):
            return cell
        if isinstance(cell, float | Decimal) and np.isfinite(float(cell)) and cell == int(cell):
            return int(cell)  # a column of integers with an empty cell is often read as floats
        raise ParameterError(
            f"{self.where(column)}: row {self.row(row)} cannot be a category; group by text or "
            "integers, or use a histogram"
        )


def _listed(name: Any) -> str:
    return str(name) if str(name) == str(name).strip() else repr(name)
