"""Turns the rows of a table into integers for encryption. Checks everything, clips nothing."""

from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.ckks.native import ring_kernels
from securecomp.ckks.plan import InferencePlan
from securecomp.errors import ParameterError, RangeError
from securecomp.models import feature_columns

Floats = npt.NDArray[np.float64]


def rows(table: Any, plan: InferencePlan, first: int = 1, one_request: bool = True) -> Floats:
    """Return a table's features as numbers, shape (n, d).

    Args:
        table: A pandas, polars or pyarrow table that has the plan's features among its columns,
            or an array of shape (n, d) in their order.
        plan: Names the features and bounds their values.
        first: Number of the first row, for error messages. Rows count from 1.
        one_request: Refuse more rows than fit one request.

    Raises:
        ParameterError: A missing feature, text, an empty cell, another shape, no or too many rows.
        RangeError: A value that is not finite, or beyond its bound; row and column are named.
    """
    array = feature_columns(table, plan.features, first)
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
            f"{len(array):,} rows, and a request has 1 to {plan.rows_per_request:,}; "
            "split the table"
        )
    bounds = np.array(plan.bounds)
    # NaN is not within any bound.
    good = np.abs(array) <= bounds
    if not good.all():
        row, column = np.argwhere(~good)[0]
        name, value, row = plan.features[column], array[row, column], row + first
        if np.isnan(value):
            raise RangeError(
                f"feature {name!r}, row {row}: is missing; fill it in, or drop the row"
            )
        raise RangeError(
            f"feature {name!r}, row {row}: is beyond {bounds[column]:g}, the largest value that "
            "the plan allows; correct it, or ask the server for a plan with larger bounds"
        )
    return array


def check_count(count: int, plan: InferencePlan) -> None:
    """Refuse a table with more rows than the plan answers, before any of them is sent.

    Raises:
        ParameterError: The table has too many rows.
    """
    if plan.max_rows and count > plan.max_rows:
        raise ParameterError(
            f"{count:,} rows, and the plan answers {plan.max_rows:,} in total for one client; "
            "leave out the rest, or ask the server for a plan with a larger max_rows"
        )


def integers(array: Floats, plan: InferencePlan) -> npt.NDArray[np.int64]:
    """Return X = round(x / bound 2^input_bits), shape (n, inputs): exact up to the rounding.

    For an encrypted model there is one more column: the constant that multiplies the intercept.
    """
    scale = 2.0**plan.linear.input_bits / np.array(plan.bounds)
    out = np.empty((len(array), plan.inputs), np.int64)
    ring_kernels.rounded(array, scale, out[:, : len(plan.bounds)])
    out[:, len(plan.bounds) :] = 1 << plan.linear.input_bits
    return out
