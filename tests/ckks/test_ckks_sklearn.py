"""Numbers out of scikit-learn's estimators, whose own predictions are the reference."""

import numpy as np
import pandas
import pytest
import scipy.sparse
from cases import each_case
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC

from securecomp.ckks import EncryptedLogisticRegression, LogisticModel
from securecomp.errors import ParameterError
from securecomp.models import probabilities, winners

TWO = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)
TEN = tuple(a[:600] for a in load_digits(return_X_y=True))


def lr(**choices):
    return LogisticRegression(max_iter=2000, **choices)


def sgd(**choices):
    return SGDClassifier(loss="log_loss", random_state=0, **choices)


def scaled(last, scaler=None):
    return make_pipeline(scaler or StandardScaler(), last)


def fitted(estimator, data):
    with np.errstate(all="ignore"):
        return clone(estimator).fit(*data)


ESTIMATORS = {
    "binary": (scaled(lr()), TWO),
    "multinomial": (lr(), THREE),
    "ten classes": (scaled(lr(), MaxAbsScaler()), TEN),
    "no intercept": (scaled(lr(fit_intercept=False)), TWO),
    "no intercept, multinomial": (lr(fit_intercept=False), THREE),
    "newton": (scaled(lr(solver="newton-cholesky")), THREE),
    "liblinear": (scaled(lr(solver="liblinear")), TWO),
    "SGD": (scaled(sgd()), TWO),
    "SGD of three": (scaled(sgd()), THREE),
    "SGD, averaged, no intercept": (scaled(sgd(average=True, fit_intercept=False)), THREE),
    "one against the rest": (OneVsRestClassifier(lr()), THREE),
    "one against the rest, SGD": (scaled(OneVsRestClassifier(sgd())), THREE),
    "one against the rest of two": (scaled(OneVsRestClassifier(lr())), TWO),
    "a search": (GridSearchCV(lr(), {"C": [0.1, 1.0]}, cv=2), THREE),
    "a search over a pipeline": (
        GridSearchCV(scaled(lr()), {"logisticregression__C": [0.1, 1.0]}, cv=2),
        TWO,
    ),
    "a search in a pipeline": (scaled(GridSearchCV(lr(), {"C": [0.1, 1.0]}, cv=2)), TWO),
    "a random search": (
        RandomizedSearchCV(lr(), {"C": [0.1, 1.0]}, n_iter=2, cv=2, random_state=0),
        THREE,
    ),
    "min-max": (scaled(lr(), MinMaxScaler((-3, 5))), THREE),
    "max-abs": (scaled(lr(), MaxAbsScaler()), THREE),
    "robust": (scaled(lr(), RobustScaler()), THREE),
    "robust, centred only": (scaled(lr(), RobustScaler(with_scaling=False)), THREE),
    "robust, scaled only": (scaled(lr(), RobustScaler(with_centering=False)), THREE),
    "robust, unit variance": (scaled(lr(), RobustScaler(unit_variance=True)), THREE),
    "standard, scaled only": (scaled(lr(), StandardScaler(with_mean=False)), THREE),
    "standard, nothing": (scaled(lr(), StandardScaler(with_mean=False, with_std=False)), THREE),
    "several scalers": (
        make_pipeline(StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), lr()),
        THREE,
    ),
    "nested": (
        make_pipeline(make_pipeline(RobustScaler(), StandardScaler()), scaled(lr())),
        THREE,
    ),
    "passthrough": (
        Pipeline([("a", "passthrough"), ("b", StandardScaler()), ("c", None), ("d", lr())]),
        THREE,
    ),
    "a pipeline of one": (make_pipeline(lr()), THREE),
    "a selection": (scaled(lr(), SelectKBest(k=2)), THREE),
    "a selection by a model": (make_pipeline(StandardScaler(), SelectFromModel(lr()), lr()), TEN),
    "PCA": (make_pipeline(StandardScaler(), PCA(3), MinMaxScaler(), lr()), THREE),
    "PCA, whitened": (make_pipeline(PCA(3, whiten=True), lr()), THREE),
    "SVD": (make_pipeline(MaxAbsScaler(), TruncatedSVD(3), lr()), THREE),
    "columns": (
        make_pipeline(
            ColumnTransformer(
                [
                    ("a", make_pipeline(StandardScaler(), PCA(1)), [2, 0]),
                    ("b", MinMaxScaler(), slice(1, 3)),
                    ("c", "drop", [1]),
                ],
                remainder="passthrough",
            ),
            SelectKBest(k=3),
            lr(),
        ),
        THREE,
    ),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@each_case("name", ESTIMATORS)
