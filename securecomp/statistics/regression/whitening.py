"""Columns made orthogonal by public totals.

From the exact sums of products everybody computes one transformation, and each site applies it to
its own rows. In the new coordinates the columns have mean 0 (where there is an intercept) and are
orthogonal with sum of squares W, the sum of the weights: a Newton step there is well conditioned
whatever the columns' units, offsets and correlations, and sums have sharp public bounds, since by
Cauchy and Schwarz no site's |sum w z_i z_j v| passes W max|v|.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt
from gmpy2 import mpfr

from securecomp.core import plain_products
from securecomp.errors import ParameterError, brief
from securecomp.statistics.regression.cross_products import ProductTotals

_PRECISION = 512  # bits, of which an exact dependency leaves 2^-490
_ZERO = 2.0**-300  # of a sum of squares about 0: about its mean, it is 0
_LEAST = 1e-20  # of a sum of squares about the mean, the least pivot that floats can divide by
_SAME = 2.0**-140  # of a sum of squares, what is left of 0 where a pivot is _LEAST
_UNITS = 4096
_ROWS = 1 << 14
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Whitening:
    """The public transformation z = (x - centre) T, and with an intercept z_0 = 1.

    Attributes:
        intercept: Whether the model has one; it is the first coordinate.
        centre: What is subtracted from each other column, shape (k,).
        units: What the sites' columns are multiples of, shape (k,); 1 without a grid.
        origin: The centre in these units, shape (k,).
        transform: T, upper triangular, shape (k, k).
        weight: The sum of the weights, which every coordinate's sum of squares is.
        start: Sums of products of the coordinates with the response, shape (d,).
        ones: Sums of the coordinates, shape (d,).
        solution: Least squares coefficients of the response in these coordinates, shape (d,).
        coefficients: The same in the columns' own units, each rounded once, shape (d,).
        residual: The response's weighted sum of squares that they leave; meaningless if its
            square was not summed.
        total: The response's weighted sum of squares, about its mean with an intercept.
        constant: Whether a constant is a combination of the columns.
    """

    intercept: bool
    centre: Matrix
    units: Matrix
    origin: Matrix
    transform: Matrix
    weight: float
    start: Matrix
    ones: Matrix
    solution: Matrix
    coefficients: Matrix
    residual: float
    total: float
    constant: bool

    @property
    def level(self) -> Matrix:
        """The coordinates of 1 in every row, or of what is nearest to it; shape (d,)."""
        return self.ones / self.weight

    def back(self) -> Matrix:
        """Return M, shape (d, d): coefficients are M times those of the coordinates."""
        if not self.intercept:
            return self.transform
        size = len(self.centre) + 1
        found = np.zeros((size, size))
        found[0, 0] = 1
        found[1:, 1:] = self.transform
        found[0, 1:] = -plain_products.product(self.centre, self.transform)
        return found

    def apply(self, columns: Matrix) -> None:
        """Replace the columns of a site, shape (rows, k), by the coordinates, in place.

        Args:
            columns: In `units`. Integers far from zero lose no digit when they are centred.
        """
        transform = self.units[:, None] * self.transform
        for start in range(0, len(columns), _ROWS):
            part = columns[start : start + _ROWS]
            part[:] = (part - self.origin) @ transform


def whiten(moments: ProductTotals, names: Sequence[str], intercept: bool) -> Whitening:
    """Compute the transformation, in 512 bits.

    Args:
        moments: The totals.
        names: The columns, without the intercept.
        intercept: Whether there is one.

    Raises:
        ParameterError: A column is a combination of others, or varies too little for its size.
    """
    with gmpy2.context(gmpy2.get_context(), precision=_PRECISION):
        weight = mpfr(moments.weight)
        squares = _wide(moments.squares)
        sums, product = _wide(moments.sums), _wide(moments.with_response)
        response = mpfr(moments.response)
        total = mpfr(moments.response_squared)
        centre = np.zeros(len(names))
        raw, units = squares.diagonal().copy(), _wide(moments.units)
        origin = centre
        if intercept:
            # Centred about a float near the mean, which a site can subtract without rounding.
            origin = np.array([float(s / u / weight) for s, u in zip(sums, units, strict=True)])
            c = _wide(origin) * units
            centre = _narrow(c)
            squares = squares - np.outer(c, sums) - np.outer(sums, c) + weight * np.outer(c, c)
            product = product - c * response
            total -= response * response / weight
            means = sums / weight
            sums = sums - c * weight
            # What is left of the mean, 2^-53 of it.
            squares = squares - np.outer(sums, sums) / weight
            product = product - sums * response / weight
        # Where a column was rounded, what is left of it must be many units.
        rounded = weight * (_UNITS * _wide(moments.rounding)) ** 2
        for name, size, noise in zip(names, raw, rounded, strict=True):
            if noise > 0 and size <= noise:
                raise ParameterError(
                    f"{brief(name)}: by the columns' bounds it could be so large that no digits "
                    "are left for its values; agree on the largest absolute value of each factor: "
                    f"bounds={{{', '.join(f'{f!r}: ...' for f in map(brief, name.split(':')))}}}"
                )
        lower, pivots = _Columns(names, intercept, squares, raw, rounded).factor()
        scale = np.array([gmpy2.sqrt(weight / p) for p in pivots], object)
        transform = _inverse(lower).T * scale
        start = transform.T @ product if len(names) else product
        ones = transform.T @ sums if len(names) else sums
        if intercept:
            start = np.append(np.array([response], object), start)
            ones = np.append(np.array([weight], object), ones)
        constant = intercept or _constant(transform, ones, weight, moments.rounding)
        solution = start / weight
        coefficients = transform @ solution[int(intercept) :] if len(names) else sums
        if intercept:
            rest = response / weight - sum(means * coefficients, mpfr(0))
            coefficients = np.append(np.array([rest], object), coefficients)
        residual = total - sum(solution[int(intercept) :] * start[int(intercept) :], mpfr(0))
        if abs(residual) <= total * mpfr(2) ** -200:
            residual = mpfr(0)  # a perfect fit
        return Whitening(
            intercept,
            centre,
            _narrow(units),
            origin,
            _narrow(transform),
            float(weight),
            _narrow(start),
            _narrow(ones),
            _narrow(solution),
            _narrow(coefficients),
            float(residual),
            float(total),
            constant,
        )


def _constant(
    transform: npt.NDArray[Any], ones: npt.NDArray[Any], weight: Any, rounding: npt.NDArray[Any]
) -> bool:
    """Whether columns without an intercept have a combination that is 1 in every row.

    What is left of the sum of squares of ones is 0, or what the rounding of columns makes of it.
    """
    left = 1 - sum(ones * ones, mpfr(0)) / weight**2
    by = transform @ ones / weight
    noise = sum((abs(b) * r for b, r in zip(by, _wide(rounding), strict=True)), mpfr(0))
    return bool(left <= max(mpfr(_SAME), noise * noise))


def _wide(values: Any) -> npt.NDArray[Any]:
    array = np.asarray(values, object)
    out = np.empty(array.shape, object)
    out.reshape(-1)[:] = [mpfr(v) for v in array.reshape(-1)]
    return out


def _narrow(values: Any) -> Matrix:
    array = np.asarray(values, object)
    return np.array([float(v) for v in array.reshape(-1)]).reshape(array.shape)


def _inverse(lower: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Invert a lower triangular matrix with ones on its diagonal."""
    size = len(lower)
    found = _wide(np.eye(size))
    for i in range(1, size):
        found[i, :i] = -(lower[i, :i] @ found[:i, :i])
    return found


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns whose dependencies are looked for.

    Attributes:
        names: Of the columns.
        intercept: Whether there is one beside them.
        squares: Sums of products, about the means with an intercept, shape (k, k).
        raw: Sums of squares about 0, shape (k,).
        rounded: What a pivot must pass where the column was rounded, shape (k,); else 0.
    """

    names: Sequence[str]
    intercept: bool
    squares: npt.NDArray[Any]
    raw: npt.NDArray[Any]
    rounded: npt.NDArray[Any]

    def factor(self, size: int | None = None) -> tuple[npt.NDArray[Any], list[Any]]:
        """Return L and D of squares = L D L', of the first columns.

        Raises:
            ParameterError: A column depends on those before it; it is named.
        """
        size = len(self.names) if size is None else size
        lower, pivots = self.squares[:size, :size].copy(), []
        for j in range(size):
            pivot = lower[j, j]
            if pivot <= self._least(j):
                raise self._dependent(j, pivot)
            pivots.append(pivot)
            column = lower[j + 1 :, j] / pivot
            for i in range(j + 1, size):
                lower[i, j + 1 : i + 1] -= column[i - j - 1] * lower[j + 1 : i + 1, j]
            lower[j + 1 :, j] = column
            lower[j, j] = mpfr(1)
            lower[j, j + 1 :] = mpfr(0)
        return lower, pivots

    def _least(self, j: int) -> Any:
        return max(self._zero(j), _LEAST * self.squares[j, j], self.rounded[j])

    def _zero(self, j: int) -> Any:
        """Return what is 0 beside a column's sum of squares."""
        return _ZERO * self.raw[j]

    def _dependent(self, j: int, pivot: Any) -> ParameterError:
        """Say why a column has no coefficient of its own."""
        name = brief(self.names[j])
        if self.raw[j] == 0:
            return ParameterError(f"{name} is 0 in every row of all sites; leave it out")
        sure = pivot <= self._zero(j) and not self.rounded[j]
        if self.squares[j, j] > max(self._zero(j), self.rounded[j]):
            with_one = " up to a constant" if self.intercept else ""
            nearly = "" if sure else ", or nearly one"
            return ParameterError(
                f"{name} is a combination of {self._others(j)}{with_one}{nearly}, so that no "
                "coefficients are best; leave one of them out"
                + ("" if sure else ", or subtract agreed numbers first, as in I((x - 60) ** 2)")
            )
        if sure:
            return ParameterError(
                f"{name} is the same in every row of all sites, as the intercept is; leave it out"
            )
        return ParameterError(
            f"{name} varies so little beside its bound that none of its digits are left, or not at "
            "all; leave it out, or subtract an agreed number from the column first, as in "
            "I(x - 1000), and agree on what is left: bounds={'I(x - 1000)': 50}"
        )

    def _others(self, j: int) -> str:
        """Name the columns before one of which it is a combination."""
        lower, pivots = self.factor(j)
        inverse, own = _inverse(lower), self.squares.diagonal()
        by = inverse.T @ ((inverse @ self.squares[:j, j]) / np.array(pivots, object))
        parts = [
            brief(self.names[k])
            for k in range(j)
            if abs(by[k]) * gmpy2.sqrt(own[k] / own[j]) > 1e-6
        ]
        return ", ".join(parts[:8]) + (f" and {len(parts) - 8} more" if len(parts) > 8 else "")
