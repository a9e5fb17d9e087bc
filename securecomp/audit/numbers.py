"""Arrays as attacks take them: of the right shape, and finite."""

from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError

Floats = npt.NDArray[np.float64]


def finite(values: Any, what: str, dimensions: int, *, widen: bool = False) -> Floats:
    """Return numbers as float64; with `widen`, a vector as one row, and a number as a vector.

    Raises:
        ParameterError: Not numbers, another number of dimensions, empty, NaN or infinite.
    """
    try:
        if np.iscomplexobj(values):
            raise TypeError
        array = np.array(values, np.float64, ndmin=dimensions if widen else 0)
    except (TypeError, ValueError):
        raise ParameterError(f"{what}: not numbers; encode categories as numbers first") from None
    if array.ndim != dimensions or not array.size:
        wanted = "a vector" if dimensions == 1 else "rows by columns"
        raise ParameterError(f"{what}: {wanted}, and not empty, not of shape {array.shape}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = ", ".join(str(i + 1) for i in wrong[0])
        raise ParameterError(f"{what}: element {place} is NaN or infinite; correct it")
    return array


def one_each(labels: Any, rows: int, what: str) -> npt.NDArray[Any]:
    """Return labels as an array, one a row.

    Raises:
        ParameterError: Another number of them.
    """
    array = np.asarray(labels)
    if array.shape != (rows,):
        raise ParameterError(f"{what}: labels of shape {array.shape} for {rows} rows")
    return array
