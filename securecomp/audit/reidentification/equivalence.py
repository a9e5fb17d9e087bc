"""Groups of rows that are alike in some columns, and the number of people in each.

Rows that agree in all quasi-identifiers form a group (an equivalence class). The size of a group
is its number of people, since several rows of one person hide nobody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from securecomp.statistics.cell_values import comparable
from securecomp.statistics.site_table import Table

Codes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_SCATTERED = 4  # codes spread over more places each than this are hashed, not listed
_WIDEST = 1 << 62
_WORK = 3 * 10**8  # most comparisons for the bound with empty cells that fit anything


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column as small integers.

    Attributes:
        name: Name of the column.
        codes: One for each row: 0 for an empty cell, else the value's place in `values` plus 1.
        values: The distinct values. Texts that people read as the same are one value.
    """

    name: str
    codes: Codes
    values: tuple[Any, ...]

    @classmethod
    def of(cls, table: Table, column: str) -> "Coded":
        """Read a column of text, numbers, dates or truth values.

        White space around a text does not count, and a text of white space alone is empty.

        Raises:
            ParameterError: No such column, or cells of several kinds.
        """
        encoded = table.distinct(column)
        known, values = _numbered(encoded.dictionary)
        codes = encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
        return cls(str(column), known[codes], tuple(values))

    def empty(self) -> int:
        """Return the number of empty cells."""
        return int(np.count_nonzero(self.codes == 0))


def _numbered(cells: Any) -> tuple[Codes, list[Any]]:
    """Return the code of each distinct cell, with 0 at the end for null, and the values."""
    known = np.arange(1, len(cells) + 2)
    known[-1] = 0
    if pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
        numbers = cells.to_numpy(zero_copy_only=False)
        there = numbers == numbers  # not NaN
        values, places = np.unique(numbers[there], return_inverse=True)  # minus zero is zero
        known[:-1] = 0
        known[:-1][there] = places + 1
        return known, values.tolist()
    if not _is_text(cells.type):
        # These are distinct already. Some times are finer, and some dates later, than Python's.
        try:
            return known, cells.to_pylist()
        except (OverflowError, ValueError):
            return known, list(cells)
    places_of: dict[Any, int] = {}
    for place, cell in enumerate(cells.to_pylist()):
        alike = comparable(cell)
        known[place] = 0 if alike is None else places_of.setdefault(alike, len(places_of)) + 1
    return known, list(places_of)


def _is_text(kind: Any) -> bool:
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def dense(keys: Codes) -> tuple[Codes, int]:
    """Renumber keys, which are at least 0, from 0 without gaps; return them and their number."""
    if not len(keys):
        return keys, 0
    span = int(keys.max()) + 1
    if span <= _SCATTERED * len(keys) + 1024:
        there = np.zeros(span, bool)
        there[keys] = True
        places = np.cumsum(there) - 1
        return places[keys], int(places[-1]) + 1
    encoded = pa.array(keys).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def joined(parts: Sequence[Codes]) -> tuple[Codes, int]:
    """Return a number for each combination of codes, and the number of combinations."""
    keys, span = np.zeros_like(parts[0]), 1
    for codes in parts:
        width = int(codes.max(initial=0)) + 1
        if span * width >= _WIDEST:
            keys, span = dense(keys)
        keys, span = keys * width + codes, span * width
    return dense(keys)


