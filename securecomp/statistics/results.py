"""Results of summary statistics: values, their cost, who computed them and who learned what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

import narwhals as nw

from securecomp.errors import BackendUnavailableError, ParameterError
from securecomp.protocol.carrier import Transcript
from securecomp.show.exhibit import Exhibit, Plot, TextTable
from securecomp.statistics.summaries.statistic import Row, Statistic

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
        return (
            f"{self.protocol}, {len(self.parties)} sites, {where}: {t.messages} messages, "
            f"{t.rounds} rounds, at most {most:,} bytes sent by a site\n"
            f"{self.seconds * 1e3:.1f} ms"
        )

    def notes(self) -> list[str]:
        """Return lines on cost, on who learned what, and on facts that the data gave."""
        notes = self.summary().split("\n")
        return [*notes, *(f"{party} learned: {what}" for party, what in self.learned.items())]

    def facts_from_data(self) -> list[str]:
        """Return a line on what was taken from the data, if anything was."""
        facts = "; ".join(f"{name}: {value}" for name, value in self.from_data.items())
        return [f"public, taken from the data: {facts}"] if facts else []


@dataclass(frozen=True, slots=True, repr=False)
class Result(Exhibit):
    """The answer to one question.

    Prints as a table, `to_frame` converts it to a data frame, `value` is the bare value.

    Attributes:
        statistic: The question.
        rows: One for each group (one row without groups); each has `value`, and `group` if grouped.
            What is suppressed is None, and the row says in `suppressed` what is shown instead.
        run: Protocol and cost, shared by all results of one computation.
        cautions: What a reader must know.
        guarantee: Of an answer with noise: what it promises. Each row has in `error` what the
            noise stays within in 95 of 100 runs, where the answer is one number.
    """

    statistic: Statistic
    rows: tuple[Row, ...]
    run: Run
    cautions: tuple[str, ...] = ()
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
        """Knowledge that each kind of party gained."""
        return self.run.learned

    @property
    def title(self) -> str:
        """The question in words."""
        return self.statistic.title

    def records(self) -> list[dict[str, Any]]:
        """Return flat records: one for each group, bin or cell.

        If something is suppressed, they also say so: "" or what is shown instead.
        """
        s = self.statistic
        marked = any("suppressed" in row for row in self.rows)
        fields = s.fields(self.rows[0])
        head = [s.by] if s.by is not None else []
        names = _distinct([*head, *fields, *(["suppressed"] if marked else [])])
        records: list[dict[str, Any]] = []
        for row in self.rows:
            group = [row["group"]] if s.by is not None else []
            marks = s.cells({**row, **_marks(row)}, fields)
            for cells, mark in zip(s.cells(row, fields), marks, strict=True):
                tail = [_first_mark(mark)] if marked else []
                records.append(dict(zip(names, [*group, *cells, *tail], strict=True)))
        return records

    def to_frame(self, backend: Backend = "pyarrow") -> Any:
        """Convert to a data frame: "pandas", "polars" or "pyarrow" (which is always there).

        Raises:
            BackendUnavailableError: The library is not installed.
            ParameterError: There is no such library.
        """
        records = self.records()
        return data_frame({key: [r[key] for r in records] for key in records[0]}, backend)

    def facts(self) -> dict[str, Any]:
        """Return the rows as plain objects."""
        return {"rows": self.to_json()}

    def to_json(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Return one plain object for each row."""
        s = self.statistic
        return [
            {
                "statistic": s.name,
                "column": s.summarised,
                "by": s.by,
                **{k: v for k, v in row.items() if k != "value"},
                "value": row["value"],
                **({} if self.guarantee is None else {"privacy": self.guarantee.facts()}),
            }
            for row in self.rows
        ]

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the cells of the table that is printed."""
        s, first = self.statistic, self.rows[0]
        head = [s.by] if s.by is not None else []
        fields = s.fields(first)
        cells = [
            [*([str(row["group"])] if s.by is not None else []), *line]
            for row in self.rows
            # A mark takes the place of what it stands for, and is shown as it is.
            for line in s.lines({**row, **_over(row)}, fields)
        ]
        return [*head, *s.header(first)], cells

    def grids(self) -> list[TextTable]:
        """Return the table that people read."""
        header, cells = self.grid()
        return [TextTable("", tuple(header), tuple(map(tuple, cells)), numbers=True)]

    def plots(self) -> list[Plot]:
        """Return what is better seen than read."""
        return self.statistic.plots(self.title, self.rows)

    def remarks(self) -> list[str]:
        """Return what a reader must know, and what noise promises."""
        noised = [] if self.guarantee is None else [f"noised, {self.guarantee}"]
        return [*noised, *self.cautions]

    def notes(self) -> list[str]:
        """Return remarks, cost, who learned what, and facts that the data gave."""
        return [*self.remarks(), *self.run.notes(), *self.run.facts_from_data()]


def data_frame(columns: Mapping[str, Sequence[Any]], backend: Backend = "pyarrow") -> Any:
    """Return columns as a data frame of a library.

    Raises:
        BackendUnavailableError: The library is not installed.
        ParameterError: There is no such library.
    """
    if backend not in get_args(Backend):
        raise ParameterError(f'backend is "pandas", "polars" or "pyarrow", not {backend!r}')
    fitting = {name: list(map(_fitting, cells)) for name, cells in columns.items()}
    try:
        return nw.from_dict(fitting, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise BackendUnavailableError(
            f"{backend} is not installed; pip install {backend}"
        ) from error


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
