"""Findings of a site that checks its own data against a codebook. Nothing of it is sent.

Errors are what the codebook forbids. Warnings are what it allows and what is often a mistake: a
median outside of where medians are (pounds for kilograms), a number such as 999 that occurs again
and again beside the others, rows that are there twice.
"""

import difflib
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import FixedPoint
from securecomp.errors import ParameterError, RangeError
from securecomp.statistics.cell_values import Mask
from securecomp.statistics.codebook import units
from securecomp.statistics.codebook.entries import Entry
from securecomp.statistics.measures import positions
from securecomp.statistics.site_table import Table

_DIGITS = ("-1", "-7", "-8", "-9", "-77", "-88", "-99", "-999", "-9999", "77", "88", "99", "777")
SUSPECTS = (*map(int, _DIGITS), 888, 999, 7777, 8888, 9999, 99999)
"""Numbers that data sets often write for "not known", "not asked", "refused"."""
_OFTEN = 3
_BY_CHANCE = 3  # times as many equal rows as there would be by chance are a finding
_ENOUGH = 5  # values that a median is made of


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows of a site that break one rule, or look as if.

    Attributes:
        severity: "error" (nothing is computed) or "warning".
        rule: "column", "kind", "range", "decimals", "levels", "identifier", "unique", "unit",
            "missing code" or "repeated row".
        site: Whose data.
        column: Which column; None if it is about whole rows.
        rows: How many rows; 0 if it is about the column.
        first: The first of them, counted from 1; None if it is about the column.
        problem: What is wrong, without a value.
        remedy: What to do.
    """

    severity: Literal["error", "warning"]
    rule: str
    site: str
    column: str | None
    rows: int
    first: int | None
    problem: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.site}: " + ("" if self.column is None else f"column {self.column!r}: ")
        many = f" ({self.rows} rows)" if self.rows > 1 else ""
        row = "" if self.first is None else f"row {self.first}{many} "
        return f"{where}{row}{self.problem}; {self.remedy}"

    def error(self, more: int = 0) -> ParameterError | RangeError:
        """Return the error to raise; it says how many more there are."""
        rest = f" (and {more} more: list them with codebook.check)" if more else ""
        kind = ParameterError if self.rule in ("column", "kind") else RangeError
        return kind(f"{self}{rest}")


def find(table: Table, entries: Mapping[str, Entry], unique: Sequence[str]) -> list[Finding]:
    """Check a site's rows against what is agreed about its columns; errors come first."""
    found: list[Finding] = []
    present = set(table.columns)
    for name, entry in entries.items():
        if name in present:
            found += _LOOK[entry.kind](table, name, entry)
        elif entry.required:
            found.append(_absent(table, name, entries))
    if unique and present.issuperset(unique):
        found += _identified(table, unique)
    found += _repeated(table, [name for name in entries if name in present])
    return sorted(found, key=lambda f: f.severity != "error")


def _absent(table: Table, name: str, entries: Mapping[str, Entry]) -> Finding:
    spare = [column for column in table.columns if column not in entries]
    close = difflib.get_close_matches(name.lower(), [s.lower() for s in spare], 1)
    like = next((s for s in spare if close and s.lower() == close[0]), None)
    remedy = "add it, or agree that it is optional"
    remedy = remedy if like is None else f"is it {like!r}? rename it"
    problem = "is required by the codebook and is not there"
    return Finding("error", "column", table.source, name, 0, None, problem, remedy)


def _where(
    table: Table, name: str | None, rule: str, mask: Mask, problem: str, remedy: str,
    severity: Literal["error", "warning"] = "error",
) -> Iterator[Finding]:  # fmt: skip
    """Yield a finding if there are such rows."""
    if mask.any():
        first = int(np.argmax(mask)) + 1
        rows = int(mask.sum())
        yield Finding(severity, rule, table.source, name, rows, first, problem, remedy)


def _numbers(table: Table, name: str, entry: Entry) -> Iterator[Finding]:
    unit = f" {entry.unit}" if entry.unit else ""
    texts = table.not_numbers(name)
    if texts.any():
        problem = "is not a number"
        remedy = (
            "agree on days since an event of the patient"
            if table.has_dates(name)
            else "correct it, or declare it in the codebook as a code for missing"
        )
        yield from _where(table, name, "kind", texts, problem, remedy)
        return
    numbers = table.numbers(name)
    there = ~numbers.missing
    low, high = entry.lower, entry.upper
    values = numbers.values
    outside = there & ~_between(values, low, high)
    kept = values[there].astype(np.float64)
    hint = _unit_hint(entry, kept)
    yield from _where(
        table,
        name,
        "range",
        outside,
        f"is outside of the plausible range, {low} to {high}{unit}",
        f"correct it, or declare a code for missing{hint}",
    )
    fine = there & ~outside
    yield from _where(
        table,
        name,
        "decimals",
        _too_fine(values, fine, entry),
        f"has more than the agreed {entry.decimals} decimals",
        "round it at the site, or agree on more decimals",
    )
    yield from _suspects(table, name, values, there)
    if entry.typical is not None and len(kept) >= _ENOUGH:
        least, most = entry.typical
        if not least <= np.median(kept) <= most:
            yield Finding(
                "warning",
                "unit",
                table.source,
                name,
                0,
                None,
                f"its median is not where a median is typical, {least:g} to {most:g}{unit}",
                f"check the unit{hint}",
            )


def _between(values: npt.NDArray[Any], low: Any, high: Any) -> Mask:
    if values.dtype != object:
        return np.asarray((values >= low) & (values <= high), bool)
    # As people write them: the decimal 0.1 is less than the float 0.1.
    least, most = Decimal(str(low)), Decimal(str(high))
    return np.array(
        [least <= v <= most if isinstance(v, Decimal | int) else low <= v <= high for v in values],
        bool,
    )


