"""Privacy of sums of integer noise: exact for one number, else by one of two bounds.

Notation: a unit (a patient, a record, a client) changes the integers that are summed by at most l1
in sum of absolute values and l2 in Euclidean norm. Noise of several parties is added; of the ones
that count (`honest`), nobody knows the noise.

Many numbers, and noise too wide to write its distribution out, have the smaller of two bounds: by
Renyi divergence, and by how little wide noise differs from continuous Gaussian noise of the same
variance v, rounded to integers, which keeps Gaussian noise's promise (`near_gaussian`). For that
let x = t sqrt(v), t at most sqrt(v) / 4, p its probability, f the Gaussian's density, and q its
integral over x - 1/2 to x + 1/2.

- log(q / f) is within (t^2 + 1) / 24 v (midpoint rule; promise.py of `federated` has it at length).
- Of discrete Gaussian noise log(f / p) is from 0 to 3 exp(-2 pi^2 v) (Poisson summation).
- Of Skellam noise p is exp(-v) times the Bessel function I_x(v). By its uniform expansion (Olver;
  NIST Handbook of Mathematical Functions, 10.41) log(p / f) is v (sqrt(1 + s^2) - 1 - s asinh(s) +
  s^2 / 2) - log(1 + s^2) / 4, s = x / v, but for 1 / 7 v: from -(t^2 / 4 + 1/7) / v to
  (t^4 / 24 + 1/7) / v.

So log(p / q) is within h of 0, h = (t^2 + 2) / 23 v or (t^4 / 24 + t^2 / 3 + 1) / v, and beyond
lies at most 4 exp(-t^2 / 2 + t^4 / 24 v) of either. Over all numbers h and what lies beyond, w, add
up. As in promise.py, delta at epsilon is at most e^h d + w (1 + e^(epsilon + h)), d the Gaussian's
at epsilon - 2 h. What a block of Gaussian noise is on may depend on the blocks before it (Dong,
Roth, Su, Gaussian differential privacy, 2022, corollary 3.3).

Sources: Agarwal, Kairouz, Liu, The Skellam mechanism for differentially private federated learning,
NeurIPS 2021, theorem 3.5 (Skellam noise is closed under sums; its Renyi divergence is the
Gaussian's and a correction); Kairouz, Liu, Steinke, The distributed discrete Gaussian mechanism for
federated learning with secure aggregation, ICML 2021, theorem 1 and proposition 14 (sums of
discrete Gaussians are none: tau is what they differ by); Canonne, Kamath, Steinke, NeurIPS 2020,
proposition 12 (from Renyi divergence to delta).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from securecomp.core import checks
from securecomp.errors import ParameterError
from securecomp.privacy import calibration

Floats = npt.NDArray[np.float64]

LEAST_LOCAL_SIGMA = 2.0
"""Of discrete Gaussians that are added; below, their sums are too far from one."""
_EXACT_SIGMA = 16384.0  # up to here a distribution is written out
_FINE = 1e-6  # relative; what calibration keeps away from the promise for rounding
_ORDERS = np.unique(
    np.concatenate([np.arange(2, 129), np.geomspace(128, 1 << 20, 400).astype(np.int64)])
).astype(np.float64)
"""Orders of Renyi divergence; integers, as the theorem on Skellam noise wants them."""


@dataclass(frozen=True, slots=True)
class UnitChange:
    """By how much one unit changes a block of integers.

    Attributes:
        size: Number of integers.
        l1: Largest sum of absolute changes.
        l2: Largest Euclidean norm of the changes.
        one: Whether only one of the integers can change.
    """

    size: int
    l1: int
    l2: float
    one: bool = False

    def __post_init__(self) -> None:
        checks.integer(self.size, "the number of integers")
        checks.integer(self.l1, "what a unit changes")
        for name, value in (("l1", self.l1), ("l2", self.l2)):
            checks.real(value, f"the {name} norm of what a unit changes")
        checks.truth(self.one, "one")
        if self.size < 1 or self.l1 < 1 or not 0 < self.l2 <= self.l1 * (1 + _FINE):
            raise ParameterError(
                "a unit changes at least one integer by at least 1, and its l2 norm is at most "
                f"its l1 norm: not size {self.size}, l1 {self.l1}, l2 {self.l2}"
            )


Noised = Sequence[tuple[UnitChange, float]]
"""What one unit changes, a block of integers, and a variance of that block's noise."""


def tau(local_sigma: float, parties: int) -> float:
    """Return by how much the sum of discrete Gaussians differs from one (theorem 1)."""
    k = np.arange(1, parties)
    return float(10 * np.exp(-2 * math.pi**2 * local_sigma**2 * k / (k + 1)).sum())


