"""Release of a run's results without small cells, with remarks on what is hidden."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from securecomp.errors import ParameterError
from securecomp.statistics.disclosure.attacker import Cell
from securecomp.statistics.disclosure.suppression import HIDDEN, Pattern, Rule, protect
from securecomp.statistics.disclosure.table_cells import Cells, is_flag
from securecomp.statistics.measures import Measure, Missing
from securecomp.statistics.schema import Schema
from securecomp.statistics.summaries.statistic import Row, Statistic, Totals

_MOST = 20_000
"""Cells that several questions may tell apart together, so that differences can be looked for."""


@dataclass(frozen=True, slots=True)
class Released:
    """One statistic's answer as it is shown.

    Attributes:
        rows: As `finish` made them, None for what is suppressed; such a row also has `suppressed`:
            what is shown instead, in the form of what it stands for, "" for what is not suppressed.
        remarks: What a reader must know.
    """

    rows: tuple[Row, ...]
    remarks: tuple[str, ...]


def check(
    statistics: Sequence[Statistic],
    measures: Mapping[Measure, int],
    schema: Schema,
    missing: Missing,
) -> None:
    """Refuse questions that cannot be searched for small cells, before they are asked.

    Args:
        statistics: The questions.
        measures: What will be summed for them, and the number of its cells.
        schema: Agreed levels.
        missing: What an empty cell does.

    Raises:
        ParameterError: There are too many.
    """
    blank = {measure: [0] * size for measure, size in measures.items()}
    if len(statistics) > 1 and Cells(statistics, blank, schema, missing).differences > _MOST:
        raise ParameterError(
            "the questions together tell more cells apart than can be searched for small ones; ask "
            "them one by one, or choose minimum_count=0 (--min-count 0) and look for yourself"
        )


class Release:
    """Decides what of a run is shown, for all of its statistics together."""

    def __init__(
        self,
        statistics: Sequence[Statistic],
        totals: Totals,
        schema: Schema,
        missing: Missing,
        rule: Rule,
    ) -> None:
        """Take the questions, and what was opened for them."""
        self._rule = rule
        self._cells: Cells | None = None
        self._pattern = Pattern()
        if not rule.active:
            return
        counts = [totals[s.counted(missing)] for s in statistics]
        alone = len(statistics) == 1 and not is_flag(statistics[0], schema)
        every = rule.minimum_sites == 1 and not any(map(rule.small, chain(*counts)))
        # Sums of counts that are not small are not small either; differences may be.
        if not (alone and every):
            found = Cells(statistics, totals, schema, missing)
            counted = found.counted()
            self._cells = found
            self._pattern = protect(counted, found.space, rule, found.finest(counted))

    def of(self, statistic: Statistic, rows: Sequence[Row]) -> Released:
        """Return what is shown of a statistic."""
        cells = self._cells
        if cells is None or not self._pattern.marks:
            return Released(tuple(rows), ())
        marks = [self._marks(cells, statistic, g, row) for g, row in enumerate(rows)]
        shown = [
            {**row, **{k: _blank(row[k], m) for k, m in mark.items()}, "suppressed": mark}
            if any(map(_marked, mark.values()))
            else row
            for row, mark in zip(rows, marks, strict=True)
        ]
        remarks = self._remarks() if any(_marked(list(m.values())) for m in marks) else ()
        return Released(tuple(shown), remarks)

    def _marks(self, cells: Cells, s: Statistic, group: int, row: Row) -> dict[str, Any]:
        head = () if s.by is None else (group,)

        def mark(*index: int | None) -> str:
            one: Cell | None = cells.of(s, (*head, *index))
            return "" if one is None else self._pattern.marks.get(one, "")

        flags = s.of_values and len(cells.tables[s].axes[-1].parts) == 2
        return s.marks(row, mark, flags=flags)

    def _remarks(self) -> tuple[str, ...]:
        rule, pattern = self._rule, self._pattern
        words = []
        if rule.minimum_count > 1:
            words.append(f"{rule.mark}: at least one row, and fewer than {rule.minimum_count}")
        words.append(
            f"{HIDDEN}: not shown, because small cells could be worked out from it"
            if rule.minimum_sites == 1
            else f"{HIDDEN}: not shown, because fewer than {rule.minimum_sites} sites have such "
            "rows, or because such cells could be worked out from it"
        )
        remarks = [
            f"suppressed: {'; '.join(words)}. Those who receive the totals have seen them before "
            "they were suppressed"
        ]
        if pattern.everything:
            remarks.append("too many cells are small for a choice: all counts are suppressed")
        elif pattern.withheld:
            remarks.append("do not publish totals beside this: suppressed cells would follow")
        return tuple(remarks)


def _blank(value: Any, mark: Any) -> Any:
    if isinstance(mark, list):
        return [_blank(v, m) for v, m in zip(value, mark, strict=True)]
    return None if mark else value


def _marked(mark: Any) -> bool:
    return any(map(_marked, mark)) if isinstance(mark, list) else bool(mark)
