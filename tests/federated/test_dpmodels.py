"""The estimators: scikit-learn's own checks, their promise, their ledger, and what they refuse."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sklearn
from cases import each_case, named, some_or_all
from replaying import Replay
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_regression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from securecomp.errors import BudgetError, ParameterError, RangeError
from securecomp.federated import dp_models, promise
from securecomp.federated.dp_config import DPTerms, agreed
from securecomp.federated.dp_models import DPLinearRegression, DPLogisticRegression
from securecomp.models import LogisticModel
from securecomp.privacy.guarantee import PrivacyWarning
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.sensitivity import Neighbours

TWICE = "fits twice and compares; two fits have two noises"
EXCLUDED = {
    "check_classifier_data_not_an_array": TWICE,
    "check_regressor_data_not_an_array": TWICE,
    "check_regressors_int": TWICE,
    "check_supervised_y_2d": TWICE,
    "check_fit_idempotent": TWICE,
}
"""What noise cannot pass, and why; with noise that is replayed there is no exception."""


FAST = {"epsilon": 5, "delta": 1e-4, "rate": 1.0, "steps": 10}
"""Terms whose noise is found at once: nothing is sampled."""


def data(seed=0, count=200, features=4):
    g = np.random.default_rng(seed)
    table = g.normal(size=(count, features))
    return table, np.where(table[:, 0] - table[:, 1] + 0.3 * g.normal(size=count) > 0, "ill", "fit")


def constant(size):
    """No entropy at all: the same noise each time. Unlike `Replay` it can be cloned."""
    return bytes(size)


PROMISED = {"epsilon": 50, "delta": 1e-3, "steps": 20}
TERMS = [
    ({**PROMISED, "entropy": constant}, {}),
    (PROMISED, EXCLUDED),
    ({"noise_multiplier": 0, "steps": 100}, {}),
]


@some_or_all(
    "made",
    [(DPLogisticRegression, *TERMS[0]), (DPLinearRegression, *TERMS[2])],
    [(kind, *terms) for kind in (DPLogisticRegression, DPLinearRegression) for terms in TERMS],
)
def test_scikit_learns_checks(made):
    for kind, terms, excluded in made:
        with named(kind, terms):
            passes(kind, terms, excluded)


def passes(kind, terms, excluded):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of delta, on their handful of rows; and what they skip
        found = check_estimator(
            kind(rate=1.0, **terms), expected_failed_checks=excluded, on_fail=None
        )
    assert len(found) > 30
    failed = {r["check_name"]: str(r["exception"])[:300] for r in found if r["status"] == "failed"}
    assert failed == {}


def test_a_promise_that_is_kept():
    table, labels = data()
    model = DPLogisticRegression(2, 1e-5, entropy=Replay(1)).fit(table, labels)
    assert model.score(table, labels) > 0.8
    guarantee = model.guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (2.0, 1e-5)
    assert guarantee.neighbours == Neighbours()
    assert guarantee.spent is None
    assert 1.99 < model.epsilon_ <= 2
    assert model.accountant_ == guarantee.accountant == "PLD"
    assert (model.rate_, model.steps_) == (0.2, 100)
    cost = promise.spent(model.noise_multiplier_, 0.2, 100, 5, 1e-5)
    assert cost.epsilon == model.epsilon_
    assert guarantee.scale == model.noise_multiplier_ / (0.2 * 200)
    assert "100 steps" in str(guarantee)
    assert "right at most" in guarantee.explain()


def test_replay():
    table, labels = data()
    fits = [
        DPLogisticRegression(**FAST, entropy=Replay(s)).fit(table, labels).coef_ for s in (1, 1, 2)
    ]
    assert np.array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


def test_more_noise_for_less_epsilon():
    table, labels = data()
    noises = [
        DPLogisticRegression(e, 1e-5, rate=1.0, steps=10).fit(table, labels).noise_multiplier_
        for e in (8, 2, 0.5)
    ]
    assert noises == sorted(noises)


def test_a_noise_multiplier_says_what_it_comes_to():
    table, labels = data()
    model = DPLogisticRegression(None, 1e-5, noise_multiplier=3, rate=0.1, steps=50)
    model.fit(table, labels)
    assert model.epsilon_ == promise.spent(3, 0.1, 50, 5, 1e-5).epsilon
    assert model.guarantee_.epsilon == pytest.approx(model.epsilon_, rel=1e-12)


def test_no_noise_promises_nothing_and_says_so():
    table, labels = data()
    model = DPLogisticRegression(noise_multiplier=0, rate=1.0, steps=300).fit(table, labels)
    assert model.guarantee_ is None
    assert (model.epsilon_, model.accountant_) == (math.inf, "none")
    assert model.score(table, labels) > 0.93
    with pytest.raises(ParameterError, match="no ledger can pay"):
        model.set_params(ledger=Ledger("nowhere")).fit(table, labels)


def test_several_classes():
    rows, digits = load_digits(return_X_y=True)
    model = DPLogisticRegression(8, 1e-5, batch=400, steps=60, learning_rate=4, entropy=Replay(0))
    model.fit(rows[:1400] / 16, digits[:1400])
    assert model.coef_.shape == (10, 64)
    assert model.predict_proba(rows / 16).sum(axis=1) == pytest.approx(1)
    assert model.score(rows[1400:] / 16, digits[1400:]) > 0.8
    shown = model.decision_function(rows[:3] / 16)
    assert np.array_equal(model.classes_[shown.argmax(axis=1)], model.predict(rows[:3] / 16))


def test_breast_cancer_in_a_pipeline():
    rows, ill = load_breast_cancer(return_X_y=True)
    middle, spread = np.log1p(rows[:50]).mean(axis=0), np.log1p(rows[:50]).std(axis=0)
    rows, ill = rows[50:], ill[50:]  # as if they were published
    public = FunctionTransformer(lambda table: (np.log1p(table) - middle) / spread)
    parts = train_test_split(rows, ill, random_state=0)
    model = make_pipeline(
        public, DPLogisticRegression(2, 1e-5, rate=1.0, steps=50, entropy=Replay(0))
    )
    assert model.fit(parts[0], parts[2]).score(parts[1], parts[3]) > 0.92


def test_it_composes():
    table, labels = data()
    frame = pd.DataFrame(table, columns=list("abcd"))
    search = GridSearchCV(
        DPLogisticRegression(**FAST), {"clip": [0.5, 2], "steps": np.array([10, 20])}, cv=2
    ).fit(frame, labels)
    assert list(search.best_estimator_.feature_names_in_) == list("abcd")
    assert cross_val_score(DPLogisticRegression(**FAST), table, labels, cv=2).min() > 0.6
    model = DPLogisticRegression(5, 1e-4, clip=3)
    assert clone(model).get_params() == model.get_params()
    with sklearn.config_context(enable_metadata_routing=True):
        grouped = DPLogisticRegression(**FAST, unit="patient")
        grouped.set_fit_request(groups=True)
        scores = cross_val_score(
            grouped, table, labels, cv=2, params={"groups": np.arange(200) // 2}
        )
    assert len(scores) == 2


def test_it_is_a_logistic_model_for_encrypted_inference():
    table, labels = data()
    model = DPLogisticRegression(**FAST).fit(table, labels)
    assert LogisticModel.from_sklearn(model).weights == pytest.approx(model.coef_)


def test_least_squares():
    table, values = make_regression(400, 5, noise=1, random_state=0)
    table, values = table / 3, values / 100
    model = DPLinearRegression(5, 1e-5, batch=200, steps=100, entropy=Replay(0))
    assert model.fit(table, values).score(table, values) > 0.8
    assert model.coef_.shape == (5,)
    assert np.ndim(model.intercept_) == 0
    exact = DPLinearRegression(noise_multiplier=0, rate=1.0, steps=2000, clip=100.0)
    exact.fit(table, values)
    line = np.linalg.lstsq(np.c_[table, np.ones(400)], values, rcond=None)[0]
    assert [*exact.coef_, exact.intercept_] == pytest.approx(line, abs=1e-3)


def test_without_an_intercept():
    table, labels = data()
    model = DPLogisticRegression(**FAST, fit_intercept=False).fit(table, labels)
    assert model.intercept_.tolist() == [0.0]
    assert promise.spent(model.noise_multiplier_, 1.0, 10, 4, 1e-4).epsilon == model.epsilon_


def test_patients_with_several_records(tmp_path):
    table, labels = data()
    patients = np.array([f"patient {i % 60}" for i in range(200)])
    who = Neighbours("add/remove", "patient", 4)
    ledger = Ledger.create(tmp_path / "budget", "ward", 10, "1e-4", who)
    model = DPLogisticRegression(4, 1e-5, unit="patient", records=4, ledger=ledger)
    model.fit(table, labels, groups=patients)
    assert model.guarantee_.neighbours == who
    assert model.guarantee_.scale == model.noise_multiplier_ / (0.2 * 60)  # patients, not rows
    with pytest.raises(ParameterError, match=r"groups=\.\.\."):
        model.fit(table, labels)
    with pytest.raises(ParameterError, match="one entry a row"):
        model.fit(table, labels, groups=patients[:-1])
    with pytest.raises(ParameterError, match="several types"):
        model.fit(table, labels, groups=np.array([*patients[:-1], 7], object))
    for missing in (None, math.nan, pd.NA, pd.NaT):
        holes = [*patients[:-1], missing]
        with pytest.raises(ParameterError, match=r"groups: row 199 .* says no patient"):
            model.fit(table, labels, groups=pd.Series(holes, dtype=object))
    with pytest.raises(ParameterError, match='unit="patient"'):
        DPLogisticRegression(4, 1e-5).fit(table, labels, groups=patients)
    # A ledger that protects patients takes no promise for records.
    with pytest.raises(ParameterError, match="this budget protects"):
        DPLogisticRegression(4, 1e-5, ledger=ledger).fit(table, labels)
    assert float(ledger.state().spent.epsilon) == 4


@each_case(
    "patients, said",
    [
        ([1, "1"], "several types"),
        ([2**63 + 1, -1], None),
        ([2**53 + 1, 2.0**53], None),
        (np.array([2.0**53 + 2, 2.0**53]), "rounded as float64"),
        (np.array([2.0**24, 7], np.float32), "rounded as float32"),
        (pd.Series(["1", "2"], dtype="category"), None),
        (pd.Series([2**60, 2**60 + 1, 3])[:2], None),
    ],
)
def test_two_patients_do_not_become_one(patients, said):
    """If they did, one who leaves would give all of the clip to the other: twice the change."""
    model = DPLogisticRegression(noise_multiplier=0, unit="patient", rate=1.0, steps=1)
    table, labels = [[1000.0], [-1.0]], [0, 1]
    if said:
        with pytest.raises(ParameterError, match=said):
            model.fit(table, labels, groups=patients)
    else:
        assert len(set(model._owners(patients, 2))) == 2
        model.fit(table, labels, groups=patients)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget", "ward", 3, "1e-4")


def test_a_ledger_pays_once_a_fit(ledger):
    table, labels = data()
    model = DPLogisticRegression(1, "1e-5", rate=1.0, steps=10, ledger=ledger).fit(table, labels)
    state = ledger.state()
    assert (float(state.spent.epsilon), len(state.open)) == (1.0, 0)
    assert model.guarantee_.spent == state.spent
    assert "DPLogisticRegression: 10 steps of DP-SGD" in state.entries[1].what
    model.fit(table, labels).fit(table, labels)
    with pytest.raises(BudgetError, match="there is left epsilon 0"):
        model.fit(table, labels)
    paid = DPLogisticRegression(None, 1e-5, noise_multiplier=50, steps=10, ledger=ledger)
    with pytest.raises(BudgetError):
        paid.fit(table, labels)


def test_a_search_pays_for_each_fit(ledger):
    table, labels = data()
    model = DPLogisticRegression("0.5", "1e-5", rate=1.0, steps=5, ledger=ledger)
    GridSearchCV(model, {"clip": [0.5, 1]}, cv=2).fit(table, labels)
    assert float(ledger.state().spent.epsilon) == 5 * 0.5


def test_a_crash_spends_all_of_it(ledger, monkeypatch):
    table, labels = data()
    seen = []

    def crash(*_):
        seen.append(ledger.state().open)
        raise KeyboardInterrupt

    monkeypatch.setattr(dp_models, "train", crash)
    with pytest.raises(KeyboardInterrupt):
        DPLogisticRegression(1, 1e-5, ledger=ledger).fit(table, labels)
    assert [len(open_) for open_ in seen] == [1]  # reserved before the first step
    assert float(ledger.state().spent.epsilon) == 1.0
    assert len(ledger.state().open) == 1


def test_what_is_refused_costs_nothing(ledger):
    table, labels = data()
    holes = table.copy()
    holes[17, 2] = np.nan
    model = DPLogisticRegression(1, 1e-5, rate=1.0, ledger=ledger)
    with pytest.raises(RangeError, match=r"X: row 17 .*NaN.*; nothing was trained or spent"):
        model.fit(holes, labels)
    with pytest.raises(ParameterError, match="one class only"):
        model.fit(table, ["fit"] * 200)
    with pytest.raises(ParameterError, match=r"y: row 0 .*none of the given classes"):
        model.fit(table, ["worse", *labels[1:]], classes=["fit", "ill"])
    with pytest.raises(ParameterError, match="empty as a rule"):
        model.set_params(noise_multiplier=3, epsilon=None, rate=0.001, units=10_000).fit(
            table, labels
        )
    with pytest.raises(RangeError, match=r"y: row 9 .* missing"):
        model.fit(table, [*labels[:9], None, *labels[10:]])
    with pytest.raises(RangeError, match=r"y: row 0 .* NaN"):
        DPLinearRegression(1, 1e-5, rate=1.0, ledger=ledger).fit(table, [math.nan, *range(199)])
    with pytest.raises(RangeError, match="y: row 3"):
        DPLinearRegression(1, 1e-5, rate=1.0, ledger=ledger).fit(
            table, [0, 0, 0, 1e70, *range(196)]
        )
    with pytest.raises(ParameterError, match="clip"):
        DPLogisticRegression(1, 1e-5, 0, rate=1.0, ledger=ledger).fit(table, labels)
    assert len(ledger.state().entries) == 1


def test_classes_may_be_told():
    table, labels = data()
    model = DPLogisticRegression(**FAST)
    model.fit(table, labels, classes=["fit", "ill", "unknown"])
    assert model.coef_.shape == (3, 4)
    model.fit(table, ["ill"] * 200, classes=["fit", "ill"])
    assert list(model.classes_) == ["fit", "ill"]
    for wrong in (3, [["fit", "ill"]], ["fit", "ill", None]):
        with pytest.raises(ParameterError, match="a list of labels"):
            model.fit(table, labels, classes=wrong)
    with pytest.raises(ParameterError, match="one class only"):
        model.fit(table, labels, classes=["ill"])


def test_a_fit_that_is_refused_leaves_the_labels_of_the_one_before(ledger):
    table, labels = data()
    model = DPLogisticRegression(3, 1e-5, rate=1.0, steps=10, ledger=ledger).fit(table, labels)
    told = model.predict(table)
    with pytest.raises(BudgetError):
        model.fit(table, np.arange(200) % 3)
    assert np.array_equal(model.predict(table), told)


def test_nan_in_a_prediction_is_named():
    table, labels = data()
    model = DPLogisticRegression(**FAST).fit(table, labels)
    table[4, 0] = np.inf
    with pytest.raises(RangeError, match=r"X: row 4 .*inf"):
        model.predict(table)


@each_case(
    "change, said",
    [
        ({"epsilon": None}, "epsilon and delta; or noise_multiplier=0"),
        ({"delta": None}, "an epsilon without a delta says nothing"),
        ({"delta": None, "epsilon": None, "noise_multiplier": 1}, "without a delta"),
        ({"delta": 0}, "delta"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": 1000}, "protects nobody"),
        ({"noise_multiplier": 1}, "epsilon and noise_multiplier say the same thing twice"),
        ({"noise_multiplier": 0}, "epsilon and noise_multiplier say the same thing twice"),
        ({"epsilon": None, "noise_multiplier": -1}, "noise_multiplier is a number"),
        ({"epsilon": None, "noise_multiplier": False}, "noise_multiplier is a number"),
        ({"rate": 0.1, "batch": 20}, "rate and batch"),
        ({"steps": 10, "epochs": 2}, "steps and epochs"),
        ({"rate": 0.001}, "empty as a rule"),
        ({"rate": 1.5}, "at most 1"),
        ({"rate": math.nan}, "rate is a number"),
        ({"batch": 201}, "from 1 to the number of units"),
        ({"batch": 0}, "come out empty"),
        ({"steps": 0}, "steps is a whole number"),
        ({"steps": 1.5}, "steps is a whole number"),
        ({"epochs": 0}, "epochs is above 0"),
        ({"steps": 10**400}, "at most 10,000,000 steps"),
        ({"epochs": 1e308}, "at most 10,000,000 steps"),
        ({"ledger": "budget.db", "rate": 1.0}, r"open the file with Ledger\(path\)"),
        ({"units": 0}, "units is a whole number"),
        ({"sampling": "shuffle"}, "sampling='shuffle' is not what the promise is accounted for"),
        ({"relation": "replace-one"}, "twice its epsilon"),
        ({"unit": "hospital"}, "unit"),
        ({"records": 2}, "say unit 'patient'"),
    ],
)
def test_terms_that_are_refused(change, said):
    table, labels = data()
    terms = {"epsilon": 1, "delta": 1e-5} | change
    with pytest.raises(ParameterError, match=said):
        DPLogisticRegression(**terms).fit(table, labels, labels if "unit" in change else None)


def test_what_is_paid_is_never_less_than_what_it_costs():
    """A ledger has decimals of 15 digits, which are rounded up."""
    for noise in np.linspace(3, 9, 10):
        plan = agreed(DPTerms(delta="1e-6", noise_multiplier=noise, rate=1.0, steps=4), 1000, 5)
        assert plan.paid.epsilon >= Fraction(plan.cost.epsilon)
        assert float(plan.paid.epsilon) == pytest.approx(plan.cost.epsilon, rel=1e-13)


def test_a_mean_is_over_the_declared_units(monkeypatch):
    """So that the exact number stays unknown; and each number of the model is accounted for."""
    asked = []

    def recorded(*given):
        asked.append(given[1:])
        return agreed(*given)

    monkeypatch.setattr(dp_models, "agreed", recorded)
    table, labels = data()
    terms = {"noise_multiplier": 0, "rate": 1.0, "steps": 1}
    known, told = (
        DPLogisticRegression(**terms, units=units).fit(table, labels, classes=["fit", "ill", "?"])
        for units in (None, 50)
    )
    assert told.coef_ == pytest.approx(4 * known.coef_, rel=1e-12)
    assert asked == [(200, 15), (50, 15)]


def test_a_delta_that_publishes_rows_is_warned_of():
    table, labels = data()
    with pytest.warns(PrivacyWarning, match="not below 1/200"):
        DPLogisticRegression(1, 0.01, rate=1.0, steps=5).fit(table, labels)


def test_batches_and_epochs_are_other_words():
    table, labels = data()
    model = DPLogisticRegression(None, 1e-5, noise_multiplier=3, batch=50, epochs=3).fit(
        table, labels
    )
    assert model.rate_ == pytest.approx(0.25)
    assert model.rate_ * 200 >= 50
    assert model.steps_ == 12
    told = DPLogisticRegression(None, 1e-5, noise_multiplier=3, batch=50, units=1000, steps=4).fit(
        table, labels
    )
    assert told.rate_ == pytest.approx(0.05)
    assert told.guarantee_.scale == pytest.approx(told.noise_multiplier_ / 50)
