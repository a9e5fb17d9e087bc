"""The bootstrap interval of a median, computed in closed form.

The bootstrap draws the samples again, with replacement, and looks at the medians that result. For a
median that distribution is known in closed form. So nothing is drawn, and the same samples always
give the same interval.

Source: Efron, "Bootstrap methods: another look at the jackknife", Ann. Statist. 7 (1979), 1-26;
percentile interval: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, comb

Floats = npt.NDArray[np.float64]
Spread = dict[str, float | None]

LEVEL = 0.95
FEWEST = 6
"""Samples below which not even their whole range contains the median with probability 0.95."""
_STEPS = 80


def spread(values: Sequence[float]) -> Spread:
    """Return the median, the quartiles, and the median's 95 % interval, `low` and `high`.

    With fewer than six samples the interval does not exist, and both ends become None.
    """
    q1, median, q3 = np.percentile(values, [25, 50, 75]).tolist()
    low = high = None
    if len(values) >= FEWEST:
        points, weights = resampled(values)
        below = np.cumsum(weights)
        low, high = (float(points[_first(below, p)]) for p in _tails())
    return {"median": median, "q1": q1, "q3": q3, "low": low, "high": high}


def ratio(of: Sequence[float], to: Sequence[float]) -> Spread:
    """Return the spread of the ratios of neighbouring samples."""
    return spread([a / b for a, b in zip(of, to, strict=True)])


def ratio_of_medians(of: Sequence[float], to: Sequence[float]) -> Spread:
    """Return the ratio of the medians of positive samples of two runs, and its 95 % interval.

    The runs are resampled independently of each other.
    """
    found = float(np.median(of) / np.median(to))
    if min(len(of), len(to)) < FEWEST:
        return {"median": found, "low": None, "high": None}
    above, above_weights = resampled(of)
    below, below_weights = resampled(to)
    cumulative = np.concatenate([[0.0], np.cumsum(above_weights)])

    def quantile(share: float) -> float:
        low, high = np.log(above[0] / below[-1]) - 1e-9, np.log(above[-1] / below[0]) + 1e-9
        for _ in range(_STEPS):  # the distribution function is monotone: halve
            middle = (low + high) / 2
            reached = np.searchsorted(above, np.exp(middle) * below, side="right")
            if below_weights @ cumulative[reached] < share:
                low = middle
            else:
                high = middle
        return float(np.exp(high))

    low, high = map(quantile, _tails())
    return {"median": found, "low": low, "high": high}


def resampled(values: Sequence[float]) -> tuple[Floats, Floats]:
    """Return every possible median of a resample, ascending, and its probability."""
    ordered = np.sort(np.asarray(values, np.float64))
    n, ranks = len(ordered), np.arange(len(ordered) + 1)
    middle = (n + 1) // 2  # rank of the median, the lower one of two
    # P(the `middle`-th of n draws is at most the k-th value), a binomial tail.
    single = np.diff(betainc(middle, n - middle + 1, ranks / n))
    if n % 2:
        return ordered, single
    # The two in the middle are values i < j: half of the draws at most i, and one of them i; the
    # others at least j, and one of them j.
    shares = (ranks / n) ** middle
    lower, upper = np.diff(shares), np.diff(shares)[::-1]
    pairs = np.triu(comb(n, middle) * np.outer(lower, upper), 1)
    pairs[np.diag_indices(n)] = single - pairs.sum(axis=1)
    i, j = np.triu_indices(n)
    medians = (ordered[i] + ordered[j]) / 2
    order = np.argsort(medians, kind="stable")
    return medians[order], pairs[i, j][order]


def _tails() -> tuple[float, float]:
    return (1 - LEVEL) / 2, (1 + LEVEL) / 2


def _first(below: Floats, share: float) -> int:
    """Return where a distribution function first reaches a share; rounding may end it below 1."""
    return min(int(np.searchsorted(below, share)), len(below) - 1)
