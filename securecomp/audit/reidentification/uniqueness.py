"""Uniqueness: the number of people who stand alone in a table by a few known columns.

People can be told apart without names: for most, age, sex and a postal code are enough. Columns
that others know, or can find out, are quasi-identifiers (Sweeney, "k-anonymity: a model for
protecting privacy", IJUFKS 10(5), 2002; Samarati, IEEE TKDE 13(6), 2001). The results hold for the
named columns. If an attacker knows a further column, they are too low. A table in which nobody
stands alone can still give people away, by what a group has in common (`diversity`), or together
with other tables. Only differential privacy bounds the risk against everything that an attacker
knows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from securecomp.audit.reidentification.coarsening import coarsenings
from securecomp.audit.reidentification.diversity import diversity
from securecomp.audit.reidentification.equivalence import Coded, Codes, Groups
from securecomp.audit.reidentification.exposure import Exposure
from securecomp.audit.reidentification.population import estimate, size_of
from securecomp.audit.reidentification.singling_out import (
    check_largest,
    contributions,
    smallest_sets,
)
from securecomp.errors import ParameterError, brief
from securecomp.statistics.site_table import Table, check_column

Names = str | Sequence[str]


def uniqueness(
    frame: Any,
    quasi: Names,
    *,
    sensitive: Names = (),
    identifier: str | None = None,
    population: int | None = None,
    fraction: float | None = None,
    minimum: int = 11,
    largest: int = 3,
    source: str = "the rows",
    report: Callable[[int, int], None] | None = None,
) -> Exposure:
    """Measure how well a few columns tell people apart.

    An empty cell counts as a value of its own, since somebody may know that it is empty. The result
    also tells how many people are alone if it may be anything (`alone_certainly`): an attacker who
    knows the true value cannot exclude a row whose cell is empty.

    Args:
        frame: Rows of a pandas, polars or pyarrow data frame. Nothing of them leaves.
        quasi: The columns that an attacker knows of a person.
        sensitive: Columns that nobody should learn. They cannot be among `quasi`.
        identifier: The column that tells whose row it is. Several rows of one person are one
            person, as exposed as in the smallest of their groups. By default each row is a person.
        population: Number of people from whom the rows are a sample.
        fraction: Share of these people in the rows, in place of `population`.
        minimum: Fewest people in a group that is large enough.
        largest: Largest number of columns in the sets that are searched.
        source: Name of the rows in error messages, for example a file.
        report: Called with the amount of work that is done, and of all.

    Raises:
        ParameterError: No rows or columns; a column that is missing, named twice, or of mixed
            kinds; a row without identifier; a population smaller than the sample.
    """
    table = Table(source, frame)
    names, secret = _names("quasi", quasi), _names("sensitive", sensitive)
    _check(table, names, secret, identifier, minimum)
    largest = check_largest(len(names), largest)
    report = report or (lambda _done, _total: None)
    person = None if identifier is None else _people(table, identifier)
    groups = Groups([Coded.of(table, name) for name in names], person)
    size = size_of(groups.people, population, fraction)
    held = [Coded.of(table, name) for name in secret]
    smallest = groups.smallest()
    certain = groups.certain()
    sets, needed = smallest_sets(groups, largest, report)
    alone = groups.lone >= 0
    return Exposure(
        quasi=tuple(column.name for column in groups.columns),
        identifier=None if identifier is None else str(identifier),
        rows=groups.rows,
        people=groups.people,
        groups=len(groups.sizes),
        minimum=minimum,
        spectrum=_spectrum(groups.sizes),
        reach=_spectrum(smallest),
        alone_certainly=None if certain is None else groups.count(certain),
        alone_by_all_rows=groups.together() if groups.people < groups.rows else None,
        rows_alone=np.flatnonzero(alone[groups.of_row]) + 1,
        columns_needed=needed[groups.person[alone[groups.of_row]]],
        empty=sum(column.empty() for column in groups.columns),
        contributions=contributions(groups),
        largest=largest,
        sets=sets,
        needed=tuple(np.bincount(needed[smallest == 1], minlength=largest + 1).tolist()),
        coarsenings=coarsenings(groups, minimum, report),
        diversity=tuple(diversity(groups, column) for column in held),
        population=None if size is None else estimate(groups.sizes, smallest, size),
    )


def _spectrum(sizes: Codes) -> dict[int, int]:
    values, times = np.unique(sizes, return_counts=True)
    return dict(zip(values.tolist(), times.tolist(), strict=True))


def _names(what: str, given: Names) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    for name in names:
        check_column(what, name)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"{what}: column {brief(repr(twice))} is named twice; name it once")
    return names


def _check(
    table: Table, quasi: list[str], sensitive: list[str], identifier: str | None, minimum: int
) -> None:
    if not quasi:
        raise ParameterError(
            "no quasi-identifier is given; name the columns that others may know of a person"
        )
    if identifier is not None:
        check_column("identifier", identifier)
    for name in sensitive:
        if name in quasi:
            raise ParameterError(
                f"column {brief(repr(name))} is both sensitive and a quasi-identifier; an attacker "
                "knows the latter already, so name it once"
            )
    if identifier in quasi or identifier in sensitive:
        raise ParameterError(
            f"column {brief(repr(identifier))} is the identifier, so it cannot be a "
            "quasi-identifier or sensitive too"
        )
    if isinstance(minimum, bool) or not isinstance(minimum, int) or minimum < 2:
        raise ParameterError(f"minimum must be at least 2 people, not {minimum!r}")
    for name in [*quasi, *sensitive, *([] if identifier is None else [identifier])]:
        table.check_column(name)
    if not table.rows:
        raise ParameterError(f"{table.source}: has no rows")


def _people(table: Table, identifier: str) -> Codes:
    """Return the number of each row's person."""
    column = Coded.of(table, identifier)
    if column.empty():
        row = int(np.flatnonzero(column.codes == 0)[0]) + 1
        raise ParameterError(
            f"{table.where(identifier)}: row {row} has no identifier; fill it in, or drop the row"
        )
    return column.codes - 1