class Groups:
    """The groups that a table's rows form, and the people in them.

    Attributes:
        columns: The quasi-identifiers.
        rows: Number of rows.
        people: Number of people.
        of_row: Group of each row, shape (rows,).
        person: Person of each row, shape (rows,).
        codes: For each column, the code of each group, shape (groups,).
        sizes: Number of people in each group, shape (groups,).
        pairs: Distinct pairs of group and person, as group * people + person, sorted.
        lone: The person of each group with a single one, else -1; shape (groups,).
    """

    def __init__(self, columns: Sequence[Coded], person: Codes | None) -> None:
        """Form the groups.

        Args:
            columns: At least one column, all of the same rows.
            person: Number of each row's person, from 0 without gaps. None if each row is a person.
        """
        self.columns = tuple(columns)
        self.rows = len(columns[0].codes)
        self.of_row, count = joined([column.codes for column in columns])
        first = np.zeros(count, np.int64)
        first[self.of_row] = np.arange(self.rows)  # any row of the group
        self.codes = [column.codes[first] for column in columns]
        self.person = np.arange(self.rows) if person is None else person
        self.people = int(self.person.max(initial=-1)) + 1
        pairs = self.of_row * self.people + self.person
        self.pairs = np.sort(pairs) if person is None else np.unique(pairs)
        self.sizes = np.bincount(self.pairs // max(1, self.people), minlength=count)
        self.lone = np.where(self.sizes == 1, self.person[first], -1)

    def alone(self, parts: Sequence[Codes]) -> Flags:
        """Return the groups that hold a single person if only these codes of groups are known."""
        keys, count = joined(parts) if parts else (np.zeros_like(self.lone), 1)
        some = np.empty(count, np.int64)
        some[keys] = self.lone  # any of them
        shared = np.zeros(count, bool)
        shared[keys[(self.lone < 0) | (some[keys] != self.lone)]] = True
        return ~shared[keys]

    def count(self, groups: Flags) -> int:
        """Return the number of people alone in one of some groups of one person."""
        found = np.zeros(self.people, bool)
        found[self.lone[groups]] = True
        return int(np.count_nonzero(found))

    def smallest(self) -> Codes:
        """Return the size of each person's smallest group, shape (people,)."""
        sizes = np.full(self.people, self.rows + 1, np.int64)
        np.minimum.at(sizes, self.person, self.sizes[self.of_row])
        return sizes

    def certain(self) -> Flags | None:
        """Return the groups that hold a single person even if an empty cell may be any value.

        None if it would take too long, with many different sets of empty columns.
        """
        alone = self.lone >= 0
        empties = np.column_stack([codes == 0 for codes in self.codes])
        if not empties.any():
            return alone
        pattern, count = joined([codes.astype(np.int64) for codes in empties.T])
        if 2 * count * len(self.lone) > _WORK:
            return None
        members = [np.flatnonzero(pattern == number) for number in range(count)]
        for mine in members:
            for theirs in members:
                ours = mine[alone[mine]]
                if len(ours) and theirs is not mine:
                    alone[ours] = ~self._met(ours, theirs, empties[mine[0]] | empties[theirs[0]])
        return alone

    def _met(self, ours: Codes, theirs: Codes, ignored: Flags) -> Flags:
        """Return the groups that fit another person's group if some columns are ignored."""
        both = np.concatenate([ours, theirs])
        parts = [c[both] for c, out in zip(self.codes, ignored, strict=True) if not out]
        keys, count = joined(parts) if parts else (np.zeros_like(both), 1)
        here, there = keys[: len(ours)], keys[len(ours) :]
        some = np.full(count, -2, np.int64)
        some[there] = self.lone[theirs]
        shared = np.zeros(count, bool)
        lone = self.lone[theirs]
        shared[there[(lone < 0) | (some[there] != lone)]] = True
        met: Flags = shared[here] | ((some[here] != -2) & (some[here] != self.lone[ours]))
        return met

    def together(self) -> int:
        """Return the number of people with rows that nobody else has, if all rows are known."""
        order = np.lexsort((self.of_row, self.person))
        ends = np.cumsum(np.bincount(self.person, minlength=self.people)).tolist()
        data = self.of_row[order].astype(np.int64).tobytes()
        seen: dict[bytes, int] = {}
        start = 0
        for end in ends:
            known = data[8 * start : 8 * end]
            seen[known] = seen.get(known, 0) + 1
            start = end
        return sum(times == 1 for times in seen.values())
