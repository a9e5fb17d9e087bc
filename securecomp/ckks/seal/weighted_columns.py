"""Sums of encrypted columns times integers, on SEAL."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from securecomp.ckks.seal.seal_context import Context
from securecomp.ckks.seal.sigmoid_plan import Reals


def weighted_sums(
    context: Context, columns: Sequence[bytes], scale: float, integers: Reals
) -> list[Any]:
    """Return for each row of integers the sum of columns times its integers.

    A column is decoded once for all rows, and then dropped. The scale stays that of the columns.

    Args:
        context: The parameters.
        columns: Fresh ciphertexts, one for each feature.
        scale: Their scale.
        integers: Whole numbers, shape (K, d).

    Raises:
        DecodeError: Not fresh ciphertexts of these parameters.
    """
    factors = integers.copy()
    # SEAL refuses to multiply by 0. A row of zeros gets one weight of the least size.
    factors[~factors.any(axis=1), 0] = 1.0
    levels = context.chain.levels
    sums: list[Any] = [None] * len(factors)
    for j, column in enumerate(columns):
        ciphertext = context.load(column, levels, scale, seeded=True)
        for k in np.flatnonzero(factors[:, j]):
            term = context.empty()
            constant = context.encode(float(factors[k, j]), levels, 1.0)
            context.evaluator.multiply_plain(ciphertext, constant, term)
            if sums[k] is None:
                sums[k] = term
            else:
                context.evaluator.add_inplace(sums[k], term)
    return sums
