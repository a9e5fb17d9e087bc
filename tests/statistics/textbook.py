"""Survival analysis as a textbook has it: loops over patients, in exact fractions where it can be.

Klein and Moeschberger, Survival Analysis (2003), chapters 4 and 7.
"""

import math
from fractions import Fraction

import numpy as np
from scipy import stats


class Curve:
    """A Kaplan-Meier curve at some times, from the times and events of patients."""

    def __init__(self, grid, times, events, level=0.95):
        patients = [(float(t), int(e)) for t, e in zip(times, events, strict=True)]
        z = stats.norm.ppf((1 + level) / 2)
        survival, greenwood, done = Fraction(1), 0.0, -math.inf
        self.survival, self.low, self.high, self.se, self.at_risk = [], [], [], [], []
        self.events, self.censored = [], []
        for now in grid:
            for t in sorted({t for t, e in patients if e and done < t <= now}):
                n = sum(1 for other, _ in patients if other >= t)
                d = sum(1 for other, e in patients if e and other == t)
                survival *= 1 - Fraction(d, n)
                greenwood += d / (n * (n - d)) if n > d else math.nan
            done = now
            s = float(survival)
            self.survival.append(survival)
            self.se.append(s * math.sqrt(greenwood))
            self.at_risk.append(sum(1 for t, _ in patients if t >= now))
            self.events.append(sum(1 for t, e in patients if e and t == now))
            self.censored.append(sum(1 for t, e in patients if not e and t == now))
            for ends, sign in ((self.low, 1), (self.high, -1)):
                if survival == 1:
                    ends.append(1.0)
                elif survival == 0:
                    ends.append(math.nan)
                else:
                    v = math.log(s)
                    ends.append(math.exp(v * math.exp(-sign * z * math.sqrt(greenwood) / v)))
        self.median = next(
            (t for t, s in zip(grid, self.survival, strict=True) if s <= Fraction(1, 2)), None
        )


def logrank(times, events, groups, weight=lambda n, s: 1.0, strata=None):
    """Return the statistic; `weight` takes the rows at risk and the survival just before."""
    times, events, groups = map(np.asarray, (times, events, groups))
    strata = np.zeros(len(times)) if strata is None else np.asarray(strata)
    names = sorted(set(groups.tolist()))
    z, v = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for stratum in sorted(set(strata.tolist())):
        here = strata == stratum
        before = 1.0
        for t in sorted(set(times[here & (events == 1)].tolist())):
            risk = here & (times >= t)
            dead = here & (times == t) & (events == 1)
            n, d = risk.sum(), dead.sum()
            w = weight(n, before)
            before *= 1 - d / n
            share = np.array([(risk & (groups == g)).sum() / n for g in names])
            z += w * (np.array([(dead & (groups == g)).sum() for g in names]) - d * share)
            if n > 1:
                v += w**2 * d * (n - d) / (n - 1) * (np.diag(share) - np.outer(share, share))
    return float(z[1:] @ np.linalg.solve(v[1:, 1:], z[1:]))


def breslow(x, coefficients, times, events):
    """Return times of events and the cumulative hazard of covariates that are all 0."""
    x, times, events = map(np.asarray, (x, times, events))
    at = np.unique(times[events == 1])
    steps = [
        ((times == t) & (events == 1)).sum() / np.exp(x[times >= t] @ coefficients).sum()
        for t in at
    ]
    return at, np.cumsum(steps)