def test_predictions_are_scikit_learns(name):
    estimator, data = ESTIMATORS[name]
    check(fitted(estimator, data), data[0])


def check(estimator, rows, atol=1e-9):
    model = LogisticModel.from_sklearn(estimator)
    logits = model.logits(np.asarray(rows, float))
    decision = np.asarray(estimator.decision_function(rows))
    decision = decision if decision.ndim > 1 else decision[:, None]
    scale = max(1.0, np.abs(decision).max())
    assert np.allclose(logits, decision, rtol=0, atol=atol * scale)
    found = probabilities(logits, model.link)
    assert np.allclose(found, estimator.predict_proba(rows), rtol=0, atol=1e-8)
    assert np.allclose(found.sum(axis=1), 1)
    labels = np.array(model.classes)[winners(logits, model.link)]
    assert np.array_equal(labels, estimator.predict(rows))
    assert list(model.classes) == estimator.classes_.tolist()
    return model


@pytest.mark.filterwarnings("ignore::FutureWarning")
@each_case("data", [TWO, THREE])
def test_cross_validated(data):
    rows = StandardScaler().fit_transform(data[0])
    check(LogisticRegressionCV(Cs=[0.1, 1.0], cv=2, max_iter=2000).fit(rows, data[1]), rows)


@each_case("data", [TWO, THREE])
def test_sparse_weights(data):
    estimator = fitted(lr(solver="saga", C=0.05, l1_ratio=1.0), (data[0] / data[0].max(0), data[1]))
    dense = LogisticModel.from_sklearn(estimator)
    estimator.sparsify()
    assert scipy.sparse.issparse(estimator.coef_)
    assert LogisticModel.from_sklearn(estimator) == dense
    assert 0 in np.array(dense.weights)


@each_case(
    "labels",
    [
        np.array(["sick", "well"]),
        np.array(["sick", "well"], object),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([0, 7], np.uint8),
        np.array([1.0, 2.0]),
        np.array(["naïve", "東京"]),
    ],
)
def test_labels(labels):
    estimator = fitted(scaled(lr()), (TWO[0], labels[TWO[1]]))
    model = check(estimator, TWO[0])
    assert model.classes == tuple(labels.tolist())
    assert [type(c) for c in model.classes] == [type(c) for c in labels.tolist()]
    assert LogisticModel.from_json(model.to_json()) == model


def patients():
    """Ages, a ward, and a laboratory value that is sometimes missing."""
    random = np.random.default_rng(5)
    frame = pandas.DataFrame(
        {
            "age": random.integers(20, 90, 300).astype(float),
            "crp": random.lognormal(1, 1, 300),
            "ward": random.choice(["medical", "surgical", "icu"], 300),
        }
    )
    ill = frame["age"] + 30 * (frame["ward"] == "icu") + frame["crp"] > 70
    frame.loc[::7, "crp"] = np.nan
    return frame, ill.to_numpy()


STEPS = {
    "categories and missing values": (
        ColumnTransformer(
            [
                ("n", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "crp"]),
                ("c", OneHotEncoder(), ["ward"]),
            ]
        ),
    ),
    "products": (
        ColumnTransformer([("n", SimpleImputer(), ["age", "crp"])]),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        SelectKBest(k=4),
    ),
}


@each_case("steps", STEPS.values())
def test_steps_that_do_not_fold_are_the_clients(steps):
    frame, ill = patients()
    pipeline = make_pipeline(*steps, lr()).fit(frame, ill)
    ours = EncryptedLogisticRegression(pipeline, backend="native")
    assert np.abs(ours.predict_proba(frame) - pipeline.predict_proba(frame)).max() < 1e-4
    # Between organisations the client applies them, and the model names what comes out.
    model = LogisticModel.from_sklearn(pipeline)
    assert model.features == tuple(ours.feature_names_in_)
    assert "ward_icu" in "".join(model.features) or "n__age^2" in model.features
    if "ward_icu" in "".join(model.features):
        assert max(model.bounds) < 20  # known, as the scaler and the encoder are


