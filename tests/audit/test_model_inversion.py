"""What classes look like comes out of probabilities; less is told by less."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each_case
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Perceptron

from securecomp.audit.attack_result import compared
from securecomp.audit.membership.restricted_model import RestrictedModel
from securecomp.audit.reconstruction.inversion import invert_class, model_inversion
from securecomp.errors import ParameterError

IMAGES, DIGITS = load_digits(return_X_y=True)
IMAGES = IMAGES / 16


@pytest.fixture(scope="module")
def model():
    return LogisticRegression(max_iter=1000).fit(IMAGES, DIGITS)


def test_all_digits_are_recognised(model):
    leak = model_inversion(model, IMAGES, DIGITS, steps=10)
    assert leak.hits.hits == 10
    assert min(leak.resemblance) > 0.6
    assert all(one.score > 0.7 for one in leak.found)
    assert "classes recognised      100.0% (69.2% to 100.0%)" in str(leak)
    assert "not a record of the data" in " ".join(str(leak).split())
    json.dumps(leak.to_json(), allow_nan=False)


def test_the_search_agrees_with_the_exact_slope():
    """Of two classes and no pull, the row goes to the corner that the weights point to."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(200, 5))
    model = LogisticRegression().fit(rows, rows @ [1, -1, 1, -1, 0.5] > 0.25)
    found = invert_class(model, True, np.full(5, 0.5), pull=0.0, steps=200)
    assert found.row == pytest.approx((model.coef_[0] > 0).astype(float), abs=1e-6)
    drawn_back = invert_class(model, True, np.full(5, 0.5), pull=1e6)
    assert drawn_back.row == pytest.approx(np.full(5, 0.5), abs=1e-3)


def test_it_asks_only_for_answers(model):
    asked = []

    class Watched:
        classes_ = model.classes_

        def predict_proba(self, rows):
            asked.append(len(rows))
            assert 0 <= np.min(rows) <= np.max(rows) <= 1
            return model.predict_proba(rows)

    found = invert_class(Watched(), 3, IMAGES.mean(axis=0), steps=3)
    assert found.questions == sum(asked) - 1


def test_what_less_than_probabilities_buys_and_what_not(model):
    """Rounding stops who asks closely, and not who asks further apart; labels stop this attack."""
    rounded = RestrictedModel(model, "rounded", decimals=2)
    forms = {
        "probabilities": (RestrictedModel(model), 0.05),
        "rounded, closely": (rounded, 0.002),
        "rounded, apart": (rounded, 0.2),
        "labels": (RestrictedModel(model, "labels"), 0.05),
    }
    leaks = {
        name: model_inversion(form, IMAGES, DIGITS, reach=reach, steps=10)
        for name, (form, reach) in forms.items()
    }
    hits = {name: leak.hits.hits for name, leak in leaks.items()}
    assert hits["probabilities"] == hits["rounded, apart"] == 10
    assert hits["rounded, closely"] <= 3
    assert hits["labels"] == 0
    assert max(map(len, compared(list(leaks.items())).lines())) <= 100


@each_case(
    "how, message",
    [
        ({"label": 11}, r"rows\) among its 10 classes"),
        ({"start": np.full(64, 2.0)}, r"the start between them, 0\.0 and 1\.0"),
        ({"start": np.full(64, np.nan)}, "the start: element 1 is NaN"),
        ({"low": 1.0}, "must be"),
        ({"reach": 0.0}, "reach must be above 0"),
        ({"steps": 0}, "steps at least 1"),
    ],
)
def test_what_is_refused(model, how, message):
    usual = {"label": 3, "start": np.full(64, 0.5)}
    with pytest.raises(ParameterError, match=message):
        invert_class(model, **(usual | how))


@each_case("library", [pd, pl])
def test_frames(library):
    """A model that was fitted to names is asked with them: scikit-learn warns of others."""
    rng = np.random.default_rng(0)
    rows = library.DataFrame({name: rng.uniform(size=60) for name in ("dose", "age")})
    labels = np.where(rows["dose"].to_numpy() > 0.5, "high", "low")
    model = LogisticRegression().fit(rows, labels)
    leak = model_inversion(model, rows, labels)
    assert leak.hits.value == 1
    plain = model_inversion(
        LogisticRegression().fit(rows.to_numpy(), labels), rows.to_numpy(), labels
    )
    assert leak.resemblance == pytest.approx(plain.resemblance)


def test_two_columns_of_one_name():
    rows = pd.DataFrame(np.eye(2), columns=["a", "a"])
    model = LogisticRegression().fit(rows.to_numpy(), [0, 1])
    with pytest.raises(ParameterError, match=r"two columns .* have one name"):
        model_inversion(model, rows, [0, 1])


def test_models_and_rows_that_do_not_fit(model):
    with pytest.raises(ParameterError, match="Perceptron gives no probabilities"):
        model_inversion(Perceptron().fit(IMAGES, DIGITS), IMAGES, DIGITS)
    with pytest.raises(ParameterError, match="no row is of class"):
        model_inversion(model, IMAGES[DIGITS != 3], DIGITS[DIGITS != 3])
    with pytest.raises(ParameterError, match="the start has 3 numbers, and the rows have 64"):
        model_inversion(model, IMAGES, DIGITS, start=[0.1, 0.2, 0.3])