def skellam_rdp(change: UnitChange, variance: float) -> Floats:
    """Return the Renyi divergences, at all orders, of Skellam noise of this total variance."""
    square = change.l2**2
    gauss = _ORDERS * square / (2 * variance)
    fine = ((2 * _ORDERS - 1) * square + 6 * change.l1) / (4 * variance**2)
    return np.asarray(gauss + np.minimum(fine, 3 * change.l1 / (2 * variance)))


def gaussian_rdp(change: UnitChange, local_variance: float, parties: int) -> Floats:
    """Return the Renyi divergences of the sum of so many discrete Gaussians."""
    variance = local_variance * parties
    t = tau(math.sqrt(local_variance), parties)
    square, d = change.l2**2 / variance, change.size
    first = _ORDERS / 2 * square + t * d
    second = _ORDERS / 2 * (square + 2 * change.l1 / math.sqrt(variance) * t + t * t * d)
    third = _ORDERS / 2 * (math.sqrt(square) + math.sqrt(d) * t) ** 2
    return np.asarray(np.minimum(np.minimum(first, second), third))


def delta_of_rdp(divergences: Floats, epsilon: float) -> float:
    """Return the smallest delta that the divergences promise at epsilon."""
    logs = (
        (_ORDERS - 1) * (divergences - epsilon)
        - np.log(_ORDERS - 1)
        + _ORDERS * np.log1p(-1 / _ORDERS)
    )
    return float(np.exp(min(0.0, float(logs.min()))))


def exact_delta(mass: Floats, shift: int, epsilon: float) -> float:
    """Return the exact delta of symmetric noise when one number changes by `shift`.

    Args:
        mass: Probabilities of 0, 1, 2, ... up to `reach`.
        shift: The change, at least 1.
        epsilon: At least 0.
    """
    whole = np.concatenate([mass[:0:-1], mass])
    moved = np.concatenate([whole[shift:], np.zeros(min(shift, len(whole)))])[: len(whole)]
    gain = whole - math.exp(epsilon) * moved
    return float(gain[gain > 0].sum())


def skellam_mass(variance: float, upto: int) -> Floats:
    """Return the probabilities of 0..upto."""
    return np.asarray(special.ive(np.arange(upto + 1), variance), np.float64)


def gaussian_mass(variance: float, upto: int) -> Floats:
    """Return the discrete Gaussian's probabilities of 0..upto."""
    weights = np.exp(-(np.arange(upto + 1, dtype=np.float64) ** 2) / (2 * variance))
    return np.asarray(weights / (2 * weights.sum() - 1))


