"""Newton's method on sums over sites: at each step only totals are opened.

A step adds, in one secure sum, the log likelihood, its gradient and the information matrix in the
coordinates of `whitening`. For canonical links the log likelihood is concave, so that a step that
is halved until it does not lose is one that leads to the maximum, if there is one.

Source: McCullagh and Nelder, Generalized Linear Models, 2nd ed. (1989), 2.5; the stopping rule is
Newton's decrement, Boyd and Vandenberghe, Convex Optimization (2004), 9.5.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.statistics.adder import RealBlock
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.regression.families import Family

Vector = npt.NDArray[np.float64]
_ROWS = 1 << 13  # of a chunk that stays in the processor's cache
_BITS = 44  # of what is added, below its own size
_SLACK = 1 + 1e-3  # of public bounds, for columns that the first sum rounded
_STEEPEST = 300.0  # exp of more leaves a float no room for sums
_HALVINGS = 12
_SINGULAR = 1e-14
_SEPARATED = 1e-6
"""A squared decrement below which steps that do not get shorter lead to infinity: a maximum that
such steps still led to would have standard errors of a thousand steps."""
_SEPARATED_LATE = 1e-3  # the same, where there are no more iterations
_LOST = 1e-10  # of the log likelihood, which rounding may lose


@dataclass(frozen=True, slots=True)
class NewtonStep:
    """One iteration.

    Attributes:
        iteration: Counted from 0, the start.
        likelihood: Log likelihood at its beginning, without what the response alone determines.
        decrement: How far the maximum is, in standard errors, by the step that Newton takes.
        halvings: How often the step that led here was halved.
    """

    iteration: int
    likelihood: float
    decrement: float
    halvings: int


@dataclass(slots=True)
class SitePart:
    """One site's rows in a fit.

    Attributes:
        z: The design in public coordinates, shape (rows, d).
        y: The response.
        weights: None for ones.
        offset: None for zeros.
    """

    z: Vector
    y: Vector
    weights: Vector | None
    offset: Vector | None

    def predictor(self, coordinates: Vector) -> Vector:
        """Return the linear predictor."""
        eta = self.z @ coordinates
        return eta if self.offset is None else eta + self.offset

    def weighted(self, values: Vector) -> Vector:
        """Return values times weights."""
        return values if self.weights is None else values * self.weights


@dataclass(frozen=True, slots=True)
class ObjectiveTotals:
    """The totals at some coordinates.

    Attributes:
        at: The coordinates, shape (d,).
        likelihood: Log likelihood.
        gradient: Its gradient, shape (d,).
        information: Minus its Hessian, shape (d, d).
    """

    at: Vector
    likelihood: float
    gradient: Vector
    information: Vector


@dataclass(slots=True)
class Likelihood:
    """A model's log likelihood over all sites, evaluated by secure sums.

    Attributes:
        ask: The inquiry.
        family: The distribution.
        parts: Each site's.
        names: The columns' names.
        weight: The sum of the weights; every coordinate has it as its sum of squares.
        variance: The variance of the family at the response's mean: the size of the information.
        spread: The size of a response minus its mean.
        largest: No absolute response is more.
        reach: Returns a bound of the linear predictor for coordinates.
        shift: No absolute offset is more.
        what: What is fitted, for labels.
    """

    ask: Inquiry
    family: Family
    parts: Mapping[str, SitePart]
    names: Sequence[str]
    weight: float
    variance: float
    spread: float
    largest: float
    reach: Callable[[Vector], float]
    shift: float = 0.0
    what: str = "each step"
    _labels: tuple[list[str], list[str]] | None = field(default=None)

    def at(self, coordinates: Vector) -> ObjectiveTotals:
        """Evaluate, by one secure sum.

        Raises:
            ParameterError: By the public bounds, a mean could be larger than any number.
        """
        coordinates, (high,) = self.ask.agreed(
            f"{self.what}: coordinates", coordinates, [self.reach(coordinates)]
        )
        if self.steep(coordinates):
            raise ParameterError(
                f"by the columns' bounds, a row's rate could be e^{high:.0f}; agree on smaller "
                "bounds of the columns, scale them, or leave out one that tells where the response "
                "is 0"
            )
        average = math.sqrt(math.fsum(coordinates**2)) + self.shift
        sizes = self.family.sizes(average, high, self.largest)
        triangle = np.triu_indices(len(coordinates))
        values = {site: self._own(part, coordinates, triangle) for site, part in self.parts.items()}
        # The information is like W v, a gradient like sqrt(W) times the spread.
        wanted = (
            (sizes.likelihood, self.weight * self.spread**2 / max(self.variance, 1e-300)),
            (sizes.residual, math.sqrt(self.weight) * self.spread),
            (sizes.variance, self.weight * self.variance),
        )
        labels = self.labels()
        blocks = [
            self.reals(names, self.weight * bound, size, {s: v[i] for s, v in values.items()})
            for i, (names, (bound, size)) in enumerate(zip(labels, wanted, strict=True))
        ]
        likelihood, gradient, upper = self.ask.adder.add(*blocks)
        information = np.zeros((len(coordinates), len(coordinates)))
        information[triangle] = upper
        information = information + np.triu(information, 1).T
        return ObjectiveTotals(coordinates, float(likelihood[0]), gradient, information)

    def steep(self, coordinates: Vector) -> bool:
        """Whether, by the public bounds, a mean could be too large to be summed."""
        return self.family.link == "log" and self.reach(coordinates) > _STEEPEST

    def reals(
        self, labels: Sequence[str], bound: float, size: float, parts: Mapping[str, Vector]
    ) -> RealBlock:
        """Return numbers to add: as fine as the protocol's room allows, or as their size needs."""
        sites = len(self.ask.sites)
        bound = max(bound, 1e-300) * _SLACK
        room = math.floor(math.log2(self.ask.protocol.limit / sites) - math.log2(bound)) - 1
        needed = math.ceil(_BITS - math.log2(max(size, 1e-290)))
        return RealBlock(labels, bound, max(0, min(1000, max(room, needed))), parts)

    def labels(self) -> tuple[list[str], list[str], list[str]]:
        """Name the totals of a step."""
        if self._labels is None:
            size = len(self.names)
            pairs = [(i, j) for i in range(size) for j in range(i, size)]
            self._labels = (
                [f"{self.what}: gradient of {name}" for name in self.names],
                [f"{self.what}: information {self.names[i]} * {self.names[j]}" for i, j in pairs],
            )
        return [f"{self.what}: log likelihood"], *self._labels

    def _own(
        self, part: SitePart, coordinates: Vector, triangle: tuple[npt.NDArray[np.intp], ...]
    ) -> tuple[Vector, Vector, Vector]:
        """Return one site's log likelihood, gradient and information."""
        eta = part.predictor(coordinates)
        likelihood, residual, variance = self.family.terms(eta, part.y)
        total = np.array([part.weighted(likelihood).sum()])
        gradient = part.z.T @ part.weighted(residual)
        root = np.sqrt(part.weighted(variance))
        information = np.zeros((len(coordinates), len(coordinates)))
        for start in range(0, len(root), _ROWS):
            heavy = part.z[start : start + _ROWS] * root[start : start + _ROWS, None]
            information += heavy.T @ heavy
        return total, gradient, information[triangle]


