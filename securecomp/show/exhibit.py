"""Exhibits: tables and figures for people, plain objects for machines."""

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table as people read it.

    Attributes:
        title: One line, or "".
        header: A word for each column.
        rows: Cells, formatted; as many as columns.
        numbers: Whether the first column is aligned as the others are.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: bool = False

    def lines(self) -> list[str]:
        """Return the table as text: the first column left, unless it is a number; others right."""
        table = (self.header, *self.rows)
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = []
        for cells in table:
            pairs = list(zip(cells, widths, strict=True))
            (name, width), *rest = pairs
            first = name.rjust(width) if self.numbers else name.ljust(width)
            lines.append("  ".join([first, *(c.rjust(w) for c, w in rest)]).rstrip())
        return [self.title, *lines] if self.title else lines


@dataclass(frozen=True, slots=True)
class Plot:
    """Data of a figure; `reports` draws it.

    Attributes:
        kind: "forest" (estimates with intervals), "steps" (survival curves), "bars" (a histogram),
            "line" (a curve, say a ROC).
        title: One line.
        x: Name of the horizontal axis.
        y: Name of the vertical axis.
        series: Name to columns of numbers, by kind. forest: {"estimate", "low", "high"}, one name
            an estimate; steps and line: {"x", "y"}, optionally "low" and "high"; bars: {"from",
            "to", "count"}, a count that is not shown NaN.
        reference: A value to mark: 1 for ratios.
        logarithmic: Whether the axis of the estimates is logarithmic; of a line, both axes.
    """

    kind: Literal["forest", "steps", "bars", "line"]
    title: str
    x: str
    y: str
    series: dict[str, dict[str, Sequence[float]]]
    reference: float | None = None
    logarithmic: bool = False


class Exhibit:
    """Base of all results: tables and figures for people, plain objects for machines."""

    @property
    def title(self) -> str:
        """The question in words."""
        raise NotImplementedError

    def grids(self) -> list[TextTable]:
        """Return the tables that people read."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """Return the result as plain objects: numbers, text, lists, dicts with text keys."""
        raise NotImplementedError

    def plots(self) -> list[Plot]:
        """Return what is better seen than read; nothing by default."""
        return []

    def remarks(self) -> list[str]:
        """Return what a reader must know of this result, one sentence or two each."""
        return []

    def notes(self) -> list[str]:
        """Return what stands below the tables."""
        return self.remarks()

    def to_json(self) -> dict[str, Any]:
        """Return the title and `facts`."""
        return {"analysis": self.title, **self.facts()}

    def __str__(self) -> str:
        lines = [self.title]
        for grid in self.grids():
            lines += [*grid.lines(), ""]
        for note in self.notes():
            lines += textwrap.wrap(note, _WIDTH)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = "".join(html_table(grid) for grid in self.grids())
        notes = "<br>".join(map(html.escape, self.notes()))
        return f"<h4>{html.escape(self.title)}</h4>{tables}<p><small>{notes}</small></p>"


def html_table(grid: TextTable) -> str:
    """Return a table as HTML, with everything in it escaped."""

    def line(cells: Sequence[str], tag: str) -> str:
        inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    caption = f"<caption>{html.escape(grid.title)}</caption>" if grid.title else ""
    body = "".join(line(row, "td") for row in grid.rows)
    return f"<table>{caption}<thead>{line(grid.header, 'th')}</thead><tbody>{body}</tbody></table>"
