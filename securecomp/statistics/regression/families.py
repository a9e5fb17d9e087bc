"""Families of generalised linear models with their canonical links.

What one row adds to the log likelihood, to its gradient and to the information, and what everybody
knows of their size beforehand. The log likelihood is without the terms that the response alone
determines; `constant` adds them.

Source: McCullagh and Nelder, Generalized Linear Models, 2nd ed. (1989), chapters 2, 4 and 6.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, brief
from securecomp.statistics.regression.expressions import ExpressionRows

Vector = npt.NDArray[np.float64]
_NO_COUNT = 'correct it, or choose family="linear"'


@dataclass(frozen=True, slots=True)
class Sizes:
    """Public bounds of what a row adds, each for a weight of 1.

    Attributes:
        likelihood: Of the log likelihood, together over all rows, for a weight of 1 on average.
        residual: Of response minus mean.
        variance: Of the variance.
    """

    likelihood: float
    residual: float
    variance: float


class Family:
    """A distribution of the response, with its canonical link.

    Attributes:
        name: What it is called.
        link: The link's name.
        ratio: What exp(coefficient) is; "" if it is nothing.
    """

    name: ClassVar[str]
    link: ClassVar[str]
    ratio: ClassVar[str] = ""

    def check(self, rows: ExpressionRows, response: str, y: Vector) -> None:
        """Refuse a response that the family cannot have.

        Raises:
            RangeError: It names the site and the first row.
        """

    def terms(self, eta: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
        """Return each row's log likelihood, response minus mean, and variance."""
        raise NotImplementedError

    def mean(self, eta: Vector) -> Vector:
        """Return the mean for a linear predictor."""
        raise NotImplementedError

    def predictor(self, mean: float) -> float:
        """Return the linear predictor for a mean."""
        raise NotImplementedError

    def variance(self, mean: float) -> float:
        """Return the variance for a mean."""
        raise NotImplementedError

    def likelihood(self, mean: float, eta: float) -> float:
        """Return the average log likelihood of rows that share a linear predictor."""
        raise NotImplementedError

    def sizes(self, average: float, high: float, largest: float) -> Sizes:
        """Bound what a row adds.

        Args:
            average: The root mean square of the linear predictor is at most this.
            high: No linear predictor is more.
            largest: No absolute response is more.
        """
        raise NotImplementedError

    def extras(self, y: Vector) -> list[Vector]:
        """Return what of the response alone the log likelihood and the deviance need."""
        return []


class Logistic(Family):
    """A response of 0 and 1, and the log of its odds."""

    name = "logistic"
    link = "logit"
    ratio = "odds ratio"

    def check(self, rows: ExpressionRows, response: str, y: Vector) -> None:
        other = 'choose family="poisson" for counts, or "linear" for any number'
        check_events(rows, response, y, f"logistic regression needs; correct it, {other}")

    def terms(self, eta: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
        # exp of nothing positive: it neither overflows nor cancels.
        small = np.exp(-np.abs(eta))
        mean = np.where(eta >= 0, 1, small) / (1 + small)
        likelihood = y * eta - np.maximum(eta, 0) - np.log1p(small)
        return likelihood, y - mean, small / (1 + small) ** 2

    def mean(self, eta: Vector) -> Vector:
        small = np.exp(-np.abs(eta))
        return np.asarray(np.where(eta >= 0, 1, small) / (1 + small))

    def predictor(self, mean: float) -> float:
        return math.log(mean / (1 - mean))

    def variance(self, mean: float) -> float:
        return mean * (1 - mean)

    def likelihood(self, mean: float, eta: float) -> float:
        return mean * eta - max(eta, 0) - math.log1p(math.exp(-abs(eta)))

    def sizes(self, average: float, high: float, largest: float) -> Sizes:
        return Sizes(average + math.log(2), 1, 0.25)


class Poisson(Family):
    """A response that counts, and the log of its rate."""

    name = "poisson"
    link = "log"
    ratio = "rate ratio"

    def check(self, rows: ExpressionRows, response: str, y: Vector) -> None:
        rows.refuse(y < 0, f"response {response}", f"is a negative count; {_NO_COUNT}")
        whole = y == np.rint(y)
        why = f"is not a whole number, as counts are; {_NO_COUNT}"
        rows.refuse(~whole, f"response {response}", why)

    def terms(self, eta: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
        mean = np.exp(eta)
        return y * eta - mean, y - mean, mean

    def mean(self, eta: Vector) -> Vector:
        return np.asarray(np.exp(eta))

    def predictor(self, mean: float) -> float:
        return math.log(mean)

    def variance(self, mean: float) -> float:
        return mean

    def likelihood(self, mean: float, eta: float) -> float:
        return mean * eta - math.exp(eta)

    def sizes(self, average: float, high: float, largest: float) -> Sizes:
        most = math.exp(high)
        return Sizes(largest * average + most, max(most, largest), most)

    def extras(self, y: Vector) -> list[Vector]:
        from scipy.special import gammaln, xlogy

        return [np.asarray(gammaln(y + 1)), np.asarray(xlogy(y, y) - y)]


class Gaussian(Family):
    """Any response, and its mean."""

    name = "linear"
    link = "identity"

    def terms(self, eta: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
        rest = y - eta
        return -0.5 * rest**2, rest, np.ones_like(rest)

    def mean(self, eta: Vector) -> Vector:
        return eta

    def predictor(self, mean: float) -> float:
        return mean

    def variance(self, mean: float) -> float:
        return 1.0

    def likelihood(self, mean: float, eta: float) -> float:
        return -0.5 * (mean - eta) ** 2

    def sizes(self, average: float, high: float, largest: float) -> Sizes:
        both = largest + average
        return Sizes(0.5 * both**2, both, 1)


FAMILIES: Mapping[str, Family] = {f.name: f for f in (Logistic(), Poisson(), Gaussian())}


def check_events(rows: ExpressionRows, response: str, y: Vector, needs: str) -> None:
    """Refuse a response that is not 0 and 1.

    Args:
        rows: The rows of a site.
        response: Its name.
        y: Its values.
        needs: Who needs it, and what to do, as the end of a sentence.

    Raises:
        RangeError: It names the site and the first row.
    """
    text = f"is not 0 or 1, as {needs}, or write I({response} == ...) for one value"
    rows.refuse((y != 0) & (y != 1), f"response {response}", text)


def family(name: str) -> Family:
    """Return a family by name.

    Raises:
        ParameterError: There is no such family.
    """
    if not isinstance(name, str) or name not in FAMILIES:
        known = ", ".join(f'"{known}"' for known in FAMILIES)
        raise ParameterError(f"family is one of {known}, not {brief(repr(name))}")
    return FAMILIES[name]
