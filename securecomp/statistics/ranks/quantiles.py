"""Median, quantiles, smallest and largest value over all sites: exact, by a binary search.

The result is the smallest grid value v for which enough rows are at most v. It is found bit by bit,
from the highest: in each step the rows below a candidate are counted.

By shares, rows, candidates and counts stay shared: nothing is opened but the result, and whether a
group has any row. By counts, each step's candidate and count are known: they are sums, so that any
protocol will do, and a reader can see the distribution narrowing towards the result.

Sources: Aggarwal, Mishra, Pinkas, EUROCRYPT 2004 (the k-th ranked element by binary search).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from securecomp.core.fixedpoint import Integers, is_number, shown
from securecomp.errors import ParameterError
from securecomp.mpc import SharedArray, concatenate
from securecomp.show.exhibit import TextTable
from securecomp.show.numbers import show
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import cell_names, group_codes, kept_rows
from securecomp.statistics.ranks.share_engines import Engine, check_engine, computation, padded_rows
from securecomp.statistics.results import Run
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level, Table, check_column

Method = Literal["shares", "counts"]
_MAX_BITS = 58  # of a digit, so that a difference of two fits the field
_MAX_DENOMINATOR = 10**6
_BLOCK = 1 << 18  # comparisons at a time


@dataclass(frozen=True, slots=True)
class Rank:
    """The smallest v with times * (rows at most v) >= of * (rows) + more."""

    of: int
    times: int
    more: int = 0


SMALLEST = Rank(0, 1, 1)
MIDDLE = (Rank(1, 2), Rank(1, 2, 1))
"""Of an even number of rows the middle two, of an odd one the same twice."""


def rank(q: float) -> Rank:
    """Return the rank of a quantile: the element of rank ceil(q n), of 0 the smallest.

    A float stands for the decimal that it is printed as.

    Raises:
        ParameterError: Not a number from 0 to 1 with at most six digits.
    """
    if not is_number(q) or not 0 <= q <= 1:
        raise ParameterError(f"a quantile is a number from 0 to 1, not {q!r}")
    exact = Fraction(str(float(q)))
    if exact.denominator > _MAX_DENOMINATOR:
        raise ParameterError(f"a quantile has at most six decimals, not {q!r}")
    return Rank(exact.numerator, exact.denominator) if exact else SMALLEST


@dataclass(frozen=True, slots=True)
class Ranks(Analysis):
    """Values of some ranks, of all rows or of each group.

    Attributes:
        column: What was asked about.
        by: The column of the groups, or None.
        names: Name of each value: "median", "minimum", "0.25" ...
        groups: The groups' levels; one None if there are no groups.
        values: For each group its values; None for a group without rows.
        method: How it was computed: what was opened differs.
        run: Protocol and cost.
    """

    column: str
    by: str | None
    names: tuple[str, ...]
    groups: tuple[Level | None, ...]
    values: tuple[tuple[float | int | None, ...], ...]
    method: Method
    run: Run

    @property
    def value(self) -> Any:
        """The bare value: a number; a dict by name if several; a dict by group if grouped."""
        each = [v[0] if len(v) == 1 else dict(zip(self.names, v, strict=True)) for v in self.values]
        if self.by is None:
            return each[0]
        groups = [group for group in self.groups if group is not None]
        return dict(zip(groups, each, strict=True))

    @property
    def title(self) -> str:
        """The question in words."""
        by = "" if self.by is None else f", by {self.by}"
        return f"{', '.join(self.names)} of {self.column}{by}"

    def grids(self) -> list[TextTable]:
        """Return one row for each group."""
        header = (self.by or "column", *self.names)
        rows = tuple(
            (self.column if group is None else str(group), *map(show, values))
            for group, values in zip(self.groups, self.values, strict=True)
        )
        return [TextTable("", header, rows)]

    def facts(self) -> dict[str, Any]:
        """Return the values, one object for each group."""
        rows: list[dict[str, Any]] = []
        for group, values in zip(self.groups, self.values, strict=True):
            head = {} if self.by is None else {"group": group}
            rows.append({**head, **dict(zip(self.names, values, strict=True))})
        return {"column": self.column, "by": self.by, "method": self.method, "values": rows}

    def remarks(self) -> list[str]:
        """Return what was opened on the way."""
        if self.method == "shares":
            return ["nothing was opened but these values, and which groups have no rows"]
        return [
            "the counts of rows below each candidate are known to who receives the result; "
            'method="shares" opens the result only'
        ]


def median(
    study: Asks,
    column: str,
    *,
    by: str | None = None,
    method: Method | None = None,
    engine: Engine = "replicated",
) -> Ranks:
    """Find the exact median; of an even number of rows the mean of the middle two.

    Args:
        column: A numeric column.
        by: Categorical column to group by.
        method: "shares" opens the result and nothing else; "counts" works with every sum
            protocol, and opens the number of rows below each candidate on the way. By default
            shares where the study's protocol is sharing among servers.
        engine: Who computes on shares: "replicated", three servers of which no two collude;
            "dealer", two servers and a dealer of random numbers; "mac", the same where a server
            may deviate, which is noticed.

    Raises:
        ParameterError: No such column or choice.
        RangeError: A value is missing or beyond its bound.
    """
    return _ranks(study, column, by, {"median": MIDDLE}, method, engine)


def quantiles(
    study: Asks,
    column: str,
    q: Sequence[float] = (0.25, 0.5, 0.75),
    *,
    by: str | None = None,
    method: Method | None = None,
    engine: Engine = "replicated",
) -> Ranks:
    """Find values of ranks ceil(q n), as numpy's "inverted_cdf"; arguments as `median` has."""
    shares = np.atleast_1d(np.array(q, object)).tolist()
    found = [(rank(share),) for share in shares]
    asked = {shown(abs(float(v))): rank for v, rank in zip(shares, found, strict=True)}
    if not asked or len(asked) < len(found):
        raise ParameterError("ask for at least one quantile, and for each once")
    return _ranks(study, column, by, asked, method, engine)


