"""What comes out: values, what they cost, who computed them and who learned what."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import narwhals as nw

from securecomp.errors import BackendUnavailableError
from securecomp.local import Transcript
from securecomp.statistics.definitions import CrossTable, Histogram, Row, Statistic
from securecomp.statistics.measures import bin_names


@dataclass(frozen=True, slots=True)
class Run:
    """One secure computation, of one or several statistics.

    Attributes:
        protocol: What computed it.
        parties: The sites.
        servers: Who computed: a number, or "all" sites.
        transcript: Messages, rounds and bytes; the time of all roles together.
        seconds: From data frames to results, the sites' own sums included.
        plaintext_seconds: The same from pooled rows with plain numpy.
        learned: What each kind of party learned.
        from_data: Public facts that were taken from the data, not declared.
    """

    protocol: str
    parties: tuple[str, ...]
    servers: int | str
    transcript: Transcript
    seconds: float
    plaintext_seconds: float
    learned: Mapping[str, str]
    from_data: Mapping[str, str]

    def summary(self) -> str:
        """Return two lines on protocol and cost."""
        t = self.transcript
        most = max((t.sent[name] for name in self.parties), default=0)
        where = "1 server" if self.servers == 1 else f"{self.servers} servers"
        where = "all sites compute" if self.servers == "all" else where
        return (
            f"{self.protocol}, {len(self.parties)} sites, {where}: {t.messages} messages, "
            f"{t.rounds} rounds, at most {most:,} bytes sent by a site\n"
            f"{self.seconds * 1e3:.1f} ms, against {self.plaintext_seconds * 1e3:.2f} ms for "
            "numpy on the pooled rows"
        )


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one question.

    Prints as a table, `to_frame` converts it to a data frame, `value` is the bare value.

    Attributes:
        statistic: The question.
        rows: One for each group (one if there are none); each has `value`, and `group` if grouped.
        plaintext: For each row, its value computed from the pooled rows.
        run: Protocol and cost, shared by all results of one computation.
    """

    statistic: Statistic
    rows: tuple[Row, ...]
    plaintext: tuple[Any, ...]
    run: Run

    @property
    def value(self) -> Any:
        """The value; a dict from group to value if grouped.

        A number, None for a mean without rows, a list for a histogram, a list of rows for a cross
        table.
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
        """Whether every value equals the plaintext one.

        Counts and integer sums must be identical; what plain numpy rounds, to 1e-9 of it.
        """
        return all(
            _close(row["value"], plain)
            for row, plain in zip(self.rows, self.plaintext, strict=True)
        )

    def records(self) -> list[dict[str, Any]]:
        """Return flat records: one for each group, bin or cell."""
        s = self.statistic
        records: list[dict[str, Any]] = []
        for row in self.rows:
            head = {s.by: row["group"]} if s.by is not None else {}
            if isinstance(s, Histogram):
                records += [
                    {**head, "from": a, "to": b, "count": n}
                    for (a, b), n in zip(pairwise(row["edges"]), row["value"], strict=True)
                ]
            elif isinstance(s, CrossTable):
                records += [
                    {**head, s.row: a, s.col: b, "count": n}
                    for a, counts in zip(row["row_levels"], row["value"], strict=True)
                    for b, n in zip(row["col_levels"], counts, strict=True)
                ]
            else:
                records.append({**head, **{k: v for k, v in row.items() if k != "group"}})
        return records

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pyarrow") -> Any:
        """Convert to a data frame: "pandas", "polars" or "pyarrow" (which is always there).

        Raises:
            BackendUnavailableError: The library is not installed.
        """
        records = self.records()
        columns = {key: [r[key] for r in records] for key in records[0]} if records else {}
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ModuleNotFoundError as error:
            raise BackendUnavailableError(
                f"{backend} is not installed; pip install {backend}"
            ) from error

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
        if isinstance(s, CrossTable):
            first = self.rows[0]
            header = [*head, s.row, *(f"{s.col}={b}" for b in first["col_levels"])]
            cells = [
                [*start, str(a), *map(show, counts)]
                for start, row in zip(lead, self.rows, strict=True)
                for a, counts in zip(row["row_levels"], row["value"], strict=True)
            ]
            return header, cells
        if isinstance(s, Histogram):
            header = [*head, str(s.column), "rows"]
            cells = []
            for start, row in zip(lead, self.rows, strict=True):
                names = [*bin_names(row["edges"]), "below", "above"]
                counts = [*row["value"], row["below"], row["above"]]
                pairs = zip(names, counts, strict=True)
                cells += [[*start, name, show(n)] for name, n in pairs]
            return header, cells
        extra = [k for k in self.rows[0] if k not in ("group", "value")]
        header = [*head, s.name, *extra]
        cells = [
            [*start, show(row["value"]), *(show(row[k]) for k in extra)]
            for start, row in zip(lead, self.rows, strict=True)
        ]
        return header, cells

    def __str__(self) -> str:
        header, cells = self.grid()
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in (header, *cells)
        ]
        return "\n".join([self.title, *lines, "", self.run.summary(), *_learned(self.learned)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{inner}</tr>"

        header, cells = self.grid()
        notes = [*self.run.summary().split("\n"), *_learned(self.learned)]
        body = "".join(line(row, "td") for row in cells)
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead>{line(header, 'th')}"
            f"</thead><tbody>{body}</tbody></table>"
            f"<p><small>{'<br>'.join(map(html.escape, notes))}</small></p>"
        )


def _learned(learned: Mapping[str, str]) -> list[str]:
    return [f"{party} learned: {what}" for party, what in learned.items()]


def show(value: Any) -> str:
    """Format a value for a table."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e15 else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _close(value: Any, plain: Any) -> bool:
    if isinstance(value, list):
        return len(value) == len(plain) and all(map(_close, value, plain))
    if value is None or plain is None:
        return value is plain
    if isinstance(value, int):
        return bool(value == plain)
    return math.isclose(value, float(plain), rel_tol=1e-9, abs_tol=1e-12)
