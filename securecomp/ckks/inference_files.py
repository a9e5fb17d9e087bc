"""Files of encrypted inference: several messages in one file, and predictions as CSV."""

import csv
import io
import struct
from collections.abc import Iterable, Sequence

from securecomp.ckks.inference_client import Predictions
from securecomp.errors import DecodeError
from securecomp.models import LOGISTIC, REGRESSIONS
from securecomp.protocol import wire

_HEAD = struct.Struct(">4sBI")
_MAGIC = b"SCCM"
_VERSION = 1
_LENGTH = struct.Struct(">Q")


def join(messages: Sequence[wire.Buffer]) -> bytes:
    """Return the bytes of a file that holds several messages."""
    parts = [_HEAD.pack(_MAGIC, _VERSION, len(messages))]
    for message in messages:
        parts += [_LENGTH.pack(len(message)), bytes(message)]
    return b"".join(parts)


def split(data: bytes, where: str) -> list[memoryview]:
    """Return the messages of a file. They are not verified yet.

    Raises:
        DecodeError: Not such a file, or truncated.
    """
    if len(data) < _HEAD.size or _HEAD.unpack_from(data)[0] != _MAGIC:
        raise DecodeError(f"{where}: is not a request or answer of encrypted inference")
    _, version, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise DecodeError(f"{where}: version {version}; this software reads version {_VERSION}")
    view, position = memoryview(data), _HEAD.size
    messages = []
    while position < len(data):
        if len(data) - position < _LENGTH.size:
            raise DecodeError(f"{where}: is cut off")
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if length > len(data) - position:
            raise DecodeError(f"{where}: is cut off")
        messages.append(view[position : position + length])
        position += length
    if len(messages) != count or not messages:
        raise DecodeError(f"{where}: has {len(messages)} messages and should have {count}")
    return messages


def format_csv(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    parts: Sequence[Predictions],
    decimals: int,
) -> str:
    """Return predictions as CSV: the given columns first, then label and probabilities.

    Args:
        header: Names of the given columns. A name or text label that a spreadsheet could take for
            a formula gets an apostrophe in front.
        rows: Cells of these columns, one row for each prediction.
        parts: The predictions, in order.
        decimals: Number of decimals of the probabilities.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    classes = parts[0].classes if parts[0].link in LOGISTIC else ()
    names = (*header, "prediction", *(f"probability {c}" for c in classes))
    writer.writerow([_inert(name) for name in names])
    cells = iter(rows)
    for part in parts:
        labels = (part.means if part.link in REGRESSIONS else part.labels).tolist()
        numbers_of = part.probabilities.tolist() if classes else [()] * len(labels)
        for label, numbers in zip(labels, numbers_of, strict=True):
            shown = (f"{p:.{decimals}f}" for p in numbers)
            writer.writerow([*next(cells, ()), _inert(label), *shown])
    return out.getvalue()


def _inert(cell: object) -> object:
    """Put an apostrophe before text that a spreadsheet could take for a formula.

    The server names labels and features, and must not make the client run anything. Cells of the
    client's own table stay as they are, and so do numbers.
    """
    if isinstance(cell, str) and cell and (cell[0] in "=+-@" or not cell[0].isprintable()):
        return f"'{cell}"
    return cell
