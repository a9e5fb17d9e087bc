"""Membership inference: telling whose rows a model was trained on.

    from securecomp.audit import Claim, membership_inference

    found = membership_inference(model, (x_train, y_train), (x_test, y_test))
    print(found)  # tables; .plots(), .to_json()
    found.check(Claim(epsilon=2, delta=1e-5, unit="record"))  # RefutedError if it cannot be true

The auditor has the model and all rows, and learns what an attacker with these would learn. If an
attack finds little, another one may still find more.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.audit.bounds import Floats, checked_scores
from securecomp.audit.confidences import Confidences, Rows, answers, checked_rows, classes_of
from securecomp.audit.labelled_rows import joined, refuse_alike, refuse_common
from securecomp.audit.membership.attacks import Attack, LossThreshold
from securecomp.audit.membership.guesses import Chosen, check_chosen
from securecomp.audit.membership.membership_report import GeneralisationGap, MembershipReport
from securecomp.audit.membership.roc_curve import Roc, check_rate, rows_needed
from securecomp.errors import ParameterError
from securecomp.privacy.privacy_amounts import Amount, delta_of
from securecomp.privacy.sensitivity import Neighbours, Unit
from securecomp.statistics.cell_values import comparable, is_missing
from securecomp.statistics.distributions import check_confidence

FALSE_ALARMS = (0.001, 0.01)
"""Rates of false alarms at which detection is reported, if the holdout is large enough."""
Alike = Literal["refuse", "keep"]

_SAME_ROWS = (
    "are the same in all columns. A row in both is not a holdout: leave it out of both (left out "
    "of one alone, common rows would tell the files apart). If they are different persons who "
    "look alike, name the column that tells persons apart, as identifiers (--identifier), or give "
    'alike="keep" (--alike keep)'
)
_SAME_PERSON = (
    "are of the same person, who is not a holdout: leave all rows of such persons out of both "
    "(left out of one alone, persons with many rows would tell the files apart)"
)


def membership_inference(
    model: Any,
    members: Rows,
    holdout: Rows,
    *,
    attack: Attack | None = None,
    chosen: Chosen = "split",
    identifiers: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
    alike: Alike = "refuse",
    delta: Amount = 0,
    confidence: float = 0.95,
    false_alarms: Sequence[float] | None = None,
    names: tuple[str, str] = ("members", "holdout"),
) -> MembershipReport:
    """Attack a model's membership.

    Args:
        model: A fitted classifier with `predict_proba` and `classes_`.
        members: Features and labels that it was trained on, or a random part of them.
        holdout: Features and labels that it was not trained on.
        attack: By default the loss threshold. Shadow models and likelihood ratios (`attacks`) need
            an estimator to train.
        chosen: How the members were chosen: "split" (a random, fixed number of all these rows),
            "coins" (each row by a fair coin of its own) or "otherwise". The meaning of the bound on
            epsilon depends on it (`guesses`). It cannot be checked, and a wrong value gives a wrong
            bound.
        identifiers: The person of each row, for members and for holdout. A person's score is the
            mean of the rows', and the unit is a patient. By default each row is a unit.
        alike: Whether a row of members that is also in the holdout is refused. Identifiers decide
            this instead, if they are given.
        delta: Delta of the bound on epsilon if there is no claim.
        confidence: Confidence of each interval and each bound.
        false_alarms: Rates at which detection is reported. By default .1 % and 1 %, if the holdout
            has enough rows.
        names: Names of members and holdout in error messages, for example files.

    Raises:
        ParameterError: Rows or labels that the model does not take, members and holdout that
            overlap, a single class, a holdout too small for a requested rate, or an invalid
            argument.
    """
    known = classes_of(model)
    ours, others = checked_rows(members, names[0]), checked_rows(holdout, names[1])
    if identifiers is not None:
        persons = _persons(identifiers, (len(ours[1]), len(others[1])), names)
        refuse_common(*persons, names, _SAME_PERSON)
    elif alike == "refuse":
        refuse_alike(ours, others, names, _SAME_ROWS)
    elif alike != "keep":
        raise ParameterError(f'alike must be "refuse" or "keep", not {alike!r}')
    said = answers(model, ours, names[0]), answers(model, others, names[1])
    for one, name in zip(said, names, strict=True):
        _check_classes(one, name, len(known))
    units = len(ours[1]), len(others[1])
    if identifiers is not None:
        units = len(set(persons[0])), len(set(persons[1]))
    _check_terms(chosen, units, delta, confidence, false_alarms)
    attack = attack or LossThreshold()
    inside, outside = _scores(attack, model, ours, others)
    records = 1
    unit: Unit = "record"
    if identifiers is not None:
        unit = "patient"
        (inside, most), (outside, more) = map(_by_person, (inside, outside), persons)
        records = max(most, more)
    return membership_from_scores(
        inside,
        outside,
        attack=attack.name,
        chosen=chosen,
        unit=unit,
        records=records,
        delta=delta,
        confidence=confidence,
        false_alarms=false_alarms,
        fit=GeneralisationGap.of(*said),
    )


def membership_from_scores(
    members: npt.ArrayLike,
    holdout: npt.ArrayLike,
    *,
    attack: str,
    chosen: Chosen = "split",
    unit: Unit = "record",
    records: int = 1,
    delta: Amount = 0,
    confidence: float = 0.95,
    false_alarms: Sequence[float] | None = None,
    fit: GeneralisationGap | None = None,
) -> MembershipReport:
    """Report on scores from elsewhere, for example of a model that is not a classifier.

    Args:
        members: One score for each unit that was trained on. Larger ones speak for membership.
        holdout: One score for each unit that was not trained on.
        attack: Name of the attack, in a few words.
        chosen: As for `membership_inference`.
        unit: The unit of a score: a record, or a patient with all records.
        records: Largest number of records of one patient.
        delta: As for `membership_inference`.
        confidence: As for `membership_inference`.
        false_alarms: As for `membership_inference`.
        fit: Accuracy and loss on members and holdout, if they are known.

    Raises:
        ParameterError: No scores, a score that is not a number, a holdout too small for a requested
            rate, or an invalid argument.
    """
    inside, outside = checked_scores(members, "members"), checked_scores(holdout, "holdout")
    _check_terms(chosen, (len(inside), len(outside)), delta, confidence, false_alarms)
    roc = Roc(inside, outside)
    wanted = FALSE_ALARMS if false_alarms is None else false_alarms
    fitting = [rate for rate in wanted if roc.holdout >= rows_needed(rate)]
    asked = fitting if false_alarms is None else wanted
    return MembershipReport(
        attack=attack,
        roc=roc,
        chosen=chosen,
        units=Neighbours("add/remove", unit, records),
        delta=float(delta_of(delta, needed=False)),
        confidence=confidence,
        detections=tuple(roc.detection(rate, confidence) for rate in asked),
        too_small=tuple(rate for rate in wanted if rate not in asked),
        fit=fit,
    )


def _check_classes(said: Confidences, name: str, classes: int) -> None:
    if len(np.unique(said.truth)) < 2:
        raise ParameterError(
            f"{name}: all rows are of one of the model's {classes} classes, so an attack could "
            "tell the class instead of membership; give rows of all classes"
        )


def _scores(attack: Attack, model: Any, members: Rows, holdout: Rows) -> tuple[Floats, Floats]:
    """Return an attack's scores of members and of others, from one call."""
    if not hasattr(attack, "scores"):
        raise ParameterError(
            f"attack is an attack of securecomp.audit, say LossThreshold(); not {attack!r}"
        )
    both = joined(members[0], holdout[0]), np.concatenate([members[1], holdout[1]])
    scores = checked_scores(attack.scores(model, both), attack.name)
    if len(scores) != len(both[1]):
        raise ParameterError(f"{attack.name}: {len(scores):,} scores for {len(both[1]):,} rows")
    return scores[: len(members[1])], scores[len(members[1]) :]


