"""Empty and NaN cells: an error, or their rows drop out of the statistics that use them."""

import pandas as pd
import polars as pl
import pytest
from cases import each_case
from sites import frame, mean, study, variance

from securecomp import Column
from securecomp.errors import RangeError
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance

# Row by row: all there; x missing; g missing; both missing; h missing.
X = [4, None, 6, None, 11]
G = ["a", "b", None, None, "b"]
H = ["u", "v", "u", "v", None]


def pandas_float(x):
    return pd.Series([float("nan") if c is None else c for c in x], dtype="float64")


TABLES = {
    "pandas NaN": pd.DataFrame({"x": pandas_float(X), "g": G, "h": H}),
    "pandas None": pd.DataFrame({"x": X, "g": G, "h": H}, dtype=object),
    "pandas NA": pd.DataFrame(
        {"x": pd.array(X, "Int64"), "g": pd.array(G, "string"), "h": pd.Series(H, dtype="category")}
    ),
    "polars null": frame("polars", x=X, g=G, h=H),
    "polars NaN": pl.DataFrame({"x": pandas_float(X).to_numpy(), "g": G, "h": H}),
    "pyarrow null": frame("pyarrow", x=X, g=G, h=H),
}


@pytest.mark.parametrize("name", TABLES)
class TestDrop:
    def run(self, name, *questions):
        results = study(TABLES[name], TABLES[name], missing="drop").run(questions)
        assert all(result.equal for result in results)
        return results

    def test_numeric(self, name):
        cells = [4, 6, 11] * 2
        summed, average, spread, bins = self.run(
            name, Sum("x"), Mean("x"), Variance("x"), Histogram("x", None, (4, 6, 10))
        )
        assert summed.value == 42
        assert average.rows == ({"value": mean(cells), "n": 6},)
        assert (spread.value, spread.rows[0]["n"]) == (variance(cells), 6)
        # A missing cell, which is kept as zero, is not "below".
        assert bins.value == [2, 2]
        assert (bins.rows[0]["below"], bins.rows[0]["above"]) == (0, 2)

    def test_categorical(self, name):
        counted, table = self.run(name, Count(None, "g"), CrossTable(None, None, "g", "h"))
        assert counted.value == {"a": 2, "b": 4}
        assert table.value == [[2, 0], [0, 2]]

    def test_both(self, name):
        counted, summed, average, bins = self.run(
            name, Count(None, "g"), Sum("x", "g"), Mean("x", "g"), Histogram("x", "g", (0, 20))
        )
        assert counted.value == {"a": 2, "b": 4}  # asks for nothing but g
        assert summed.value == {"a": 8, "b": 22}
        assert average.rows == (
            {"group": "a", "value": 4.0, "n": 2},
            {"group": "b", "value": 11.0, "n": 2},
        )
        assert bins.value == {"a": [2], "b": [2]}

    def test_a_table_by_a_third_column(self, name):
        (table,) = self.run(name, CrossTable(None, "g", "h", "h"))
        assert table.value == {"a": [[2, 0], [0, 0]], "b": [[0, 0], [0, 2]]}

    def test_a_column_that_is_not_asked_for_does_not_matter(self, name):
        (counted,) = self.run(name, Count())
        assert counted.value == 10


@each_case("name", TABLES)
@each_case(
    "question, column, cells, row",
    [
        (Sum("x"), "x", 2, 2),
        (Mean("x"), "x", 2, 2),
        (Variance("x"), "x", 2, 2),
        (Histogram("x", None, (0, 1)), "x", 2, 2),
        (Count(None, "g"), "g", 2, 3),
        (CrossTable(None, None, "h", "h"), "h", 1, 5),
        (Sum("x", "g"), "x", 2, 2),
    ],
)
def test_error(name, question, column, cells, row):
    some = f"{cells} empty or NaN cell{'s' if cells > 1 else ''}"
    with pytest.raises(
        RangeError, match=f"^north: column '{column}': {some}, the first in row {row};"
    ):
        study(TABLES[name], TABLES[name]).run([question])


@each_case("name", TABLES)
def test_error_spares_columns_that_are_not_asked_for(name):
    assert study(TABLES[name], TABLES[name]).count().value == 10


def test_all_cells_of_a_column_missing():
    empty = frame("polars", x=[None, None], g=[None, None])
    results = study(empty, frame("polars", x=[5], g=["a"]), missing="drop").run(
        [Count(), Count(None, "g"), Sum("x"), Mean("x", "g"), Variance("x")]
    )
    assert [r.value for r in results] == [3, {"a": 1}, 5, {"a": 5.0}, None]


def test_a_missing_cell_is_not_bound_by_what_is_declared():
    table = frame("polars", x=[None, 10], g=["a", None])
    columns = {"x": Column(bound=10, decimals=0), "g": Column(levels=["a"])}
    results = study(table, table, columns=columns, missing="drop").run(
        [Sum("x"), Count(None, "g"), Sum("x", "g")]
    )
    assert [r.value for r in results] == [20, {"a": 2}, {"a": 0}]


def test_dropping_does_not_excuse_an_infinite_value():
    table = frame("polars", x=[float("inf"), 1.0])
    with pytest.raises(RangeError, match=r"^north: column 'x': row 1 is NaN or infinite"):
        study(table, table, missing="drop").sum("x")


def test_groups_without_rows():
    table = frame("polars", x=[1, 3, 5], g=["a", "a", "b"])
    columns = {"g": Column(levels=["c", "b", "a"])}
    results = study(table, table[:0], columns=columns).run(
        [
            Count(None, "g"),
            Sum("x", "g"),
            Mean("x", "g"),
            Variance("x", "g"),
            Histogram("x", "g", (0, 4)),
            CrossTable(None, "g", "g", "g"),
        ]
    )
    assert list(results[0].value.items()) == [("c", 0), ("b", 1), ("a", 2)]
    assert results[1].value == {"c": 0, "b": 5, "a": 4}
    assert results[2].value == {"c": None, "b": 5.0, "a": 2.0}
    assert results[3].rows == (
        {"group": "c", "value": None, "sd": None, "n": 0},
        {"group": "b", "value": None, "sd": None, "n": 1},
        {"group": "a", "value": 2.0, "sd": 2.0**0.5, "n": 2},
    )
    assert results[4].value == {"c": [0], "b": [0], "a": [2]}
    assert results[5].value["c"] == [[0] * 3] * 3
    assert all(r.equal for r in results)
