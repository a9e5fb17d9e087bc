"""Composes privacy loss distributions, and says what it lost to rounding: a delta of 1e-100 holds.

The loss of an outcome is the logarithm of how much likelier it is with a person than without. One
answer's losses are rounded to a grid so that no delta gets smaller ("connecting the dots"), and
those of several answers add up, so that distributions are convolved, by a Fourier transform. Its
rounding is about 1e-16 of the largest number. A delta of 1e-12 is a sum of far smaller ones, and
would be noise. So a mass p at the loss l is first weighted: p exp(t l) / M(t), M(t) the sum of p
exp(t l). Weighted distributions convolve as others do, and t is chosen so that the losses which
make up the wanted delta are the likeliest. The weights are then taken back.

What is lost, with u = 2^-53, n answers and a transform of length N:

- Each of the transform's coefficients is off by at most 4 u log2(N), as the weighted masses sum up
  to 1, and a power of n by n times that and what the power itself loses. A mass is the mean of all
  coefficients' products, and off by the mean of their errors. That is added to every mass.
- One answer's delta at a loss l is off by at most r P(L > l), because it is a difference of two
  probabilities which are known to r, and its masses by as much for each cell of the grid. In the
  composition of n answers that is n r P(sum of losses > epsilon) of delta at most: one answer after
  the other is exchanged for what was computed. That is added to delta, too.
- Losses beyond the window wrap around into it, where they only add to delta; those above it are
  bounded by Chernoff and count as infinite, as do those above an answer's grid.

Sources: Koskela, Jälkö, Honkela, Computing Tight Differential Privacy Guarantees Using FFT (2020);
Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, Connect the Dots (2022), algorithm 1; Balle, Wang,
Improving the Gaussian Mechanism (2018), theorem 8, for a Gaussian's delta.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import fft, signal, special
from scipy.optimize import minimize_scalar

Floats = npt.NDArray[np.float64]
Curve = Callable[[Floats], Floats]
"""From epsilons to the deltas of one answer."""

_UNIT = 2.0**-53
_TINY = 1e-9
"""What may be left out of a window, as a share."""
_LOW = 9.0
"""Standard deviations beyond which losses below the usual count as larger ones: 1e-19 of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """One answer's losses on a grid.

    Attributes:
        width: Of the grid.
        lowest: The first cell: its loss is this many widths.
        masses: How likely each cell's loss is, from the first on.
        infinite: How likely an infinite loss is.
        rounding: Delta is off by at most this share of the probability of larger losses.
    """

    width: float
    lowest: int
    masses: Floats
    infinite: float
    rounding: float


def from_curve(curve: Curve, lowest: float, highest: float, width: float) -> Losses:
    """Return the losses of an answer whose deltas are known.

    Args:
        curve: Its deltas at epsilons of any sign, each right to 1e-12 of the probability
            that the loss is larger.
        lowest: Losses below are taken for this one.
        highest: Losses above are taken for infinite.
        width: Of the grid.
    """
    first, last = math.floor(lowest / width), math.ceil(highest / width) + 1
    epsilons = np.arange(first, last + 1, dtype=np.float64) * width
    deltas = np.minimum.accumulate(np.clip(curve(epsilons), 0, 1))
    steps = np.diff(deltas)
    masses = np.empty_like(deltas)
    up, down = math.expm1(min(width, 700.0)), math.expm1(-width)
    masses[0] = 1 - deltas[0] + steps[0] / up
    masses[1:-1] = steps[1:] / up + steps[:-1] / down
    masses[-1] = steps[-1] / down
    rounding = 1e-12 + 4 * len(deltas) * _UNIT
    masses = np.trim_zeros(np.maximum(masses, 0), "b")
    return Losses(width, first, masses, float(deltas[-1]), rounding)


