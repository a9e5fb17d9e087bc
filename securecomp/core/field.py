"""Arithmetic modulo p = 2^61 - 1 on numpy uint64 arrays.

A residue is a uint64 below p. Signed integers up to (p-1)/2 map to residues and back: negative
ones sit in the upper half. Functions broadcast as numpy does and return new arrays unless an
`out` is given. They take canonical residues and, for speed, do not check them; `check` does, and
everything that takes data from outside calls it.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core import buffers, checks, field_kernels
from securecomp.core.fixedpoint import as_array
from securecomp.errors import ParameterError, RangeError

Residues = npt.NDArray[np.uint64]
"""Canonical residues: uint64, each below MODULUS."""

MODULUS = (1 << 61) - 1
BITS = 61
LIMIT = (MODULUS - 1) // 2
"""The largest absolute value that a residue can stand for."""

_POINTS = 5
_BLOCK = 512
"""Inner length of one exact float64 block: 512 products of at most 2^22 x 2^22 reach 2^53."""


def check(values: npt.ArrayLike, what: str = "values") -> Residues:
    """Return `values` as residues.

    Args:
        values: Integers of any numpy or Python type, any shape, each in [0, p).
        what: What to call them in an error.

    Raises:
        ParameterError: Not integers.
        RangeError: A value is not in [0, p).
    """
    array = integers(values, what)
    if array.size == 0:
        return np.zeros(array.shape, np.uint64)
    if array.dtype == object:
        good = all(0 <= v < MODULUS for v in array.flat)
    elif array.dtype.kind in "iu":
        # A negative integer is a large uint64, so one comparison refuses both ends.
        array = _contiguous(array, np.uint64)
        good = field_kernels.canonical(array.reshape(-1))
    else:
        raise ParameterError(
            f"{what}: expected integers, got {array.dtype}; "
            "encode reals with core.fixedpoint before they are shared"
        )
    if not good:
        raise RangeError(
            f"{what}: a value is not in [0, 2^61-1); turn signed integers into residues with "
            "field.encode"
        )
    return array.astype(np.uint64, copy=False)


def encode(
    values: npt.ArrayLike,
    bound: int = LIMIT,
    what: str = "values",
    out: Residues | None = None,
) -> Residues:
    """Map signed integers to residues.

    Args:
        values: Integers, any shape, each in [-bound, bound].
        bound: At most (p-1)/2.
        what: What to call them in an error.
        out: Where to put them: contiguous, of the same shape.

    Raises:
        ParameterError: Not integers.
        RangeError: A value is beyond `bound`.
    """
    checks.integer(bound, f"{what}: the bound", 0, LIMIT)
    array = integers(values, what)
    out = _output(out, array.shape, np.uint64)
    if array.size == 0:
        return out
    too_wide = array.dtype.kind == "u" and int(array.max()) > bound
    if array.dtype == object:
        too_wide = any(abs(v) > bound for v in array.flat)
    elif array.dtype.kind not in "iub":
        raise ParameterError(f"{what}: expected integers, got {array.dtype}")
    if not too_wide:
        flat = _contiguous(array, np.int64).reshape(-1)
        if field_kernels.encode(flat, bound, out.reshape(-1)):
            return out
    raise RangeError(f"{what}: a value is beyond the bound {bound}; declare a larger one")


def decode(
    residues: Residues,
    out: npt.NDArray[np.int64] | None = None,
    *,
    bound: int = LIMIT,
    what: str = "values",
) -> npt.NDArray[np.int64]:
    """Map residues back to the signed integers in [-(p-1)/2, (p-1)/2].

    Raises:
        RangeError: An integer is beyond `bound`.
    """
    flat = _contiguous(residues, np.uint64)
    out = _output(out, flat.shape, np.int64)
    if not field_kernels.decode(flat.reshape(-1), bound, out.reshape(-1)):
        raise RangeError(f"{what}: a value is beyond the bound {bound}")
    return out


def public(values: npt.ArrayLike, what: str = "constant") -> Residues:
    """Reduce public integers of any size and sign modulo p.

    Raises:
        ParameterError: Not integers.
    """
    array = integers(values, what)
    if array.size == 0:
        return np.zeros(array.shape, np.uint64)
    if array.dtype.kind not in "iubO":
        raise ParameterError(f"{what}: expected integers, got {array.dtype}")
    if array.dtype.kind in "ib":
        return np.asarray(np.mod(array, np.int64(MODULUS))).astype(np.uint64)
    if array.dtype.kind == "u":
        return np.asarray(np.mod(array, np.uint64(MODULUS))).astype(np.uint64)
    return np.asarray(np.mod(array.astype(object), MODULUS)).astype(np.uint64)


def integers(values: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    """Return an array; an object array holds Python ints only.

    Raises:
        ParameterError: An object that is no integer, or rows of different lengths.
    """
    array = as_array(values, what)
    if array.dtype != object:
        return array
    if not all(isinstance(v, int | np.integer | np.bool_) for v in array.flat):
        raise ParameterError(f"{what}: expected integers, got {np.asarray(values).dtype}")
    out = np.empty(array.shape, object)
    out.reshape(-1)[:] = [int(v) for v in array.flat]
    return out


def _contiguous(array: npt.NDArray[Any], kind: type) -> npt.NDArray[Any]:
    # np.ascontiguousarray would make a vector of a scalar.
    return np.asarray(array, kind, order="C")


def _output(out: npt.NDArray[Any] | None, shape: tuple[int, ...], kind: type) -> npt.NDArray[Any]:
    if out is None:  # all kinds here have eight bytes
        return buffers.residues(math.prod(shape)).view(kind).reshape(shape)
    if out.shape != shape or out.dtype != kind or not out.flags.c_contiguous:
        raise ParameterError(
            f"out must be contiguous, {np.dtype(kind)}, of shape {shape}; it is {out.dtype}, "
            f"{out.shape}"
        )
    return out


def _elementwise(kernel: Any, a: Residues, b: Residues, out: Residues | None) -> Residues:
    if a.shape != b.shape:
        try:
            a, b = np.broadcast_arrays(a, b)
        except ValueError:
            raise ParameterError(f"shapes {a.shape} and {b.shape} do not go together") from None
    a, b = _contiguous(a, np.uint64), _contiguous(b, np.uint64)
    out = _output(out, a.shape, np.uint64)
    kernel(a.reshape(-1), b.reshape(-1), out.reshape(-1))
    return out


def add(a: Residues, b: Residues, out: Residues | None = None) -> Residues:
    """Return a + b mod p. `out` must be contiguous and may be `a` or `b`."""
    return _elementwise(field_kernels.add, a, b, out)


def subtract(a: Residues, b: Residues, out: Residues | None = None) -> Residues:
    """Return a - b mod p. `out` must be contiguous and may be `a` or `b`."""
    return _elementwise(field_kernels.subtract, a, b, out)


def negative(a: Residues) -> Residues:
    """Return -a mod p."""
    return subtract(np.zeros((), np.uint64), a)


def multiply(a: Residues, b: Residues, out: Residues | None = None) -> Residues:
    """Return a * b mod p. `out` must be contiguous and may be `a` or `b`."""
    if out is None and b.ndim == 0:
        out = _output(None, a.shape, np.uint64)
        field_kernels.scale(_contiguous(a, np.uint64).reshape(-1), b[()], out.reshape(-1))
        return out
    return _elementwise(field_kernels.multiply, a, b, out)


def product(a: Residues, axis: int) -> Residues:
    """Return the product along an axis, by halving."""
    a = np.moveaxis(a, axis, 0)
    while a.shape[0] > 1:
        half = a.shape[0] // 2
        rest = a[2 * half :]
        a = multiply(a[:half], a[half : 2 * half])
        if rest.size:
            a = np.concatenate([a, rest])
    return a[0] if a.shape[0] else np.ones(a.shape[1:], np.uint64)


def inverse(a: Residues) -> Residues:
    """Return 1/a mod p, by Fermat's a^(p-2).

    Raises:
        ParameterError: An element is zero.
    """
    if not np.all(a):
        raise ParameterError("inverse: zero has none")
    result = np.ones(a.shape, np.uint64)
    power = a
    exponent = MODULUS - 2
    while exponent:
        if exponent & 1:
            result = multiply(result, power)
        exponent >>= 1
        if exponent:
            power = multiply(power, power)
    return result


def matmul(a: Residues, b: Residues, plus: Residues | None = None) -> Residues:
    """Return the matrix product a @ b mod p, exact for every inner length.

    Args:
        a: Residues, shape (m, k).
        b: Residues, shape (k, n).
        plus: What to add the product to, in place: residues, shape (m, n), contiguous, and no part
            of `a` or `b`.

    Raises:
        ParameterError: The shapes do not match.

    Each residue is three balanced digits in base 2^21: a polynomial, whose values at five points
    are at most 2^22. Sums of 512 products of those are at most 2^53 and so exact in float64;
    longer inner lengths go in blocks. BLAS does the work: a product a point, by Toom and Cook.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ParameterError(f"matmul: shapes {a.shape} and {b.shape} do not match")
    (m, inner), n = a.shape, b.shape[1]
    out = np.zeros((m, n), np.uint64) if plus is None else _output(plus, (m, n), np.uint64)
    products = _points(m, n)
    for start in range(0, inner, _BLOCK):
        left = _digits(a[:, start : start + _BLOCK])
        right = _digits(b[start : start + _BLOCK])
        np.matmul(left, right, out=products)
        field_kernels.join_products(products.reshape(_POINTS, m * n), out.reshape(-1))
    return out


def _digits(matrix: Residues) -> npt.NDArray[np.float64]:
    digits = _points(*matrix.shape)
    flat = _contiguous(matrix, np.uint64).reshape(-1)
    field_kernels.digits(flat, digits.reshape(_POINTS, matrix.size))
    return digits


def _points(m: int, n: int) -> npt.NDArray[np.float64]:
    return buffers.residues(_POINTS * m * n).view(np.float64).reshape(_POINTS, m, n)