@dataclass(frozen=True, slots=True)
class Maximum:
    """A maximum.

    Attributes:
        state: The totals at the last evaluation.
        at: The coordinates, after the last step.
        covariance: The information's inverse.
        history: The iterations.
    """

    state: ObjectiveTotals
    at: Vector
    covariance: Vector
    history: tuple[NewtonStep, ...]


def newton(
    likelihood: Likelihood,
    start: ObjectiveTotals,
    *,
    tolerance: float,
    iterations: int,
    diverging: Callable[[Vector], ParameterError],
) -> Maximum:
    """Climb to the maximum.

    Args:
        likelihood: Evaluates.
        start: The totals where it begins.
        tolerance: Stop when a step would move no coefficient by more standard errors than this.
        iterations: Give up after so many evaluations.
        diverging: Makes the error for a direction in which the likelihood has no maximum.

    Raises:
        ParameterError: No maximum is found; it says why, and what to do.
    """
    state, history, halvings, linear = start, list[NewtonStep](), 0, 0
    for iteration in range(iterations + 1):
        step, covariance = _solve(state, diverging)
        step, covariance, (decrement,) = likelihood.ask.agreed(
            "Newton's step", step, covariance, [math.sqrt(max(0.0, float(state.gradient @ step)))]
        )
        decrement = float(decrement)
        history.append(NewtonStep(iteration, state.likelihood, decrement, halvings))
        if decrement <= tolerance:
            return Maximum(state, state.at + step, covariance, tuple(history))
        linear = linear + 1 if _flat(likelihood, step, history) else 0
        if linear >= 3 and (decrement**2 < _SEPARATED or likelihood.steep(state.at + step)):
            raise diverging(step)
        if iteration == iterations:
            break
        state, halvings = _climb(likelihood, state, step)
    if linear and decrement**2 < _SEPARATED_LATE:
        raise diverging(step)
    raise ParameterError(
        f"no maximum after {iterations} iterations: a step still moves a coefficient by "
        f"{decrement:.2g} standard errors; allow more iterations, or a tolerance above "
        f"{tolerance:g}, or look for a column that is nearly a combination of others, or one that "
        "tells the responses apart"
    )


def _climb(
    likelihood: Likelihood, state: ObjectiveTotals, step: Vector
) -> tuple[ObjectiveTotals, int]:
    """Take a step, halved until the log likelihood does not fall."""
    least = state.likelihood - _LOST * (1 + abs(state.likelihood))
    for halvings in range(_HALVINGS + 1):
        at = state.at + step / (1 << halvings)
        if halvings < _HALVINGS and likelihood.steep(at):
            continue
        found = likelihood.at(at)
        if found.likelihood >= least:
            return found, halvings
    raise ParameterError(
        f"no maximum: a step halved {_HALVINGS} times still lowers the log likelihood; a column "
        "may be nearly a combination of others, or too large for its bound to be useful: scale it"
    )


def _solve(
    state: ObjectiveTotals, diverging: Callable[[Vector], ParameterError]
) -> tuple[Vector, Vector]:
    """Return Newton's step and the information's inverse."""
    try:
        root = np.linalg.cholesky(state.information)
        if np.diag(root).min() ** 2 <= _SINGULAR * np.diag(root).max() ** 2:
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        raise diverging(np.linalg.eigh(state.information)[1][:, 0]) from None
    inverse = np.linalg.inv(state.information)
    inverse = (inverse + inverse.T) / 2
    step = inverse @ state.gradient
    step += inverse @ (state.gradient - state.information @ step)
    return step, inverse


def _flat(likelihood: Likelihood, step: Vector, history: Sequence[NewtonStep]) -> bool:
    """Whether a step looks like one of many towards infinity.

    Where no maximum exists, each step is about as long as the one before, while the information
    along it and the squared decrement fall by a factor of about e.
    """
    if likelihood.family.name == "linear" or len(history) < 2:
        return False
    before, now = history[-2].decrement ** 2, history[-1].decrement ** 2
    along = now / (likelihood.weight * float(step @ step))
    return 0.1 < now / before < 0.9 and along < 0.05 * likelihood.variance