class TestBounds:
    def bounds(self, *steps, given=None):
        return LogisticModel.from_sklearn(make_pipeline(*steps, lr()).fit(*THREE), given).bounds

    def test_of_a_standard_scaler(self):
        mean, deviation = THREE[0].mean(axis=0), THREE[0].std(axis=0)
        assert np.allclose(self.bounds(StandardScaler()), np.abs(mean) + 16 * deviation)

    def test_rare_flags_and_heavy_tails_of_the_training_rows_are_within_them(self):
        """One patient of 2,000 has the flag, and one laboratory value is far out."""
        rows = np.random.default_rng(4).lognormal(0, 2, (2000, 2))
        rows[:, 1] = 0.0
        rows[7, 1], rows[8, 0] = 1.0, 1e6
        fitted = make_pipeline(StandardScaler(), lr()).fit(rows, rows[:, 0] > 1)
        bounds = np.array(LogisticModel.from_sklearn(fitted).bounds)
        assert (np.abs(rows) <= bounds).all()
        assert (bounds < np.abs(rows).max(axis=0) * 1.1).all()

    @each_case("scaler", [MinMaxScaler(), MaxAbsScaler()])
    def test_of_a_range(self, scaler):
        assert np.allclose(self.bounds(scaler), 2 * np.abs(THREE[0]).max(axis=0))

    @each_case("steps", [[], [RobustScaler()], [RobustScaler(), StandardScaler()]])
    def test_of_nothing(self, steps):
        assert self.bounds(*steps) == (65536.0,) * 4

    def test_the_first_scaler_counts(self):
        first = self.bounds(StandardScaler())
        assert self.bounds(StandardScaler(), MinMaxScaler()) == first
        assert self.bounds("passthrough", StandardScaler()) == first

    @each_case(
        "choice",
        [
            {"with_mean": False},
            {"with_std": False},
        ],
    )
    def test_training_rows_are_within_them(self, choice):
        bounds = self.bounds(StandardScaler(**choice))
        assert (np.abs(THREE[0]).max(axis=0) <= bounds).all()

    def test_of_constant_features(self):
        rows = np.hstack([THREE[0], np.full((150, 1), 7.0), np.zeros((150, 1))])
        for scaler in (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()):
            model = LogisticModel.from_sklearn(fitted(scaled(lr(), scaler), (rows, THREE[1])))
            assert (np.abs(rows).max(axis=0) <= model.bounds).all()

    @each_case(
        "given, expected",
        [
            (10, (10.0,) * 4),
            (2.5, (2.5,) * 4),
            ([1, 2, 3, 4], (1.0, 2.0, 3.0, 4.0)),
            (np.array([1.0, 2, 3, 4]), (1.0, 2.0, 3.0, 4.0)),
            ({"x1": 9}, (65536.0, 9.0, 65536.0, 65536.0)),
        ],
    )
    def test_given(self, given, expected):
        assert self.bounds(given=given) == expected

    @each_case(
        "given, reason",
        [
            ([1, 2], "2 bounds for 4 features"),
            ({"x9": 1}, "no feature 'x9'"),
            (0, "must be positive"),
            (-1, "must be positive"),
            (float("nan"), "must be positive"),
            (float("inf"), "must be positive"),
            (1e31, "must be positive"),
        ],
    )
    def test_that_are_none(self, given, reason):
        with pytest.raises(ParameterError, match=reason):
            self.bounds(given=given)


def test_names():
    frame = pandas.DataFrame(THREE[0], columns=["a b", "ü", "c", "d"])
    for estimator in (lr(), scaled(lr()), Pipeline([("p", "passthrough"), ("l", lr())])):
        model = LogisticModel.from_sklearn(estimator.fit(frame, THREE[1]))
        assert model.features == ("a b", "ü", "c", "d")
    assert LogisticModel.from_sklearn(lr().fit(*THREE)).features == ("x0", "x1", "x2", "x3")


