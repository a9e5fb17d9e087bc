"""Decrypted numbers of a circuit."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Decrypted(NamedTuple):
    """Numbers that a client decrypts, not rounded.

    Attributes:
        values: Logits or their sigmoids, shape (n, K).
        outside: Rows with a logit outside the domain of the server's polynomial, shape (n,). The
            client has computed their sigmoids itself.
    """

    values: npt.NDArray[np.float64]
    outside: npt.NDArray[np.bool_]

    @classmethod
    def inside(cls, values: npt.NDArray[np.float64]) -> "Decrypted":
        """Return values none of which is outside."""
        return cls(values, np.zeros(len(values), bool))
