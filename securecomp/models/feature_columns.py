"""A table's columns as numbers, in the order of a model's features."""

from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from securecomp.errors import ParameterError
from securecomp.models.links import Floats


def feature_columns(table: Any, features: tuple[str, ...], first: int = 1) -> Floats:
    """Return the columns with these names as numbers, shape (n, d). An array is taken as it is.

    Args:
        table: A table of pandas, polars or pyarrow, or an array.
        features: Names of the columns.
        first: Number of the first row, for error messages.

    Raises:
        ParameterError: A missing column, text, or an empty cell. Row and column are named.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    try:
        frame = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ParameterError("the table has two columns of one name; drop one of them") from None
    if isinstance(frame, nw.LazyFrame):
        raise ParameterError("the table is not loaded yet; collect it first")
    if not isinstance(frame, nw.DataFrame):
        return _numbers(table, features, first)
    missing = [name for name in features if name not in frame.columns]
    if missing:
        known = ", ".join(map(str, frame.columns[:20]))
        raise ParameterError(f"the table has no column {missing[0]!r}; it has: {known}")
    columns = []
    for name in features:
        column = frame[name]
        if column.null_count():
            row = first + column.is_null().arg_true()[0]
            raise ParameterError(
                f"feature {name!r}, row {row}: is missing; fill it in, or drop the row"
            )
        numeric = column.dtype.is_numeric() or column.dtype == nw.Boolean
        if not numeric and not _all_numbers(column):
            row = _first_text(column)
            raise ParameterError(
                f"feature {name!r}, row {row + first}: is not a number; correct it"
                if row is not None
                else f"feature {name!r}: holds {column.dtype}, not numbers; correct or encode it"
            )
        values = column.to_numpy() if numeric else np.array(column.to_list(), np.float64)
        columns.append(_numbers(values, (name,), first))
    return np.column_stack(columns)


def _all_numbers(column: Any) -> bool:
    """Return whether a column of objects holds numbers alone."""
    return column.dtype == nw.Object and all(
        isinstance(value, bool | int | float | np.number) for value in column.to_list()
    )


def _first_text(column: Any) -> int | None:
    """Return the index of the first text among numbers; None if the column has one kind only."""
    good = []
    for value in column.to_list():
        try:
            float(value)
        except (TypeError, ValueError):
            good.append(False)
        else:
            good.append(True)
    return good.index(False) if False in good and True in good else None


def _numbers(values: Any, features: tuple[str, ...], first: int) -> Floats:
    what = f"feature {features[0]!r}" if len(features) == 1 else "the rows"
    if hasattr(values, "toarray"):  # scipy's sparse matrices
        values = values.toarray()
    try:
        array = np.asarray(values)
    except ValueError:
        raise ParameterError(f"{what}: rows differ in length") from None
    if array.dtype == object:
        array = _plain(array, what, features, first)
    if array.dtype.kind not in "biuf":
        raise ParameterError(f"{what}: expected numbers, not {array.dtype}")
    return array.astype(np.float64, copy=False)


def _plain(
    array: npt.NDArray[np.object_], what: str, features: tuple[str, ...], first: int
) -> npt.NDArray[Any]:
    """Return an array of Python's numbers, of any kind, as floats."""
    for place, value in np.ndenumerate(array):
        if isinstance(value, str | bytes) or value is None:
            column = features[min(place[-1] if len(place) > 1 else 0, len(features) - 1)]
            where = f"feature {column!r}, row {place[0] + first}" if place else what
            raise ParameterError(f"{where}: is not a number; correct it, or drop the row")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{what}: expected numbers") from None
