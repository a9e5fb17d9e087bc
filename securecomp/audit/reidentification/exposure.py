"""The exposure of people in a table, in tables, figures and words, without any value of a row."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.audit.reidentification.coarsening import TOGETHER, Coarsening
from securecomp.audit.reidentification.diversity import Diversity
from securecomp.audit.reidentification.population import Population
from securecomp.audit.reidentification.singling_out import Contribution, Smallest
from securecomp.show.exhibit import Exhibit, Plot, TextTable

_BANDS = (1, 2, 3, 5, 11, 20)
_SETS = 10
_DRAWN = 30
_NAMES = 0.9
"""Share of people alone by one column from which that column is taken for a name or id."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exposure(Exhibit):
    """The findings of `uniqueness`. Without an identifier each row counts as a person.

    Attributes:
        quasi: The columns that an attacker knows.
        identifier: The column that tells whose row it is, or None.
        rows: Number of rows.
        people: Number of people.
        groups: Number of distinct combinations of the quasi-identifiers.
        minimum: Fewest people in a group that is large enough.
        spectrum: Size of a group to the number of groups of this size.
        reach: Size to the number of people whose smallest group has this size.
        alone_certainly: Number of people alone even if an empty cell may be anything; None if there
            were too many sets of empty columns to tell.
        alone_by_all_rows: Number of people whose rows nobody else has, each as often, for an
            attacker who knows all rows of a person; None if each person has one row.
        rows_alone: Numbers of the rows by which people are alone, from 1, increasing.
        columns_needed: For each of these rows, the number of columns that suffice; 0 if `largest`
            do not.
        empty: Number of empty cells of the quasi-identifiers.
        contributions: The part of each column.
        largest: Largest number of columns in `sets`.
        sets: Sets of columns by which somebody stands alone, but not by fewer.
        needed: For 1, 2, ... columns, the number of people alone by that many; place 0 counts
            those for whom `largest` do not suffice.
        coarsenings: Effects of coarser columns.
        diversity: Diversity of each sensitive column.
        population: Estimates for the population, if its size is known.
    """

    quasi: tuple[str, ...]
    identifier: str | None
    rows: int
    people: int
    groups: int
    minimum: int
    spectrum: Mapping[int, int]
    reach: Mapping[int, int]
    alone_certainly: int | None
    alone_by_all_rows: int | None
    rows_alone: npt.NDArray[np.int64]
    columns_needed: npt.NDArray[np.int64]
    empty: int
    contributions: tuple[Contribution, ...]
    largest: int
    sets: tuple[Smallest, ...]
    needed: tuple[int, ...]
    coarsenings: tuple[Coarsening, ...]
    diversity: tuple[Diversity, ...]
    population: Population | None

    @property
    def title(self) -> str:
        """The title."""
        return "uniqueness"

    @property
    def noun(self) -> str:
        """The counted units: "rows", or "people" if there is an identifier."""
        return "rows" if self.identifier is None else "people"

    @property
    def alone(self) -> int:
        """Number of people who stand alone in one of their groups."""
        return self.reach.get(1, 0)

    @property
    def k(self) -> int:
        """Size of the smallest group: the table is k-anonymous for this k and no larger."""
        return min(self.spectrum)

    @property
    def small(self) -> int:
        """Number of people with a group below `minimum`."""
        return sum(people for size, people in self.reach.items() if size < self.minimum)

    @property
    def prosecutor_highest(self) -> float:
        """Largest probability of a right match, for an attacker who knows who is in the table.

        Source: El Emam & Dankar, "Protecting privacy using k-anonymity" (JAMIA 15(5), 2008).
        """
        return 1 / self.k

    @property
    def prosecutor_mean(self) -> float:
        """The same probability averaged over people. A marketer gets this share right.

        A marketer matches everybody, and is content to be right often (Dankar & El Emam, "A method
        for evaluating marketer re-identification risk", 2010).
        """
        return sum(people / size for size, people in self.reach.items()) / self.people

    def grids(self) -> list[TextTable]:
        """Return groups, risks, sensitive columns, columns, sets and coarser columns."""
        return [
            grid
            for grid in (
                self._bands(),
                self._risks(),
                self._secrets(),
                self._columns(),
                self._smallest(),
                self._coarser(),
            )
            if grid.rows
        ]

    def _share(self, count: int) -> str:
        return f"{count:,} ({_percent(count / self.people)})"

    def _bands(self) -> TextTable:
        edges = sorted({*_BANDS, self.minimum})
        rows = []
        for low, after in zip(edges, [*edges[1:], None], strict=True):
            inside = [s for s in self.spectrum if s >= low and (after is None or s < after)]
            if not inside:
                continue
            last = None if after is None else after - 1
            size = f"{low:,}" if last == low else f"{low:,} to {last:,}" if last else f"{low:,} on"
            groups = sum(self.spectrum[s] for s in inside)
            people = sum(self.reach.get(s, 0) for s in inside)
            rows.append((size, f"{groups:,}", f"{people:,}", _percent(people / self.people)))
        counted = self.noun if self.identifier is None else "people, by their smallest group"
        header = (f"{self.noun} in a group", "groups", counted, "share")
        return TextTable(f"groups alike in {', '.join(self.quasi)}", header, tuple(rows))

    def _risks(self) -> TextTable:
        rows = [("rows", f"{self.rows:,}")]
        if self.identifier is not None:
            rows.append(("people", f"{self.people:,}"))
        rows += [
            ("smallest group (k-anonymity)", f"{self.k:,}"),
            ("alone", self._share(self.alone)),
        ]
        if self.empty and self.alone_certainly is not None:
            rows.append(
                ("alone even if an empty cell fits anything", self._share(self.alone_certainly))
            )
        if self.alone_by_all_rows is not None:
            rows.append(
                ("alone if all rows of a person are known", self._share(self.alone_by_all_rows))
            )
        rows += [
            (f"in a group below {self.minimum}", self._share(self.small)),
            ("prosecutor (knows who is in it): highest risk", _percent(self.prosecutor_highest)),
            ("prosecutor: mean risk", _percent(self.prosecutor_mean)),
            ("marketer (matches everybody): share right", _percent(self.prosecutor_mean)),
        ]
        p = self.population
        if p is not None:
            rows += [
                ("population", f"{p.size:,}"),
                ("journalist (has a register): mean, estimated", _percent(p.journalist_mean)),
                ("journalist: mean of the smallest groups", _percent(p.journalist_smallest)),
                ("a match with somebody alone is right (DIS)", _percent(p.match)),
                ("of the alone, alone in the population (Zayatz)", _percent(p.zayatz)),
                ("of the alone, alone in the population (Pitman)", _percent(p.pitman)),
            ]
        return TextTable("risks", ("measure", ""), tuple(rows))

    def _secrets(self) -> TextTable:
        rows = tuple(
            (
                d.column,
                f"{d.distinct:,}",
                f"{d.entropy:.3g}",
                next((f"{c:.3g}" for l, c in d.recursive if l == 2), "-"),  # noqa: E741
                f"{d.closeness:.3f}",
                f"{d.given_away:,}",
            )
            for d in self.diversity
        )
        header = ("sensitive", "distinct l", "entropy l", "c for l = 2", "t", "given away")
        return TextTable("sensitive columns within groups", header, rows)

    def _columns(self) -> TextTable:
        rows = tuple(
            (c.column, f"{c.values:,}", f"{c.empty:,}", f"{c.by_itself:,}", f"{c.without:,}")
            for c in sorted(self.contributions, key=lambda c: c.without)
        )
        header = ("column", "values", "empty cells", "alone by it", "alone without it")
        return TextTable("each column's part", header, rows)

    def _smallest(self) -> TextTable:
        rows = tuple(
            (" + ".join(s.columns), f"{s.minimal:,}", f"{s.people:,}") for s in self.sets[:_SETS]
        )
        more = len(self.sets) - len(rows)
        title = f"smallest sets of at most {self.largest} that single out"
        title += f"; {more:,} more are not shown" if more else ""
        return TextTable(title, ("columns", "alone by no fewer", "alone by them"), rows)

    def _coarser(self) -> TextTable:
        rows = tuple(
            (
                step.column if step.column == TOGETHER else f"{step.column}: {step.how}",
                "" if step.column == TOGETHER else f"{step.values:,}",
                f"{step.people:,}",
                f"{step.people - self.alone:+,}" if step.people != self.alone else "0",
            )
            for step in self.coarsenings
            if self.alone
        )
        return TextTable(
            "coarser columns, tried", ("", "values left", "alone then", "change"), rows
        )

    def plots(self) -> list[Plot]:
        """Return a histogram of the sizes of people's smallest groups."""
        drawn = {size: n for size, n in self.reach.items() if size <= _DRAWN}
        if not drawn:
            return []
        last = max(*drawn, 2)
        sizes = range(1, last + 1)
        rest = self.people - sum(drawn.values())
        title = f"{self.noun.capitalize()} by the size of their smallest group"
        if rest:
            title += f"; {rest:,} have larger ones, which are not drawn"
        bars: dict[str, Sequence[float]] = {
            "from": [s - 0.4 for s in sizes],
            "to": [s + 0.4 for s in sizes],
            "count": [float(drawn.get(s, 0)) for s in sizes],
        }
        return [Plot("bars", title, "size of the group", self.noun, {self.noun: bars})]

    def remarks(self) -> list[str]:
        """Return the risk in words."""
        return _words(self)

    def facts(self) -> dict[str, Any]:
        """Return all findings but the numbers of rows as plain objects."""
        return {
            "quasi": list(self.quasi),
            "identifier": self.identifier,
            "rows": self.rows,
            "people": self.people,
            "groups": self.groups,
            "k": self.k,
            "alone": self.alone,
            "alone_certainly": self.alone_certainly,
            "alone_by_all_rows": self.alone_by_all_rows,
            "minimum": self.minimum,
            "in_groups_below_minimum": self.small,
            "group_sizes": {str(size): n for size, n in self.spectrum.items()},
            "people_by_smallest_group": {str(size): n for size, n in self.reach.items()},
            "empty_cells": self.empty,
            "prosecutor": {"highest": self.prosecutor_highest, "mean": self.prosecutor_mean},
            "marketer": self.prosecutor_mean,
            "population": None if self.population is None else asdict(self.population),
            "columns": [asdict(c) for c in self.contributions],
            "searched_sets_of_at_most": self.largest,
            "columns_needed": {
                str(size) if size else f"more than {self.largest}": people
                for size, people in enumerate(self.needed)
            },
            "smallest_sets": [asdict(s) for s in self.sets],
            "coarser": [asdict(step) for step in self.coarsenings],
            "sensitive": [
                {**asdict(d), "recursive": [{"l": n, "c": c} for n, c in d.recursive]}
                for d in self.diversity
            ],
        }


