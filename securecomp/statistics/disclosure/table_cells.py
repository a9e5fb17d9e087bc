"""The cells that a run's results count, as sets of rows that `suppression` can compare.

Each column's values fall into classes, as few as the questions can tell apart: levels, intervals
between the edges of histograms, missing. A cell is a set of classes of some columns. So two
histograms with different edges, a table and a mean over the same groups, or a column of zeros and
ones that is summed here and a category there, are known to be about the same rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.statistics.axes import (
    FLAGS,
    Axis,
    BinPart,
    Chosen,
    LevelPart,
    any_value,
    level_axis,
)
from securecomp.statistics.disclosure.attacker import Cell, UnknownCounts, cell
from securecomp.statistics.disclosure.suppression import Counted
from securecomp.statistics.measures import Contributors, Measure, Missing, PowerSum
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.statistic import Statistic, Totals


class _Absent:
    """A cell without a value."""


_ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts behind a statistic.

    Attributes:
        axes: The table's dimensions: groups, then bins, or rows and columns, or zeros and ones.
        counts: Rows in each cell.
        sites: Axes that are summed over, to sites with rows in each cell, as far as they are known.
        shown: The sums over axes that the result shows; () for the cells themselves.
    """

    axes: tuple[Axis, ...]
    counts: npt.NDArray[Any]
    sites: dict[tuple[int, ...], npt.NDArray[Any]]
    shown: tuple[tuple[int, ...], ...] = ((),)


def needed(
    statistics: Sequence[Statistic], schema: Schema, missing: Missing, count_sites: bool
) -> list[Measure]:
    """Return what has to be summed beside the statistics' own measures."""
    found: list[Measure] = []
    for statistic in statistics:
        counted = statistic.counted(missing)
        found.append(counted)
        if count_sites:
            found.append(Contributors(counted))
            if is_flag(statistic, schema):
                found.append(Contributors(_ones(statistic)))
    return list(dict.fromkeys(found))


def is_flag(statistic: Statistic, schema: Schema) -> bool:
    """Whether a statistic is of a column of zeros and ones, whose sum is a count."""
    if not statistic.of_values or statistic.column is None:
        return False
    grid = schema.grid(statistic.column)
    return grid.exact and grid.scale == 1 and grid.limit == 1


def _ones(statistic: Statistic) -> PowerSum:
    return PowerSum(statistic.column or "", 1, statistic.groups)


