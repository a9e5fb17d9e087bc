"""Rows of arrays and data frames: concatenation, selection, comparison and checks."""

from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from securecomp.audit.confidences import Rows
from securecomp.errors import ParameterError
from securecomp.statistics.cell_values import comparable

Floats = npt.NDArray[np.float64]
_NAMED = 5


def joined(first: Any, second: Any) -> Any:
    """Concatenate the rows of two arrays, or of two data frames with the same column names.

    Raises:
        ParameterError: The rows do not fit together.
    """
    if _is_frame(first) != _is_frame(second):
        raise ParameterError("members, holdout and pool must all be arrays, or all data frames")
    try:
        if _is_frame(first):
            one, other = _framed(first), _framed(second)
            if set(one.columns) == set(other.columns):
                other = other.select(one.columns)
            return nw.to_native(nw.concat([one, other], how="vertical"))
        return np.concatenate([np.asarray(first), np.asarray(second)])
    except ParameterError:
        raise
    except Exception as error:  # each data frame library raises its own errors
        reason = str(error).split("\n")[0]
        raise ParameterError(f"the rows do not fit together: {reason}") from None


def shaped(numbers: npt.NDArray[np.float64], like: Any) -> Any:
    """Return rows of numbers in the form of other rows: a frame with their columns, or an array.

    Raises:
        ParameterError: Two columns have one name.
    """
    if not _is_frame(like):
        return numbers
    if len(set(like.columns)) < len(like.columns):
        raise ParameterError("two columns of the rows have one name; rename one of them")
    frame = nw.from_native(like, eager_only=True)
    columns = dict(zip(frame.columns, numbers.T, strict=True))
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def taken(rows: Any, places: Any) -> Any:
    """Return the rows at some places."""
    if _is_frame(rows):
        return nw.to_native(nw.from_native(rows, eager_only=True)[np.asarray(places).tolist()])
    return np.asarray(rows)[places]


def refuse_alike(first: Rows, second: Rows, names: tuple[str, str], what: str) -> None:
    """Refuse rows with equal features and labels on both sides, as in `refuse_common`.

    If one side is in single precision, both are compared in single precision.
    """
    narrow = any(getattr(x, "dtype", None) == np.float32 for x, _ in (first, second))
    refuse_common(_keys(first, narrow), _keys(second, narrow), names, what)


def _keys(rows: Rows, narrow: bool) -> list[Hashable]:
    """Return a key for the content of each row: all features and the label."""
    x, y = rows
    marks = [comparable(int(mark) if isinstance(mark, bool) else mark) for mark in _listed(y)]
    if _is_frame(x):
        # The order of the columns makes no difference.
        frame = _framed(x)
        cells = zip(
            *(frame.get_column(name).to_list() for name in sorted(frame.columns, key=str)),
            strict=True,
        )
        return [(*map(comparable, row), mark) for row, mark in zip(cells, marks, strict=True)]
    array = np.asarray(x)
    try:
        with np.errstate(over="ignore"):
            array = array.astype(np.float32 if narrow else np.float64)
    except (TypeError, ValueError):
        return [(*map(comparable, row), mark) for row, mark in zip(array, marks, strict=True)]
    whole = np.ascontiguousarray(array + array.dtype.type(0)).reshape(len(array), -1)
    # 0 and -0 are one number.
    return [(row.tobytes(), mark) for row, mark in zip(whole, marks, strict=True)]


def _framed(table: Any) -> Any:
    try:
        return nw.from_native(table, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise ParameterError("a data frame has several columns of one name; rename them") from None


def _listed(labels: Any) -> list[Any]:
    found: list[Any] = np.asarray(labels).tolist()
    return found


def refuse_common(
    first: Sequence[Hashable], second: Sequence[Hashable], names: tuple[str, str], what: str
) -> None:
    """Refuse two sets of rows with a key in common.

    Args:
        first: A key for each row of one set; None equals nothing.
        second: A key for each row of the other set.
        names: Names of the sets in error messages.
        what: End of the error message: the common thing, and the remedy.

    Raises:
        ParameterError: There is a common key. The message names the rows, and never a value.
    """
    places: dict[Hashable, int] = {}
    for row, key in enumerate(first, 1):
        places.setdefault(key, row)
    common = [(places[k], row) for row, k in enumerate(second, 1) if k is not None and k in places]
    if not common:
        return
    pairs = ", ".join(f"row {a} and row {b}" for a, b in common[:_NAMED])
    more = f", and {len(common) - _NAMED:,} more" if len(common) > _NAMED else ""
    raise ParameterError(f"{names[0]} and {names[1]} overlap: {pairs}{more} {what}")


def other_column(columns: Sequence[str], features: Sequence[str], source: str) -> str:
    """Return the only column that is not a feature of a model: the column of labels.

    Raises:
        ParameterError: There is no such column, or more than one.
    """
    others = [name for name in columns if name not in set(features)]
    if len(others) != 1:
        raise ParameterError(
            f"{source}: {len(others)} columns are not features of the model; name the one with the "
            "true class (--label)"
        )
    return others[0]


def _is_frame(rows: Any) -> bool:
    return hasattr(rows, "columns") or hasattr(rows, "column_names")


def finite(values: Any, what: str, dimensions: int, *, widen: bool = False) -> Floats:
    """Return finite numbers as float64.

    Args:
        values: The numbers.
        what: Their name in error messages.
        dimensions: The number of dimensions that they must have.
        widen: Take a vector for a matrix of one row, and a number for a vector.

    Raises:
        ParameterError: Not numbers, another number of dimensions, empty, NaN or infinite.
    """
    try:
        if np.iscomplexobj(values):
            raise TypeError
        array = np.array(values, np.float64, ndmin=dimensions if widen else 0)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{what}: must be numbers; encode categories as numbers first"
        ) from None
    if array.ndim != dimensions or not array.size:
        wanted = "a vector" if dimensions == 1 else "rows by columns"
        raise ParameterError(f"{what}: must be {wanted}, and not empty, not of shape {array.shape}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = ", ".join(str(i + 1) for i in wrong[0])
        raise ParameterError(f"{what}: element {place} is NaN or infinite; correct it")
    return array


def one_each(labels: Any, rows: int, what: str) -> npt.NDArray[Any]:
    """Return labels as an array, one for each row.

    Raises:
        ParameterError: The labels are not one for each row.
    """
    array = np.asarray(labels)
    if array.shape != (rows,):
        raise ParameterError(
            f"{what}: {rows} rows need a label each, and the labels have shape {array.shape}"
        )
    return array