def _check_terms(
    chosen: str,
    units: tuple[int, int],
    delta: Amount,
    confidence: float,
    false_alarms: Sequence[float] | None,
) -> None:
    """Refuse terms that do not fit an audit of this many members and others."""
    check_chosen(chosen, *units)
    delta_of(delta, needed=False)
    check_confidence(confidence)
    if isinstance(false_alarms, float | str):
        raise ParameterError(f"false_alarms is a list of rates; give [{false_alarms!r}]")
    for rate in () if false_alarms is None else false_alarms:
        check_rate(rate, units[1])


def _persons(
    identifiers: tuple[Sequence[Hashable], Sequence[Hashable]],
    counts: tuple[int, int],
    names: tuple[str, str],
) -> tuple[list[Hashable], list[Hashable]]:
    if not isinstance(identifiers, Sequence) or len(identifiers) != 2:
        raise ParameterError("identifiers are two columns; give those of members and of holdout")
    found = []
    for given, count, name in zip(identifiers, counts, names, strict=True):
        persons = [None if is_missing(one) else comparable(one) for one in given]
        if len(persons) != count:
            raise ParameterError(
                f"{name}: {count:,} rows have {len(persons):,} identifiers; give one for each row"
            )
        if None in persons:
            raise ParameterError(
                f"{name}: row {persons.index(None) + 1} has no identifier; fill it in"
            )
        found.append(persons)
    ours, others = found
    return ours, others


def _by_person(scores: Floats, persons: Sequence[Hashable]) -> tuple[Floats, int]:
    """Return a score for each person, and the largest number of rows of one person."""
    places: dict[Hashable, int] = {}
    person = np.array([places.setdefault(one, len(places)) for one in persons])
    rows = np.bincount(person)
    return np.bincount(person, weights=scores) / rows, int(rows.max())
