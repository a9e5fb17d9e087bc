"""Total privacy cost of several noised answers.

Three accountants: `plain` adds epsilons up; `RDP` adds Renyi divergences (Mironov 2017), which
works for vectors of discrete Gaussians and is quick, by the library dp-accounting (`pip install
'securecomp[privacy]'`); `PLD` convolves privacy loss distributions (Koskela, Jälkö, Honkela 2020),
which is the tightest where it can be computed, by `loss_distributions`. All are upper bounds, of
their rounding too, so the smallest is used, and named.
"""

import importlib
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

from securecomp.core import checks
from securecomp.errors import BackendUnavailableError, ParameterError
from securecomp.privacy import loss_distributions
from securecomp.privacy.calibration import gaussian_epsilon, positive
from securecomp.privacy.loss_distributions import Losses
from securecomp.privacy.privacy_amounts import Amount, delta_of
from securecomp.privacy.sensitivity import Relation

Accountant = Literal["plain", "RDP", "PLD"]

_FINEST, _CELLS = 1e-4, 1e6
"""A privacy loss distribution's grid, and about how many cells of it the loss may span."""
_MOST_TIMES = 10**15
_LEAST_DELTA = 1e-100
"""Below, rounding was not looked at."""
_MOST_LOSS, _WIDEST = 1e9, 1e5
_BEYOND = 25.0
"""Of one answer's losses, those that are left out have exp(-25) of all answers' delta."""


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Laplace noise.

    Attributes:
        ratio: Its scale over the L1 sensitivity under the neighbouring relation.
    """

    ratio: float


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise.

    Attributes:
        ratio: Its standard deviation over the L2 sensitivity under the neighbouring relation.
    """

    ratio: float


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Noise on the integers with probabilities proportional to exp(-x^2 / 2 sigma^2).

    Attributes:
        sigma: Its parameter.
        squared: The squared L2 sensitivity under the neighbouring relation, an integer.
        vector: Whether the result has several coordinates: bounded by RDP only.
    """

    sigma: float
    squared: int = 1
    vector: bool = False


@dataclass(frozen=True, slots=True)
class Sampled:
    """Gaussian noise on a Poisson sample: each unit is in it with this probability, by itself.

    Attributes:
        rate: The probability.
        ratio: The standard deviation over the largest norm of one unit's contribution. Under
            `replace-one` that is half of the sensitivity.
    """

    rate: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Promised:
    """A mechanism of which only the guarantee is known.

    Attributes:
        epsilon: Its epsilon.
        delta: Its delta.
    """

    epsilon: float
    delta: float = 0.0


Mechanism = LaplaceNoise | GaussianNoise | DiscreteGaussian | Sampled | Promised
Steps = Sequence[tuple[Mechanism, int]]
"""Mechanisms and how often each answered; answers may depend on earlier ones."""


@dataclass(frozen=True, slots=True)
class TotalCost:
    """Total cost of several answers.

    Attributes:
        epsilon: At `delta`, by the tightest accountant.
        delta: As it was asked for.
        accountant: Which one that is.
        bounds: What each accountant says that can say something.
        refused: Why the others cannot.
    """

    epsilon: float
    delta: float
    accountant: Accountant
    bounds: Mapping[Accountant, float]
    refused: Mapping[Accountant, str]


def total(
    steps: Steps,
    delta: Amount,
    relation: Relation = "add/remove",
    accountant: Accountant | None = None,
) -> TotalCost:
    """Return the epsilon of all answers together.

    Args:
        steps: Mechanisms and how often each answered.
        delta: At which delta; 0 only if none of them needs one.
        relation: The neighbouring relation; it matters for samples.
        accountant: Which one; by default all that can, and the tightest counts.

    Raises:
        ParameterError: A mechanism makes no sense, or the accountant (or every one) cannot do it.
        BackendUnavailableError: dp-accounting is not installed.
    """
    probability = float(delta_of(delta, needed=False))
    _check(steps)
    bounds: dict[Accountant, float] = {}
    refused: dict[Accountant, str] = {}
    for name in get_args(Accountant) if accountant is None else (accountant,):
        try:
            bounds[name] = _ACCOUNTANTS[name](steps, probability, relation)
        except _RefusedError as error:
            refused[name] = str(error)
    if not bounds:
        raise ParameterError("; ".join(f"{name}: {why}" for name, why in refused.items()))
    best = min(bounds, key=bounds.__getitem__)
    return TotalCost(bounds[best], probability, best, bounds, refused)


def renyi(steps: Steps, orders: Sequence[float], relation: Relation = "add/remove") -> list[float]:
    """Return the Renyi divergence of all answers together at each order.

    Raises:
        ParameterError: It is not known for these mechanisms under this relation.
        BackendUnavailableError: dp-accounting is not installed.
    """
    _check(steps)
    for order in orders:
        if checks.real(order, "an order of Renyi divergence") <= 1:
            raise ParameterError(f"orders of Renyi divergence are above 1, not {order}")
    try:
        return _renyi(steps, orders, relation)
    except _RefusedError as error:
        raise ParameterError(f"RDP: {error}") from None


def renyi_epsilon(
    orders: Sequence[float], divergences: Sequence[float], delta: Amount, *, basic: bool = False
) -> float:
    """Return the epsilon that Renyi divergences imply.

    Args:
        orders: Orders above 1.
        divergences: The divergence at each.
        delta: At which delta.
        basic: By Mironov (2017), proposition 3, as older papers did, and not by the tighter
            proposition 12 of Canonne, Kamath, Steinke (2020).

    Raises:
        ParameterError: Delta is not a probability above 0.
        BackendUnavailableError: dp-accounting is not installed.
    """
    probability = float(delta_of(delta, needed=True))
    if basic:
        cost = -math.log(probability)
        return min(rdp + cost / (a - 1) for a, rdp in zip(orders, divergences, strict=True))
    return float(_library("rdp").compute_epsilon(orders, divergences, probability)[0])


class _RefusedError(Exception):
    """An accountant cannot do this."""


def _library(module: str) -> Any:
    try:
        return importlib.import_module(f"dp_accounting.{module}")
    except ImportError as error:
        raise BackendUnavailableError(
            "accounting needs dp-accounting; pip install 'securecomp[privacy]'"
        ) from error


def _check(steps: Steps) -> None:
    """Refuse impossible noise, rates beyond 0 and 1, and a wrong number of answers."""
    if not steps:
        raise ParameterError("nothing was answered, so there is nothing to account for")
    for mechanism, times in steps:
        checks.integer(times, "how often a mechanism answered", 1, _MOST_TIMES)
        match mechanism:
            case LaplaceNoise(ratio) | GaussianNoise(ratio):
                positive(ratio, "ratio of noise")
            case DiscreteGaussian(sigma, squared):
                positive(sigma, "sigma of noise")
                checks.integer(squared, "the squared sensitivity", 1)
                checks.real(squared, "the squared sensitivity")
            case Sampled(rate, ratio):
                positive(ratio, "ratio of noise")
                if not 0 < checks.real(rate, "a sampling rate") <= 1:
                    raise ParameterError(f"a sampling rate is above 0 and at most 1, not {rate}")
            case Promised(epsilon, delta):
                positive(epsilon, "promised epsilon")
                delta_of(delta, needed=False)


def _plain(steps: Steps, delta: float, relation: Relation) -> float:
    """Add epsilons up (Dwork, Roth, theorem 3.16), what is left of delta shared out evenly."""
    promised = [(m.delta, times) for m, times in steps if isinstance(m, Promised)]
    left = delta - sum(own * times for own, times in promised)
    if left < 0:
        raise _RefusedError("the promised deltas add up to more than the given delta")
    sharing = sum(times for m, times in steps if not isinstance(m, Promised | LaplaceNoise))
    if sharing and left <= 0:
        raise _RefusedError("Gaussian noise has no guarantee at delta 0; give a delta above 0")
    share = left / sharing if sharing else 0.0
    return math.fsum(times * _alone(mechanism, share, relation) for mechanism, times in steps)


def _alone(mechanism: Mechanism, delta: float, relation: Relation) -> float:
    match mechanism:
        case Promised(epsilon, _):
            return epsilon
        case LaplaceNoise(ratio):
            return 1 / ratio
        case GaussianNoise(ratio):
            return gaussian_epsilon(ratio, delta)
        case DiscreteGaussian():
            return _rdp([(mechanism, 1)], delta, relation)
        case Sampled(rate, ratio):
            if rate < 1 and relation != "add/remove":
                raise _RefusedError("amplification by Poisson samples is for add/remove only")
            whole = 1 if relation == "add/remove" else 0.5
            # Balle, Barthe, Gaboardi (2018), theorem 8.
            epsilon = gaussian_epsilon(ratio * whole, min(delta / rate, 0.5))
            if epsilon > 700:  # of the exponential; no sample helps then
                return epsilon
            return math.log1p(rate * math.expm1(epsilon))


def _rdp(steps: Steps, delta: float, relation: Relation) -> float:
    if delta <= 0:
        raise _RefusedError("says nothing at delta 0; give a delta above 0, or use plain")
    orders = _library("rdp.rdp_privacy_accountant").DEFAULT_RDP_ORDERS
    return renyi_epsilon(orders, _renyi(steps, orders, relation), delta)


def _renyi(steps: Steps, orders: Sequence[float], relation: Relation) -> list[float]:
    events = _library("dp_event")
    accountant = _library("rdp").RdpAccountant(orders)
    for mechanism, times in steps:
        match mechanism:
            case LaplaceNoise(ratio):
                event = events.LaplaceDpEvent(ratio)
            case GaussianNoise(ratio):
                event = events.GaussianDpEvent(ratio)
            case DiscreteGaussian(sigma, squared):
                # Canonne, Kamath, Steinke (2020), theorem 14: as concentrated as the Gaussian.
                event = events.ZCDpEvent(squared / (2 * sigma**2))
            case Sampled(rate, ratio) if relation == "add/remove":
                event = events.PoissonSampledDpEvent(rate, events.GaussianDpEvent(ratio))
            case Sampled():
                raise _RefusedError("Poisson samples under replace-one are not known; use PLD")
            case Promised():
                raise _RefusedError("a promised epsilon and delta has no Renyi divergence; use PLD")
        with _quietly():
            accountant.compose(event, times)
    return [float(value) for value in accountant.rdp]


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the library from printing which orders it leaves out: those bound nothing."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _pld(steps: Steps, delta: float, relation: Relation) -> float:
    if delta < _LEAST_DELTA:
        raise _RefusedError(f"is not exact below delta {_LEAST_DELTA}; use plain or RDP")
    extent = _extent(steps, delta)
    if not extent < _MOST_LOSS:
        raise _RefusedError("so little noise promises nothing; use plain")
    # Doubled, so that all points of a wider grid are points of a finer one: then a smaller delta,
    # which may need a wider grid, never gets a smaller epsilon by it.
    width = _FINEST * 2 ** max(0, math.ceil(math.log2(max(extent, 1.0) / (_FINEST * _CELLS))))
    count = sum(times for _, times in steps)
    reach = math.sqrt(2 * (math.log(count) - math.log(delta) + _BEYOND))
    each = [(_losses(m, relation, reach, width), times) for m, times in steps]
    # A unit that comes, and one that goes; for most noise that is the same.
    both = {tuple((ways[side], times) for ways, times in each) for side in (0, -1)}
    epsilon = max(loss_distributions.epsilon_of(answers, delta) for answers in both)
    if not math.isfinite(epsilon):
        raise _RefusedError("the given delta is less than what the answers need")
    return epsilon


def _losses(
    mechanism: Mechanism, relation: Relation, reach: float, width: float
) -> tuple[Losses, ...]:
    """Return a mechanism's losses on a grid; two if it matters whether a unit comes or goes."""
    match mechanism:
        case LaplaceNoise(ratio):
            return (loss_distributions.laplace(ratio, width),)
        case Sampled(rate, ratio) if relation == "replace-one":
            return (loss_distributions.exchanged(rate, ratio, reach, width),)
        case Sampled(rate, ratio) if rate < 1:
            return loss_distributions.sampled(rate, ratio, reach, width)
        case GaussianNoise(ratio) | Sampled(_, ratio):
            return (loss_distributions.gaussian(ratio, reach, width),)
        case DiscreteGaussian(sigma, squared, vector):
            step = math.isqrt(squared)
            if vector or step**2 != squared:
                raise _RefusedError("discrete Gaussian noise on vectors is not known; use RDP")
            if max(sigma, step) > _WIDEST:
                raise _RefusedError("discrete Gaussian noise this wide takes too long; use RDP")
            return (loss_distributions.discrete_gaussian(sigma, step, reach, width),)
        case Promised(epsilon, delta):
            return (loss_distributions.promised(epsilon, delta, width),)


def _extent(steps: Steps, delta: float) -> float:
    """Return about how large the loss gets, to choose a grid; no bound of anything."""
    known: list[tuple[Mechanism, int]] = []
    most = 0.0
    for mechanism, times in steps:
        match mechanism:
            case Promised(epsilon, _):
                most += epsilon * times
            case Sampled(rate, ratio):
                known.append((Sampled(rate, ratio / 2), times))
            case _:
                known.append((mechanism, times))
    return most + (_rdp(known, delta, "add/remove") if known else 0.0)


_ACCOUNTANTS = {"plain": _plain, "RDP": _rdp, "PLD": _pld}