def from_outcomes(losses: Floats, masses: Floats, infinite: float, width: float) -> Losses:
    """Return the losses of an answer with finitely many outcomes.

    Args:
        losses: Of each outcome, shape (outcomes,).
        masses: Probability of each, shape (outcomes,).
        infinite: How likely an infinite loss is.
        width: Of the grid.
    """
    cells = np.floor(losses / width).astype(np.int64)
    # Shared out between both neighbours so that both probabilities of the outcome stay the same.
    upper = np.clip(np.expm1(cells * width - losses) / math.expm1(-width), 0, 1) * masses
    first = int(cells.min())
    size = int(cells.max()) - first + 2
    found = np.zeros(size)
    for shift, part in ((0, masses - upper), (1, upper)):
        found += np.bincount(cells - first + shift, part, size)
    return Losses(width, first, np.trim_zeros(found, "b"), infinite, 1e-12)


def gaussian(ratio: float, reach: float, width: float) -> Losses:
    """Return the losses of Gaussian noise.

    Args:
        ratio: Its standard deviation over the sensitivity.
        reach: How many standard deviations are looked at.
        width: Of the grid.
    """
    low = 1 / (2 * ratio**2) - _LOW / ratio
    return from_curve(partial(_gaussian_curve, ratio), low, _highest(ratio, reach), width)


def laplace(ratio: float, width: float) -> Losses:
    """Return the losses of Laplace noise; `ratio` is its scale over the sensitivity."""
    most = 1 / ratio

    def curve(epsilons: Floats) -> Floats:
        # Below the least loss there is, the second.
        return np.asarray(-np.expm1(np.minimum(np.minimum((epsilons - most) / 2, epsilons), 0)))

    return from_curve(curve, -most, most, width)


def discrete_gaussian(sigma: float, change: int, reach: float, width: float) -> Losses:
    """Return the losses of discrete Gaussian noise of which `change` is the sensitivity."""
    most = math.ceil(reach * sigma) + change
    x = np.arange(-most, most + 1, dtype=np.float64)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    # Sub-Gaussian (Canonne, Kamath, Steinke 2020, lemma 5).
    beyond = 2 * math.exp(-(most**2) / (2 * sigma**2))
    losses = change * (x + change / 2) / sigma**2
    return from_outcomes(losses, weights / weights.sum(), beyond, width)


def promised(epsilon: float, delta: float, width: float) -> Losses:
    """Return the losses of the worst answer that keeps a promise."""
    ends = np.array([epsilon, -epsilon])
    return from_outcomes(ends, (1 - delta) * special.expit(ends), delta, width)


def sampled(rate: float, ratio: float, reach: float, width: float) -> tuple[Losses, Losses]:
    """Return the losses of Gaussian noise on a Poisson sample, without a unit and with it."""
    high = _highest(ratio, reach)

    def without(epsilons: Floats) -> Floats:
        # q P + (1 - q) Q against Q.
        inner = np.expm1(epsilons) / rate
        found = -np.expm1(epsilons)
        some = inner > -1
        found[some] = rate * _gaussian_curve(ratio, np.log1p(inner[some]))
        return found

    def added(epsilons: Floats) -> Floats:
        # Q against q P + (1 - q) Q.
        share = rate - np.expm1(epsilons) * (1 - rate)
        found = np.zeros_like(epsilons)
        some = share > 0
        inner = epsilons[some] + math.log(rate) - np.log(share[some])
        found[some] = share[some] * _gaussian_curve(ratio, inner)
        return found

    return (
        from_curve(without, math.log1p(-rate), _mixed(rate, high), width),
        from_curve(added, -_mixed(rate, _LOW / ratio), -math.log1p(-rate), width),
    )


def exchanged(rate: float, ratio: float, reach: float, width: float) -> Losses:
    """Return the losses of Gaussian noise on a Poisson sample if a unit is exchanged."""
    if rate == 1:
        return gaussian(ratio / 2, reach, width)
    high = _highest(ratio, reach)
    least = math.log1p(-rate) - _mixed(rate, _LOW / ratio)
    most = _mixed(rate, high) - math.log1p(-rate)
    bend = 0.5 / ratio**2 + math.log1p(-rate) - math.log(rate)

    def curve(epsilons: Floats) -> Floats:
        # The outcome whose loss is epsilon, from sinh(epsilon / 2) exp(bend) = sinh(-x - ...).
        half = np.abs(epsilons) / 2
        with np.errstate(divide="ignore"):
            grown = bend + half + np.log(-np.expm1(-2 * half) / 2)
        turned = np.logaddexp(grown, np.logaddexp(0, 2 * grown) / 2)
        x = -(ratio**2) * (np.sign(epsilons) * turned + epsilons / 2)
        logs = [special.log_ndtr((x + s) / ratio) for s in (0.0, 1.0, -1.0)]
        kept = math.log1p(-rate) + logs[0]
        upper = np.logaddexp(kept, math.log(rate) + logs[1])
        lower = epsilons + np.logaddexp(kept, math.log(rate) + logs[2])
        return np.asarray(-np.exp(upper) * np.expm1(np.minimum(lower - upper, 0)))

    return from_curve(curve, least, most, width)