def _words(found: Exposure) -> list[str]:
    known = ", ".join(found.quasi)
    one = "row" if found.identifier is None else "person"
    words = []
    if found.alone:
        words.append(
            f"somebody who knows that a person is in this table, and their {known}, finds the "
            f"right {one} without doubt for {found.alone:,} of {found.people:,}; by guessing "
            f"within "
            f"a group it is right for {_percent(found.prosecutor_mean)} of all on average"
        )
    elif found.groups == 1:
        words.append(f"all {found.noun} are alike in {known}: these columns tell nobody apart")
    else:
        words.append(
            f"by {known} alone nobody is found without doubt; a guess within a group is right at "
            f"most 1 time in {found.k:,}, and for {_percent(found.prosecutor_mean)} of all on "
            "average"
        )
    few = [(size, n) for size, n in enumerate(found.needed) if size and n]
    if few:
        size, n = few[0]
        columns = "1 of the columns is" if size == 1 else f"{size} of the columns are"
        words.append(f"{columns} enough to find {n:,} of them")
    for c in found.contributions:
        if c.by_itself > _NAMES * found.people:
            words.append(
                f"{c.column} alone tells nearly all apart, as a name does: if it tells whose row "
                f"it "
                "is, give it as the identifier; if nobody outside knows it, leave it out"
            )
    if found.empty:
        if found.alone_certainly is None:
            bound = "counting those alone if it may be anything would take too long"
        else:
            bound = f"{found.alone_certainly:,} stand alone even if it may be anything"
        words.append(
            f"{found.empty:,} cells are empty; an empty cell counts as a value of its own here, to "
            f"be cautious; {bound}"
        )
    for d in found.diversity:
        if d.given_away:
            words.append(
                f"{d.column}: {d.given_away:,} {found.noun} are in groups of several in which all "
                "have the same value, so it is known without finding the person"
            )
        if d.ordered and d.closeness > 0:
            words.append(
                f"{d.column}: t treats near numbers as nearly the same; if they are codes, give "
                f"them "
                "as text"
            )
        if d.missing:
            words.append(f"{d.column}: its line leaves out {d.missing:,} rows without a value")
    words += _of_population(found)
    words.append("this holds for the named columns: an attacker who knows more finds more people")
    return words


