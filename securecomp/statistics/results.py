"""What comes out: values, what they cost, who computed them and who learned what."""

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

from securecomp.errors import BackendUnavailableError, ParameterError
from securecomp.protocol.local_carrier import Transcript
from securecomp.statistics.measures import bin_names
from securecomp.statistics.summaries.definitions import CrossTable, Histogram, Row, Statistic, Sum

if TYPE_CHECKING:
    from securecomp.privacy.guarantee import Guarantee

Backend = Literal["pandas", "polars", "pyarrow"]
"""The libraries whose data frames come out; pyarrow is always there."""


@dataclass(frozen=True, slots=True)
class Run:
    """One secure computation, of one or several statistics.

    Attributes:
        protocol: What computed it.
        parties: The sites.
        servers: Who computed: a number, or "all" sites.
        transcript: Messages, rounds and bytes; the time of all roles together.
        seconds: From data frames to results, the sites' own sums included.
        plaintext_seconds: The same from pooled rows with plain numpy; None if it was not done.
        learned: What each kind of party learned.
        from_data: Public facts that were taken from the data, not declared.
        sums: Number of secure sums, one after the other.
        opened: Names of all totals that became known, beside the result or on the way to it.
    """

    protocol: str
    parties: tuple[str, ...]
    servers: int | str
    transcript: Transcript
    seconds: float
    plaintext_seconds: float | None
    learned: Mapping[str, str]
    from_data: Mapping[str, str]
    sums: int = 1
    opened: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return two lines on protocol and cost."""
        t = self.transcript
        most = max((t.sent[name] for name in self.parties), default=0)
        where = "1 server" if self.servers == 1 else f"{self.servers} servers"
        where = "all sites compute" if self.servers == "all" else where
        against = (
            ""
            if self.plaintext_seconds is None
            else f", against {self.plaintext_seconds * 1e3:.2f} ms for numpy on the pooled rows"
        )
        return (
            f"{self.protocol}, {len(self.parties)} sites, {where}: {t.messages} messages, "
            f"{t.rounds} rounds, at most {most:,} bytes sent by a site\n"
            f"{self.seconds * 1e3:.1f} ms{against}"
        )


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one question.

    Prints as a table, `to_frame` converts it to a data frame, `value` is the bare value.

    Attributes:
        statistic: The question.
        rows: One for each group (one if there are none); each has `value`, and `group` if grouped.
            What is suppressed is None, and the row says in `suppressed` what is shown instead.
        plaintext: For each row, its value computed from the pooled rows; None if suppressed.
        run: Protocol and cost, shared by all results of one computation.
        tolerance: What plaintext may lose by rounding where terms cancel.
        outside: For each row of a histogram, how many are below and above by plaintext.
        remarks: What a reader must know.
        guarantee: Of an answer with noise: what it promises. It is compared with nothing, and
            each row has in `error` what the noise stays within in 95 of 100 runs, where the
            answer is one number.
    """

    statistic: Statistic
    rows: tuple[Row, ...]
    plaintext: tuple[Any, ...]
    run: Run
    tolerance: float = 0.0
    outside: tuple[Any, ...] = ()
    remarks: tuple[str, ...] = ()
    guarantee: "Guarantee | None" = None

    @property
    def value(self) -> Any:
        """The value; a dict from group to value if grouped.

        A number, a list for a histogram, a list of rows for a cross table. None stands for what is
        suppressed, and for a mean without rows.
        """
        if self.statistic.by is None:
            return self.rows[0]["value"]
        return {row["group"]: row["value"] for row in self.rows}

    @property
    def protocol(self) -> str:
        """The protocol that computed it."""
        return self.run.protocol

    @property
    def learned(self) -> Mapping[str, str]:
        """What each kind of party learned."""
        return self.run.learned

    @property
    def equal(self) -> bool:
        """Whether every value that is shown equals the plaintext one.

        Counts and integer sums must be identical; what plain numpy rounds, to 1e-9 of it, or to
        1e-12 of the terms that it adds. Never of an answer with noise.
        """
        if self.guarantee is not None:
            return False
        values = all(
            _close(row["value"], plain, self.tolerance)
            for row, plain in zip(self.rows, self.plaintext, strict=True)
        )
        beyond = [[row["below"], row["above"]] for row in self.rows] if self.outside else []
        return values and beyond == list(self.outside)

    def records(self) -> list[dict[str, Any]]:
        """Return flat records: one for each group, bin or cell.

        If something is suppressed, they also say so: "" or what is shown instead.
        """
        s = self.statistic
        marked = any("suppressed" in row for row in self.rows)
        last = ["suppressed"] if marked else []
        names = _distinct([*([s.by] if s.by is not None else []), *self._fields(), *last])
        records: list[dict[str, Any]] = []
        for row in self.rows:
            head = [row["group"]] if s.by is not None else []
            marks = self._cells({**row, **_marks(row)})
            for cells, mark in zip(self._cells(row), marks, strict=True):
                tail = [_first_mark(mark)] if marked else []
                records.append(dict(zip(names, [*head, *cells, *tail], strict=True)))
        return records

    def _fields(self) -> list[str]:
        s = self.statistic
        if isinstance(s, Histogram):
            return ["from", "to", "count"]
        if isinstance(s, CrossTable):
            return [s.row, s.col, "count"]
        return [key for key in self.rows[0] if key not in ("group", "suppressed")]

    def _cells(self, row: Row) -> list[list[Any]]:
        s = self.statistic
        if isinstance(s, Histogram):
            edges = [float(edge) for edge in row["edges"]]
            bins = [[a, b, n] for (a, b), n in zip(pairwise(edges), row["value"], strict=True)]
            return [*bins, [None, edges[0], row["below"]], [edges[-1], None, row["above"]]]
        if isinstance(s, CrossTable):
            return [
                [a, b, n]
                for a, counts in zip(row["row_levels"], row["value"], strict=True)
                for b, n in zip(row["col_levels"], counts, strict=True)
            ]
        return [[row[key] for key in self._fields()]]

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert to a data frame: "pandas", "polars" or "pyarrow" (which is always there).

        Raises:
            BackendUnavailableError: The library is not installed.
            ParameterError: There is no such library.
        """
        records = self.records()
        return data_frame({key: [r[key] for r in records] for key in records[0]}, backend)

    def to_json(self) -> list[dict[str, Any]]:
        """Return one plain object for each row."""
        s = self.statistic
        column = s.column if not isinstance(s, CrossTable) else None
        return [
            {
                "statistic": s.name,
                "column": column,
                "by": s.by,
                **{k: v for k, v in row.items() if k != "value"},
                "value": row["value"],
                **({} if self.guarantee is None else {"privacy": self.guarantee.facts()}),
            }
            for row in self.rows
        ]

    @property
    def title(self) -> str:
        """The question in words."""
        s = self.statistic
        of = f" of {s.column}" if s.column else ""
        of = f" of {s.row} by {s.col}" if isinstance(s, CrossTable) else of
        return f"{s.name}{of}" + (f", by {s.by}" if s.by else "")

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the cells of the table that is printed."""
        s = self.statistic
        head = [s.by] if s.by is not None else []
        lead = [[str(row["group"])] if s.by is not None else [] for row in self.rows]
        # A mark takes the place of what it stands for, and is shown as it is.
        rows = [{**row, **_over(row)} for row in self.rows]
        if isinstance(s, CrossTable):
            first = self.rows[0]
            header = [*head, s.row, *(f"{s.col}={b}" for b in first["col_levels"])]
            cells = [
                [*start, str(a), *map(show, counts)]
                for start, row in zip(lead, rows, strict=True)
                for a, counts in zip(row["row_levels"], row["value"], strict=True)
            ]
            return header, cells
        if isinstance(s, Histogram):
            header = [*head, str(s.column), "rows"]
            cells = []
            for start, row in zip(lead, rows, strict=True):
                names = [*bin_names(row["edges"]), "below", "above"]
                counts = [*row["value"], row["below"], row["above"]]
                pairs = zip(names, counts, strict=True)
                cells += [[*start, name, show(n)] for name, n in pairs]
            return header, cells
        extra = [k for k in self._fields() if k != "value"]
        header = [*head, s.name, *extra]
        # A sum is exact; what was divided is not worth all its digits.
        write = show_exactly if isinstance(s, Sum) else show
        cells = [
            [*start, write(row["value"]), *(show(row[k]) for k in extra)]
            for start, row in zip(lead, rows, strict=True)
        ]
        return header, cells

    def __str__(self) -> str:
        header, cells = self.grid()
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in (header, *cells)
        ]
        notes = [line for note in self._notes() for line in textwrap.wrap(note, 100)]
        return "\n".join([self.title, *lines, "", *notes])

    def _notes(self) -> list[str]:
        promise = [] if self.guarantee is None else [f"noised, {self.guarantee}"]
        notes = [*promise, *self.remarks, *self.run.summary().split("\n"), *_learned(self.learned)]
        if self.run.from_data:
            facts = "; ".join(f"{name}: {value}" for name, value in self.run.from_data.items())
            notes.append(f"public, taken from the data: {facts}")
        return notes

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{inner}</tr>"

        header, cells = self.grid()
        notes = self._notes()
        body = "".join(line(row, "td") for row in cells)
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead>{line(header, 'th')}"
            f"</thead><tbody>{body}</tbody></table>"
            f"<p><small>{'<br>'.join(map(html.escape, notes))}</small></p>"
        )


