"""Matrix products with the same bits on every processor.

BLAS adds in another order on another processor, so that last bits differ. What sites show as one
result, computed by each from agreed numbers, is computed here: element by element, in one order.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def product(left: Floats, right: Floats) -> Floats:
    """Return `left @ right`, with the terms of each sum added from the first to the last.

    Args:
        left: Shape (n,) or (m, n).
        right: Shape (n,) or (n, k).

    Returns:
        Shape () or (k,), (m,) or (m, k). Each sum of n terms is off by at most n 2^-53 times the
        sum of the terms' absolute values.
    """
    rows = np.atleast_2d(left)
    columns = right if right.ndim == 2 else right[:, None]
    found = np.zeros((len(rows), columns.shape[1]))
    for i in range(len(right)):
        found += rows[:, i, None] * columns[i]
    return found.reshape(left.shape[:-1] + right.shape[1:])
