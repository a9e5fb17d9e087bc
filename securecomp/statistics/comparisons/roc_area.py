"""The area under a ROC curve from counts in bins: its bounds, standard errors and interval.

Sources: DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837-845; Hanley and McNeil,
Radiology 143 (1982) 29-36; Newcombe, Statistics in Medicine 25 (2006) 559-573.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate


def bounds(
    cases: Sequence[int], controls: Sequence[int], equal: Sequence[bool]
) -> tuple[Fraction, Fraction]:
    """Return the area where in each bin all controls score higher, and where all cases do.

    Args:
        cases: In each bin.
        controls: In each bin.
        equal: Whether all scores of a bin are known to be equal.
    """
    below = [0, *accumulate(controls)]
    pairs = sum(cases) * sum(controls)
    won = sum(n * lower for n, lower in zip(cases, below, strict=False))
    shared = sum(a * b for a, b, same in zip(cases, controls, equal, strict=True) if not same)
    tied = sum(a * b for a, b, same in zip(cases, controls, equal, strict=True) if same)
    least = won + Fraction(tied, 2)
    return least / pairs, (least + shared) / pairs


def delong(cases: Sequence[int], controls: Sequence[int]) -> float:
    """Return DeLong's standard error, bins being scores; NaN with a single case or control."""
    p, n = sum(cases), sum(controls)
    if p < 2 or n < 2:
        return math.nan
    lower = [0, *accumulate(controls)]
    higher = [p - total for total in accumulate(cases)]
    # Twice the number of the others that a case, or a control, is on the right side of.
    of_cases = [2 * a + b for a, b in zip(lower, controls, strict=False)]
    of_controls = [2 * a + b for a, b in zip(higher, cases, strict=True)]
    variance = Fraction(0)
    for counts, places, own, others in ((cases, of_cases, p, n), (controls, of_controls, n, p)):
        total = sum(c * v for c, v in zip(counts, places, strict=True))
        squares = sum(c * v * v for c, v in zip(counts, places, strict=True))
        spread = Fraction(own * squares - total * total, own * (own - 1))
        variance += spread / (4 * others * others) / own
    return math.sqrt(variance)


def hanley(auc: Fraction, cases: int, controls: int) -> float:
    """Return Hanley and McNeil's standard error; NaN with a single case or control."""
    if cases < 2 or controls < 2:
        return math.nan
    area = float(auc)
    spread = _spread(area, cases, controls, (cases - 1, controls - 1))
    return math.sqrt(area * (1 - area) * spread)


def _spread(area: float, cases: int, controls: int, others: tuple[float, float]) -> float:
    """Return Hanley and McNeil's variance by area (1 - area), with so many others beside each."""
    of_cases, of_controls = (1 - area) / (2 - area), area / (1 + area)
    return (1 + others[0] * of_cases + others[1] * of_controls) / (cases * controls)


def newcombe(area: float, cases: int, controls: int, width: float) -> tuple[float, float]:
    """Return the two areas from which this one is as many standard errors away, by their own.

    Newcombe 2006, method 5: Hanley and McNeil's variance with (cases + controls) / 2 - 1 for the
    numbers of others. Areas of 0 and 1 have an interval, too.
    """
    others = (cases + controls) / 2 - 1

    def beyond(end: float) -> float:
        noise = width**2 * _spread(end, cases, controls, (others, others))
        # The variance is 0 at 0 and at 1, which is no solution: that factor is divided out.
        if area in (0, 1):
            return abs(end - area) - noise * abs(1 - area - end)
        return (end - area) ** 2 - noise * end * (1 - end)

    from scipy.optimize import brentq  # takes a while to load

    low = brentq(beyond, 0.0, area, xtol=1e-12) if area > 0 else 0.0
    high = brentq(beyond, area, 1.0, xtol=1e-12) if area < 1 else 1.0
    return float(low), float(high)
