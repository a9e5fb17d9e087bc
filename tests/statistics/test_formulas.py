"""What the names in a formula mean, whatever they look like; and short errors for what has none."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from cases import each_case
from sites import Spy, study

from securecomp.errors import ParameterError, SecureCompError

draw = np.random.default_rng(0)
SIZE = 300
ROWS = pd.DataFrame(
    {
        name: np.round(draw.normal(0, 1, SIZE), 2)
        for name in ("x", "a b", "c d", "_quoted_0", "quoted_0_", "µ", "I(x > 0)", "it's", "lambda")
    }
)
ROWS["g h"] = draw.choice(["a", "b`c`d"], SIZE)
ROWS["y"] = (draw.random(SIZE) < 0.4).astype(int)
ROWS["z"] = draw.integers(0, 5, SIZE)


def fit(formula, family="linear", rows=ROWS, **options):
    return study(rows[:100], rows[100:]).glm(formula, family, **options)


def refused(formula, family="logistic", **options):
    with pytest.raises(SecureCompError) as caught:
        fit(formula, family, **options)
    return caught.value


QUOTED = {
    "I(`a b` > 0) + I(`c d` > 0)": [ROWS["a b"] > 0, ROWS["c d"] > 0],
    "I(`a b` > 0) + I(_quoted_0 > 0)": [ROWS["a b"] > 0, ROWS["_quoted_0"] > 0],
    "`a b` + quoted_0_ + I(`c d` ** 2)": [ROWS["a b"], ROWS["quoted_0_"], ROWS["c d"] ** 2],
    "I(`a b` * `c d`) + I(`c d` * `c d`)": [ROWS["a b"] * ROWS["c d"], ROWS["c d"] ** 2],
    "`I(x > 0)`": [ROWS["I(x > 0)"]],
    "I(x > 1) + `I(x > 0)`": [ROWS["x"] > 1, ROWS["I(x > 0)"]],
    "I(`µ` > 0) + I(`lambda` > 0)": [ROWS["µ"] > 0, ROWS["lambda"] > 0],
    "I(`it's` > 0) + I(`it's` ** 2)": [ROWS["it's"] > 0, ROWS["it's"] ** 2],
    "I(`g h` == 'b`c`d') + I(`a b` > 0)": [ROWS["g h"] == "b`c`d", ROWS["a b"] > 0],
    "x + `x` + I(`x` ** 2) + I(x**2)": [ROWS["x"], ROWS["x"] ** 2],
}


@each_case("right", QUOTED)
def test_each_name_in_back_quotes_is_its_column(right):
    columns = np.column_stack([np.ones(SIZE), *(c.astype(float) for c in QUOTED[right])])
    expected = np.linalg.lstsq(columns, ROWS["z"], rcond=None)[0]
    found = fit(f"z ~ {right}")
    np.testing.assert_allclose(found.params, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.predict(ROWS), columns @ expected, rtol=1e-9, atol=1e-12)


def test_names_are_as_they_were_written():
    found = fit("z ~ I(`a b`>0) + C(`g h`):`c d` + log(`a b` + 9)", bounds={"log(`a b`+9)": 3})
    assert found.names[:2] == ("Intercept", "I(`a b` > 0)")
    assert "C(`g h`)[a]:c d" in found.names
    assert not any("quoted" in label for label in found.run.opened)


def test_two_columns_of_one_name_are_refused():
    error = refused("y ~ I(x > 0) + `I(x > 0)`")
    assert "two columns of the design are named 'I(x > 0)'" in str(error)


def test_errors_have_the_name_too():
    assert "no column 'nowhere at all'" in str(refused("y ~ I(`a b` / `nowhere at all`)"))
    assert str(refused("y ~ I(`a b` @ `c d`)")).startswith("I(`a b` @ `c d`): `a b` @ `c d` has no")
    assert "compare it with a level, as in I(`g h` == 'level')" in str(refused("y ~ I(`g h` + 1)"))


NOT_ANSWERED = {
    "y ~ x | z": "it has several parts, divided by |; write one model",
    "y | z ~ x": "it has several parts, divided by |",
    f"y ~ I(x > 1{'0' * 310})": "is no number that a formula can hold",
    f"y ~ I(x > 1{'0' * 5000})": "Exceeds the limit",
    "y ~ I(1/(1e-300*1e-300*x))": "agree on the largest absolute value",
    "y ~ I(x*1e-300*1e-300)": "too small to be summed (below 1e-140); multiply it by a power of",
    "y ~ I(1e299 * y)": "has no bound",
    "y ~ I(y + (x / 1e-290) / 1e-290 < 1)": "has numbers beyond",
    f"y ~ I({'-' * 9000}x)": "nested too deeply",
    f"y ~ x + I({'+'.join(['x'] * 5000)})": "nested too deeply",
}


@pytest.mark.parametrize("formula", NOT_ANSWERED, ids=lambda text: text[:40])
def test_no_traceback(formula, monkeypatch):
    spy = Spy(monkeypatch)
    error = refused(formula)
    assert isinstance(error, ParameterError)
    assert NOT_ANSWERED[formula] in str(error)
    assert spy.made == []


@each_case(
    "options, text",
    [
        ({"offset": ["x"]}, r"offset is a column's name, not \['x'\]"),
        ({"weights": ["x"]}, r"weights is a column's name, not \['x'\]"),
        ({"family": ["linear"]}, r"family is one of .*, not \['linear'\]"),
        ({"bounds": {1: 3}}, "a factor is text, as the formula has it"),
        ({"bounds": {"x": 1e200}}, "'x' must be a positive number below 1e"),
    ],
)
def test_requests_of_other_types(options, text):
    with pytest.raises(ParameterError, match=text):
        fit("y ~ x", **{"family": "logistic", **options})


@each_case("right", ["I(-(x * 1e-30))", "I(x * 1e-30 + 0)", "I(0 - x * 1e-30)"])
def test_zero_beside_a_fine_unit(right):
    np.testing.assert_allclose(abs(fit(f"z ~ {right}").params[1]), 1e30 * abs(
        np.polyfit(ROWS["x"], ROWS["z"], 1)[0]
    ), rtol=1e-9)  # fmt: skip


LONG = "q" * 19_000
TOO_LONG = [
    f"y ~ {LONG}",
    f"y ~ `{LONG}`",
    f"y ~ {LONG} + ",
    f"y ~ x | {LONG}",
    f"y ~ I({LONG})",
    f"y ~ I(z == '{LONG}')",
    f"y ~ I(`g h` == '{LONG}')",
    f"y ~ I('{LONG}' < x)",
    f"y ~ C(`g h`, Treatment('{LONG}'))",
    f"y ~ C(`g h`, {LONG})",
    f"y ~ center({LONG})",
    f"y ~ log(x{'+x' * 300} - 1000000)",
    f"y ~ x + I(x{'+x' * 300})",
    f"y ~ I(x{'*x' * 900})",
    f"y ~ I(x < 1{'0' * 4000})",
    f"y + z ~ x + {'+'.join(f'I(x>{i})' for i in range(900))}",
    f"y ~ {'+'.join(f'I(x>{i})' for i in range(1500))}",
    f"y ~ 2{'0' * 2000}:x",
    f"y ~ ({'+'.join(f'I(x>{i})' for i in range(100))})**9",
    f"{LONG} ~ x",
]


@each_case("formula", TOO_LONG)
def test_a_long_formula_is_not_repeated(formula):
    assert len(str(refused(formula))) < 500


def test_long_names_in_options_are_not_repeated():
    for options in ({"family": LONG}, {"weights": LONG}, {"offset": LONG}, {"bounds": {LONG: 1}}):
        with pytest.raises(ParameterError) as caught:
            fit("y ~ x", **options)
        assert len(str(caught.value)) < 500


PLAIN = pd.DataFrame({"x": ROWS["x"], "y": ROWS["y"], "g": ROWS["g h"]})
ONE = {"y": [0, 1, 0], "g": ["a"] * 3}
EMPTY = {
    "None": pd.DataFrame({"x": [None] * 3, **ONE}),
    "NaN": pd.DataFrame({"x": [float("nan")] * 3, **ONE}),
    "no rows": PLAIN[:0].astype(object),
    "no rows of text": PLAIN[:0].astype("string"),
    "header only": pd.read_csv(io.StringIO("x,y,g\n")),
    "polars null": pl.DataFrame({"x": [None] * 3, **ONE}),
    "polars text": pl.DataFrame({"x": pl.Series([None] * 3, dtype=pl.String), **ONE}),
    "polars no rows": pl.DataFrame(schema={"x": pl.String, "y": pl.String, "g": pl.Null}),
    "arrow null": pa.table({"x": pa.nulls(3), **ONE}),
    "arrow text": pa.table({"x": pa.array([None] * 3, pa.string()), **ONE}),
}


@each_case("name", EMPTY)
def test_a_site_without_values_does_not_make_a_category_of_a_number(name):
    sites = study(PLAIN[:100], PLAIN[100:], EMPTY[name], missing="drop")
    for formula in ("y ~ x + g", "x ~ y"):
        found = sites.glm(formula, "linear")
        expected = smf.ols(formula, PLAIN).fit()
        assert found.nobs == SIZE
        assert set(found.names) == set(expected.params.index)
        order = list(found.names)
        np.testing.assert_allclose(found.params, expected.params[order], rtol=1e-9)


def test_a_site_without_values_does_not_make_a_number_of_a_category():
    for empty in ([float("nan")] * 3, [None] * 3):
        last = pd.DataFrame({"x": [1.0, 2, 3], "y": [0, 1, 0], "g": empty})
        found = study(PLAIN[:100], PLAIN[100:], last, missing="drop").glm("y ~ x + g", "linear")
        assert found.names == ("Intercept", "x", "g[T.b`c`d]")


@each_case("dtype", [pl.Categorical, pl.Enum(["a", "b"])])
def test_a_type_of_categories_is_one_without_values_too(dtype):
    last = pl.DataFrame({"x": [1.0], "g": pl.Series([None], dtype=dtype)})
    assert study(PLAIN[["x", "g"]], last).inquiry().schema.is_text("g")


def test_text_in_one_cell_is_text():
    last = pd.DataFrame({"x": [None, "many"], "y": [0, 1], "g": ["a", "a"]})
    with pytest.raises(ParameterError, match=r"'x' is coded as|cannot be a category"):
        study(PLAIN[:100], PLAIN[100:], last, missing="drop").glm("y ~ x")