def _learned(learned: Mapping[str, str]) -> list[str]:
    return [f"{party} learned: {what}" for party, what in learned.items()]


def data_frame(columns: Mapping[str, Sequence[Any]], backend: Backend = "pyarrow") -> Any:
    """Return columns as a data frame of a library.

    Raises:
        BackendUnavailableError: The library is not installed.
        ParameterError: There is no such library.
    """
    fitting = {name: list(map(_fitting, cells)) for name, cells in columns.items()}
    try:
        return nw.from_dict(fitting, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise BackendUnavailableError(
            f"{backend} is not installed; pip install {backend}"
        ) from error
    except ValueError:
        raise ParameterError(
            f'backend is "pandas", "polars" or "pyarrow", not {backend!r}'
        ) from None


def _marks(row: Row) -> dict[str, Any]:
    """Return what is shown instead of each value of a row, "" where it is shown itself."""
    none = {key: _no_marks(value) for key, value in row.items() if key in _MARKABLE}
    return {**none, **row.get("suppressed", {})}


_MARKABLE = ("value", "sd", "n", "below", "above")


def _no_marks(value: Any) -> Any:
    return list(map(_no_marks, value)) if isinstance(value, list) else ""


def _over(row: Row) -> dict[str, Any]:
    return {k: _put(row[k], mark) for k, mark in row.get("suppressed", {}).items()}


def _put(value: Any, mark: Any) -> Any:
    if isinstance(mark, list):
        return [_put(v, m) for v, m in zip(value, mark, strict=True)]
    return mark or value


def _first_mark(cells: Sequence[Any]) -> str:
    """Return the mark of a record; of several the one that says most."""
    marks = [c for c in cells if isinstance(c, str) and c]
    return max(marks, key=len, default="")


def show(value: Any) -> str:
    """Format a value for a table."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e15 else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_exactly(value: Any) -> str:
    """Format a value with all digits that a float has for sure."""
    return f"{value:,.15g}" if isinstance(value, float) and abs(value) < 1e15 else show(value)


def _distinct(names: list[str]) -> list[str]:
    """Return names that a frame can have; later ones give way."""
    taken: list[str] = []
    for name in map(str, names):
        new, number = name, 2
        while new in taken:
            new, number = f"{name} ({number})", number + 1
        taken.append(new)
    return taken


def _fitting(value: Any) -> Any:
    """Return an integer beyond int64 as a decimal, which frames have room for."""
    wide = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
    return Decimal(value) if wide else value


def _close(value: Any, plain: Any, tolerance: float) -> bool:
    if isinstance(value, list):
        pairs = zip(value, plain, strict=False)
        return len(value) == len(plain) and all(_close(v, p, tolerance) for v, p in pairs)
    if value is None or plain is None:
        return value is plain
    if isinstance(plain, np.generic):
        plain = plain.item()
    if isinstance(value, int):
        return bool(value == plain)
    return math.isclose(value, float(plain), rel_tol=1e-9, abs_tol=tolerance)
