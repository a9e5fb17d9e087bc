"""Other linear models on encrypted rows: regressions, margins, and results of statsmodels."""

import numpy as np
import pandas
import pytest
import statsmodels.api
import statsmodels.formula.api
from cases import each_case
from sklearn.base import is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from securecomp.ckks import (
    EncryptedClassifier,
    EncryptedLogisticRegression,
    EncryptedRegressor,
    InferenceClient,
    InferenceServer,
    LogisticModel,
    inference_files,
    planner,
)
from securecomp.errors import ParameterError
from securecomp.models import UnfittedError

ROWS, PROGRESSION = load_diabetes(return_X_y=True)
FLOWERS = load_iris(return_X_y=True)


@each_case(
    "regressor",
    [
        LinearRegression(),
        Ridge(),
        Lasso(0.1),
        ElasticNet(0.1),
        LinearSVR(),
        make_pipeline(StandardScaler(), PCA(4), LinearRegression()),
        make_pipeline(StandardScaler(), PoissonRegressor()),
        make_pipeline(StandardScaler(), GammaRegressor()),
        TweedieRegressor(power=0),
        TweedieRegressor(power=1.5),
    ],
)
@each_case("backend", ["seal", "native"])
def test_regressions_are_scikit_learns(regressor, backend):
    regressor.fit(ROWS, PROGRESSION)
    ours = EncryptedRegressor(regressor, bounds=1.0, backend=backend)
    expected = regressor.predict(ROWS)
    found = ours.predict(ROWS)
    # An error of a logarithm is a relative one.
    assert np.abs(found - expected).max() <= 1.1e-4 * max(1.0, np.abs(expected).max())
    # R^2 moves by twice the predictions' error over the deviation of what is predicted.
    moved = 2.2e-4 * max(1.0, np.abs(expected).max()) / np.std(PROGRESSION)
    wanted = r2_score(PROGRESSION, expected)
    assert ours.score(ROWS, PROGRESSION) == pytest.approx(wanted, abs=moved)
    assert is_regressor(ours)


def test_a_regression_is_cross_validated():
    ours = EncryptedRegressor(Ridge(), bounds=1.0)
    plain = cross_val_score(Ridge(), ROWS, PROGRESSION, cv=3)
    assert cross_val_score(ours, ROWS, PROGRESSION, cv=3) == pytest.approx(plain, abs=1e-5)


@each_case("classifier", [LinearSVC(), RidgeClassifier(), SGDClassifier(random_state=0, alpha=0.1)])
@each_case("classes", [2, 3])
def test_margins_are_scikit_learns(classifier, classes):
    rows, target = (part[FLOWERS[1] < classes] for part in FLOWERS)
    classifier.fit(rows, target)
    ours = EncryptedClassifier(classifier, bounds=10.0)
    expected = classifier.decision_function(rows)
    found = ours.decision_function(rows)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-4
    assert (ours.predict(rows) == classifier.predict(rows)).mean() > 0.99
    assert not hasattr(ours, "predict_proba")


def patients():
    random = np.random.default_rng(2)
    frame = pandas.DataFrame(
        {"age": random.uniform(20, 90, 400), "ward": random.choice(["icu", "medical"], 400)}
    )
    risk = 1 / (1 + np.exp(4 - frame["age"] / 20 - (frame["ward"] == "icu")))
    frame["died"] = (random.uniform(size=400) < risk).astype(int)
    frame["stay"] = random.poisson(np.exp(frame["age"] / 60))
    return frame


@each_case(
    "formula, kind",
    [
        ("died ~ age + C(ward)", "logit"),
        ("died ~ age + C(ward)", statsmodels.api.families.Binomial()),
        ("stay ~ age", statsmodels.api.families.Poisson()),
        ("stay ~ age + C(ward)", "ols"),
    ],
)
def test_results_of_statsmodels(formula, kind):
    frame = patients()
    if isinstance(kind, str):
        result = getattr(statsmodels.formula.api, kind)(formula, frame).fit()
    else:
        result = statsmodels.formula.api.glm(formula, frame, family=kind).fit()
    design = pandas.DataFrame(result.model.exog, columns=result.model.exog_names)
    model = LogisticModel.from_fitted(result)
    expected = np.asarray(result.predict(frame))
    if model.link == "sigmoid":
        found = EncryptedLogisticRegression(result).predict_proba(design)[:, 1]
    else:
        found = EncryptedRegressor(result).predict(design)
    assert np.abs(found - expected).max() < 1e-3
    assert "Intercept" not in model.features


def test_what_is_not_read_is_refused_by_name():
    frame = patients()
    glm = statsmodels.formula.api.glm
    families = statsmodels.api.families
    probit = families.Binomial(families.links.Probit())
    for result, reason in (
        (glm("died ~ age", frame, family=probit).fit(), "a GLM with the link Probit is not read"),
        (
            glm("stay ~ age", frame, family=families.Poisson(), offset=frame["age"] / 99).fit(),
            "this result has an offset",
        ),
        (statsmodels.formula.api.probit("died ~ age", frame).fit(disp=0), "Probit is not read"),
    ):
        with pytest.raises(ParameterError, match=reason):
            LogisticModel.from_fitted(result)
    with pytest.raises(UnfittedError, match="this EncryptedRegressor is not fitted"):
        EncryptedRegressor(Ridge()).predict(ROWS)
    two = np.column_stack([PROGRESSION, PROGRESSION])
    with pytest.raises(ParameterError, match="has several targets"):
        EncryptedRegressor(LinearRegression().fit(ROWS, two))
    for kind, fitted in (
        (EncryptedLogisticRegression, LinearSVC().fit(*FLOWERS)),
        (EncryptedRegressor, LogisticRegression(max_iter=1000).fit(*FLOWERS)),
        (EncryptedClassifier, Ridge().fit(*FLOWERS)),
    ):
        with pytest.raises(ParameterError, match=f"is not {kind.use}"):
            kind(fitted)


def test_the_roles_take_a_regression_and_its_file():
    """By JSON, and to a CSV of one column; nothing pretends to be a probability."""
    model = LogisticModel.from_fitted(PoissonRegressor().fit(ROWS, PROGRESSION), bounds=1.0)
    assert LogisticModel.from_json(model.to_json()) == model
    server = InferenceServer.create(model, protect_model=True)
    client = InferenceClient.create(server.offer)
    server.register(client.registration.encode())
    found = client.decrypt(server.predict(client.encrypt(ROWS[:3])))
    assert np.abs(np.log(found.means) - model.logits(ROWS[:3])[:, 0]).max() <= 1e-4
    lines = inference_files.format_csv((), (), [found], 4).splitlines()
    assert lines[0] == "prediction"
    assert [float(line) for line in lines[1:]] == found.means.tolist()
    with pytest.raises(ParameterError, match="has no probabilities"):
        found.probabilities.sum()
    with pytest.raises(ParameterError, match="predicts a number"):
        found.labels.sum()
    with pytest.raises(ParameterError, match='use activation="client"'):
        planner.plan(model, activation="server")
