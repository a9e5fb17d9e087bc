"""A model as numbers and as JSON: nothing that is none comes in."""

import copy
import json
import math

import msgspec
import numpy as np
import pytest
from cases import altered, each_case, examples
from ckks.parties import linear_model
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks import LogisticModel
from securecomp.errors import DecodeError, ParameterError
from securecomp.models import link_probabilities, probabilities, sigmoid, winners

MODEL = linear_model(3, 4)
FACTS = json.loads(MODEL.to_json())
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def models(draw):
    features = draw(st.lists(st.text(max_size=5), min_size=1, max_size=4, unique=True))
    labels = st.integers(-(2**53), 2**53) | st.text(max_size=5)
    link = draw(st.sampled_from(["sigmoid", "softmax", "ovr"]))
    size = {"min_size": 2, "max_size": 2} if link == "sigmoid" else {"min_size": 3, "max_size": 4}
    classes = draw(st.lists(labels, unique=True, **size))
    count = 1 if link == "sigmoid" else len(classes)
    return LogisticModel(
        tuple(draw(st.tuples(*[finite] * len(features))) for _ in range(count)),
        draw(st.tuples(*[finite] * count)),
        tuple(classes),
        tuple(features),
        draw(st.tuples(*[st.floats(2.0**-100, 2.0**100)] * len(features))),
        link,
    )


