"""Formulas to columns: as formulaic has them, within the bounds that are public; exact products."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import each_case, examples
from formulaic import model_matrix
from hypothesis import assume, given
from hypothesis import strategies as st
from sites import study

from securecomp import Column
from securecomp.errors import SecureCompError
from securecomp.statistics.regression import formulas
from securecomp.statistics.regression.cross_products import ColumnGrid, products
from securecomp.statistics.regression.designs import Design

ROWS = pd.DataFrame(
    {
        "y": np.arange(24) % 2,
        "g": list("abcabcab") * 3,
        "h": list("uvuvvuuv") * 3,
        "k": list("pqrpppqq") * 3,
        "x": np.arange(24.0) + 1,
        "z": np.arange(24) % 3,
    }
)
SPLIT = (ROWS[:10], ROWS[10:11], ROWS[11:])


def design(right, *frames, **options):
    ask = study(*frames, **options).inquiry()
    found = Design.of(formulas.parse(f"y ~ {right}", ask.schema), ask.schema, None, None)
    parts = [found.rows(table, ask.schema, "error") for table in ask.tables]
    return found, np.vstack([found.matrix(rows) for rows in parts])


RIGHT = [
    "1", "0 + g", "0 + x", "g*h", "g:h", "0 + g:h", "x:g", "g:x + x", "g + g:h", "x*g*h",
    "0 + x:g:h", "h + g:h:x", "0 + C(g) + C(h)", "C(g)*x", "g:h:k", "g*h*k", "0 + g*h*k",
    "g:h + h:k + k", "k:g:h:x + g:h", "C(z)*g", "C(z, Treatment(1))", "(x + z)**2", "g/x",
    "x:z + g:x", "I(x**2) + log(x) + np.sqrt(x)", "I(x/(z + 1)) + exp(-x/3)", "I(1/x):g",
    "I(x > 3)", "I(x - 0.1) + I(-x**3)", "np.abs(x - 12):h", "np.log1p(z) + np.log10(x)", "{x/3}",
    "x + g - 1", "I((x - 12.5)**-2)",
]  # fmt: skip


@each_case("right", RIGHT)
def test_columns_are_those_of_formulaic(right):
    found, matrix = design(right, *SPLIT)
    expected = model_matrix(right.replace("Treatment(1)", "contr.treatment(1)"), ROWS)
    names = [name.replace("contr.treatment(1)", "Treatment(1)") for name in expected.columns]
    assert [n.split("[")[0] for n in found.names] == [n.split("[")[0] for n in names]
    assert list(found.names) == names
    np.testing.assert_allclose(matrix, expected.astype(float), rtol=1e-14, atol=1e-15)


@each_case("right", RIGHT)
def test_values_are_within_public_bounds_and_on_their_grid(right):
    found, matrix = design(right, *SPLIT)
    for column, values in zip(found.columns, matrix.T, strict=True):
        assert column.low <= values.min()
        assert values.max() <= column.high
        if column.unit is not None:
            units = values / float(column.unit)
            np.testing.assert_allclose(units, np.rint(units), atol=1e-6)


def test_bounds_come_from_what_was_agreed_and_not_from_the_rows():
    columns = {"x": Column(bound=1000, decimals=2)}
    found, _ = design("x + log(x) + I(x**2) + x:g", ROWS[:3], ROWS[3:6], columns=columns)
    bounds = dict(zip(found.names, found.columns, strict=True))
    assert bounds["x"].largest == 1000
    assert bounds["x"].unit == Fraction(1, 100)
    assert bounds["I(x ** 2)"].largest == 10**6
    assert bounds["I(x ** 2)"].unit == Fraction(1, 10**4)
    assert bounds["x:g[T.b]"].largest == 1000
    # A positive number of two decimals is at least 0.01.
    assert bounds["log(x)"].low == pytest.approx(np.log(0.01))
    assert bounds["log(x)"].high == pytest.approx(np.log(1000))


def test_a_site_without_a_level_has_its_column():
    found, matrix = design("g", ROWS[:1], ROWS[1:3])
    assert found.names == ("Intercept", "g[T.b]", "g[T.c]")
    assert matrix.tolist() == [[1, 0, 0], [1, 1, 0], [1, 0, 1]]


def test_names_that_need_quotes():
    rows = ROWS.rename(columns={"x": "length of stay", "g": "ward no."})
    found, matrix = design("`length of stay` + I(`length of stay`**2) + `ward no.`", rows, rows)
    assert found.names[1] == "length of stay"
    np.testing.assert_array_equal(matrix[:24, 2], ROWS["x"] ** 2)


def larger(inner):
    a_function = st.sampled_from(["exp", "sqrt", "log", "abs", "log1p"])
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{}({})".format, a_function, inner),
        st.builds("{}**{}".format, inner, st.sampled_from(["2", "3", "-1", "0.5"])),
        st.builds("(1.0*({} {} {}))".format, inner, st.sampled_from(["<", ">=", "=="]), inner),
    )


expressions = st.recursive(st.sampled_from(["x", "z", "3", "0.5", "2"]), larger, max_leaves=5)


@examples(120)
@given(expressions)
def test_intervals_hold_whatever_is_written(text):
    """Where a site refuses nothing, values are numpy's and within the interval."""
    rows = pd.DataFrame({"y": [0, 1, 0, 1], "x": [0.5, 1.25, 3.0, 2.0], "z": [1, 2, 3, -2]})
    try:
        found, matrix = design(f"I({text} + 0*x)", rows[:2], rows[2:])
    except SecureCompError:
        assume(False)
    scope = {name: getattr(np, name) for name in ("exp", "sqrt", "log", "abs", "log1p")}
    scope |= {"x": rows["x"].to_numpy(), "z": rows["z"].to_numpy().astype(float)}
    with np.errstate(all="ignore"):
        value = eval(text, {}, scope)  # noqa: S307
    expected = np.broadcast_to(np.asarray(value, float), 4)
    column = found.columns[-1]
    np.testing.assert_allclose(matrix[:, -1], expected, rtol=1e-9, atol=1e-9)
    slack = 1e-9 * max(1.0, float(column.largest))
    assert float(column.low) - slack <= expected.min()
    assert expected.max() <= float(column.high) + slack