def epsilon_of(answers: Sequence[tuple[Losses, int]], delta: float) -> float:
    """Return an epsilon that answers keep together at a delta; infinite if none does.

    Args:
        answers: Losses on one grid, and how many answers have them.
        delta: Above 0.
    """
    never = math.fsum(times * math.log1p(-one.infinite) for one, times in answers)
    left = delta + math.expm1(never) * (1 + _TINY) - _TINY * delta
    if left <= 0:
        return math.inf
    weights = _Weights(answers, delta)
    epsilon, inside = _within(weights, left)
    while not inside and weights.tilt > _TINY:  # the window begins above the least epsilon
        weights.turn(weights.tilt / 2)
        found, inside = _within(weights, left)
        epsilon = min(epsilon, found)
    return epsilon


def _within(weights: "_Weights", delta: float) -> tuple[float, bool]:
    """Return epsilon as far as a window shows it, and whether a lower one would not be less."""
    width, tilt = weights.width, weights.tilt
    first, masses, rounding = weights.composed()
    losses = (first + np.arange(len(masses))) * width
    masses = masses * np.exp(weights.log_norm - tilt * losses)
    # Of losses from each cell on, Q times e^loss; by each cell down, delta gains a part of it.
    other = signal.lfilter([1.0], [1.0, -math.exp(-width)], masses[::-1])[::-1]
    deltas = np.append(np.cumsum(other[:0:-1])[::-1] * -math.expm1(-width), 0.0)
    # P(L > l) is at most delta(l - w) / (1 - e^-w) for any w.
    apart = min(max(1, round(1 / (tilt * width))), len(masses))
    larger = np.ones(len(masses))
    larger[apart:] = np.minimum(1, deltas[:-apart] / -math.expm1(-apart * width))
    enough = deltas + rounding * larger <= delta
    # No loss is beyond the last cell, but for those that count as infinite.
    place = int(np.argmax(enough)) if enough.any() else len(masses) - 1
    epsilon = float(losses[place])
    if place:
        # Between two losses delta is that of the upper one and other (1 - e^(epsilon - loss)).
        spare = delta - float(deltas[place] + rounding * larger[place - 1])
        share = 1 - spare / float(other[place]) if other[place] else 0.0
        epsilon += math.log(min(1.0, max(share, math.exp(-width))))
    return max(0.0, epsilon), bool(place or epsilon <= 0 or first == weights.lowest)