class TestRefusals:
    @each_case(
        "estimator, reason",
        [
            (LinearRegression(), "LinearRegression is not a logistic regression"),
            (RidgeClassifier(), "RidgeClassifier is not a logistic regression"),
            (SVC(), "SVC is not a logistic regression"),
            (SGDClassifier(), "SGDClassifier with loss 'hinge' is not a logistic regression"),
            (SGDClassifier(loss="modified_huber"), "with loss 'modified_huber' is not"),
            (OneVsOneClassifier(lr()), "OneVsOneClassifier is not"),
            (CalibratedClassifierCV(lr()), "CalibratedClassifierCV is not"),
            (OneVsRestClassifier(SVC()), "SVC is not"),
            (OneVsRestClassifier(scaled(lr())), "Pipeline is not"),
            (scaled(lr(), Normalizer()), "step Normalizer does not fold"),
            (scaled(lr(), KBinsDiscretizer()), "step KBinsDiscretizer does not fold"),
            (scaled(lr(), MinMaxScaler(clip=True)), r"MinMaxScaler\(clip=True\) is not linear"),
        ],
    )
    def test_no_logistic_model(self, estimator, reason):
        with pytest.raises(ParameterError, match=reason):
            LogisticModel.from_sklearn(fitted(estimator, THREE))

    def test_a_scaler_that_is_not_fitted(self):
        estimator = fitted(scaled(lr()), THREE)
        estimator.steps[0] = ("scaler", StandardScaler())
        with pytest.raises(ParameterError, match="pipeline's StandardScaler is not fitted"):
            LogisticModel.from_sklearn(estimator)

    def test_steps_that_were_fitted_apart(self):
        estimator = fitted(scaled(lr()), THREE)
        estimator.steps[0] = ("scaler", StandardScaler().fit(THREE[0][:, :2]))
        with pytest.raises(ParameterError, match="takes 2 features and its classifier 4; fit the"):
            LogisticModel.from_sklearn(estimator)

    def test_a_label_that_is_none(self):
        estimator = fitted(lr(), THREE)
        estimator.classes_ = np.array([None, 1, 2], object)
        with pytest.raises(ParameterError, match="a class is a number or text, not None"):
            LogisticModel.from_sklearn(estimator)

    @each_case("estimator", [lr(), sgd(), scaled(lr())])
    def test_not_fitted(self, estimator):
        with pytest.raises(ParameterError, match="is not fitted; call fit first"):
            LogisticModel.from_sklearn(estimator)

    def test_something_else(self):
        for thing in (None, 3, "model", {}, object(), np.zeros(3)):
            with pytest.raises(ParameterError, match="is not a logistic regression"):
                LogisticModel.from_sklearn(thing)

    def test_several_labels_a_row(self):
        many = np.eye(3, dtype=int)[THREE[1]]
        many[0] = 1
        with pytest.raises(ParameterError, match="a multi-label model"):
            LogisticModel.from_sklearn(OneVsRestClassifier(lr()).fit(THREE[0], many))

    def test_a_pipeline_of_nothing(self):
        with pytest.raises(ParameterError, match="no classifier"):
            LogisticModel.from_sklearn(Pipeline([("a", "passthrough")]))

    def test_a_scaler_that_clips(self):
        estimator = fitted(scaled(lr(), MaxAbsScaler(clip=True)), THREE)
        with pytest.raises(ParameterError, match="not linear"):
            LogisticModel.from_sklearn(estimator)

    @each_case("estimator", [OneVsRestClassifier(lr()), GridSearchCV(lr(), {"C": [1]})])
    def test_not_fitted_around_others(self, estimator):
        with pytest.raises(ParameterError, match="not fitted"):
            LogisticModel.from_sklearn(estimator)

    def test_a_step_that_is_a_pipeline_of_nothing(self):
        inner = Pipeline([("nothing", "passthrough")])
        check(make_pipeline(inner, lr()).fit(*THREE), THREE[0])


class TestOlderReleases:
    """scikit-learn 1.5 to 1.7, whose `predict_proba` goes by `multi_class` and the solver."""

    @staticmethod
    def link(classes, **attributes):
        facts = {
            "coef_": np.ones((classes if classes > 2 else 1, 2)),
            "intercept_": np.zeros(classes if classes > 2 else 1),
            "classes_": np.arange(classes),
            "solver": "lbfgs",
        }
        return LogisticModel.from_sklearn(type("LogisticRegression", (), facts | attributes)()).link

    @each_case("multi_class", ["auto", "deprecated", "multinomial"])
    def test_multinomial(self, multi_class):
        assert self.link(3, multi_class=multi_class) == "softmax"

    @each_case("solver", ["lbfgs", "liblinear"])
    def test_one_against_the_rest(self, solver):
        assert self.link(3, multi_class="ovr", solver=solver) == "ovr"

    @each_case("multi_class", ["auto", "deprecated"])
    def test_liblinear(self, multi_class):
        assert self.link(3, multi_class=multi_class, solver="liblinear") == "ovr"

    def test_multinomial_of_two(self):
        """Refused, or with weights of twice the size."""
        facts = {
            "coef_": np.ones((1, 2)),
            "intercept_": np.zeros(1),
            "classes_": np.arange(2),
            "multi_class": "multinomial",
            "solver": "lbfgs",
        }
        try:
            model = LogisticModel.from_sklearn(type("LogisticRegression", (), facts)())
        except ParameterError:
            return
        assert model.weights == ((2.0, 2.0),)
