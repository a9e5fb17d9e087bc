"""Small cells: counts below a minimum are not shown, nor what they could be worked out from.

The rule is that of CMS, which has no cell of 1 to 10 patients reported, and no other from which one
could be derived, by difference or by percentages, of excluded cases either; a cell of no patients
may be shown. It is applied to totals over all sites: 3 at
one site and 9 at another make 12, which is shown.

Primary cells are those of 1 to `minimum_count` - 1 rows, and those to which fewer than
`minimum_sites` sites contribute. What is a part of a cell below the minimum is not shown either,
zeros included: of five patients, that none died says it of each. So are differences between
results: rows of one histogram's bin that are not in another's, rows without a value. Then further
cells (complementary suppression) go until every count from 1 to the minimum less one is possible
for every primary cell (for one of too few sites: a tenth of it, at least the minimum, up and down),
for an attacker who knows all that is shown in the same run, what the marks say, and all margins of
each table, shown or not. `attacker` finds it out exactly, by integer programs: what an optimal
solution has to move in order to bring a primary cell to an end of its range is suppressed (the
cheapest that could; large counts, totals and margins cost more); at the end what turns out not to
be needed is shown again. Sums and means are shown where the count behind them is: a combination of
shown sums that gave a suppressed one would give its count as well.

What this does not do: the totals are opened to those who receive them, so their software has seen
every count before it leaves it out. Other runs, other studies and what an attacker knows besides
are not considered, nor is that the choice of complementary cells says a little of why. A sum over
few rows of which one is most of it is shown if there are enough rows. Sums of a column of other
codes than 0 and 1 are not known to be counts.

Sources: CMS Cell Size Suppression Policy (ResDAC, version of 26 January 2024); Cox, Suppression
methodology and statistical disclosure control, JASA 75 (1980) 377-385; Kelly, Golden, Assad, Cell
suppression: disclosure protection for sensitive tabular data, Networks 22 (1992) 397-417 (choice by
linear programs); Fischetti, Salazar, Models and algorithms for the 2-dimensional cell suppression
problem in statistical disclosure control, Mathematical Programming 84 (1999) 283-312 (protection
levels, the attacker's problem); Hundepohl et al., Statistical Disclosure Control (Wiley 2012), 4.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count as counting
from typing import Any

import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.statistics.disclosure.attacker import Attacker, Cell, Range, UnknownCounts, within

DEFAULT_MINIMUM = 11
HIDDEN = "*"
_LARGEST = 3000  # unknowns; beyond, everything goes
_WORK = 400  # programs that showing cells again may take
_TOTAL, _MARGIN = 20.0, 1000.0  # what suppressing a total, or an unpublished margin, costs more


@dataclass(frozen=True, slots=True)
class Rule:
    """When a cell is shown.

    Attributes:
        minimum_count: Fewest rows of a cell that is shown, or none; 0 and 1 show all.
        minimum_sites: Fewest sites that must have rows in it.
    """

    minimum_count: int = DEFAULT_MINIMUM
    minimum_sites: int = 1

    def __post_init__(self) -> None:
        for name, value, least in (
            ("minimum_count", self.minimum_count, 0),
            ("minimum_sites", self.minimum_sites, 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ParameterError(f"{name} is a whole number from {least} on, not {value!r}")

    @property
    def active(self) -> bool:
        """Whether anything is ever suppressed."""
        return self.minimum_count > 1 or self.minimum_sites > 1

    @property
    def mark(self) -> str:
        """Mark that is shown for a count below the minimum."""
        return f"<{self.minimum_count}"

    def small(self, count: int) -> bool:
        """Whether there are rows, but fewer than the minimum."""
        return 0 < count < self.minimum_count

    def scattered(self, sites: int | None) -> bool:
        """Whether enough sites contribute, as far as it is known."""
        return sites is None or sites >= self.minimum_sites


@dataclass(frozen=True, slots=True)
class Counted:
    """A cell and its total.

    Attributes:
        cell: Which rows.
        count: How many, over all sites.
        shown: Whether the result shows it; if not, it is a margin that is taken to be known.
        sites: How many sites have such rows; None if it is not known.
    """

    cell: Cell
    count: int
    shown: bool = True
    sites: int | None = None


@dataclass(slots=True)
class Pattern:
    """Suppressed cells.

    Attributes:
        marks: Cell to what is shown for it: "<11", "*"; what is shown as it is has none.
        withheld: Whether some total that no result shows must not be published either.
        everything: Whether the questions were too many for a choice, and all is suppressed.
    """

    marks: dict[Cell, str] = field(default_factory=dict)
    withheld: bool = False
    everything: bool = False


def protect(
    counted: Sequence[Counted], space: UnknownCounts, rule: Rule, finest: Sequence[Cell] = ()
) -> Pattern:
    """Choose what to suppress.

    Args:
        counted: All counts that are shown or known, each cell once.
        space: The unknowns behind them.
        rule: What is small.
        finest: Further cells that nobody asked for and that the counts may give away: differences.
    """
    if not rule.active:
        return Pattern()
    small = [rule.small(c.count) or (c.count and not rule.scattered(c.sites)) for c in counted]
    extra = _given_away(counted, space, rule, finest)
    if not any(small) and not extra:
        return Pattern()
    if space.size > _LARGEST:
        return _everything(counted)
    search = _Search(counted, space, rule, extra)
    if not search.hide():
        return _everything(counted)
    search.show_again()
    return search.pattern()


def known(counted: Sequence[Counted], pattern: Pattern, rule: Rule) -> list[Range]:
    """Return the range that each count is known to be in, by what is shown and how it is marked.

    For a part of a small cell, "*" says nothing but that; elsewhere that it is not below the
    minimum, or it would be marked so.
    """
    parts = {c.cell for c in counted} if pattern.everything else _parts(counted, rule)
    return [
        _said(c, c.cell in parts, rule) if c.cell in pattern.marks else (c.count, c.count)
        for c in counted
    ]


def _said(c: Counted, part: bool, rule: Rule) -> Range:
    """Return what the mark of a count says."""
    if part or not c.shown:
        return 0, math.inf
    if rule.small(c.count):
        return 1, rule.minimum_count - 1
    return max(1, rule.minimum_count), math.inf


def _parts(counted: Sequence[Counted], rule: Rule) -> set[Cell]:
    """Return the cells that are parts of a small cell, but for what a zero shown elsewhere says."""
    small = [c.cell for c in counted if rule.small(c.count)]
    inside = {c.cell for c in counted if any(within(c.cell, s) and c.cell != s for s in small)}
    empty = [c.cell for c in counted if not c.count and c.cell not in inside]
    return {cell for cell in inside if not any(within(cell, zero) for zero in empty)}


def _everything(counted: Sequence[Counted]) -> Pattern:
    return Pattern({c.cell: HIDDEN for c in counted}, withheld=True, everything=True)


def _given_away(
    counted: Sequence[Counted], space: UnknownCounts, rule: Rule, finest: Sequence[Cell]
) -> list[Cell]:
    """Return the finest cells that may be known to be small if all counts were shown.

    At counts with as few rows in them as can be, and with as many, all that are known are small.
    """
    if not finest:
        return []
    attacker = Attacker(space, [*(c.cell for c in counted), *finest])
    exact: list[Range] = [(c.count, c.count) for c in counted]
    exact += [(0, math.inf)] * len(finest)
    places = range(len(counted), len(attacker.cells))
    least, most = attacker.extremes(exact, places)
    if least is None or most is None:
        # The data themselves are such counts: the optimiser failed, and proves nothing.
        return list(finest)
    small = (i for i in places if rule.small(round(least[i])) and rule.small(round(most[i])))
    return [attacker.cells[i] for i in small]


class _Search:
    """The choice of complementary cells."""

    def __init__(
        self, counted: Sequence[Counted], space: UnknownCounts, rule: Rule, extra: Sequence[Cell]
    ) -> None:
        self.counted = list(counted)
        self.rule = rule
        self._attacker = Attacker(space, [*(c.cell for c in counted), *extra])
        parts = _parts(counted, rule)
        self._hidden = [_said(c, c.cell in parts, rule) for c in counted]
        self._marks = self._primary(parts)
        self._chosen: dict[int, None] = {}
        shown: dict[int, list[Cell]] = {}
        for c in counted:
            if c.shown:
                shown.setdefault(len(c.cell), []).append(c.cell)
        least = max(1, rule.minimum_count)
        self._costs = {i: self._cost(c, shown) for i, c in enumerate(counted) if c.count >= least}
        self._extra = len(extra)
        self.targets = self._targets()
        self._solutions: dict[tuple[int, Range], npt.NDArray[Any]] = {}

    def _primary(self, parts: set[Cell]) -> dict[int, str]:
        rule, marks = self.rule, dict[int, str]()
        for i, c in enumerate(self.counted):
            if rule.small(c.count):
                marks[i] = rule.mark
            elif c.count and not rule.scattered(c.sites):
                marks[i] = HIDDEN
        marks |= {i: HIDDEN for i, c in enumerate(self.counted) if c.cell in parts}
        return marks

    def _cost(self, c: Counted, finer: Mapping[int, Sequence[Cell]]) -> float:
        inside = (o for size, cells in finer.items() if size > len(c.cell) for o in cells)
        total = c.shown and any(within(o, c.cell) for o in inside)
        factor = _TOTAL if total else 1.0
        return (1 + math.log2(1 + c.count)) * (factor if c.shown else _MARGIN)

    def _known(self, chosen: Sequence[int] | Mapping[int, Any]) -> list[Range]:
        ranges: list[Range] = [(c.count, c.count) for c in self.counted]
        for i in (*self._marks, *chosen):
            ranges[i] = self._hidden[i]
        return [*ranges, *[(0, math.inf)] * self._extra]

    def _targets(self) -> list[tuple[int, Range]]:
        """Return where primary cells must be able to be: cell, and one end of its range."""
        m = max(2, self.rule.minimum_count)
        targets: list[tuple[int, Range]] = []
        for i in self._marks:
            c = self.counted[i]
            if self.rule.small(c.count) or c.count < m:
                ends: tuple[Range, Range] = (0, 1), (m - 1, math.inf)
            else:
                reach = max(m, math.ceil(c.count / 10))
                ends = (0, max(m, c.count - reach)), (c.count + reach, math.inf)
            targets += [(i, end) for end in ends]
        for i in range(len(self.counted), len(self.counted) + self._extra):
            targets += [(i, (0, 1)), (i, (m - 1, math.inf))]
        return targets

    def _reached(self, target: tuple[int, Range]) -> bool:
        """Whether counts that were found already, and are still possible, reach a target."""
        index, (low, high) = target
        for counts in self._solutions.values():
            if low <= counts[index] <= high:
                self._solutions[target] = counts
                return True
        return False

    def hide(self) -> bool:
        """Suppress until every target can be reached; whether that was possible."""
        sensitive = list(dict.fromkeys(i for i, _ in self.targets))
        for target in self.targets:
            if self._reached(target):
                continue
            free = {
                i: (self.counted[i].count, cost)
                for i, cost in self._costs.items()
                if i not in self._chosen and i not in self._marks
            }
            ranges = self._known(self._chosen)
            for i in free:
                ranges[i] = self._hidden[i]
            counts = self._attacker.move(ranges, *target, free, sensitive)
            if counts is None:
                return False
            self._solutions[target] = counts
            self._chosen |= {i: None for i in free if round(counts[i]) != self.counted[i].count}
        return True

    def show_again(self) -> None:
        """Show what need not be suppressed, and what can be worked out all the same."""
        complete = self._show_needless()
        for i in [i for i in self._chosen if not self._moves(i)]:
            if complete or self._worked_out(i):
                del self._chosen[i]

    def _moves(self, i: int) -> bool:
        """Whether a suppressed count is another one where some target is reached."""
        return any(round(c[i]) != self.counted[i].count for c in self._solutions.values())

    def _worked_out(self, i: int) -> bool:
        """Whether a suppressed count is the only one that is possible."""
        count, ranges = self.counted[i].count, self._known(self._chosen)
        sides: tuple[Range, Range] = (0, count - 1), (count + 1, math.inf)
        return all(self._attacker.move(ranges, i, side) is None for side in sides)

    def _show_needless(self) -> bool:
        """Show what no target needs, the costliest first; whether all was looked at."""
        order = sorted(self._chosen, key=lambda i: -self._costs[i])
        left = counting(_WORK, -1)
        for i in order:
            if self.counted[i].shown and any(not self.counted[j].shown for j in self._chosen):
                return False  # should a margin that must not be known be known all the same
            rest = [j for j in self._chosen if j != i]
            ranges = self._known(rest)
            solutions = dict(self._solutions)
            for target, counts in solutions.items():
                if round(counts[i]) == self.counted[i].count:
                    continue
                again = None if next(left) <= 0 else self._attacker.move(ranges, *target)
                if again is None:
                    break
                solutions[target] = again
            else:
                self._solutions = solutions
                del self._chosen[i]
        return True

    def pattern(self) -> Pattern:
        """Return what is suppressed."""
        marks = {self.counted[i].cell: mark for i, mark in self._marks.items()}
        marks |= {self.counted[i].cell: HIDDEN for i in self._chosen}
        withheld = any(not self.counted[i].shown for i in self._chosen)
        return Pattern(marks, withheld)
