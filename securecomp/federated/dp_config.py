"""The terms of private training: what is asked for, checked, and turned into rate, steps and noise.

One form for our own trainer and for others (`opacus`): what contradicts itself, or is accounted as
something that it is not, is refused here, before anything is paid or trained.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Literal

from securecomp.core.fixedpoint import is_number
from securecomp.errors import ParameterError
from securecomp.federated import promise
from securecomp.federated.poisson import check_rate
from securecomp.privacy.accounting import TotalCost
from securecomp.privacy.calibration import gaussian_error
from securecomp.privacy.guarantee import Guarantee, check_delta
from securecomp.privacy.policy import Budget, check_ledger
from securecomp.privacy.privacy_amounts import (
    Amount,
    PrivacyCost,
    check_promised_delta,
    delta_of,
    epsilon_of,
)
from securecomp.privacy.sensitivity import Neighbours, Relation, Unit

Sampling = Literal["poisson"]

_RATE, _STEPS = 0.2, 100
_MOST_STEPS = 10**7


@dataclass(eq=False, repr=False)
class DPTerms:
    """The promise and the pace that are asked for; `DPLogisticRegression` documents each."""

    epsilon: Amount | None = None
    delta: Amount | None = None
    _: KW_ONLY
    noise_multiplier: float | None = None
    rate: float | None = None
    batch: int | None = None
    steps: int | None = None
    epochs: float | None = None
    sampling: Sampling = "poisson"
    unit: Unit = "record"
    records: int = 1
    relation: Relation = "add/remove"


@dataclass(frozen=True, slots=True)
class DPSGDPlan:
    """Plan of a private training, with the privacy that it promises.

    Attributes:
        rate: The sampling rate.
        steps: How many.
        noise: The noise multiplier; 0 promises nothing.
        cost: What the accountant says; None without noise.
        paid: What is paid for it, the promise; None without noise.
        neighbours: For whom it holds.
    """

    rate: float
    steps: int
    noise: float
    cost: TotalCost | None
    paid: PrivacyCost | None
    neighbours: Neighbours

    @contextmanager
    def paying(self, who: str, ledger: Budget | None) -> Iterator[None]:
        """Reserve what training costs, and settle after it; an error on the way spends all of it.

        Raises:
            ParameterError: A ledger is to pay for training that promises nothing.
            BudgetError: It does not have that much.
        """
        check_ledger(ledger)
        if ledger is None:
            yield
            return
        if self.paid is None:
            raise ParameterError(
                "training without noise promises nothing, and no ledger can pay for that; leave "
                "the ledger out, or take noise"
            )
        what = f"{who}: {self.steps} steps of DP-SGD, rate {self.rate:g}, noise {self.noise:.4g}"
        with ledger.spending(what, self.paid, self.neighbours):
            yield

    def guarantee(
        self,
        clip: float,
        units: int,
        recorded: bool,
        noise: str = "discrete Gaussian noise",
    ) -> Guarantee | None:
        """Return the promise; None without noise.

        Args:
            clip: The largest norm of a unit's gradient.
            units: What sums are divided by is the rate times this.
            recorded: Whether a ledger paid.
            noise: Which noise it is.
        """
        if self.cost is None or self.paid is None:
            return None
        scale = self.noise * clip / (self.rate * units)
        return Guarantee(
            float(self.paid.epsilon),
            float(self.paid.delta),
            self.neighbours,
            f"DP-SGD, {self.steps:,} steps, Poisson samples of rate {self.rate:g}, {noise} of "
            f"{self.noise:.4g} times the clip {clip:g}, in each number of a mean gradient",
            scale,
            gaussian_error(scale),
            self.cost.accountant,
            self.paid if recorded else None,
        )


def agreed(terms: DPTerms, units: int, numbers: int) -> DPSGDPlan:
    """Check terms, and find the smallest noise that keeps their promise.

    Args:
        terms: What is asked for.
        units: How many units there are, a public number.
        numbers: How many numbers the model has.

    Raises:
        ParameterError: Terms that promise nothing, contradict each other, or name sampling that is
            not what is accounted.
        BackendUnavailableError: dp-accounting is not installed.
    """
    _check(terms, units)
    neighbours = Neighbours(terms.relation, terms.unit, terms.records)
    rate = _rate(terms, units)
    steps = _steps(terms, rate)
    noise = None if terms.noise_multiplier is None else float(terms.noise_multiplier)
    if noise == 0:
        return DPSGDPlan(rate, steps, 0.0, None, None, neighbours)
    if terms.delta is None:
        raise ParameterError(
            "an epsilon without a delta says nothing of Gaussian noise; give a delta well below "
            f"one over the number of units, such as {0.01 / units:.0e}"
        )
    delta = check_promised_delta(delta_of(terms.delta, needed=True))
    check_delta(delta, units)
    if noise is not None:
        cost = promise.spent(noise, rate, steps, numbers, delta)
        # As it is written in a ledger, 15 digits, but never less.
        return DPSGDPlan(
            rate,
            steps,
            noise,
            cost,
            PrivacyCost.of(cost.epsilon * (1 + 1e-14), delta),
            neighbours,
        )
    if terms.epsilon is None:
        raise ParameterError(
            "say what is promised: epsilon and delta; or noise_multiplier=0, which promises "
            "nothing and says so"
        )
    epsilon = epsilon_of(terms.epsilon)
    noise, cost = promise.least_noise(rate, steps, numbers, epsilon, delta)
    return DPSGDPlan(rate, steps, noise, cost, PrivacyCost(epsilon, delta), neighbours)


def _check(terms: DPTerms, units: int) -> None:
    if terms.sampling != "poisson":
        raise ParameterError(
            f"sampling={terms.sampling!r} is not what the promise is accounted for: shuffled or "
            'fixed batches have no proof that Poisson samples have; take sampling="poisson"'
        )
    if terms.relation != "add/remove":
        raise ParameterError(
            f"relation={terms.relation!r}: Poisson samples are accounted for add/remove; that "
            "promise holds for replacing a unit at twice its epsilon, and delta times "
            "1 + e^epsilon"
        )
    for name, count in (("units", units), ("steps", terms.steps)):
        if count is None and name == "steps":
            continue
        if isinstance(count, bool) or not isinstance(count, Integral) or not count >= 1:
            raise ParameterError(f"{name} is a whole number from 1 on, not {count!r}")
    for one, other in (("rate", "batch"), ("steps", "epochs"), ("epsilon", "noise_multiplier")):
        if getattr(terms, one) is not None and getattr(terms, other) is not None:
            raise ParameterError(f"{one} and {other} say the same thing twice; give one of them")
    for name in ("noise_multiplier", "rate", "batch", "epochs"):
        value = getattr(terms, name)
        if value is not None and not (is_number(value) and 0 <= value < math.inf):
            raise ParameterError(f"{name} is a number, at least 0 and finite, not {value!r}")


def _rate(terms: DPTerms, units: int) -> float:
    if terms.batch is not None and not 1 <= terms.batch <= units:
        raise ParameterError(
            f"batch is the expected size, from 1 to the number of units ({units:,}), "
            f"not {terms.batch!r}; smaller ones come out empty as a rule"
        )
    if terms.batch is not None:
        return check_rate(min(1.0, math.nextafter(terms.batch / units, 1.0)), units)
    if terms.rate is None:
        return check_rate(max(_RATE, 1 / units), units)
    return check_rate(float(terms.rate), units)


def _steps(terms: DPTerms, rate: float) -> int:
    if terms.epochs == 0:
        raise ParameterError("epochs is above 0: how often each unit is drawn on average")
    asked = _STEPS if terms.steps is None else terms.steps
    wanted = asked if terms.epochs is None else max(1.0, terms.epochs / rate)
    if wanted > _MOST_STEPS:
        raise ParameterError(
            f"training has at most {_MOST_STEPS:,} steps, beyond which accounting takes too long; "
            "take fewer steps or epochs"
        )
    return round(wanted)
