"""Estimates for the population from a sample's groups: matches by an attacker with a register.

Each estimate has a model that can be wrong. If they differ much, do not rely on any. They assume
that everybody was equally likely to be in the sample, independently of each other.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Population:
    """Estimates for the population from which a sample was drawn.

    Attributes:
        size: Size of the population.
        fraction: Share of it in the sample.
        match: Probability that a match with a person alone in the sample is right: data intrusion
            simulation (Skinner & Elliot, JRSS B 64(4), 2002, section 4). It says nothing about
            single people, and needs enough groups of one and two. None without any such group.
        zayatz: Share of people alone in the sample who are alone in the population, if the
            population's groups were as large as the sample's (Zayatz, US Bureau of the Census
            report 91/08, 1991). Too high for small fractions.
        pitman: The same share by Pitman's model of growing groups (Hoshino, Journal of Official
            Statistics 17(4), 2001), given the sample. Too high for populations of many groups of
            one size.
        journalist_mean: Probability that a match of a person in the sample with a register of the
            population is right: 1/F for a group of F there, averaged over people. It is by the same
            model, which gives all groups of one size in the sample the same risk.
        journalist_smallest: The same for the people in the smallest groups. One of them may be
            alone in the population, and be found for certain.

    The last three are missing (None) if everybody in the sample is alone. The model has no answer
    then, and only the prosecutor's risk is known.
    """

    size: int
    fraction: float
    match: float | None
    zayatz: float | None
    pitman: float | None
    journalist_mean: float | None
    journalist_smallest: float | None


def size_of(people: int, population: int | None, fraction: float | None) -> int | None:
    """Return the population's size; None if it is unknown.

    Raises:
        ParameterError: Both are given, or the population is smaller than the sample.
    """
    if population is not None and fraction is not None:
        raise ParameterError("give the population's size or the sampling fraction, not both")
    if fraction is not None:
        number = isinstance(fraction, int | float) and not isinstance(fraction, bool)
        if not number or not 0 < fraction <= 1:
            raise ParameterError(
                f"the sampling fraction must be above 0 and at most 1, not {fraction}"
            )
        if people / fraction > _LARGEST:
            raise ParameterError(
                f"the sampling fraction {fraction} is too small; give the population's size"
            )
        return round(people / fraction)
    if population is None:
        return None
    if isinstance(population, bool) or not isinstance(population, int):
        raise ParameterError(f"the population's size must be an integer, not {population!r}")
    if population < people:
        raise ParameterError(
            f"a population of {population:,} cannot be smaller than its sample of {people:,}; "
            "correct it"
        )
    if population > _LARGEST:
        raise ParameterError(f"the population must have at most {_LARGEST:,} people")
    return population


_LARGEST = 10**11


def estimate(
    sizes: npt.NDArray[np.int64], smallest: npt.NDArray[np.int64], population: int
) -> Population:
    """Compute the estimates.

    Args:
        sizes: Number of people in each group of the sample, shape (groups,).
        smallest: Size of each person's smallest group, shape (people,).
        population: Size of the population, at least the number of people.
    """
    fraction = len(smallest) / population
    values, times = np.unique(sizes, return_counts=True)
    total = int(values @ times)
    # If a person is in several groups, there are more places in groups than people.
    whole = total if fraction == 1 else round(total / fraction)
    spectrum = dict(zip(values.tolist(), times.tolist(), strict=True))
    alone, pairs = spectrum.get(1, 0), spectrum.get(2, 0)
    model = parameters(values, times)
    against = fraction * alone + 2 * (1 - fraction) * pairs
    found = Population(
        population,
        fraction,
        fraction * alone / against if against else None,
        zayatz(values, times, whole) if alone else None,
        None,
        None,
        None,
    )
    if model is None and fraction < 1:
        return found
    reach, people = np.unique(smallest, return_counts=True)
    risk = right_match(reach, model or (0.0, 0.0), total, whole)
    return replace(
        found,
        pitman=pitman(model or (0.0, 0.0), total, whole) if alone else None,
        journalist_mean=float(risk @ people / len(smallest)),
        journalist_smallest=float(risk.max()),
    )


def zayatz(
    values: npt.NDArray[np.int64], times: npt.NDArray[np.int64], population: int
) -> float | None:
    """Return the share of the sample's groups of one that are one in the population.

    Args:
        values: The sizes of groups in the sample, increasing.
        times: Number of groups of each size.
        population: Size of the population.
    """
    from scipy import special

    sample = int(values @ times)
    if values[0] != 1:
        return None
    possible = values <= population - sample + 1
    i, weight = values[possible].astype(float), times[possible].astype(float)

    def log_choose(n: npt.NDArray[np.float64], k: float) -> npt.NDArray[np.float64]:
        return np.asarray(-special.betaln(n - k + 1, k + 1) - np.log(n + 1))

    # Hypergeometric: the chance that one of a group of i is drawn, over that for i = 1.
    seen = np.log(i) + log_choose(population - i, sample - 1)
    terms = weight * np.exp(seen - seen[0])
    return float(terms[0] / terms.sum())


def parameters(
    values: npt.NDArray[np.int64], times: npt.NDArray[np.int64]
) -> tuple[float, float] | None:
    """Return alpha and theta of Pitman's model with maximal likelihood; None if all are alone.

    With n people present, the next one joins a group of f with probability (f - alpha) /
    (n + theta), and otherwise starts a new group. The arguments are those of `zayatz`.
    """
    from scipy import optimize, special

    sample, groups = int(values @ times), int(times.sum())
    if groups == sample:
        return None
    if groups == 1:
        return 0.0, 0.0
    steps = np.arange(1.0, groups)
    count = times.astype(float)

    def both(at: npt.NDArray[np.float64]) -> tuple[float, float]:
        alpha = float(special.expit(at[0]))
        return alpha, math.exp(min(at[1], 60.0)) - alpha

    def loss(at: npt.NDArray[np.float64]) -> float:
        alpha, theta = both(at)
        likelihood = np.log(theta + alpha * steps).sum()
        likelihood -= special.gammaln(theta + sample) - special.gammaln(theta + 1)
        likelihood += count @ (special.gammaln(values - alpha) - special.gammaln(1 - alpha))
        return -float(likelihood)

    start = np.array([0.0, math.log(groups)])
    found = optimize.minimize(
        loss, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-8, "maxiter": 400}
    )
    return both(found.x)


def pitman(model: tuple[float, float], sample: int, population: int) -> float:
    """Return the probability that nobody else in the population joins a group of one."""
    alpha, theta = model
    # The product over n of (n + theta - 1 + alpha) / (n + theta), as ratios of gamma functions.
    step = 1 - alpha
    return math.exp(_log_ratio(sample + theta, step) - _log_ratio(population + theta, step))


def right_match(
    size: npt.NDArray[np.int64], model: tuple[float, float], sample: int, population: int
) -> npt.NDArray[np.float64]:
    """Return E[1/F], with F the size in the population of a group of `size` in the sample.

    The growth of a group of f is a Poisson number whose mean has a gamma distribution of shape
    f - alpha (the limit of Pitman's model for groups that are a small part of the sample). So
    E[1/F] = q / f 2F1(1 + alpha, 1; f + 1; 1 - q) with 1 / q = 1 + (N - n) / (n + theta). With both
    parameters 0 this is the negative binomial model of Benedetti & Franconi (1998).
    """
    alpha, theta = model
    if population == sample:
        return 1.0 / size
    span = math.log1p((population - sample) / (sample + theta))  # -log q
    # With s = (exp(span x) - 1) / (exp(span) - 1) for x from 0 to 1, E[1/F] is the integral of
    # span / (exp(span) - 1) s^(f - 1) exp(alpha span (1 - x)): smooth, so that few points do.
    x, weight = np.polynomial.legendre.leggauss(_POINTS)
    x, weight = (x + 1) / 2, weight / 2
    share = np.expm1(span * x) / math.expm1(span)
    weight = weight * span / math.expm1(span) * np.exp(alpha * span * (1 - x))
    small = np.minimum(size, _SMOOTH)
    smooth = share ** (small[:, None] - 1.0) @ weight
    # For large groups the terms fall so fast that few of them fill a float.
    term, terms = np.ones(len(size)), np.ones(len(size))
    for k in range(60):
        term = term * ((k + 1 + alpha) / (size + k + 1)) * -math.expm1(-span)
        terms += term
    return np.asarray(np.where(size > _SMOOTH, math.exp(-span) / size * terms, smooth))


_POINTS = 200
_SMOOTH = 20
"""Largest group for the integral; larger ones would need more points."""


def _log_ratio(x: float, step: float) -> float:
    """Return the log of gamma(x) / gamma(x - step), accurate for large x."""
    from scipy import special

    return float(-special.betaln(x - step, step) + special.gammaln(step)) if step > 0 else 0.0
