"""Rows as integers, and the sum of their clipped gradients: exact, whatever the rows are.

The gradient of a row's loss is the outer product of its residual r, shape (K,), and the row x,
shape (d,), so that its norm is |r| |x| and no gradient is ever written out. Rounding is where such
sums break their sensitivity (floats round differently when a row is missing), so there is none:

- A row becomes integers once, and by itself: u = rint(2^20 x / |x|), and its length |x|.
- Scores are u . w for weights w that were rounded to integers: exact products in float64, because
  |u| |w| < 2^53. So a row's residual depends on that row and the model, not on its neighbours in
  memory.
- The clipped residual r |x| / C becomes integers v, rounded toward zero, with |v| |u| <= 2^40 in
  exact arithmetic. The sum of v u^T over a batch is a product of integer matrices: over at most
  2^13 rows all partial sums are at most 2^53, so that float64 holds them in whatever order BLAS
  adds; more rows are added in int64.

So one row that is added or removed changes the sum by an integer matrix of Frobenius norm at most
2^40 = `UNIT`, and by nothing else. Of a patient with several rows the norms |v| |u| add up to at
most that, which by the triangle inequality bounds the norm of the patient's sum. What it rests on:
that numpy computes an element's exponential the same way wherever the element stands in an array
that is contiguous, as all are here (tests try it); squared losses need only IEEE arithmetic.
"""

import numpy as np
import numpy.typing as npt

from securecomp.errors import LocalProtocolError, ParameterError, RangeError
from securecomp.federated.losses import Floats, Loss

Places = npt.NDArray[np.intp]
Integers = npt.NDArray[np.int64]

_HALF = 20
UNIT = 1 << 2 * _HALF
"""The largest norm that one unit's clipped gradient has, in integers: it stands for the clip."""
_CHUNK = 1 << 13  # rows times UNIT is 2^53
_WEIGHT_BITS = 30
MOST_UNITS = 1 << 22  # times UNIT is 2^62
MOST_FEATURES = 1 << 20
LARGEST = 1e60
"""Of a feature, a target and a weight: products of three are floats still."""


