"""Membership audits: the numbers of an attack's scores, and likelihood ratios of shadow models."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from securecomp.audit.membership.attacks import LikelihoodRatio
from securecomp.audit.membership.membership_audit import (
    membership_from_scores,
    membership_inference,
)
from securecomp.audit.membership.membership_report import MembershipReport
from securecomp.overhead.cases.synthetic_data import Synthetic
from securecomp.overhead.job import Case, Job, WrongResultError

_MEMBERS = (1_000, 10_000, 100_000)
_SHADOWS = 64
_FEATURES = 10


def _agree(expected: float, found: MembershipReport) -> float:
    error = abs(found.area.value - expected)
    if error > 1e-9:
        raise WrongResultError(f"an area of {found.area.value:.6f} instead of {expected:.6f}")
    return error


def rates(members: int) -> Job:
    """Return the job of area, rates at low false alarms and bound on epsilon, with intervals."""
    from sklearn.metrics import roc_auc_score, roc_curve  # an optional extra

    rng = Synthetic(0)
    inside, outside = rng.normal(0.5, 1, members), rng.normal(0, 1, members)
    truth = np.repeat([1, 0], members)

    def plain() -> float:
        scores = np.concatenate([inside, outside])
        roc_curve(truth, scores)
        return float(roc_auc_score(truth, scores))

    def full(_: Any) -> MembershipReport:
        found = membership_from_scores(inside, outside, attack="scores")
        found.to_json()
        return found

    return Job(
        sizes={"members": members, "rows": 2 * members},
        plain=plain,
        secure=full,
        check=_agree,
        note="Plaintext: scikit-learn's curve and area, without intervals or a bound.",
    )


def ratios(members: int, shadows: int) -> Job:
    """Return the job of likelihood ratios, beside their trainings and answers by scikit-learn."""
    from sklearn.base import clone  # an optional extra
    from sklearn.linear_model import LogisticRegression

    rng = Synthetic(0)
    x = rng.normal(size=(2 * members, _FEATURES))
    y = (x[:, 0] + rng.normal(size=2 * members) > 0).astype(int)
    parts = [(x[part], y[part]) for part in (slice(0, members), slice(members, None))]
    estimator = LogisticRegression()
    model = clone(estimator).fit(*parts[0])

    def plain() -> float:
        for _ in range(shadows):
            half = rng.random(2 * members) < 0.5
            clone(estimator).fit(x[half], y[half]).predict_proba(x)
        return 0.5

    def attacked(_: Any) -> MembershipReport:
        attack = LikelihoodRatio(estimator, shadows=shadows)
        return membership_inference(model, *parts, attack=attack, alike="keep")

    def check(_: float, found: MembershipReport) -> float:
        area = found.roc.area(1 - 1e-6)  # so many rows of so few features leak next to nothing
        if not area.low - 0.1 <= 0.5 <= area.high:
            raise WrongResultError(f"an area of {area.value:.3f} for a model that hardly overfits")
        return abs(area.value - 0.5)

    return Job(
        sizes={"members": members, "rows": 2 * members, "shadows": shadows},
        plain=plain,
        secure=attacked,
        check=check,
        note=(
            "Plaintext: as many trainings on halves of the rows, and answers on all rows. The "
            "error is how far the attack's area is from chance."
        ),
    )


def for_developers() -> Iterator[Case]:
    """Yield all numbers of an attack's scores, and likelihood ratios, for growing members."""
    needs: dict[str, Any] = {"needs": ("sklearn",), "install": "pip install scikit-learn"}
    for members in _MEMBERS:
        yield Case(
            f"audit/rates/{members}",
            f"Membership audit, all numbers of the scores of {members:,} members",
            rates,
            size=members,
            quick=min(members, 1_000),
            tiny=100,
            **needs,
        )
    for members in _MEMBERS:
        yield Case(
            f"audit/ratios/{members}",
            f"Likelihood ratio, {_SHADOWS} shadow models, {members:,} members",
            lambda size: ratios(size, _SHADOWS if size > 100 else 4),
            size=members,
            quick=min(members, 1_000),
            tiny=100,
            rounds=2 if members > 10_000 else 0,
            **needs,
        )