def _of_population(found: Exposure) -> list[str]:
    p = found.population
    if p is None:
        if not found.alone:
            return []
        return [
            "somebody who does not know who is in this table (a journalist) has a risk between 0 "
            "and the prosecutor's; it can be estimated if the population's size is known"
        ]
    if p.fraction == 1:
        return ["the table is the whole population: all risks are the prosecutor's"]
    words = [
        f"the table has {_percent(p.fraction)} of the population; the estimates assume a sample "
        "that everybody was equally likely to be in, and are wrong otherwise"
    ]
    if p.zayatz is not None and p.pitman is None:
        words.append(
            "everybody stands alone, so Pitman's model has no answer: the journalist's risk is "
            "only "
            "known to be at most the prosecutor's"
        )
    if p.zayatz and p.pitman and max(p.zayatz, p.pitman) > 2 * min(p.zayatz, p.pitman):
        words.append(
            "the models of the population differ more than twofold: do not rely on them, and take "
            "the prosecutor's risk"
        )
    return words


def _percent(share: float | None) -> str:
    if share is None:
        return "-"
    percent = 100 * share
    shown = f"{percent:.1f}" if percent >= 0.95 or percent == 0 else f"{percent:.2g}"
    # Only all is shown as 100 %.
    return f"{'99.9' if shown == '100.0' and share < 1 else shown} %"
