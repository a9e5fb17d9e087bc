"""The best polynomials for the logistic function on a declared domain.

A server that computes under encryption has additions and products only, so it computes a
polynomial p in place of the logistic function. Among all polynomials of its degree, the one here
has the least largest error on [-B, B]; it is found by Remez's exchange and kept in the Chebyshev
basis, where its coefficients are small and its evaluation is stable.

Outside [-B, B] the polynomial is no approximation of anything, and grows like its highest power.

Source: Remez, Comptes Rendus 198 (1934); Trefethen, Approximation Theory and Approximation
Practice (2013), chapter 10. Equioscillation of odd functions: the best odd polynomial of degree d
is also the best of degree d+1, so its error reaches its maximum d+3 times with changing sign.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from securecomp.errors import ParameterError, RangeError

Reals = npt.NDArray[np.float64]

LEAST_DOMAIN = 0.5
MOST_DOMAIN = 128.0
MOST_DEGREE = 63
ROUNDING = 1e-12
"""Covers what float64 rounds here; a true error far below it is stated as about this."""

_EXCHANGES = 60
_LEVELLED = 1e-6  # the exchange ends when all extrema are this equal
_SHARP = 0.02  # how far the proven bound may be above the largest error on the grid
_CURVATURE = 0.0963  # the logistic function's second derivative is at most 1 / (6 sqrt 3)
_CHUNK = 1 << 16


@dataclass(frozen=True)
class SigmoidPolynomial:
    """p(x) = sum of c_k T_k(x / B), the best polynomial for 1 / (1 + exp(-x)) on [-B, B].

    Attributes:
        domain: B, in the logit's own unit.
        degree: Odd.
        coefficients: c_0 ... c_degree in the Chebyshev basis; c_0 = 1/2, other even ones are 0.
        error: Proven: |p(x) - logistic(x)| is at most this for every x in [-B, B].
    """

    domain: float
    degree: int
    coefficients: tuple[float, ...]
    error: float

    def __call__(self, x: npt.ArrayLike) -> Reals:
        """The polynomial's value, by Clenshaw's recurrence.

        Args:
            x: Logits, any shape.

        Raises:
            RangeError: A logit is outside the domain, or not a number.
        """
        values = np.asarray(x, np.float64)
        outside = int(np.count_nonzero(~(np.abs(values) <= self.domain)))
        if outside:
            raise RangeError(f"{outside} logits are outside [-{self.domain:g}, {self.domain:g}]")
        return np.asarray(chebyshev.chebval(values / self.domain, self.coefficients))


def sigmoid(domain: float, degree: int) -> SigmoidPolynomial:
    """The best polynomial of a degree for the logistic function on [-domain, domain].

    Args:
        domain: Largest absolute logit, in [0.5, 128].
        degree: Odd, in [1, 63]. An even degree would gain nothing.

    Raises:
        ParameterError: A domain or degree out of range.
    """
    if isinstance(degree, bool) or not isinstance(degree, int):
        raise ParameterError("a degree is an integer")
    if not (1 <= degree <= MOST_DEGREE and degree % 2):
        raise ParameterError(f"the degree is {degree}, not an odd number from 1 to {MOST_DEGREE}")
    if not LEAST_DOMAIN <= domain <= MOST_DOMAIN:  # also false for nan
        raise ParameterError(f"the domain is {domain}, not in [{LEAST_DOMAIN}, {MOST_DOMAIN:g}]")
    return _best(float(domain), degree)


@lru_cache(maxsize=64)
def _best(domain: float, degree: int) -> SigmoidPolynomial:
    coefficients = _exchange(domain, degree)
    error = _proven_error(domain, coefficients)
    return SigmoidPolynomial(domain, degree, tuple(coefficients.tolist()), error)


def logistic(x: npt.ArrayLike) -> Reals:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(np.asarray(x, np.float64) / 2))


def _odd(angles: Reals, terms: int) -> Reals:
    """cos((2j+1) angle), shape (len(angles), terms): T_1, T_3, ... at cos(angle)."""
    return np.asarray(np.cos(np.outer(angles, np.arange(1, 2 * terms, 2))))


def _exchange(domain: float, degree: int) -> Reals:
    """Remez's exchange on (0, B] with T_1, T_3, ...; symmetry gives the other half."""
    terms = (degree + 1) // 2
    signs = (-1.0) ** np.arange(terms + 1)
    # Angles t with x = B cos(t); the first reference are the extrema of T_{degree+2}.
    reference = np.pi * np.arange(terms + 1) / (degree + 2)
    grid = np.linspace(0, np.pi / 2, 400 * (terms + 1) + 1)
    target = 0.5 * np.tanh(domain * np.cos(grid) / 2)
    basis = _odd(grid, terms)
    for _ in range(_EXCHANGES):
        system = np.column_stack([_odd(reference, terms), signs])
        found = np.linalg.solve(system, 0.5 * np.tanh(domain * np.cos(reference) / 2))
        odd, level = found[:-1], abs(found[-1])
        error = basis @ odd - target
        extrema = _alternating(error, terms + 1)
        largest = float(np.max(np.abs(error)))
        # Below float64's rounding there is nothing left to level.
        if extrema is None or largest <= level * (1 + _LEVELLED) or largest < ROUNDING / 10:
            break
        reference = _refined(grid, error, extrema)
    coefficients = np.zeros(degree + 1)
    coefficients[0] = 0.5
    coefficients[1::2] = odd
    return coefficients


