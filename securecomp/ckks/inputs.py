"""Rows of a table to integers for encryption: everything is checked, nothing clipped."""

from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from securecomp.ckks.native import ring_kernels
from securecomp.ckks.plan import InferencePlan
from securecomp.errors import ParameterError, RangeError

Floats = npt.NDArray[np.float64]


def rows(table: Any, plan: InferencePlan, first: int = 1, one_request: bool = True) -> Floats:
    """Return a table's features as numbers, shape (n, d).

    Args:
        table: A pandas, polars or pyarrow table that has the plan's features among its columns,
            or an array of shape (n, d) in their order.
        plan: Says which features, and what bounds their values.
        first: Number of the first row, for errors; they count from 1.
        one_request: Refuse more rows than a request has.

    Raises:
        ParameterError: A missing feature, text, an empty cell, another shape, no or too many rows.
        RangeError: A value that is not finite or beyond its bound. Row and column are named.
    """
    array = numbers(table, plan.features, first)
    if array.ndim != 2 or array.shape[1] != len(plan.features):
        raise ParameterError(
            f"the rows have shape {array.shape}; expected (n, {len(plan.features)}), "
            "one column a feature"
        )
    if not len(array):
        raise ParameterError("there is no row to predict")
    check_count(len(array), plan)
    if one_request and len(array) > plan.rows_per_request:
        raise ParameterError(
            f"{len(array):,} rows; a request has 1 to {plan.rows_per_request:,}, so split what "
            "has more"
        )
    bounds = np.array(plan.bounds)
    # Also false for NaN.
    good = np.abs(array) <= bounds
    if not good.all():
        row, column = np.argwhere(~good)[0]
        name, value, row = plan.features[column], array[row, column], row + first
        if np.isnan(value):
            raise RangeError(f"feature {name!r}, row {row}: is missing; fill it in or drop the row")
        raise RangeError(
            f"feature {name!r}, row {row}: is beyond {bounds[column]:g}, the largest value that "
            "the plan allows; correct it, or ask for a plan with larger bounds"
        )
    return array


def check_count(count: int, plan: InferencePlan) -> None:
    """Refuse more rows than one client is answered, before some of them are.

    Raises:
        ParameterError: There are.
    """
    if plan.max_rows and count > plan.max_rows:
        raise ParameterError(
            f"{count:,} rows, and the plan answers {plan.max_rows:,} for one client in all; leave "
            "out the rest, or ask for a plan with a larger max_rows"
        )


def numbers(table: Any, features: tuple[str, ...], first: int = 1) -> Floats:
    """Return a table's columns of these names as numbers, shape (n, d); an array as it is.

    Raises:
        ParameterError: A missing column, text, an empty cell. Row and column are named.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    try:
        frame = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ParameterError("the table has a column twice; drop one of them") from None
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
                f"feature {name!r}, row {row}: is missing; fill it in or drop the row"
            )
        if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
            row = _first_text(column)
            raise ParameterError(
                f"feature {name!r}, row {row + first}: is not a number; correct it"
                if row is not None
                else f"feature {name!r}: holds {column.dtype}, not numbers; correct or encode it"
            )
        columns.append(_numbers(column.to_numpy(), (name,), first))
    return np.column_stack(columns)


def _first_text(column: Any) -> int | None:
    """Return the index of the first value that is no number; None if all are alike in that."""
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
    """Return Python's numbers, of any kind, as floats."""
    for place, value in np.ndenumerate(array):
        if isinstance(value, str | bytes) or value is None:
            column = features[min(place[-1] if len(place) > 1 else 0, len(features) - 1)]
            where = f"feature {column!r}, row {place[0] + first}" if place else what
            raise ParameterError(f"{where}: is not a number; correct it, or drop the row")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{what}: expected numbers") from None


def integers(array: Floats, plan: InferencePlan) -> npt.NDArray[np.int64]:
    """Return X = round(x / bound 2^input_bits), shape (n, inputs): exact but for the rounding.

    An encrypted model has one more column, the constant that its intercept is multiplied by.
    """
    scale = 2.0**plan.linear.input_bits / np.array(plan.bounds)
    out = np.empty((len(array), plan.inputs), np.int64)
    ring_kernels.rounded(array, scale, out[:, : len(plan.bounds)])
    out[:, len(plan.bounds) :] = 1 << plan.linear.input_bits
    return out
