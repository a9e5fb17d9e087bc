"""Frames of pandas, polars and pyarrow, in every type a column comes in, give the same."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import each_case
from sites import decimals, frame, mean, study, total, variance

from securecomp import Column
from securecomp.errors import ParameterError
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance

INTS = [3, None, 0, 7, 7]
SIGNED = [-3, None, 0, 7, -128]
BOOLS = [True, None, False, True, True]
REALS = [1.25, None, -0.5, 3.0, 0.1]
MONEY = decimals("1.10", None, "-7.25", "0.00", "99.99")


def pandas(cells, dtype):
    return pd.DataFrame({"x": pd.array(cells, dtype=dtype)})


def objects(cells):
    return pd.DataFrame({"x": pd.Series(cells, dtype=object)})


def polars(cells, dtype):
    return pl.DataFrame({"x": cells}, schema={"x": dtype})


def arrow(cells, dtype=None):
    return pa.table({"x": pa.array(cells, dtype)})


def full(cells):
    return [cell for cell in cells if cell is not None]


def nan(cells):
    return [float("nan") if cell is None else cell for cell in cells]


NUMERIC = {
    **{f"pandas {t}": (pandas(full(INTS), t), INTS) for t in ("int8", "int64", "uint8", "uint64")},
    "pandas bool": (pandas(full(BOOLS), "bool"), BOOLS),
    "pandas float32": (pandas(nan(SIGNED), "float32"), SIGNED),
    "pandas float64": (pandas(nan(REALS), "float64"), REALS),
    "pandas Int8": (pandas(SIGNED, "Int8"), SIGNED),
    "pandas Int64": (pandas(SIGNED, "Int64"), SIGNED),
    "pandas UInt64": (pandas(INTS, "UInt64"), INTS),
    "pandas Float64": (pandas(REALS, "Float64"), REALS),
    "pandas boolean": (pandas(BOOLS, "boolean"), BOOLS),
    "pandas object ints": (objects(SIGNED), SIGNED),
    "pandas object bools": (objects(BOOLS), BOOLS),
    "pandas object NaN": (objects(nan(SIGNED)), SIGNED),
    "pandas object decimals": (objects(MONEY), MONEY),
    "pandas object mix": (
        objects([1, 2.5, np.int8(-3), np.float32(0.5), np.bool_(True), None]),
        [1, 2.5, -3, 0.5, True, None],
    ),
    "pandas category of ints": (
        pd.DataFrame({"x": pd.Series([3, None, 7, 7], dtype="category")}),
        [3, None, 7, 7],
    ),
    "pandas int64[pyarrow]": (pandas(SIGNED, "int64[pyarrow]"), SIGNED),
    "pandas double[pyarrow]": (pandas(REALS, "double[pyarrow]"), REALS),
    "pandas bool[pyarrow]": (pandas(BOOLS, "bool[pyarrow]"), BOOLS),
    "pandas decimal[pyarrow]": (
        pandas(full(MONEY), pd.ArrowDtype(pa.decimal128(9, 2))),
        full(MONEY),
    ),
    "pandas sparse": (pd.DataFrame({"x": pd.arrays.SparseArray([0, 7, 0])}), [0, 7, 0]),
    **{
        f"polars {t}": (polars(SIGNED, t), SIGNED)
        for t in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Float32)
    },
    **{f"polars {t}": (polars(INTS, t), INTS) for t in (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)},
    "polars Float64": (polars(REALS, pl.Float64), REALS),
    "polars Float64 NaN and null": (polars([1.5, float("nan"), None], pl.Float64), [1.5, None]),
    "polars Boolean": (polars(BOOLS, pl.Boolean), BOOLS),
    "polars Decimal": (polars(MONEY, pl.Decimal(9, 2)), MONEY),
    "polars Object": (polars([Decimal("1.5"), 2], pl.Object), [Decimal("1.5"), 2]),
    "polars Null": (polars([None, None], pl.Null), []),
    **{
        f"arrow {t}": (arrow(SIGNED, t), SIGNED)
        for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
    },
    "arrow uint64": (arrow(INTS, pa.uint64()), INTS),
    "arrow float16": (arrow([np.float16(1.5), None], pa.float16()), [1.5]),
    "arrow double": (arrow(REALS), REALS),
    "arrow bool": (arrow(BOOLS), BOOLS),
    **{
        f"arrow {t}": (arrow(MONEY, t), MONEY)
        for t in (
            getattr(pa, f"decimal{bits}")(digits, 2)
            for bits, digits in ((32, 8), (64, 9), (128, 9), (256, 50))
            if hasattr(pa, f"decimal{bits}")  # the narrow ones are newer than the oldest pyarrow
        )
    },
    "arrow dictionary of ints": (
        pa.table({"x": pa.array(SIGNED).dictionary_encode()}),
        SIGNED,
    ),
    "arrow chunked": (
        pa.table({"x": pa.chunked_array([[3, None], [], [0, 7, 7]], pa.int64())}),
        INTS,
    ),
    "arrow null": (arrow([None, None], pa.null()), []),
}


@each_case("name", NUMERIC)
def test_a_numeric_type(name):
    """The type at one site, plain numbers of the other libraries at two more."""
    table, cells = NUMERIC[name]
    others = ([5, -2], [1])
    result = study(
        table,
        frame("polars", x=others[0]),
        frame("pyarrow", x=others[1]),
        columns={"x": Column(bound=200)},
        missing="drop",
    ).run([Sum("x"), Mean("x"), Variance("x")])
    pooled = [*full(cells), *others[0], *others[1]]
    assert [r.value for r in result] == [total(pooled), mean(pooled), variance(pooled)]
    assert type(result[0].value) is type(total(pooled))
    assert result[1].rows[0]["n"] == len(pooled)
    assert all(r.equal for r in result)


WORDS = ["ward b", None, "ward a", "ward b", "ü"]
TALLY = {"ward a": 1, "ward b": 2, "ü": 1}
CODES = [10, None, 9, 10, -1]
CODE_TALLY = {-1: 1, 9: 1, 10: 2}
BOOL_TALLY = {False: 1, True: 3}

CATEGORICAL = {
    "pandas object": (objects(WORDS), TALLY),
    "pandas object NaN": (objects(nan(WORDS)), TALLY),
    "pandas object NA": (objects([pd.NA if c is None else c for c in WORDS]), TALLY),
    # Before pandas 3 this is no type of its own, and a missing value would be the word "None".
    **({"pandas str": (pandas(WORDS, "str"), TALLY)} if int(pd.__version__[0]) > 2 else {}),
    "pandas string": (pandas(WORDS, "string"), TALLY),
    "pandas string[pyarrow]": (pandas(WORDS, "string[pyarrow]"), TALLY),
    "pandas category": (pandas(WORDS, "category"), TALLY),
    "pandas Int64": (pandas(CODES, "Int64"), CODE_TALLY),
    "pandas float codes": (pandas(nan(CODES), "float64"), CODE_TALLY),
    "pandas object ints": (objects(CODES), CODE_TALLY),
    "pandas boolean": (pandas(BOOLS, "boolean"), BOOL_TALLY),
    "pandas bool": (pandas(full(BOOLS), "bool"), BOOL_TALLY),
    "polars String": (polars(WORDS, pl.String), TALLY),
    "polars Categorical": (polars(WORDS, pl.Categorical), TALLY),
    "polars Int8": (polars(CODES, pl.Int8), CODE_TALLY),
    "polars UInt64": (polars([2**63, None], pl.UInt64), {2**63: 1}),
    "polars Float64": (polars(nan(CODES), pl.Float64), CODE_TALLY),
    "polars Float64, both zeros": (polars([-0.0, 0.0, 1.0], pl.Float64), {0: 2, 1: 1}),
    "polars Boolean": (polars(BOOLS, pl.Boolean), BOOL_TALLY),
    "arrow string": (arrow(WORDS), TALLY),
    "arrow large_string": (arrow(WORDS, pa.large_string()), TALLY),
    "arrow string_view": (arrow(WORDS, pa.string_view()), TALLY),
    "arrow dictionary": (pa.table({"x": pa.array(WORDS).dictionary_encode()}), TALLY),
    "arrow chunked": (
        pa.table({"x": pa.chunked_array([WORDS[:2], [], WORDS[2:]], pa.string())}),
        TALLY,
    ),
    "arrow chunked dictionary": (
        pa.table(
            {
                "x": pa.chunked_array(
                    [pa.array(c).dictionary_encode() for c in (WORDS[:3], WORDS[3:])]
                )
            }
        ),
        TALLY,
    ),
    "arrow int": (arrow(CODES), CODE_TALLY),
    "arrow decimal codes": (arrow(decimals("10", None, "9", "10", "-1")), CODE_TALLY),
    "arrow bool": (arrow(BOOLS), BOOL_TALLY),
}


@each_case("name", CATEGORICAL)
def test_a_categorical_type(name):
    """Levels come out as text, integers or booleans, sorted; the counts are those of the cells."""
    table, tally = CATEGORICAL[name]
    result = study(table, table, missing="drop").count(by="x")
    assert result.value == {level: 2 * n for level, n in tally.items()}
    assert [(type(k), k) for k in result.value] == [(type(k), k) for k in sorted(tally)]
    assert result.equal
    levels = ", ".join(map(str, sorted(tally)))
    assert result.run.from_data == {"levels of x": levels}


INT_CATEGORIES = {
    "pandas category": pandas([10, None, 9, 10, -1], "category"),
    "arrow dictionary": pa.table({"x": pa.array(CODES).dictionary_encode()}),
}


@each_case("name", INT_CATEGORIES)
def test_categories_of_integers_stay_integers(name):
    result = study(INT_CATEGORIES[name], frame("polars", x=[9]), missing="drop").count(by="x")
    assert result.value == {-1: 1, 9: 2, 10: 2}


def ordered(cells):
    return pd.DataFrame({"x": pd.Categorical(cells, ["low", "mid", "high"], ordered=True)})


def enum(cells):
    return polars(cells, pl.Enum(["low", "mid", "high"]))


@pytest.mark.parametrize("make", [ordered, enum], ids=["pandas ordered", "polars Enum"])
class TestDeclaredByTheType:
    """An ordered category and an Enum carry their levels, in an order of their own."""

    def test_its_levels_and_their_order_are_kept(self, make):
        result = study(make(["low", "high", None]), make(["high"]), missing="drop").count(by="x")
        assert list(result.value.items()) == [("low", 1), ("mid", 0), ("high", 2)]
        assert result.run.from_data == {}

    def test_it_counts(self, make):
        result = study(make(["low", "high", None]), make(["high"]), missing="drop").count(by="x")
        assert {k: n for k, n in result.value.items() if n} == {"low": 1, "high": 2}

    def test_another_site_may_have_plain_text(self, make):
        result = study(make(["low", "high"]), frame("pyarrow", x=["other"])).count(by="x")
        assert {k: n for k, n in result.value.items() if n} == {"high": 1, "low": 1, "other": 1}
        assert result.run.from_data == {"levels of x": "high, low, other"}

    def test_declared_levels_come_first(self, make):
        levels = Column(levels=["high", "low"])
        result = study(make(["low"]), make(["high"]), columns={"x": levels}).count(by="x")
        assert list(result.value.items()) == [("high", 1), ("low", 1)]


@each_case("make", [ordered, enum])
def test_no_warning_reaches_the_user(make):
    assert study(make(["low"]), make(["low"])).count(by="x").value["low"] == 2


LIBRARIES = ("pandas", "polars", "pyarrow")


@each_case("libraries", [*((lib,) * 3 for lib in LIBRARIES), LIBRARIES])
def test_every_statistic_with_one_library_or_all_three(libraries):
    rows = [
        {"x": [4, -9, None, 12], "g": ["a", "b", "a", None], "h": [1, 2, 2, 1]},
        {"x": [0, 5], "g": ["b", "b"], "h": [1, None]},
        {"x": [7], "g": ["c"], "h": [2]},
    ]
    frames = [frame(lib, **columns) for lib, columns in zip(libraries, rows, strict=True)]
    count, summed, average, spread, bins, table = study(*frames, missing="drop").run(
        [
            Count(None, "g"),
            Sum("x", "g"),
            Mean("x", "g"),
            Variance("x", "g"),
            Histogram("x", "g", (-5, 0, 5, 8)),
            CrossTable(None, None, "g", "h"),
        ]
    )
    assert count.value == {"a": 2, "b": 3, "c": 1}
    assert summed.value == {"a": 4, "b": -4, "c": 7}
    assert average.value == {"a": 4.0, "b": float(Fraction(-4, 3)), "c": 7.0}
    assert spread.value == {"a": None, "b": variance([-9, 0, 5]), "c": None}
    assert bins.value == {"a": [0, 1, 0], "b": [0, 1, 1], "c": [0, 0, 1]}
    assert [row["below"] for row in bins.rows] == [0, 1, 0]
    assert table.value == [[1, 1], [1, 1], [0, 1]]
    assert all(r.equal for r in (count, summed, average, spread, bins, table))


EMPTY = {
    "pandas, no rows": pd.DataFrame({"x": [], "g": []}),
    "pandas object": pd.DataFrame({"x": [], "g": []}, dtype=object),
    "pandas typed": pd.DataFrame({"x": pd.array([], "Int64"), "g": pd.array([], "string")}),
    "polars null": pl.DataFrame({"x": [], "g": []}),
    "polars typed": pl.DataFrame({"x": [], "g": []}, schema={"x": pl.Int8, "g": pl.Categorical}),
    "polars text numbers": pl.DataFrame(schema={"x": pl.String, "g": pl.Int64}),
    "arrow null": pa.table({"x": pa.array([], pa.null()), "g": pa.array([], pa.null())}),
    "arrow no chunk": pa.table(
        {"x": pa.chunked_array([], pa.int64()), "g": pa.chunked_array([], pa.string())}
    ),
}


@each_case("name", EMPTY)
def test_a_site_without_rows_takes_part(name):
    rows = frame("polars", x=[4, 6], g=["a", "b"])
    results = study(EMPTY[name], rows, EMPTY[name]).run(
        [
            Count(),
            Sum("x"),
            Mean("x", "g"),
            Variance("x"),
            Histogram("x", None, (0, 5, 9)),
            CrossTable(None, None, "g", "g"),
        ]
    )
    assert [r.value for r in results] == [
        2,
        10,
        {"a": 4.0, "b": 6.0},
        2.0,
        [1, 1],
        [[1, 0], [0, 1]],
    ]
    assert all(r.equal for r in results)
    run = results[0].run
    assert run.parties == ("north", "south", "east")
    # What a site sends does not tell that it has no rows (the two names are of one length).
    assert run.transcript.sent["north"] == run.transcript.sent["south"]


def test_no_site_has_a_row():
    empty = pl.DataFrame({"x": [], "g": []})
    results = study(empty, empty, columns={"g": Column(levels=["a", "b"])}).run(
        [
            Count(),
            Count(None, "g"),
            Sum("x"),
            Mean("x"),
            Variance("x"),
            Histogram("x", None, (0, 1)),
        ]
    )
    assert [r.value for r in results] == [0, {"a": 0, "b": 0}, 0, None, None, [0]]
    assert all(r.equal for r in results)


def test_a_frame_without_columns_has_rows_to_count():
    assert study(pd.DataFrame(index=range(3)), frame("polars", x=[1])).count().value == 4


UNSIGNED = [2**63 + 1, 2**64 - 1, 5]


def test_unsigned_beyond_2_63():
    table = polars(UNSIGNED, pl.UInt64)
    result = study(table, arrow(UNSIGNED, pa.uint64())).run([Sum("x"), Variance("x")])
    assert result[0].value == 2 * sum(UNSIGNED)
    assert result[1].value == variance(UNSIGNED * 2)


def test_unsigned_beyond_2_63_is_equal_to_plaintext():
    table = polars(UNSIGNED, pl.UInt64)
    assert study(table, table).sum("x").equal


def test_128_bit_integers():
    table = polars([2**100, -1], pl.Int128)
    assert study(table, table).sum("x").value == 2 * (2**100 - 1)


@each_case(
    "table",
    [
        objects([1, pd.NA, 2]),
        objects([1, pd.NaT, 2]),
        pandas(decimals("1", None, "2"), pd.ArrowDtype(pa.decimal128(9, 2))),
    ],
)
def test_pandas_own_missing_values_among_objects(table):
    assert study(table, table, missing="drop").sum("x").value == 6


@each_case("table", [arrow(MONEY), objects([*MONEY, 2.5])])
def test_decimals_beside_floats(table):
    result = study(table, frame("pandas", x=[0.25, 1.5]), missing="drop").sum("x")
    cells = [c for c in table["x"].to_numpy() if c is not None]
    assert result.value == total([*cells, 0.25, 1.5])
    assert result.equal


def test_columns_that_are_named_by_numbers():
    table = pd.DataFrame([[1, 2], [3, 4]])  # as read_csv(header=None) names them
    assert study(table, table).sum(0).value == 8


def test_many_float32():
    cells = np.random.default_rng(0).random(20_000).astype(np.float32)
    result = study(pl.DataFrame({"x": cells}), pl.DataFrame({"x": cells})).sum("x")
    assert result.value == float(2 * sum(map(Fraction, cells.tolist())))
    assert result.equal


@each_case(
    "cells, kind",
    [
        (["12", "3"], "text"),
        ([1j], "complex"),
        ([[1]], "list"),
        (pd.to_datetime(["2020-01-01"]), "Timestamp"),
        (pd.to_timedelta([1], "D"), "Timedelta"),
    ],
)
def test_what_is_no_number(cells, kind):
    with pytest.raises(ParameterError, match=rf"^north: column 'x': row 1 is {kind} and not a num"):
        study(pd.DataFrame({"x": cells}), frame("polars", x=[1])).sum("x")


def test_the_row_of_the_first_text_among_numbers():
    table = objects([1, None, 2.5, "many", "few"])
    with pytest.raises(ParameterError, match=r"^south: column 'x': row 4 is text and not a number"):
        study(frame("polars", x=[1]), table, missing="drop").sum("x")


@each_case(
    "table, row",
    [
        (pd.DataFrame({"x": [1.0, 2.5]}), 2),
        (pd.DataFrame({"x": pd.to_datetime(["2020-01-01", "2020-01-02"])}), 1),
        (pa.table({"x": [b"a", b"b"]}), 1),
        (pl.DataFrame({"x": [0.5, 1.5]}), 1),
    ],
)
def test_what_is_no_category(table, row):
    with pytest.raises(ParameterError, match=rf"^north: column 'x': row {row} cannot be a categ"):
        study(table, frame("polars", x=["a"])).count(by="x")


@each_case("cells", [["a", 1], [[1], [2]], [{"k": 1}, {"k": 2}]])
def test_what_cannot_even_be_compared(cells):
    with pytest.raises(ParameterError, match=r"^north: column 'x': "):
        study(objects(cells), frame("polars", x=["a"])).count(by="x")


def test_infinite_is_no_category():
    with pytest.raises(ParameterError, match=r"^north: column 'x': row 2 cannot be a category"):
        study(frame("polars", x=[1.0, float("inf")]), frame("polars", x=[1])).count(by="x")


def test_two_codings_of_one_category():
    with pytest.raises(ParameterError, match="'x' is coded as int and str at different sites"):
        study(frame("polars", x=[1]), frame("polars", x=["1"])).count(by="x")


def test_a_signalling_nan_is_a_missing_value():
    table = objects([Decimal("sNaN"), Decimal("1.5")])
    assert study(table, table, missing="drop").sum("x").value == 3