def extremes(
    study: Asks,
    column: str,
    *,
    by: str | None = None,
    method: Method | None = None,
    engine: Engine = "replicated",
) -> Ranks:
    """Find the smallest and the largest value, which may be one patient's; as `median`."""
    asked = {"minimum": (SMALLEST,), "maximum": (rank(1),)}
    return _ranks(study, column, by, asked, method, engine)


def _ranks(
    study: Asks,
    column: str,
    by: str | None,
    asked: Mapping[str, tuple[Rank, ...]],
    method: Method | None,
    engine: Engine,
) -> Ranks:
    if method is None:
        # Shares are for three servers of their own: who trusts no servers gets counts.
        method = "shares" if study.protocol.computes_on_shares else "counts"
    return find(study.inquiry(), column, by, asked, method, engine)


def find(
    ask: Inquiry,
    column: str,
    by: str | None,
    ranks: Mapping[str, tuple[Rank, ...]],
    method: Method,
    engine: Engine,
) -> Ranks:
    """Find values by their ranks.

    Args:
        ask: The inquiry.
        column: A numeric column.
        by: A categorical column, or None.
        ranks: Name to the rank of a value, or to the two whose mean it is.
        method: "shares" or "counts".
        engine: Who computes on shares.

    Raises:
        ParameterError: No such method, or column.
        RangeError: A value is missing, or the column's grid is too fine for its bound.
    """
    if method not in get_args(Method):
        raise ParameterError(f'method is "shares" or "counts", not {method!r}')
    check_engine(engine)
    check_column("column", column)
    if by is not None:
        check_column("by", by)
    search = _Search(ask, column, by, list(ranks.values()))
    twice = search.by_shares(engine) if method == "shares" else search.by_counts()
    grid = ask.schema.grid(column)

    def value(number: int | None, several: tuple[Rank, ...]) -> float | int | None:
        if number is None:
            return None
        if len(several) == 1:
            return grid.decode(number // 2)
        return float(Fraction(number, 2 * grid.scale))

    values = tuple(
        tuple(value(n, several) for n, several in zip(line, ranks.values(), strict=True))
        for line in twice
    )
    groups: tuple[Level | None, ...] = (None,) if by is None else ask.schema.levels(by)
    return Ranks(column, by, tuple(ranks), groups, values, method, ask.done())


class _Search:
    """A search for several ranks in several groups at once.

    Both ways return for each group twice each value, or the sum of two ranks; None without rows.
    """

    def __init__(
        self, ask: Inquiry, column: str, by: str | None, values: Sequence[tuple[Rank, ...]]
    ) -> None:
        self.ask = ask
        self.column = column
        self.ranks = ranks = [rank for several in values for rank in several]
        # Which ranks make a value, and how often.
        self.weights = np.zeros((len(ranks), len(values)), np.int64)
        place = 0
        for which, several in enumerate(values):
            self.weights[place : place + len(several), which] = 2 // len(several)
            place += len(several)
        self.limit = ask.schema.grid(column).limit
        self.bits = (2 * self.limit).bit_length()
        # Of values that are wider than int64 all arithmetic is on Python's integers.
        self.kind = np.dtype(np.int64 if self.bits <= _MAX_BITS else object)
        self.cells = cell_names(ask.schema, () if by is None else (by,))
        # All sites read, and refuse what is wrong, before any of them sends.
        self.rows = {table.site: self._rows(table, by) for table in ask.tables}
        self._of, self._times, self._more = (
            np.array([getattr(rank, part) for rank in ranks]) for part in ("of", "times", "more")
        )

    def _rows(self, table: Table, by: str | None) -> list[Integers]:
        """Return one site's rows, for each group: how far above the least value of the grid."""
        ask, groups = self.ask, () if by is None else (by,)
        keep = kept_rows(table, (self.column,), groups, ask.missing)
        codes, cells = group_codes(table, ask.schema, groups)
        values = table.numbers(self.column).values
        grid = ask.schema.grid(self.column)
        encoded = grid.encode(values, table.where(self.column), "row")[keep]
        integers = encoded.astype(self.kind) + self.limit
        return [integers[codes[keep] == cell] for cell in range(cells)]

    def by_counts(self) -> list[list[int | None]]:
        """Search on opened counts: one sum for each bit."""
        label, grid = f"rows with {self.column}", self.ask.schema.grid(self.column)
        ordered = {site: [np.sort(r) for r in groups] for site, groups in self.rows.items()}
        totals = self._sum(
            [f"{label} {cell}".strip() for cell in self.cells],
            {site: [rows.size for rows in groups] for site, groups in ordered.items()},
        )
        enough = [[n * rank.of + rank.more for rank in self.ranks] for n in totals]
        found = np.zeros((len(self.cells), len(self.ranks)), self.kind)
        for bit in reversed(range(self.bits)):
            candidates = found + (1 << bit)
            labels = [
                f"{label} below {shown(grid.decode(int(candidate) - self.limit))} {cell}".strip()
                for cell, line in zip(self.cells, candidates, strict=True)
                for candidate in line
            ]
            parts = {
                site: [
                    int(n)
                    for rows, line in zip(groups, candidates, strict=True)
                    for n in np.searchsorted(rows, line)
                ]
                for site, groups in ordered.items()
            }
            below = np.array(self._sum(labels, parts)).reshape(found.shape)
            found += (below * self._times < np.array(enough)).astype(self.kind) << bit
        twice = (found - self.limit) @ self.weights
        return [
            [int(v) if n else None for v in line] for n, line in zip(totals, twice, strict=True)
        ]

    def _sum(self, labels: list[str], parts: dict[str, list[int]]) -> list[int]:
        (totals,) = self.ask.adder.add(IntegerBlock(labels, MAX_ROWS, parts))
        return list(totals)

    def by_shares(self, engine: Engine) -> list[list[int | None]]:
        """Search on shares: two comparisons, one after the other, for each bit.

        A value that is too wide for a share is shared as digits, and found from the highest one:
        of the rows that have the digits that were found so far, the next digit is searched.
        """
        sites, groups = self.ask.sites, len(self.cells)
        count = max(1, -(-self.bits // _MAX_BITS))
        width = -(-self.bits // count)
        beyond = 1 << width  # what fills up is below no candidate
        most = padded_rows(self.ask, groups * count)
        run = computation(self.ask, engine)
        parts, numbers = [], []
        for site in sites:
            filled = np.full((count, groups, most), beyond, np.int64)
            for group, rows in enumerate(self.rows[site]):
                for place in range(count):
                    part = (rows >> width * (count - 1 - place)) & (beyond - 1)
                    filled[place, group, : rows.size] = part.astype(np.int64)
            parts.append(run.share(site, filled.reshape(-1), bound=beyond))
            counts = np.array([rows.size for rows in self.rows[site]])
            numbers.append(run.share(site, counts, bound=most))
        total = sum(numbers[1:], numbers[0])[:, None]
        enough = total * self._of + self._more
        # All rows of a group beside each other, the highest digits first.
        shape = (len(sites), count, groups, most)
        places = np.arange(len(sites) * count * groups * most).reshape(shape)
        rows_of_group = places.transpose(1, 2, 0, 3).reshape(count, groups, 1, -1)
        tables = concatenate(parts)[rows_of_group]
        found: list[SharedArray] = []
        zero = total * np.zeros(len(self.ranks), np.int64)
        table, less = tables[0], zero  # rows that are below by an earlier digit
        for place in range(count):
            digit = zero
            for bit in reversed(range(width)):
                candidates = (digit + (1 << bit)).within(beyond)
                below = (_below(table, candidates) + less) * self._times
                digit = digit + (below < enough) * (1 << bit)
            found.append(digit.within(beyond))
            if place + 1 < count:
                under = table < found[-1][:, :, None]
                tied = (table < (found[-1] + 1)[:, :, None]) - under
                less = less + under.sum(2)
                table = (tied * (tables[place + 1] - beyond) + beyond).within(beyond)
        opened = [part.reveal(to=sites) for part in self._means(found, beyond)]
        empty = (total[:, 0] == 0).reveal(to=sites)
        # From zeros, since `sum` would start from an int.
        twice = np.zeros(opened[0].shape, self.kind)
        for place, values in enumerate(opened):
            twice += values.astype(self.kind) << width * place
        return [
            [None if none else int(v) - 2 * self.limit for v in line]
            for none, line in zip(empty, twice, strict=True)
        ]

    def _means(self, digits: Sequence[SharedArray], base: int) -> list[SharedArray]:
        """Return twice each value, lowest digit first, with carries, so that no rank of two shows.

        The mean of the middle two is made before it is opened: neither of them is.
        """
        made: list[SharedArray] = []
        carry: SharedArray | int = 0
        for place, digit in enumerate(reversed(digits)):
            here = digit @ self.weights + carry
            if place + 1 < len(digits):
                carry = here >= base
                here = here - carry * base
            made.append(here)
        return made


def _below(rows: SharedArray, candidates: SharedArray) -> SharedArray:
    """Count each group's rows below each of its candidates.

    Args:
        rows: Shape (groups, 1 or candidates, rows).
        candidates: Shape (groups, candidates).
    """
    groups, targets = candidates.shape
    width = max(1, _BLOCK // (groups * targets))
    counts = [
        (rows[:, :, start : start + width] < candidates[:, :, None]).sum(2)
        for start in range(0, rows.shape[2], width)
    ]
    return sum(counts[1:], counts[0])
