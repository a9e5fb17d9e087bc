"""Columns that single people out: the part of each, and the smallest sets that suffice.

Source: Elliot, Manning, Ford, "A computational algorithm for handling the special uniques problem"
(Int. J. of Uncertainty, Fuzziness and Knowledge-Based Systems 10(5), 2002). A record that is
unique by a few columns is at more risk than one that needs all of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from securecomp.audit.reidentification.equivalence import Groups
from securecomp.errors import ParameterError

MOST_SETS = 5000
"""Most sets of columns that are tried."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """The part of one column in singling people out.

    Attributes:
        column: Name of the column.
        values: Number of its distinct values, not counting empty cells.
        empty: Number of its empty cells.
        by_itself: Number of people alone by this column only.
        without: Number of people alone by all the other columns.
    """

    column: str
    values: int
    empty: int
    by_itself: int
    without: int


@dataclass(frozen=True, slots=True)
class Smallest:
    """A smallest set of columns that singles people out.

    Attributes:
        columns: Names of the columns.
        people: Number of people who are alone by these columns.
        minimal: Number of people who are alone by these, but not by fewer of them.
    """

    columns: tuple[str, ...]
    people: int
    minimal: int


def contributions(groups: Groups) -> tuple[Contribution, ...]:
    """Return the part of each column."""
    return tuple(
        Contribution(
            column.name,
            len(column.values),
            column.empty(),
            groups.count(groups.alone([groups.codes[i]])),
            groups.count(groups.alone([c for j, c in enumerate(groups.codes) if j != i])),
        )
        for i, column in enumerate(groups.columns)
    )


def check_largest(columns: int, largest: int) -> int:
    """Return the largest number of columns in a set.

    Raises:
        ParameterError: Not a positive integer, or there would be too many sets.
    """
    if isinstance(largest, bool) or not isinstance(largest, int) or largest < 1:
        raise ParameterError(f"the largest set must have at least 1 column, not {largest!r}")
    largest = min(largest, columns)
    sets = sum(math.comb(columns, size) for size in range(1, largest + 1))
    if sets > MOST_SETS:
        raise ParameterError(
            f"{columns} columns have {sets:,} sets of at most {largest}, and at most {MOST_SETS:,} "
            "are tried; choose smaller sets, or fewer quasi-identifiers"
        )
    return largest


def smallest_sets(
    groups: Groups, largest: int, report: Callable[[int, int], None]
) -> tuple[tuple[Smallest, ...], np.ndarray]:
    """Find minimal sets of columns that single people out.

    Args:
        groups: The groups of rows.
        largest: Largest number of columns in a set, from `check_largest`.
        report: Called with the number of sets that are done, and of all.

    Returns:
        The sets by which somebody is alone, those with most people first; and for each person the
        number of columns that suffice, or 0 if `largest` do not, shape (people,).
    """
    names = [column.name for column in groups.columns]
    total = sum(math.comb(len(names), size) for size in range(1, largest + 1))
    lone = np.flatnonzero(groups.lone >= 0)  # only these can be alone by fewer columns
    needed = np.zeros(groups.people, np.int64)
    found: list[Smallest] = []
    # One bit for each lone group: there may be thousands of sets and millions of groups.
    before: dict[tuple[int, ...], npt.NDArray[np.uint8]] = {}
    done = 0
    for size in range(1, largest + 1):
        now: dict[tuple[int, ...], npt.NDArray[np.uint8]] = {}
        for chosen in combinations(range(len(names)), size):
            alone = groups.alone([groups.codes[i] for i in chosen])
            minimal = alone[lone]
            for smaller in combinations(chosen, size - 1):
                if smaller in before:
                    minimal &= ~np.unpackbits(before[smaller], count=len(lone)).view(bool)
            if minimal.any():
                there = np.zeros_like(alone)
                there[lone] = minimal
                people = groups.lone[lone[minimal]]
                needed[people[needed[people] == 0]] = size
                columns = tuple(names[i] for i in chosen)
                found.append(Smallest(columns, groups.count(alone), groups.count(there)))
            if size < largest and alone[lone].any():
                now[chosen] = np.packbits(alone[lone])
            done += 1
            report(done, total)
        before = now
    found.sort(key=lambda s: (-s.minimal, len(s.columns)))
    return tuple(found), needed