class UnitRows:
    """A table as directions and lengths.

    Attributes:
        units: How many units (records or patients) it has.
        features: How many columns.
    """

    def __init__(self, table: Floats, units: Places | None = None) -> None:
        """Turn a table into integers.

        Args:
            table: Finite numbers, shape (n, d).
            units: Of each row, whose it is: numbers 0, 1, 2, ...; by default each row is a unit.

        Raises:
            RangeError: A number is not finite, or beyond 1e60; the row is named.
            ParameterError: More units or columns than integers of 64 bits can add up.
        """
        # Of one row alone numpy adds in another order than of several rows in columns.
        table = np.ascontiguousarray(table, np.float64)
        check_finite("X", table)
        count, self.features = table.shape
        self.units = count if units is None else int(units.max(initial=-1)) + 1
        if count > MOST_UNITS:
            raise ParameterError(f"exact sums hold for up to {MOST_UNITS:,} rows, not {count:,}")
        if not 1 <= self.features <= MOST_FEATURES:
            raise ParameterError(
                f"a row has 1 to {MOST_FEATURES:,} features, with the intercept, "
                f"not {self.features:,}"
            )
        self._units = units
        largest = np.abs(table).max(axis=1, keepdims=True, initial=0)
        # First by the largest, so that no square overflows or vanishes.
        shape = np.divide(table, largest, out=np.zeros_like(table), where=largest > 0)
        norms = np.sqrt((shape * shape).sum(axis=1, keepdims=True))
        self._lengths: Floats = (largest * norms)[:, 0]
        np.divide(shape, norms, out=shape, where=norms > 0)
        shape *= 1 << _HALF
        self._directions: Floats = np.rint(shape, out=shape)
        # Squares add up to less than 2^53: exact.
        self._norms: Floats = np.sqrt((shape * shape).sum(axis=1))
        # A unit less than what fits: more than all roundings of `weights` can add.
        fits = np.divide(UNIT, self._norms, out=np.zeros(count), where=self._norms > 0)
        self._largest: Floats = np.maximum(np.floor(fits) - 1, 0)

    def of(self, chosen: Places) -> Places:
        """Return the rows of some units, which are given in ascending order."""
        if self._units is None:
            return chosen
        mask = np.zeros(self.units, np.bool_)
        mask[chosen] = True
        return np.flatnonzero(mask[self._units])

    def total(
        self, rows: Places, model: Floats, targets: Floats, loss: Loss, clip: float
    ) -> Integers:
        """Return the sum of the clipped gradients of some rows, in units of clip / UNIT.

        Args:
            rows: Which; of a unit all rows or none.
            model: Weights, shape (K, d).
            targets: Of all rows, shape (n, K).
            loss: The loss.
            clip: The largest norm of a unit's gradient.

        Returns:
            Integers, shape (K, d).

        Raises:
            ParameterError: The model has left what floats can compute with.
        """
        everything = len(rows) == len(self._lengths)
        taken = self._directions if everything else self._directions.take(rows, axis=0)
        scores = self._scores(taken, rows, model)
        residuals = loss.residuals(scores, targets[rows])
        weights = self.weights(rows, residuals, clip)
        total = np.zeros(model.shape, np.int64)
        for start in range(0, len(rows), _CHUNK):
            stop = start + _CHUNK
            total += (weights[start:stop].T @ taken[start:stop]).astype(np.int64)
        return total

    def _scores(self, taken: Floats, rows: Places, model: Floats) -> Floats:
        """Return what the model says of rows, each from that row alone, shape (m, K)."""
        size = float(np.abs(model).max())
        if not size <= LARGEST:
            raise ParameterError(
                "the weights left what floats can compute with; take a smaller learning rate"
            )
        norm = float(np.sqrt(((model / size) ** 2).sum())) * size if size else 1.0
        shift = _WEIGHT_BITS - int(np.frexp(norm)[1])
        grid = np.rint(np.ldexp(model, shift))
        scores = np.ldexp(taken @ grid.T, -shift - _HALF)
        scores *= self._lengths[rows, None]
        return np.asarray(scores)

    def weights(self, rows: Places, residuals: Floats, clip: float) -> Floats:
        """Return clipped residuals as integers, shape (m, K).

        Args:
            rows: Which rows; of a unit all or none.
            residuals: Theirs, shape (m, K).
            clip: The largest norm of a unit's gradient.

        Raises:
            LocalProtocolError: A weight is larger than it can be: of a computer that computes
                wrongly. Nothing is returned.
        """
        lengths, most = self._lengths[rows] / clip, self._largest[rows]
        sizes = np.sqrt((residuals * residuals).sum(axis=1))
        whole = sizes * lengths
        if self._units is not None:
            owners = self._units[rows]
            whole = np.bincount(owners, whole, minlength=1)[owners]
        scale = lengths / np.maximum(whole, 1.0)
        # |residuals| * scale is at most 1, up to roundings.
        weights: Floats = np.trunc(residuals * (scale * most)[:, None])
        norms = np.sqrt((weights * weights).sum(axis=1)) * self._norms[rows]
        if self._units is not None:
            norms = np.bincount(owners, norms)
        # Margin for the roundings of this sum; the weights' own is larger.
        if not (norms <= UNIT * (1 - 2.0**-30)).all():
            raise LocalProtocolError("a clipped gradient is longer than the clip; nothing is shown")
        return weights


def check_finite(name: str, table: Floats) -> None:
    """Refuse NaN, infinity and what is too large to compute with; the first row is named.

    Raises:
        RangeError: There is one.
    """
    fine = np.abs(table) <= LARGEST
    if fine.all():
        return
    row = int(np.flatnonzero(~fine.reshape(len(table), -1).all(axis=1))[0])
    worst = table[row]
    what = "NaN" if np.isnan(worst).any() else "inf" if np.isinf(worst).any() else "beyond 1e60"
    raise RangeError(
        f"{name}: row {row} (counted from 0) has a value that is {what}; "
        "fill it in or leave the row out; nothing was trained or spent"
    )
