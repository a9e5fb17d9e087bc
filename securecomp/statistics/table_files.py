"""One file a site: CSV and Parquet to tables, with errors that name the file.

An empty cell, and NA, N/A, NaN, nan, NULL and null, are missing values.
"""

import contextlib
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from securecomp.errors import ParameterError
from securecomp.protocol import wire

CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
_MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null"]
_EXACT = float(1 << 53)
_LEADING_ZERO = re.compile(rb'[\n,;\t|"]\s*[+-]?0\d')
_PADDED = re.compile(r"[+-]?0\d+")
_WIDE = re.compile(r"[+-]?\d{16,}(\.\d*)?")
_MOST_DIGITS = 76


def site_name(path: Path) -> str:
    """Return the site's name: the file's name without its ending."""
    # Some file systems write accents apart from their letters, whatever the file was called.
    name = unicodedata.normalize("NFC", path.name)
    for ending in (*CSV_ENDINGS, *PARQUET_ENDINGS):
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return name


def name_sites(paths: Sequence[Path]) -> dict[str, Path]:
    """Return site name to file.

    Raises:
        ParameterError: Two files give the same name, or one cannot be shown.
    """
    sites: dict[str, Path] = {}
    for path in paths:
        name = site_name(path)
        if not name:
            raise ParameterError(f"{path}: has no name to call its site by; rename the file")
        wire.check_name(name)
        if name in sites and path == sites[name]:
            raise ParameterError(f"{path}: is given twice; one file is one site")
        if name in sites:
            raise ParameterError(
                f"{path}: the site name {name!r} is taken by {sites[name]}; rename one of the files"
            )
        sites[name] = path
    return sites


def read_table(path: Path, *, delimiter: str | None = None, decimal_comma: bool = False) -> Any:
    """Read one site's file to a pyarrow table.

    Args:
        path: A CSV (`.csv`, `.tsv`, `.txt`, `.csv.gz`) or Parquet file.
        delimiter: Between the columns of a CSV file; by default a comma, in `.tsv` a tab.
        decimal_comma: Whether the CSV file writes 3,5 for 3.5.

    Raises:
        ParameterError: The file cannot be read; the message says why.
    """
    lower = path.name.lower()
    if not lower.endswith((*CSV_ENDINGS, *PARQUET_ENDINGS)):
        raise ParameterError(
            f"{path}: expected a file that ends in {', '.join((*CSV_ENDINGS, *PARQUET_ENDINGS))}"
        )
    if path.is_dir():
        raise ParameterError(f"{path}: is a folder; name one file a site")
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii()):
        raise ParameterError(
            f"--delimiter: a delimiter is one character of ASCII, not {delimiter!r}"
        )
    try:
        if lower.endswith(PARQUET_ENDINGS):
            # ParquetFile reads this very file; read_table would take a folder as well.
            with pa.parquet.ParquetFile(path) as file:
                return file.read()
        delimiter = delimiter or ("\t" if lower.endswith(".tsv") else ",")
        return _read_csv(path, delimiter, "," if decimal_comma else ".")
    except FileNotFoundError:
        raise ParameterError(f"{path}: there is no such file") from None
    except UnicodeEncodeError:
        raise ParameterError(f"{path}: its name is not UTF-8; rename it") from None
    except PermissionError:
        raise ParameterError(f"{path}: no permission to read it") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0]
        if "utf" in reason.lower():
            reason = _NOT_UTF8
        raise ParameterError(f"{path}: cannot be read: {reason}") from None


_NOT_UTF8 = "the text is not UTF-8; save the file with that encoding"


def _content(path: Path) -> bytes:
    """Return the file's text, unpacked."""
    compression = "gzip" if path.name.lower().endswith(".gz") else None
    with pa.input_stream(str(path), compression=compression) as stream:
        content: bytes = stream.read()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise pa.ArrowInvalid(_NOT_UTF8)
    content.decode("utf-8")
    # Arrow wants a header's line to end.
    return content if b"\n" in content or not content else content + b"\n"