integers = st.integers(-(2**50), 2**50) | st.integers(-3, 3)


@examples(60)
@given(
    st.integers(1, 4).flatmap(
        lambda p: st.lists(st.lists(integers, min_size=p, max_size=p), max_size=12)
    ),
    st.sampled_from([None, 1, 1000, 2**31]),
)
def test_products_are_exact(rows, heaviest):
    width = len(rows[0]) if rows else 2
    weights = [abs(row[0]) % (heaviest + 1) for row in rows] if heaviest else None
    limit = max((abs(v) for row in rows for v in row), default=0)
    grids = [ColumnGrid(Fraction(1), max(limit, 1), True)] * width
    found = products(
        np.array(rows, np.float64).reshape(len(rows), width),
        grids,
        None if weights is None else np.array(weights, np.float64),
        None if weights is None else ColumnGrid(Fraction(1), heaviest, True),
    )
    each = weights or [1] * len(rows)
    assert found.tolist() == [
        sum(w * row[i] * row[j] for w, row in zip(each, rows, strict=True))
        for i in range(width)
        for j in range(i, width)
    ]


def test_products_of_many_rows_are_exact(monkeypatch):
    from securecomp.statistics.regression import cross_products

    monkeypatch.setattr(cross_products, "_FLUSH", 2)
    monkeypatch.setattr(cross_products, "_MOST", 64)
    values = np.random.default_rng(1).integers(-(2**40), 2**40, (1000, 2))
    found = products(values.astype(np.float64), [ColumnGrid(Fraction(1), 2**40, True)] * 2)
    columns = [[int(v) for v in column] for column in values.T]
    assert found.tolist() == [
        sum(a * b for a, b in zip(columns[i], columns[j], strict=True))
        for i, j in ((0, 0), (0, 1), (1, 1))
    ]