class _Weights:
    """Weights under which losses about the wanted epsilon are the likeliest."""

    def __init__(self, answers: Sequence[tuple[Losses, int]], delta: float) -> None:
        self._answers = answers
        self.width = answers[0][0].width
        self.lowest = sum(times * one.lowest for one, times in answers)
        self._target = math.log(delta)
        self._places = [one.lowest + np.arange(len(one.masses)) for one, _ in answers]
        with np.errstate(divide="ignore"):
            self._logs = [np.log(one.masses) for one, _ in answers]

        def epsilon(log_tilt: float) -> float:
            # Canonne, Kamath, Steinke (2020), proposition 12, with tilt + 1 as the order.
            t = math.exp(log_tilt)
            return self._chernoff(t, t * log_tilt - (t + 1) * math.log1p(t))

        # No tilt is wrong; this one has about the least rounding.
        most = max(math.log(100 / self.width), 0.0)
        found = minimize_scalar(epsilon, bounds=(-12.0, most), method="bounded")
        self.turn(math.exp(float(found.x)))

    def turn(self, tilt: float) -> None:
        """Take another tilt."""
        self.tilt, self.log_norm = tilt, self._log_norm(tilt)

    def _one(self, j: int, tilt: float) -> tuple[Floats, float]:
        exponents = self._logs[j] + tilt * self.width * self._places[j]
        return exponents, float(special.logsumexp(exponents))

    def _log_norm(self, tilt: float) -> float:
        """Return the logarithm of M, of all answers together."""
        each = (times * self._one(j, tilt)[1] for j, (_, times) in enumerate(self._answers))
        return math.fsum(each)

    def _chernoff(self, tilt: float, spare: float) -> float:
        """Return a loss that is passed with probability below exp(-spare) delta."""
        return (self._log_norm(tilt) - self._target + spare) / tilt

    def _window(self, spread: float) -> tuple[int, int]:
        """Return the first and the last cell of the composition that are looked at."""
        spare = -math.log(_TINY)
        highest = sum(times * (one.lowest + len(one.masses) - 1) for one, times in self._answers)
        steps = [s * math.sqrt(2 * spare) / max(spread, self.width) for s in (0.25, 0.5, 1, 2, 4)]
        steps.append(self.tilt)  # no weight below gets beyond exp(spare) by it

        def end(step: float) -> float:
            return (self._log_norm(self.tilt + step) - self.log_norm + spare) / step

        # What wraps around, too, must weigh little.
        top = max(self._chernoff(self.tilt, spare), min(map(end, steps)))
        bottom = max((self.log_norm - spare - self._log_norm(self.tilt - s)) / s for s in steps)
        last = min(highest, math.ceil(top / self.width))
        return max(self.lowest, min(math.floor(bottom / self.width), last)), last

    def composed(self) -> tuple[int, Floats, float]:
        """Return the first cell, weighted masses without the too small ones, and the rounding."""
        weighted, spread, rounding = [], 0.0, 0.0
        for j, (one, times) in enumerate(self._answers):
            exponents, norm = self._one(j, self.tilt)
            masses = np.exp(exponents - norm)
            mean = float(masses @ self._places[j])
            spread += times * float(masses @ (self._places[j] - mean) ** 2)
            lost = _UNIT * (4 + float(np.abs(exponents - norm)[masses > 0].max()))
            rounding += times * (one.rounding + 2 * lost)
            weighted.append(masses)
        first, last = self._window(self.width * math.sqrt(spread))
        length = fft.next_fast_len(last - first + 1, real=True)
        coefficients: npt.NDArray[np.complex128] = np.ones(length // 2 + 1, np.complex128)
        bits = math.log2(length) + 1
        error = np.zeros(length // 2 + 1)
        for masses, (_, times) in zip(weighted, self._answers, strict=True):
            cells = np.arange(len(masses)) % length
            one = fft.rfft(np.bincount(cells, masses, length))
            size = np.abs(one) + 4 * _UNIT * bits
            lost = times * _UNIT * (8 * bits + 32) * size ** (times - 1)
            error = error * size**times + np.abs(coefficients) * lost
            coefficients = coefficients * one**times
        found = fft.irfft(coefficients, length)
        error += 8 * _UNIT * bits * np.abs(coefficients)
        found = np.roll(found, (self.lowest - first) % length)[: last - first + 1]
        return first, np.maximum(found, 0) + 2 * float(error.sum()) / length, rounding


def _highest(ratio: float, reach: float) -> float:
    """Return the largest loss of Gaussian noise within so many standard deviations."""
    return 1 / (2 * ratio**2) + reach / ratio


def _mixed(rate: float, loss: float) -> float:
    """Return the loss on a sample, by the loss of whatever is in it."""
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + loss))


def _gaussian_curve(ratio: float, epsilons: Floats) -> Floats:
    epsilons = np.minimum(epsilons, 1e100 / ratio)  # beyond, delta is 0 in any case
    upper = special.log_ndtr(1 / (2 * ratio) - epsilons * ratio)
    lower = epsilons + special.log_ndtr(-1 / (2 * ratio) - epsilons * ratio)
    return np.asarray(-np.exp(upper) * np.expm1(np.minimum(lower - upper, 0)))
