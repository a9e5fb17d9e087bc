"""Encrypted tables as files, for a consortium that mails them around.

A table is a CSV file: some columns are encrypted, some may be labels that travel in clear and must
be the same for everyone, as must be the columns and the number of rows. Format: magic "SCPT",
version (1), length of a JSON header (4), header, encrypted vector (`encoding`), row after row.
"""

import csv
import io
import json
import struct
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec

from securecomp.core.fixedpoint import FixedPoint
from securecomp.errors import DecodeError, KeyMismatchError, ParameterError, RangeError
from securecomp.paillier.encoding import decode_vector, encode_vector
from securecomp.paillier.keys import PrivateKey, PublicKey
from securecomp.paillier.vectors import EncryptedVector
from securecomp.protocol.storage import read_text

_HEAD = struct.Struct(">4sBI")
_MAGIC = b"SCPT"
_VERSION = 1
_MAX_HEADER = 1 << 26
_SCALES = frozenset(10**decimals for decimals in range(23))


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Public part of a file: columns, labels and number of rows."""

    columns: tuple[str, ...]
    labels: dict[str, list[str]]
    rows: int


@dataclass(frozen=True, slots=True)
class EncryptedTable:
    """A table whose values are encrypted."""

    frame: Frame
    vector: EncryptedVector
    scale: int

    def encode(self) -> bytes:
        """Return the file's bytes."""
        header = msgspec.json.encode(self.frame)
        head = _HEAD.pack(_MAGIC, _VERSION, len(header))
        return head + header + encode_vector(self.vector, self.scale)


def decode_table(data: bytes, key: PublicKey, where: str) -> EncryptedTable:
    """Read a file's bytes.

    Raises:
        DecodeError: Not an encrypted table, truncated, or inconsistent.
        KeyMismatchError: Under another key.
    """
    if len(data) < _HEAD.size:
        raise DecodeError(f"{where}: too short for an encrypted table")
    magic, version, size = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise DecodeError(f"{where}: not an encrypted table")
    if version != _VERSION:
        raise DecodeError(f"{where}: version {version}; this software reads version {_VERSION}")
    end = _HEAD.size + size
    if size > _MAX_HEADER or end > len(data):
        raise DecodeError(f"{where}: the header is cut off")
    try:
        frame = msgspec.json.decode(data[_HEAD.size : end], type=Frame)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise DecodeError(f"{where}: the header is malformed") from None
    try:
        vector, scale = decode_vector(data[end:], key)
    except (DecodeError, KeyMismatchError) as error:
        raise type(error)(f"{where}: {error}") from None
    if scale not in _SCALES:
        raise DecodeError(f"{where}: its scale is not a power of ten")
    names = [*frame.columns, *frame.labels]
    whole = frame.rows * len(frame.columns)
    if len(set(names)) != len(names):
        raise DecodeError(f"{where}: the header has a column twice")
    if frame.rows < 0 or (frame.rows and not frame.columns):
        raise DecodeError(f"{where}: the header does not fit the encrypted values")
    if vector.length != whole or any(len(v) != frame.rows for v in frame.labels.values()):
        raise DecodeError(f"{where}: the header does not fit the encrypted values")
    return EncryptedTable(frame, vector, scale)


def read_csv(
    path: Path, columns: tuple[str, ...], labels: tuple[str, ...], grid: FixedPoint
) -> tuple[Frame, list[int]]:
    """Read the values to encrypt, as integers on a grid, row after row.

    Args:
        path: A CSV file with a header.
        columns: The columns to encrypt; none means all that are no labels.
        labels: The columns that travel in clear.
        grid: Bound and decimals.

    Raises:
        ParameterError: The file cannot be read, or a column is missing or not numeric.
        RangeError: A value is beyond the bound or off the grid. Names file, column and row.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path}: cannot be read: {error}") from None
    if not table:
        raise ParameterError(f"{path}: is empty; a header is needed")
    header, *rows = table
    rows = [row for row in rows if row]
    wanted = columns or tuple(name for name in header if name not in labels)
    for name in (*wanted, *labels):
        if header.count(name) != 1:
            known = ", ".join(header[:20])
            raise ParameterError(f"{path}: there must be one column {name!r}; it has: {known}")
    if not wanted:
        raise ParameterError(f"{path}: no column is left to encrypt")
    twice = [name for name in wanted if wanted.count(name) > 1]
    if twice:
        raise ParameterError(f"{path}: the column {twice[0]!r} is named twice")
    both = sorted(set(wanted) & set(labels))
    if both:
        raise ParameterError(f"{path}: {both[0]!r} is to be encrypted and a label in clear")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise ParameterError(f"{path}: row {number} has {len(row)} cells, not {len(header)}")
    places = [header.index(name) for name in wanted]
    integers: list[int] = []
    for number, row in enumerate(rows, 1):
        for name, place in zip(wanted, places, strict=True):
            integers.append(_integer(row[place], grid, f"{path}: column {name!r}, row {number}"))
    shown = {name: [row[header.index(name)] for row in rows] for name in labels}
    return Frame(wanted, shown, len(rows)), integers


def _integer(text: str, grid: FixedPoint, where: str) -> int:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise ParameterError(f"{where}: is not a number; fill it in or correct it") from None
    return int(grid.encode(value, where))


def format_csv(frame: Frame, values: Any, scale: int) -> bytes:
    """Return decrypted values as a CSV file, labels first."""
    decimals = len(str(scale)) - 1
    width = len(frame.columns)
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([*frame.labels, *frame.columns])
    for row in range(frame.rows):
        cells = values[row * width : (row + 1) * width]
        numbers = [_decimal(int(value), decimals) for value in cells]
        writer.writerow([*(column[row] for column in frame.labels.values()), *numbers])
    return out.getvalue().encode()


def _decimal(value: int, decimals: int) -> str:
    if decimals == 0:
        return str(value)
    whole, rest = divmod(abs(value), 10**decimals)
    return f"{'-' if value < 0 else ''}{whole}.{rest:0{decimals}d}"


def add_tables(tables: list[tuple[str, EncryptedTable]]) -> EncryptedTable:
    """Add tables of one shape.

    Raises:
        ParameterError: Other columns, labels, rows or decimals; it names the file.
        RangeError: The slots have no room for so many.
    """
    (_, first), *others = tables
    total = first.vector
    for where, table in others:
        if table.frame != first.frame or table.scale != first.scale:
            raise ParameterError(
                f"{where}: its columns, labels, rows or decimals are not those of the first file"
            )
        try:
            total = total + table.vector
        except (ParameterError, RangeError) as error:
            raise type(error)(f"{where}: {error}") from None
    return EncryptedTable(first.frame, total, first.scale)


def read_public(path: Path) -> PublicKey:
    """Read a public key file, of ours or of phe's pheutil; a private one serves too.

    Raises:
        ParameterError, DecodeError: The file cannot be read, or is no key.
    """
    text = read_text(path)
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict) and isinstance(fields.get("pub"), dict):
        text = json.dumps(fields["pub"])
    try:
        return PublicKey.from_json(text)
    except (DecodeError, ParameterError) as error:
        raise type(error)(f"{path}: {error}") from None


def read_private(path: Path) -> PrivateKey:
    """Read a private key file.

    Raises:
        ParameterError, DecodeError: The file cannot be read, or is no private key.
    """
    text = read_text(path)
    try:
        return PrivateKey.from_json(text)
    except (DecodeError, ParameterError) as error:
        raise type(error)(f"{path}: {error}") from None