def _unit_hint(entry: Entry, values: npt.NDArray[np.float64]) -> str:
    if entry.typical is None or len(values) < _ENOUGH:
        return ""
    looks = units.looks_like(float(np.median(values)), entry.unit, entry.typical)
    return f"; values look like {looks}" if looks else ""


def _too_fine(values: npt.NDArray[Any], rows: Mask, entry: Entry) -> Mask:
    """Return where a value has more decimals than agreed."""
    bad = np.zeros(len(values), bool)
    if not rows.any():
        return bad
    grid = FixedPoint.decimal(entry.column().bound or 0, entry.decimals)
    try:
        grid.encode(values[rows])
    except RangeError:
        for row in np.flatnonzero(rows):
            try:
                grid.encode(values[row : row + 1])
            except RangeError:
                bad[row] = True
    return bad


def _suspects(table: Table, name: str, values: npt.NDArray[Any], there: Mask) -> Iterator[Finding]:
    """Yield a warning for a number that is repeated, stands apart, and is no declared code."""
    for code in suspicious(values[there]):
        yield from _where(
            table,
            name,
            "missing code",
            there & (values == code).astype(bool),
            f"holds {code}, which is often a code for missing",
            f"declare {code} as missing in the codebook if it is one",
            "warning",
        )


def suspicious(values: npt.NDArray[Any]) -> list[int]:
    """Return which numbers look like codes for missing: repeated, at an end, and far off."""
    kept = values.astype(np.float64)
    found: list[int] = []
    for code in SUSPECTS:
        same = kept == code
        rest = kept[~same]
        others = rest[~np.isin(rest, SUSPECTS)]
        if same.sum() < _OFTEN or len(others) < _OFTEN:
            continue
        spread = float(np.quantile(others, 0.95) - np.quantile(others, 0.05)) or 1.0
        gap = max(code - float(others.max()), float(others.min()) - code)
        if gap > spread / 2 or (code < 0 <= others.min()):
            found.append(code)
    return found


def _categories(table: Table, name: str, entry: Entry) -> Iterator[Finding]:
    try:
        found = table.categories(name)
    except ParameterError:
        yield Finding(
            "error", "kind", table.source, name, 0, None,
            "does not hold categories", "write levels as text or integers",
        )  # fmt: skip
        return
    levels = tuple(entry.levels)
    index = np.array([*positions(levels, found.present), 0], np.int64)
    outside = (index[found.codes] < 0) & (found.codes >= 0)
    known = {_loose(level) for level in levels}
    strange = [v for v, i in zip(found.present, index, strict=False) if i < 0]
    alike = bool(strange) and all(_loose(str(v)) in known for v in strange)
    hint = "; it differs from a level in case, white space or zeros only" if alike else ""
    yield from _where(
        table,
        name,
        "levels",
        outside,
        "is not one of the agreed levels",
        f"recode it, or agree on one more level or code for missing{hint}",
    )


def _loose(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).strip().casefold()
    return plain.lstrip("0") or "0"


def _identifiers(table: Table, name: str, entry: Entry) -> Iterator[Finding]:  # noqa: ARG001
    yield from ()


_LOOK: dict[str, Callable[[Table, str, Entry], Iterator[Finding]]] = {
    "number": _numbers,
    "category": _categories,
    "identifier": _identifiers,
}


def _identified(table: Table, unique: Sequence[str]) -> Iterator[Finding]:
    """Yield rows without an identifier, and rows whose identifier was there before."""
    keys = table.keys(unique)
    several = len(unique) > 1
    called = f"columns {', '.join(map(repr, unique))}" if several else f"column {unique[0]!r}"
    without = np.array([key is None for key in keys], bool)
    name = None if several else unique[0]
    problem = f"has no identifier in {called}" if several else "has no identifier"
    yield from _where(table, name, "identifier", without, problem, "fill it in")
    again, of = _again(keys)
    if again.any():
        first = int(np.argmax(again))
        problem = f"repeats row {of[first] + 1} in {called}: the same patient or row twice"
        remedy = "remove the duplicate, or agree on what else identifies a row"
        yield from _where(table, None, "unique", again, problem, remedy)


def _repeated(table: Table, columns: Sequence[str]) -> Iterator[Finding]:
    """Yield rows that are another one in all columns of the codebook."""
    if not columns or table.rows == 0:
        return
    again, of = _again(table.cells(columns))
    if again.sum() > _BY_CHANCE * _coincidences(table, columns):
        first = int(np.argmax(again))
        problem = f"repeats row {of[first] + 1} in every column"
        remedy = "remove it if it is the same patient"
        yield from _where(table, None, "repeated row", again, problem, remedy, "warning")


def _coincidences(table: Table, columns: Sequence[str]) -> float:
    """Return how many pairs of rows would be equal by chance, if columns were independent."""
    alike = 1.0
    for column in columns:
        counts = np.array(list(Counter(table.cells([column])).values()), np.float64)
        alike *= float((counts**2).sum()) / table.rows**2
    return alike * table.rows * (table.rows - 1) / 2


def _again(keys: Sequence[Hashable]) -> tuple[Mask, dict[int, int]]:
    """Return which keys were there before, and where; None is no key."""
    seen: dict[Hashable, int] = {}
    again = np.zeros(len(keys), bool)
    of: dict[int, int] = {}
    for row, key in enumerate(keys):
        if key is None:
            continue
        before = seen.setdefault(key, row)
        if before != row:
            again[row] = True
            of[row] = before
    return again, of
