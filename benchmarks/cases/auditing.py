"""Audits: all numbers of an attack's scores, and likelihood ratios beside their trainings alone."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve

from securecomp.audit.membership.attacks import LikelihoodRatio
from securecomp.audit.membership.membership_audit import (
    membership_from_scores,
    membership_inference,
)
from securecomp.audit.membership.membership_report import MembershipReport
from securecomp.overhead.job import Case, Job, WrongResultError

MEMBERS = (1_000, 10_000, 100_000)
SHADOWS = 64
_FEATURES = 10


def _agree(expected: float, found: MembershipReport) -> float:
    error = abs(found.area.value - expected)
    if error > 1e-9:
        raise WrongResultError(f"an area of {found.area.value:.6f} instead of {expected:.6f}")
    return error


def rates(members: int) -> Job:
    """Area, rates at low false alarms, and the bound on epsilon, each with its interval."""
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(0.5, 1, members), rng.normal(0, 1, members)
    truth = np.repeat([1, 0], members)

    def plainly() -> float:
        scores = np.concatenate([inside, outside])
        roc_curve(truth, scores)
        return float(roc_auc_score(truth, scores))

    def fully(_: Any) -> MembershipReport:
        found = membership_from_scores(inside, outside, attack="scores")
        found.to_json()
        return found

    return Job(
        sizes={"members": members, "rows": 2 * members},
        plain=plainly,
        secure=fully,
        check=_agree,
        note="Plaintext: scikit-learn's curve and area, without intervals or a bound.",
    )


def ratios(members: int, shadows: int) -> Job:
    """The likelihood ratio, online, against its trainings and answers with scikit-learn alone."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * members, _FEATURES))
    y = (x[:, 0] + rng.normal(size=2 * members) > 0).astype(int)
    parts = [(x[part], y[part]) for part in (slice(0, members), slice(members, None))]
    estimator = LogisticRegression()
    model = clone(estimator).fit(*parts[0])

    def plainly() -> float:
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
        plain=plainly,
        secure=attacked,
        check=check,
        note=(
            "Plaintext: as many trainings on halves of the rows, and answers on all rows. The "
            "error is how far the attack's area is from chance."
        ),
    )


CASES = (
    *(
        Case(
            f"audit/rates/{members}",
            f"Membership audit, all numbers of the scores of {members:,} members",
            rates,
            size=members,
            quick=min(members, 1_000),
            tiny=100,
        )
        for members in MEMBERS
    ),
    *(
        Case(
            f"audit/ratios/{members}",
            f"Likelihood ratio, {SHADOWS} shadow models, {members:,} members",
            lambda size: ratios(size, SHADOWS if size > 100 else 4),
            size=members,
            quick=min(members, 1_000),
            tiny=100,
            rounds=2 if members > 10_000 else 0,
        )
        for members in MEMBERS
    ),
)
