"""The result of an analysis: an exhibit with its cost and what was opened on the way."""

from collections.abc import Iterable
from typing import Any

from securecomp.show.exhibit import Exhibit
from securecomp.statistics.results import Run

_SMALL = 10
_SHOWN = 12
"""So many of the opened totals are named where people read; all are in `run.opened`."""


class Analysis(Exhibit):
    """Base of the results of analyses. Subclasses are frozen dataclasses with a field `run`."""

    run: Run

    def notes(self) -> list[str]:
        """Return remarks, cost, who learned what, and what was opened on the way."""
        run = self.run
        notes = [*self.remarks(), *run.notes()]
        if run.opened:
            names = list(run.opened[:_SHOWN])
            more = len(run.opened) - len(names)
            names += [f"and {more:,} more"] if more else []
            times = "once" if run.sums == 1 else f"in {run.sums} sums"
            notes.append(f"opened {times}, as totals over all sites: {', '.join(names)}")
        notes += run.facts_from_data()
        return notes

    def to_json(self) -> dict[str, Any]:
        """Return `facts` and what was opened."""
        return {**super().to_json(), "sums": self.run.sums, "opened": list(self.run.opened)}


def small_counts(counts: Iterable[int]) -> list[str]:
    """Return a remark if counts that are shown, or became known, may be about single people."""
    few = sum(1 for n in counts if 1 <= n <= _SMALL)
    if not few:
        return []
    many = f"{few:,} of the counts that became known are" if few > 1 else "1 of the counts is"
    return [
        f"{many} between 1 and {_SMALL} and may be about single patients; before you show them to "
        "others, use larger groups, or fewer times or bins"
    ]