def _alternating(error: Reals, count: int) -> npt.NDArray[np.int64] | None:
    """Places of the extreme errors, one for each run of one sign; None if runs are missing."""
    change = np.flatnonzero(np.diff(np.signbit(error))) + 1
    runs = np.split(np.arange(len(error)), change)
    places = np.array([run[np.argmax(np.abs(error[run]))] for run in runs])
    while len(places) > count:  # only an end may go, or two neighbours would have one sign
        first, last = np.abs(error[places[[0, -1]]])
        places = places[1:] if first < last else places[:-1]
    return places if len(places) == count else None


def _refined(grid: Reals, error: Reals, places: npt.NDArray[np.int64]) -> Reals:
    """Each extremum between the points of the grid, by the parabola through three of them."""
    inner = np.clip(places, 1, len(grid) - 2)
    left, middle, right = error[inner - 1], error[inner], error[inner + 1]
    bend = left - 2 * middle + right
    safe = np.where(bend == 0, 1, bend)
    shift = np.where(bend == 0, 0, 0.5 * (left - right) / safe)
    refined = grid[inner] + np.clip(shift, -1, 1) * (grid[1] - grid[0])
    return np.where(inner == places, refined, grid[places])


def _proven_error(domain: float, coefficients: Reals) -> float:
    """A bound of the error that holds between the points of a grid as well.

    In the angle t, x = B cos(t), the error g has |g''| <= M with
    M = sum of |c_k| k^2 (polynomial) + B^2 / (6 sqrt 3) + B / 4 (logistic function), so between
    two points at distance h it is at most M h^2 / 8 above the larger of them.
    """
    orders = np.arange(len(coefficients))
    bend = float(np.abs(coefficients) @ orders**2) + _CURVATURE * domain**2 + domain / 4
    terms = len(coefficients) // 2
    points = 64 * len(coefficients)
    while True:
        step = np.pi / 2 / points
        largest = 0.0
        for start in range(0, points + 1, _CHUNK):
            angles = step * np.arange(start, min(start + _CHUNK, points + 1))
            # The error is odd: half of the domain is enough.
            value = 0.5 * np.tanh(domain * np.cos(angles) / 2)
            x = np.cos(angles)
            largest = max(
                largest, float(np.max(np.abs(_clenshaw_odd(x, coefficients, terms) - value)))
            )
        slack = bend * step**2 / 8
        if slack <= _SHARP * largest + ROUNDING:
            return largest + slack + ROUNDING
        points = math.ceil(
            points * max(1.1, math.sqrt(slack / (_SHARP * largest + ROUNDING)) * 1.01)
        )


def _clenshaw_odd(x: Reals, coefficients: Reals, terms: int) -> Reals:
    """sum of c_{2j+1} T_{2j+1}(x): half the work of the full recurrence.

    With y = T_2(x) the odd ones obey T_{n+2} = 2 y T_n - T_{n-2}, and T_{-1} = T_1 = x.
    """
    twice = 4 * x * x - 2
    ahead, after = np.zeros_like(x), np.zeros_like(x)
    for j in range(terms - 1, -1, -1):
        ahead, after = coefficients[2 * j + 1] + twice * ahead - after, ahead
    return np.asarray(x * (ahead - after))