class TestJson:
    @given(models())
    def test_there_and_back(self, model):
        text = model.to_json()
        again = LogisticModel.from_json(text)
        assert again == model
        assert again.to_json() == text
        assert LogisticModel.from_json(text.encode()) == model
        for a, b in zip(again.classes, model.classes, strict=True):
            assert type(a) is type(b)

    @given(models())
    def test_a_digest_is_of_what_is_written(self, model):
        assert LogisticModel.from_json(model.to_json()).digest == model.digest
        whole = msgspec.structs.replace(model, bounds=tuple(1 for _ in model.bounds))
        floats = msgspec.structs.replace(model, bounds=tuple(map(np.float64, whole.bounds)))
        assert whole.digest == floats.digest
        larger = tuple(2.0 * b for b in whole.bounds)
        assert msgspec.structs.replace(model, bounds=larger).digest != whole.digest

    def test_numbers_of_numpy_are_written(self):
        model = msgspec.structs.replace(linear_model(), intercepts=(np.float64(0.25),))
        assert LogisticModel.from_json(model.to_json()).intercepts == (0.25,)
        odd = msgspec.structs.replace(linear_model(), features=("a", "b", ("c",)))
        with pytest.raises(DecodeError):
            LogisticModel.from_json(odd.to_json())

    def test_labels_keep_their_kind(self):
        for classes in ((False, True), (0, 1), (0.0, 1.0), ("0", "1"), ("0", 0)):
            model = msgspec.structs.replace(linear_model(), classes=classes)
            again = LogisticModel.from_json(model.to_json())
            assert again.classes == classes
            assert [type(c) for c in again.classes] == [type(c) for c in classes]

    def test_says_what_it_is(self):
        assert FACTS["format"] == "securecomp logistic model"
        assert FACTS["version"] == 1

    @each_case("field", sorted(set(FACTS) - {"format", "version"}))
    def test_something_missing(self, field):
        with pytest.raises(DecodeError, match=f"missing required field `{field}`"):
            LogisticModel.from_json(json.dumps({k: v for k, v in FACTS.items() if k != field}))

    @each_case("field", FACTS)
    @each_case("value", [None, {}, "text", 1.5, True, [None], [[[1]]], []])
    def test_something_of_another_type(self, field, value):
        with pytest.raises(DecodeError, match="not a logistic model"):
            LogisticModel.from_json(json.dumps(FACTS | {field: value}))

    @each_case(
        "change, reason",
        [
            ({"version": 2}, "version 2; this software reads .* version 1"),
            ({"version": 0}, "version 0"),
            ({"format": "another"}, "'another'"),
            ({"features": ["a", "a", "b"]}, "no name twice"),
            ({"features": []}, "at least one feature"),
            ({"weights": FACTS["weights"][:3]}, "3 rows of weights"),
            ({"weights": [[1.0, 2.0]] * 4}, "logit 0 has 2 weights for 3 features"),
            ({"intercepts": [0.0]}, "1 intercepts"),
            ({"classes": ["a", "b"]}, "2 classes do not match the link softmax"),
            ({"classes": ["a"]}, "1 classes"),
            ({"classes": ["a", "b", "c", "c"]}, "named twice"),
            ({"classes": [0, 1, 2, 2.0]}, "named twice"),
            ({"link": "sigmoid"}, "4 classes do not match the link sigmoid"),
            ({"link": "probit"}, "Invalid enum value"),
            ({"bounds": [1.0]}, "1 bounds for 3 features"),
            ({"bounds": [1.0, 0.0, 1.0]}, "feature 'x1': its bound must be positive"),
            ({"bounds": [1.0, 1e31, 1.0]}, "its bound"),
            ({"bounds": [1.0, -1.0, 1.0]}, "its bound"),
            ({"extra": 1}, "unknown field"),
        ],
    )
    def test_something_wrong(self, change, reason):
        with pytest.raises(DecodeError, match=f"not a logistic model: .*{reason}"):
            LogisticModel.from_json(json.dumps(FACTS | change))

    @each_case("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
    @each_case("field", ["weights", "intercepts", "bounds"])
    def test_no_number(self, field, number):
        facts = copy.deepcopy(FACTS)
        if field == "weights":
            facts[field][1][2] = "HERE"
        else:
            facts[field][1] = "HERE"
        with pytest.raises(DecodeError):
            LogisticModel.from_json(json.dumps(facts).replace('"HERE"', number))

    @each_case("opening", ["[", '{"weights":', '{"weights":[', '{"x":'])
    def test_very_deep(self, opening):
        for text in (opening * 10**6, opening * 10**6 + "1"):
            with pytest.raises(DecodeError):
                LogisticModel.from_json(text)

    @each_case(
        "text", ["", "null", "3", "[]", '"', "\x00", b"\xff\xfe", b"\x80\x04\x95", "{" + " " * 10]
    )
    def test_no_json(self, text):
        with pytest.raises(DecodeError, match="not a logistic model"):
            LogisticModel.from_json(text)

    def test_a_number_of_a_million_digits(self):
        text = json.dumps(FACTS | {"intercepts": ["HERE", 0.0, 0.0, 0.0]})
        with pytest.raises(DecodeError):
            LogisticModel.from_json(text.replace('"HERE"', "1" * 10**6))

    def test_trailing_text(self):
        with pytest.raises(DecodeError):
            LogisticModel.from_json(MODEL.to_json() + "x")

    @given(data=st.data())
    @examples(200)
    def test_any_damage(self, data):
        text = MODEL.to_json()
        at = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(st.text(max_size=2) | st.sampled_from(["1e400", "-", "[[[", "null"]))
        damaged = text[:at] + new + text[at + data.draw(st.integers(0, 3)) :]
        try:
            found = LogisticModel.from_json(damaged)
        except DecodeError:
            return
        assert all(math.isfinite(w) for row in found.weights for w in row)
        assert LogisticModel.from_json(found.to_json()) == found

    @given(st.text() | st.binary())
    def test_anything(self, text):
        with pytest.raises(DecodeError):
            LogisticModel.from_json(text)


class TestProbabilities:
    @given(st.lists(finite, min_size=1, max_size=5))
    def test_two_classes(self, logits):
        column = np.array(logits)[:, None]
        found = probabilities(column, "sigmoid")
        assert found.shape == (len(logits), 2)
        assert ((found >= 0) & (found <= 1)).all()
        assert np.allclose(found.sum(axis=1), 1)
        for x, (no, yes) in zip(logits, found, strict=True):
            if abs(x) < 700:
                assert yes == pytest.approx(1 / (1 + math.exp(-x)), rel=1e-12)
            assert (yes > no) == (x > 0) or abs(x) < 1e-15
        assert np.array_equal(winners(column, "sigmoid"), (column[:, 0] > 0).astype(int))

    @each_case("link", ["softmax", "ovr"])
    @given(logits=st.lists(st.tuples(*[st.floats(-1e308, 1e308)] * 3), min_size=1, max_size=4))
    def test_more(self, link, logits):
        array = np.array(logits)
        with np.errstate(over="ignore"):
            found = probabilities(array, link)
        assert ((found >= 0) & (found <= 1)).all()
        assert np.allclose(found.sum(axis=1), 1)
        assert np.array_equal(winners(array, link), array.argmax(axis=1))

    def test_of_the_textbook(self):
        array = np.array([[1.0, 2.0, 0.5]])
        powers = np.exp(array)
        assert np.allclose(probabilities(array, "softmax"), powers / powers.sum())
        ones = 1 / (1 + np.exp(-array))
        assert np.allclose(probabilities(array, "ovr"), ones / ones.sum())
        assert np.allclose(sigmoid(array), ones)

    def test_no_class_at_all(self):
        """scikit-learn: equally likely."""
        assert probabilities(np.full((1, 4), -1e4), "ovr").tolist() == [[0.25] * 4]
        assert link_probabilities(np.zeros((1, 4)), "ovr").tolist() == [[0.25] * 4]

    def test_none_of_both(self):
        assert winners(np.array([[0.0], [-0.0], [1e-9]]), "sigmoid").tolist() == [0, 0, 1]


@each_case(
    "change",
    [
        {"weights": ((math.nan, 0.0, 0.0),) * 4},
        {"weights": ((math.inf, 0.0, 0.0),) * 4},
        {"intercepts": (0.0, math.nan, 0.0, 0.0)},
        {"bounds": (1.0, math.inf, 1.0)},
        {"bounds": (1.0, math.nan, 1.0)},
        {"version": 2},
    ],
)
def test_a_model_that_is_none(change):
    with pytest.raises(ParameterError):
        altered(MODEL, **change)


def test_shows_no_weights():
    assert repr(MODEL) == str(MODEL) == "LogisticModel(3 features, 4 classes)"
