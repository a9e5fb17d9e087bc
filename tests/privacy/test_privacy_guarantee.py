"""What a promise means, in numbers and words."""

import json
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from scipy.optimize import linprog

from securecomp.errors import ParameterError
from securecomp.federated.dp_config import DPTerms, agreed
from securecomp.privacy.distributed import plan
from securecomp.privacy.guarantee import (
    Guarantee,
    PrivacyWarning,
    best_accuracy,
    best_detection,
    check_delta,
    explain,
)
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.privacy.policy import Privacy, from_options
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.privacy.sensitivity import Neighbours

MADE = Guarantee(1.0, 1e-6, Neighbours("add/remove", "patient", 3), "Laplace", 3.0, 8.99, "plain")


@each_case("epsilon, accuracy", [(1, 0.731), (0.1, 0.525), (3, 0.953), (0.5, 0.622), (10, 0.99995)])
def test_the_best_accuracy(epsilon, accuracy):
    assert best_accuracy(epsilon) == pytest.approx(accuracy, abs=5e-4)
    assert best_accuracy(epsilon) == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)))


@each_case("epsilon", [0.1, 1, 3])
@each_case("delta", [0, 1e-3, 0.2])
def test_no_pair_of_distributions_gives_an_attacker_more(epsilon, delta):
    """The best mechanism for the attacker, as a linear program over four outcomes."""
    grow = math.exp(epsilon)
    outcomes = 4
    rows, limits = [], []
    for chosen in range(2**outcomes):
        mask = np.array([chosen >> i & 1 for i in range(outcomes)], float)
        rows += [np.r_[mask, -grow * mask], np.r_[-grow * mask, mask]]
        limits += [delta, delta]
    sums = np.r_[np.ones(4), np.zeros(4)], np.r_[np.zeros(4), np.ones(4)]
    guess = np.array([1, 1, 0, 0.0])  # "in" at the first two outcomes

    def attack(goal, equal, values):
        return -linprog(-goal, rows, limits, equal, values).fun

    right = attack(np.r_[guess / 2, (1 - guess) / 2], sums, [1, 1])
    assert best_accuracy(epsilon, delta) == pytest.approx(right, abs=1e-7)
    found = attack(np.r_[guess, 0 * guess], [*sums, np.r_[0 * guess, guess]], [1, 1, 0.01])
    assert best_detection(epsilon, delta) == pytest.approx(found, abs=1e-7)


def test_detection_at_one_percent():
    assert best_detection(1) == pytest.approx(0.0271828, abs=1e-6)
    assert best_detection(6) == pytest.approx(1 - 0.99 * math.exp(-6))
    assert best_detection(1000) == 1
    assert best_accuracy(1000) == 1


def test_in_words():
    assert "right at most 73.2 % of the time" in explain(1, 1e-6)  # rounded up
    assert "1 % false alarms finds at most 2.8 % of those" in explain(1, 1e-6)
    assert "about 1 in 1,000,000" in explain(1, 1e-6)
    assert "delta" not in explain(1)
    assert "one patient with all records is in the data" in MADE.explain()
    assert "which of two possible contents one record has" in explain(
        1, 0, Neighbours("replace-one")
    )


@each_case("epsilon", [0, -1, math.nan, math.inf])
def test_an_epsilon_that_is_none(epsilon):
    for find in (explain, best_accuracy, best_detection):
        with pytest.raises(ParameterError, match="epsilon"):
            find(epsilon)


def test_a_delta_that_gives_somebody_away():
    with pytest.warns(PrivacyWarning, match=r"delta 0.001 is not below 1/1000.*1e-05 or less"):
        check_delta(1e-3, 1000)
    with pytest.warns(PrivacyWarning):
        check_delta(0.5, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_delta(1e-6, 1000)
        check_delta(0, 1000)


@each_case("delta", [0.5, 0.999999, "0.0100001", 0.011, Fraction(1, 99)])
def test_a_delta_that_is_too_much_for_any_number_of_persons(delta, tmp_path):
    """Wherever something is promised; what only computes with deltas takes any."""
    promises = (
        lambda: Privacy(1.0, delta),
        lambda: Privacy(1.0, delta, noise="laplace"),
        lambda: from_options("1", str(delta)),
        lambda: plan("skellam", [UnitChange(1, 1, 1.0, one=True)], 1.0, float(Fraction(delta)), 3),
        lambda: Ledger.create(tmp_path / "ledger", "stays", 1, delta),
        lambda: agreed(DPTerms(epsilon=1.0, delta=delta), 1000, 5),
        lambda: agreed(DPTerms(noise_multiplier=1.0, delta=delta), 1000, 5),
    )
    for promise in promises:
        with pytest.raises(
            ParameterError, match=r"promises nothing: publishing one of.*at most 0\.01"
        ):
            promise()
    assert not (tmp_path / "ledger").exists()
    assert best_accuracy(1, delta) > best_accuracy(1)


def test_the_largest_delta_that_can_be_meant():
    for delta in (0.01, "1/100", 1e-6):
        assert Privacy(1.0, delta).delta == delta


def test_a_guarantee_says_all():
    with pytest.raises(AttributeError):
        MADE.epsilon = 2
    facts = json.loads(json.dumps(MADE.facts()))
    assert facts == {
        "epsilon": 1.0,
        "delta": 1e-6,
        "relation": "add/remove",
        "unit": "patient",
        "records": 3,
        "mechanism": "Laplace",
        "scale": 3.0,
        "error_95": 8.99,
        "accountant": "plain",
        "spent": None,
    }
    assert "no ledger" in str(MADE)
    paid = Guarantee(0.1, 0.0, Neighbours(), "Laplace", 10.0, 30.0, spent=PrivacyCost.of(0.1))
    assert paid.facts()["spent"] == {"epsilon": "0.1", "delta": "0"}
    assert "spent epsilon 0.1, delta 0" in str(paid)