def sum_mass(mass: Floats, parties: int) -> Floats:
    """Return the probabilities of a sum of so many, from those of one: 0, 1, 2, ...

    Sums of positive numbers, so that small probabilities are right in relative terms.
    """
    one = np.concatenate([mass[:0:-1], mass])
    total = one
    for _ in range(parties - 1):
        total = np.convolve(total, one)
    return np.asarray(total[len(total) // 2 :])


def reach(variance: float, bits: int = 128) -> int:
    """Return what noise passes with probability below 2^-bits, by Bernstein's inequality.

    It holds for Skellam and discrete Gaussian noise of this variance.
    """
    need = (bits + 1) * math.log(2)
    return math.ceil(need / 3 + math.sqrt((need / 3) ** 2 + 2 * need * variance))


def is_exact(change: UnitChange, deviation: float = 1.0) -> bool:
    """Return whether a change's delta is summed up from the noise's distribution."""
    return change.one and max(deviation, change.l1) <= _EXACT_SIGMA


def near_gaussian(
    kind: Literal["skellam", "discrete-gaussian"],
    noised: Noised,
    epsilon: float,
    apart: float = 0.0,
) -> float:
    """Return the delta of wide noise by that of Gaussian noise; 1 if it is not wide enough.

    Args:
        kind: The noise.
        noised: What one unit changes, a block, and the variance of that block's noise.
        epsilon: Of all blocks together.
        apart: By how much logarithms of all its probabilities together may differ from `kind`'s.
    """
    ratio = 1 / math.sqrt(math.fsum(change.l2**2 / variance for change, variance in noised))
    numbers, least = sum(c.size for c, _ in noised), min(variance for _, variance in noised)
    middle = calibration.gaussian_delta(ratio, epsilon)
    seen = max(middle * _FINE / (8 * numbers), 1e-300)
    t = math.sqrt(2 * (min(epsilon, 300.0) - math.log(seen)))
    if t > math.sqrt(least) / 4 or epsilon > 300:
        return 1.0
    one = t**4 / 24 + t**2 / 3 + 1 if kind == "skellam" else (t**2 + 2) / 23
    h = apart + one * math.fsum(c.size / variance for c, variance in noised)
    beyond = numbers * 4 * math.exp(t**4 / (24 * least) - t**2 / 2)
    if epsilon <= 2 * h:
        return 1.0
    within = math.exp(h) * calibration.gaussian_delta(ratio, epsilon - 2 * h)
    return min(1.0, within + beyond * (1 + math.exp(epsilon + h)))


def skellam_delta(change: UnitChange, variance: float, epsilon: float) -> float:
    """Return the delta of Skellam noise: exact if one number changes, and the noise is not huge."""
    if is_exact(change, math.sqrt(variance)):
        mass = skellam_mass(variance, reach(variance) + change.l1)
        return exact_delta(mass, change.l1, epsilon)
    return min(skellam_bounds([(change, variance)], epsilon).values())


def gaussian_delta(
    change: UnitChange, local_variance: float, parties: int, epsilon: float
) -> float:
    """Return the delta of a sum of discrete Gaussians; of one number by its distribution.

    The sum's probabilities are those of one discrete Gaussian up to factors exp(+-tau).

    Raises:
        ParameterError: Several are added, and each is narrower than what theorem 1 is used for.
    """
    sigma = math.sqrt(local_variance)
    if parties > 1 and sigma < LEAST_LOCAL_SIGMA:
        raise ParameterError(
            f"discrete Gaussians of local sigma {sigma:.4g} are added: below "
            f"{LEAST_LOCAL_SIGMA:g} their sum is not one, and promises less than one of the same "
            "variance; take more noise, or Skellam noise"
        )
    variance = local_variance * parties
    if is_exact(change, math.sqrt(variance)):
        t = tau(sigma, parties)
        mass = gaussian_mass(variance, reach(variance) + change.l1)
        return math.exp(t) * exact_delta(mass, change.l1, epsilon - 2 * t)
    return min(gaussian_bounds([(change, local_variance)], parties, epsilon).values())


def skellam_bounds(noised: Noised, epsilon: float) -> dict[str, float]:
    """Return deltas of Skellam noise on all blocks by how they were found.

    Args:
        noised: What one unit changes, a block, and the total variance of that block's noise.
        epsilon: Of all blocks together.
    """
    rdp = _composed(noised, skellam_rdp)
    wide = near_gaussian("skellam", noised, epsilon)
    return {"RDP": delta_of_rdp(rdp, epsilon), "analytic": wide}


def gaussian_bounds(noised: Noised, parties: int, epsilon: float) -> dict[str, float]:
    """Return the same of sums of so many discrete Gaussians, from their local variances."""
    rdp = _composed(noised, lambda c, local: gaussian_rdp(c, local, parties))
    total = [(change, local * parties) for change, local in noised]
    apart = math.fsum(c.size * tau(math.sqrt(v), parties) for c, v in noised)
    wide = near_gaussian("discrete-gaussian", total, epsilon, apart)
    return {"RDP": delta_of_rdp(rdp, epsilon), "analytic": wide}


@lru_cache(maxsize=256)
def skellam_variances(
    changes: tuple[UnitChange, ...], epsilon: float, delta: float
) -> tuple[float, ...]:
    """Return the total variance for each block so that all together keep the promise."""

    def found(multiple: float) -> float:
        if len(changes) == 1:
            return skellam_delta(changes[0], (multiple * changes[0].l2) ** 2, epsilon)
        noised = [(c, (multiple * c.l2) ** 2) for c in changes]
        return min(skellam_bounds(noised, epsilon).values())

    multiple = _least(found, delta)
    return tuple((multiple * c.l2) ** 2 for c in changes)


@lru_cache(maxsize=256)
def gaussian_variances(
    changes: tuple[UnitChange, ...], epsilon: float, delta: float, parties: int
) -> tuple[float, ...]:
    """Return the local variances, one a block, of so many parties' discrete Gaussians."""
    floor = LEAST_LOCAL_SIGMA**2 if parties > 1 else 0.0

    def local(multiple: float, change: UnitChange) -> float:
        return max(floor, (multiple * change.l2) ** 2 / parties)

    def found(multiple: float) -> float:
        if len(changes) == 1:
            return gaussian_delta(changes[0], local(multiple, changes[0]), parties, epsilon)
        noised = [(c, local(multiple, c)) for c in changes]
        return min(gaussian_bounds(noised, parties, epsilon).values())

    multiple = _least(found, delta)
    return tuple(local(multiple, change) for change in changes)


def _composed(noised: Noised, rdp: Callable[[UnitChange, float], Floats]) -> Floats:
    """Return the divergences of all blocks; equal ones, as rounds of a training, are found once."""
    each = (many * rdp(*one) for one, many in Counter(noised).items())
    return np.asarray(sum(each))


def _least(delta_at: Callable[[float], float], delta: float) -> float:
    """Return the least multiple whose delta is within the promise; more noise, less delta."""
    goal = delta * (1 - _FINE)
    low, high = 2.0**-10, 2.0**-10
    while delta_at(high) > goal:
        low, high = high, 2 * high
        if high > 2.0**40:
            raise ParameterError("no amount of noise keeps this promise; raise epsilon or delta")
    while high > low * (1 + 1e-4):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_at(middle) > goal else (low, middle)
    return high
