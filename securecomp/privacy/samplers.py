"""Exact samplers of noise on the integers: discrete Laplace, discrete Gaussian, Poisson, Skellam.

Noise that is made of floating-point numbers has holes, and the holes tell what was added (Mironov,
On significance of the least significant bits for differential privacy, CCS 2012). These samplers
return integers, and each value with exactly its probability, tails included, under what `uniforms`
says: no approximation, no cut-off, no 32 or 64 bits that could be full. Parameters are taken as the
exact numbers that they are: 0.1 is the double, Fraction(1, 10) the tenth.

All are one scheme: an integer proposal t V + U with a sign, V of at least k with probability
exp(-k), U below t, is accepted with probability exp(-U / t) for the discrete Laplace distribution
of scale t (Canonne, Kamath, Steinke, The discrete Gaussian for differential privacy, NeurIPS 2020,
algorithm 2), times the ratio of the wanted distribution to it (algorithm 3 for the Gaussian; for
Poisson, whose logarithm is concave, the ratio is largest near the mean times exp(+-1/t)). About two
proposals a draw.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import numpy.typing as npt

from securecomp.core import checks
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.fixedpoint import is_number
from securecomp.errors import LocalProtocolError, ParameterError
from securecomp.privacy.uniforms import Exact, Integers, Interval, Uniforms, enclose

Real = int | float | Fraction
Floats = npt.NDArray[np.float64]

_BATCH = 1 << 17  # proposals whose arrays stay in the processor's caches, more or less
_NARROW = 1 << 50  # scales up to here leave int64 room: V passes 2^12 with probability exp(-4096)
_SMALLEST, _LARGEST = Fraction(1, 1 << 400), Fraction(1 << 1000)  # doubles reach further
_SLACK = 2.0**-20
_SERIES, _STIRLING = 0.1, 16


def discrete_laplace(scale: Real, size: int, entropy: Entropy = entropy_.system) -> Integers:
    """Draw x with probability proportional to exp(-|x| / scale), shape (size,).

    Raises:
        ParameterError: The scale is no positive finite number.
    """
    wanted = _positive("the scale", scale)
    step = math.ceil(wanted)
    slope = 1 / wanted - Fraction(1, step)
    factor = -float(slope)
    return _draw(
        Uniforms(entropy),
        _count(size),
        step,
        lambda x: factor * np.abs(x).astype(np.float64),
        lambda x, bits: enclose(gmpy2.mpq(-slope * abs(x)), bits),
    )


def discrete_gaussian(variance: Real, size: int, entropy: Entropy = entropy_.system) -> Integers:
    """Draw x with probability proportional to exp(-x^2 / (2 variance)), shape (size,).

    `variance` is sigma^2 of the formula; the distribution's own is that from sigma of about 1 on,
    and smaller below.

    Raises:
        ParameterError: The variance is no positive finite number.
    """
    wanted = _positive("the variance", variance)
    step = math.isqrt(math.floor(wanted)) + 1
    centre = wanted / step
    middle, sigma = float(centre), _root(wanted)

    def ratio(x: Integers) -> Floats:
        z = (np.abs(x).astype(np.float64) - middle) / sigma
        return -z * z / 2

    return _draw(
        Uniforms(entropy),
        _count(size),
        step,
        ratio,
        lambda x, bits: enclose(gmpy2.mpq(-((abs(x) - centre) ** 2) / (2 * wanted)), bits),
    )


def skellam(variance: Real, size: int, entropy: Entropy = entropy_.system) -> Integers:
    """Draw the difference of two Poisson numbers of mean variance / 2, shape (size,).

    Raises:
        ParameterError: The variance is no positive finite number.
    """
    mean = _positive("the variance", variance) / 2
    uniforms = Uniforms(entropy)
    both = _poisson(uniforms, mean, 2 * _count(size))
    return both[:size] - both[size:]


def poisson(mean: Real, size: int, entropy: Entropy = entropy_.system) -> Integers:
    """Draw Poisson numbers, shape (size,).

    Raises:
        ParameterError: The mean is no positive finite number.
    """
    wanted = _positive("the mean", mean)
    offsets = _poisson(Uniforms(entropy), wanted, _count(size))
    whole = math.floor(wanted)
    return (offsets if whole < _NARROW else offsets.astype(object)) + whole


def uniform(bound: int, size: int, entropy: Entropy = entropy_.system) -> Integers:
    """Draw integers from 0 to bound - 1, each as likely, shape (size,)."""
    checks.integer(bound, "the number of integers", 1)
    return Uniforms(entropy).integers(bound, _count(size))


def bernoulli(p: Real, size: int, entropy: Entropy = entropy_.system) -> npt.NDArray[np.bool_]:
    """Draw truth values that are true with probability p, shape (size,).

    Raises:
        ParameterError: p is not in [0, 1].
    """
    if not is_number(p) or not 0 <= p <= 1:
        raise ParameterError(f"a probability is from 0 to 1, not {p!r}")
    exact = _exact(p)
    drawn = Uniforms(entropy).integers(exact.denominator, _count(size))
    return np.asarray(drawn < exact.numerator, np.bool_)


def bernoulli_exp(
    exponent: Real, size: int, entropy: Entropy = entropy_.system
) -> npt.NDArray[np.bool_]:
    """Draw truth values that are true with probability exp(-exponent), shape (size,).

    Raises:
        ParameterError: The exponent is negative or not finite.
    """
    exact = Fraction(0) if exponent == 0 else _positive("the exponent", exponent)
    logs = np.full(_count(size), -float(exact))
    return Uniforms(entropy).below(logs, lambda _, bits: enclose(gmpy2.mpq(-exact), bits))


def _draw(
    uniforms: Uniforms,
    size: int,
    step: int,
    ratio: Callable[[Integers], Floats],
    exact: Callable[[int, int], Interval],
) -> Integers:
    """Draw x with probability proportional to exp(-|x| / step) exp(ratio(x)), shape (size,)."""
    parts: list[npt.NDArray[Any]] = []
    have = 0
    wide = step > _NARROW
    while have < size:
        tries = min(_BATCH, 2 * (size - have) + 32)
        low = uniforms.integers(step, tries)
        high = uniforms.geometric(tries)
        x = low.astype(object) + high.astype(object) * step if wide else low + high * step
        negative = uniforms.bits(tries)
        x = np.where(negative, -x, x)
        part = -(low / step).astype(np.float64)
        keep = uniforms.below(part + ratio(x), _both(x, low, step, exact))
        keep &= ~negative | np.asarray(x != 0, np.bool_)  # zero has one sign
        parts.append(x[keep])
        have += int(keep.sum())
    return np.concatenate(parts)[:size] if parts else np.zeros(0, np.int64)


def _both(x: Integers, low: Integers, step: int, exact: Callable[[int, int], Interval]) -> Exact:
    def bounds(index: int, bits: int) -> Interval:
        least, most = exact(int(x[index]), bits)
        down, up = enclose(gmpy2.mpq(-int(low[index]), step), bits)
        # mpfr adds with the precision around it; widened by more than that can lose.
        with gmpy2.context(precision=bits + 64, emin=-(1 << 40), emax=1 << 40):
            unit = gmpy2.exp2(-bits) * (1 + abs(least) if least > -gmpy2.inf() else 1)
            return least + down - unit, most + up + unit

    return bounds


def _poisson(uniforms: Uniforms, mean: Fraction, size: int) -> Integers:
    """Draw Poisson numbers less the whole part of their mean."""
    whole = math.floor(mean)
    rest = float(mean - whole)
    step = max(1, math.isqrt(whole))
    mu = float(mean)

    def log_mass(x: Integers) -> Floats:
        k = (x.astype(object) + whole if whole >= _NARROW else x + whole).astype(np.float64)
        return _log_poisson(k, x.astype(np.float64) - rest, mu)

    def height(x: Integers) -> Floats:
        return np.asarray(log_mass(x) + np.abs(x).astype(np.float64) / step)

    near = [math.floor(mu * math.expm1(way / step)) + i for way in (-1, 0, 1) for i in (-1, 0, 1)]
    spots = np.array([max(x, -whole) for x in near], object if whole >= _NARROW else np.int64)
    # Any number from the maximum up serves; it is the same one in doubles and in intervals.
    largest = float(height(spots).max()) + _SLACK

    def ratio(x: Integers) -> Floats:
        found = height(x) - largest
        if found.size and found.max() > 0:
            raise LocalProtocolError(
                "a proposal is rarer than what it stands for; nothing is drawn"
            )
        return np.asarray(found)

    def exact(x: int, bits: int) -> Interval:
        k = whole + x
        if k < 0:
            return -gmpy2.inf(), -gmpy2.inf()
        # Terms of up to 2^size each round by half a unit; eight units are more than all of them.
        span = max(k, whole + 1).bit_length() + 12
        with gmpy2.context(precision=bits + span + 8, emin=-(1 << 40), emax=1 << 40):
            value = (
                k * gmpy2.log(gmpy2.mpq(mean))
                - gmpy2.mpq(mean)
                - gmpy2.lngamma(gmpy2.mpfr(k + 1))
                + gmpy2.mpq(abs(x), step)
                - gmpy2.mpq(Fraction(largest))
            )
            unit = gmpy2.exp2(-bits)
            return value - unit, value + unit

    return _draw(uniforms, size, step, ratio, exact)


def _log_poisson(k: Floats, off: Floats, mu: float) -> Floats:
    """Return the logarithms of Poisson probabilities of k, where off is k - mu; -inf below zero.

    Source: Loader, Fast and accurate computation of binomial probabilities, 2000: Stirling's series
    and the deviance, of which nothing cancels.
    """
    out = np.full(k.shape, -np.inf)
    few = (k >= 0) & (k < _STIRLING)
    if few.any():
        factorials = np.array([math.lgamma(i + 1.0) for i in range(_STIRLING)])
        small = k[few]
        out[few] = small * math.log(mu) - mu - factorials[small.astype(np.int64)]
    many = k >= _STIRLING
    n, d = k[many], off[many]
    inverse = 1 / n
    square = inverse * inverse
    stirling = inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )
    v = d / (n + mu)
    near = np.abs(v) < _SERIES
    deviance = np.empty_like(n)
    far = n[~near]
    deviance[~near] = far * np.log(far / mu) + mu - far
    v, n_near = v[near], n[near]
    term, total = 2 * n_near * v, d[near] * v
    for j in range(1, 10):
        term = term * v * v
        total = total + term / (2 * j + 1)
    deviance[near] = total
    out[many] = -stirling - deviance - 0.5 * np.log(2 * math.pi * n)
    return out


def _positive(what: str, value: Real) -> Fraction:
    if not is_number(value) or not 0 < value < math.inf:
        raise ParameterError(f"{what} of noise is a positive finite number, not {value!r}")
    exact = _exact(value)
    if not _SMALLEST <= exact <= _LARGEST:
        raise ParameterError(f"{what} of noise is from 2^-400 to 2^1000; choose another unit")
    return exact


def _exact(value: Real) -> Fraction:
    """Return a number as a fraction of Python's integers; numpy's would wrap."""
    if isinstance(value, np.integer):
        return Fraction(int(value))
    numerator, denominator = value.as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


def _count(size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ParameterError(f"a number of draws is a whole number from 0 on, not {size!r}")
    return size


def _root(value: Fraction) -> float:
    """Return the square root, also of what is larger than any double."""
    shift = max(0, value.numerator.bit_length() - value.denominator.bit_length() - 200) // 2 * 2
    return math.ldexp(math.sqrt(value / (1 << shift)), shift // 2)