def _read_csv(path: Path, delimiter: str, decimal_point: str) -> Any:
    content = _content(path)
    parse = pa.csv.ParseOptions(delimiter=delimiter)
    convert = pa.csv.ConvertOptions(
        null_values=_MISSING, strings_can_be_null=True, decimal_point=decimal_point
    )
    try:
        table = pa.csv.read_csv(pa.BufferReader(content), None, parse, convert)
    except pa.ArrowInvalid:
        _name_ragged_row(content, delimiter)
        raise
    for other, name, written in ((";", '";"', '";"'), ("\t", "tabs", "$'\\t'")):
        if table.num_columns == 1 and delimiter == "," and other in table.column_names[0]:
            raise pa.ArrowInvalid(
                f"the columns are divided by {name}; say so with --delimiter {written}"
            )
    if any(pa.types.is_binary(column.type) for column in table.columns):
        raise pa.ArrowInvalid(_NOT_UTF8)
    if len(set(table.column_names)) == table.num_columns:  # otherwise refused by name later
        # Codes such as 01 are text: as a number, 01 and 1 would be one.
        codes = _LEADING_ZERO.search(content) is not None
        for index, name in enumerate(table.column_names):
            column = table.column(index)
            if pa.types.is_floating(column.type) and _may_be_wide(column):
                exact = _wide_numbers(name, _texts(content, parse, name), decimal_point)
            elif codes and pa.types.is_integer(column.type):
                texts = _texts(content, parse, name)
                padded = any(t and _PADDED.fullmatch(t.strip()) for t in texts.to_pylist())
                exact = texts if padded else None
            else:
                continue
            if exact is not None:
                table = table.set_column(index, name, exact)
    return table


def _name_ragged_row(content: bytes, delimiter: str) -> None:
    """Say which row has another number of cells than the header, without quoting it.

    Raises:
        pa.ArrowInvalid: There is such a row.
    """
    found: list[Any] = []

    def note(row: Any) -> str:
        found.append((row.number, row.expected_columns, row.actual_columns))
        return "skip"

    parse = pa.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=note)
    one_thread = pa.csv.ReadOptions(use_threads=False)
    with contextlib.suppress(pa.ArrowException):
        pa.csv.read_csv(pa.BufferReader(content), one_thread, parse)
    if found:
        number, expected, actual = found[0]
        where = "a row" if number is None else f"row {number - 1}"
        raise pa.ArrowInvalid(f"{where} has {actual} columns, and the header has {expected}")


def _may_be_wide(column: Any) -> bool:
    largest = pc.max(pc.abs(column)).as_py()
    return largest is not None and _EXACT <= largest < float("inf")


def _texts(content: bytes, parse: Any, name: str) -> Any:
    """Return a column's cells as they are written."""
    convert = pa.csv.ConvertOptions(
        null_values=_MISSING,
        strings_can_be_null=True,
        include_columns=[name],
        column_types={name: pa.string()},
    )
    return pa.csv.read_csv(pa.BufferReader(content), None, parse, convert).column(0)


def _wide_numbers(column: str, cells: Any, decimal_point: str) -> Any:
    """Return a column whose long numbers float64 would round, exactly; None if it has none.

    Raises:
        pa.ArrowInvalid: Its numbers have more digits than a decimal holds.
    """
    texts = [t and t.strip().replace(decimal_point, ".") for t in cells.to_pylist()]
    wide = [bool(text and _WIDE.fullmatch(text)) for text in texts]
    if not any(wide):
        return None
    try:
        return pa.array([None if text is None else Decimal(text) for text in texts])
    except pa.ArrowInvalid:
        raise pa.ArrowInvalid(
            f"column {column!r} has integers of more than 15 digits, the first in row "
            f"{wide.index(True) + 1}, and its numbers need more than {_MOST_DIGITS} digits to be "
            "held exactly; round them at the site"
        ) from None