class Cells:
    """All cells of a run.

    Attributes:
        tables: Each statistic's counts.
        classes: Number of classes of each column.
        space: The unknown counts behind them.
    """

    def __init__(
        self, statistics: Sequence[Statistic], totals: Totals, schema: Schema, missing: Missing
    ) -> None:
        """Take questions and what was opened for them."""
        self._schema = schema
        self._drop = missing == "drop"
        self._missing: Missing = missing
        self.tables = {s: self._counts(s, totals) for s in dict.fromkeys(statistics)}
        self._parts: dict[str, dict[Chosen, frozenset[int]]] = {}
        self.classes: dict[str, int] = {}
        self._divide()
        self.space = UnknownCounts(
            self.classes, [[axis.column for axis in t.axes] for t in self.tables.values()]
        )

    def of(self, statistic: Statistic, index: tuple[int | None, ...]) -> Cell | None:
        """Return a cell of a statistic's table; None in an index stands for the sum over an axis.

        Returns:
            The cell; None if it can have no rows.
        """
        return self._cell(self.tables[statistic].axes, index)

    def _counts(self, s: Statistic, totals: Totals) -> Counts:
        schema = self._schema
        axes = [level_axis(schema, column) for column in s.groups]
        counted = s.counted(self._missing)
        found = np.array(totals[counted], np.int64)
        sites: dict[tuple[int, ...], list[int] | None] = {(): totals.get(Contributors(counted))}
        shown: tuple[tuple[int, ...], ...] = ((),)
        axes += s.axes(schema)
        if s.of_values and s.column is not None:
            ones = np.array(totals[_ones(s)], object)
            if is_flag(s, schema) and bool(((ones >= 0) & (ones <= found)).all()):
                ones = ones.astype(np.int64)
                found = np.stack([found - ones, ones], axis=-1)
                shown = ((), (len(axes),))
                having = totals.get(Contributors(_ones(s)))
                flags = None if having is None else list(chain(*((-1, n) for n in having)))
                sites = {(): flags, (len(axes),): sites[()]}
                axes.append(Axis(s.column, FLAGS))
            else:
                axes.append(Axis(s.column, (any_value,)))
        shape = [len(axis.parts) for axis in axes]
        asked = {
            over: np.array(n).reshape([1 if i in over else size for i, size in enumerate(shape)])
            for over, n in sites.items()
            if n is not None
        }
        return Counts(tuple(axes), found.reshape(shape), asked, shown)

    def _divide(self) -> None:
        """Find the classes of each column, and which of them each part has."""
        parts: dict[str, dict[Chosen, None]] = {}
        for axis in chain.from_iterable(t.axes for t in self.tables.values()):
            parts.setdefault(axis.column, {}).update(dict.fromkeys(axis.parts))
        for column, chosen in parts.items():
            chosen[any_value] = None
            # Values that all parts treat alike are one class.
            alike: dict[tuple[bool, ...], int] = {}
            members: dict[Chosen, set[int]] = {part: set() for part in chosen}
            for value in [*self._values(chosen), *([_ABSENT] if self._drop else [])]:
                kind = tuple(value is not _ABSENT and part(value) for part in chosen)
                place = alike.setdefault(kind, len(alike))
                for part, inside in zip(chosen, kind, strict=True):
                    if inside:
                        members[part].add(place)
            self.classes[column] = len(alike)
            self._parts[column] = {part: frozenset(m) for part, m in members.items()}

    def _values(self, parts: Mapping[Chosen, None]) -> list[Any]:
        """Return values of which every part has all or none that are like one of them."""
        levels = [part.level for part in parts if isinstance(part, LevelPart)]
        if levels:
            return levels
        if any(part in FLAGS for part in parts):
            return [0, 1]
        edges = sorted(
            {e for part in parts if isinstance(part, BinPart) for e in (part.low, part.high)}
        )
        values: list[float] = []
        for low, high in zip([-math.inf, *edges], [*edges, math.inf], strict=True):
            finite = math.isfinite(low) and math.isfinite(high)
            values += [low, low / 2 + high / 2 if finite else low]
        return [*values, math.inf] if values else [0]

    def _cell(self, axes: Sequence[Axis], index: tuple[int | None, ...]) -> Cell | None:
        where: dict[str, frozenset[int]] = {}
        for axis, place in zip(axes, index, strict=True):
            chosen = self._parts[axis.column][any_value if place is None else axis.parts[place]]
            where[axis.column] = where.get(axis.column, chosen) & chosen
        if not all(where.values()):
            return None
        return cell(where, self.classes)

    def counted(self) -> list[Counted]:
        """Return every count that a result shows, or that is a margin of such counts."""
        found: dict[Cell, Counted] = {}
        for table in self.tables.values():
            places = range(len(table.axes))
            for size in range(len(table.axes) + 1):
                for summed in combinations(places, size):
                    counts = table.counts.sum(axis=summed, keepdims=True)
                    sites = table.sites.get(summed)
                    for index in np.ndindex(*counts.shape):
                        where = tuple(None if a in summed else i for a, i in enumerate(index))
                        one = self._cell(table.axes, where)
                        if one is not None:
                            n = -1 if sites is None else int(sites[index])
                            shown = summed in table.shown
                            here = Counted(one, int(counts[index]), shown, n if n >= 0 else None)
                            _note(found, here)
        return list(found.values())

    @property
    def differences(self) -> int:
        """Number of cells that the questions tell apart, if there are several questions."""
        tables = self._combined() if len(self.tables) > 1 else ()
        return sum(math.prod(self.classes[c] for c in columns) for columns in tables)

    def _combined(self) -> list[tuple[str, ...]]:
        tables = self.tables.values()
        return list(dict.fromkeys(tuple(sorted({a.column for a in t.axes})) for t in tables))

    def finest(self, counted: Sequence[Counted]) -> list[Cell]:
        """Return cells that nobody asked for, and that differences of results may give away.

        They are what each table would tell apart with all classes that other questions make.
        """
        if len(self.tables) < 2:
            return []
        found: dict[Cell, None] = {}
        have = {c.cell for c in counted}
        for columns in self._combined():
            for index in product(*(range(self.classes[c]) for c in columns)):
                where = {c: frozenset([i]) for c, i in zip(columns, index, strict=True)}
                found[cell(where, self.classes)] = None
        return [c for c in found if c not in have]


def _note(found: dict[Cell, Counted], new: Counted) -> None:
    """Note a count; of two of one cell, what is known of both."""
    old = found.get(new.cell, new)
    sites = new.sites if old.sites is None else old.sites
    found[new.cell] = Counted(new.cell, new.count, old.shown or new.shown, sites)
