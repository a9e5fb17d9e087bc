"""Tables of every kind are the same rows; what is refused is named, and consumes nothing."""

import decimal
import fractions
import math

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse
from cases import each_case
from ckks.parties import Parties, linear_model
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks import inputs, planner
from securecomp.ckks.plan import MAX_ROWS
from securecomp.errors import ParameterError, RangeError

PLAN = planner.plan(linear_model(3, bound=8.0), backend="native")
ROWS = [[1.0, 0.0, -3.0], [0.5, 8.0, -8.0]]
COLUMNS = {"x0": [1.0, 0.5], "x1": [0.0, 8.0], "x2": [-3.0, -8.0]}

TABLES = {
    "lists": ROWS,
    "tuples": tuple(map(tuple, ROWS)),
    "array": np.array(ROWS),
    "float32": np.array(ROWS, np.float32),
    "float16": np.array(ROWS, np.float16),
    "columns first": np.asfortranarray(ROWS),
    "a view": np.array([[9.0] * 7, *([a, 9, b, 9, c, 9, 9] for a, b, c in ROWS)])[1:, 0:5:2],
    "big-endian": np.array(ROWS, ">f8"),
    "objects": np.array(ROWS, object),
    "decimals": [[decimal.Decimal(str(x)) for x in row] for row in ROWS],
    "fractions": [[fractions.Fraction(x) for x in row] for row in ROWS],
    "numpy scalars": [[np.float64(x) for x in row] for row in ROWS],
    "sparse rows": scipy.sparse.csr_matrix(ROWS),
    "sparse columns": scipy.sparse.csc_array(np.array(ROWS)),
    "coordinates": scipy.sparse.coo_matrix(ROWS),
    "matrix of pandas": pandas.DataFrame(COLUMNS),
    "other order": pandas.DataFrame(COLUMNS)[["x2", "x0", "x1"]],
    "further columns": pandas.DataFrame(COLUMNS | {"name": ["Ann", "Bob"], "y": [math.nan, 1]}),
    "another index": pandas.DataFrame(COLUMNS, index=[7, 3]),
    "nullable": pandas.DataFrame(COLUMNS).astype("Float64"),
    "arrow in pandas": pandas.DataFrame(COLUMNS).astype("float64[pyarrow]"),
    "polars": polars.DataFrame(COLUMNS),
    "polars, 32 bits": polars.DataFrame(COLUMNS).with_columns(
        polars.col("x0").cast(polars.Float32)
    ),
    "pyarrow": pyarrow.table(COLUMNS),
    "pyarrow in chunks": pyarrow.concat_tables(
        [pyarrow.table(COLUMNS).slice(i, 1) for i in (0, 1)]
    ),
}
WHOLE = {
    "integers": [[1, 0, -3], [1, 8, -8]],
    "int8": np.array([[1, 0, -3], [1, 8, -8]], np.int8),
    "booleans": np.array([[True, False, True]]),
    "long integers": np.array([[1, 0, -3], [1, 8, -8]], object),
    "pandas": pandas.DataFrame(
        {"x0": [True, False], "x1": [1, 2], "x2": pandas.array([3, 4], "Int64")}
    ),
    "polars": polars.DataFrame({"x0": [True, False], "x1": [1, 2], "x2": [0.5, 4]}),
}


@each_case("kind", TABLES)
def test_every_kind_of_table(kind):
    got = inputs.rows(TABLES[kind], PLAN)
    assert got.dtype == np.float64
    assert got.tolist() == ROWS


@each_case("kind", WHOLE)
def test_whole_numbers_and_flags(kind):
    got = inputs.rows(WHOLE[kind], PLAN)
    assert got.dtype == np.float64
    table = WHOLE[kind]
    plain = table.to_numpy() if hasattr(table, "to_numpy") else np.asarray(table)
    assert got.tolist() == plain.astype(float).tolist()


def test_what_is_given_stays_as_it_is():
    given_ = np.array(ROWS)
    before = given_.copy()
    parties = Parties(linear_model(3, bound=8.0))
    parties.ann.encrypt(given_)
    assert np.array_equal(given_, before)


@given(
    st.lists(
        st.tuples(*[st.floats(-8, 8) | st.sampled_from([8.0, -8.0, 0.0, 5e-324])] * 3), min_size=1
    )
)
def test_integers_are_the_nearest(rows):
    numbers = inputs.integers(inputs.rows(rows, PLAN), PLAN)
    step = fractions.Fraction(8, 2**PLAN.circuit.input_bits)
    assert numbers.shape == (len(rows), 3)
    for row, integers in zip(rows, numbers.tolist(), strict=True):
        for x, n in zip(row, integers, strict=True):
            assert abs(n) <= 2**PLAN.circuit.input_bits
            assert abs(fractions.Fraction(x) - n * step) <= step / 2


def test_an_encrypted_models_constant():
    plan = planner.plan(linear_model(3, bound=8.0), encrypted=True)
    numbers = inputs.integers(np.zeros((2, 3)), plan)
    assert numbers.tolist() == [[0, 0, 0, 2**plan.circuit.input_bits]] * 2


def put(value, row=1, column=2):
    """The rows with one cell replaced, as every kind of table."""
    rows = [list(r) for r in ROWS]
    rows[row][column] = value
    columns = {f"x{j}": [r[j] for r in rows] for j in range(3)}
    return {
        "lists": rows,
        "array": np.array(rows),
        "pandas": pandas.DataFrame(columns),
        "polars": polars.DataFrame(columns),
        "pyarrow": pyarrow.table(columns),
    }


KINDS = list(put(1.0))


@pytest.mark.parametrize("kind", KINDS)
class TestValues:
    @each_case("value", [8.000001, -8.000001, 1e300, math.inf, -math.inf])
    @each_case("row, column", [(0, 0), (1, 2)])
    def test_beyond_the_bound(self, kind, value, row, column):
        with pytest.raises(RangeError) as caught:
            inputs.rows(put(value, row, column)[kind], PLAN)
        assert f"feature 'x{column}', row {row + 1}: is beyond 8" in str(caught.value)
        assert str(value) not in str(caught.value)  # a patient's

    def test_not_a_number(self, kind):
        error = ParameterError if kind == "pandas" else RangeError
        with pytest.raises(error, match=r"^feature 'x2', row 2: is missing; fill it in, or drop"):
            inputs.rows(put(math.nan)[kind], PLAN)

    def test_the_first_one_is_named(self, kind):
        table = put(99.0, 0, 1)[kind]
        with pytest.raises(RangeError, match=r"^feature 'x1', row 1"):
            inputs.rows(table, PLAN)


@each_case("kind", ["pandas", "polars", "pyarrow"])
def test_an_empty_cell(kind):
    with pytest.raises(ParameterError, match=r"^feature 'x2', row 2: is missing; fill it in"):
        inputs.rows(put(None)[kind], PLAN)


@each_case("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]"])
def test_an_empty_nullable_cell(dtype):
    frame = pandas.DataFrame(COLUMNS)
    frame["x1"] = pandas.array([1, None], dtype)
    with pytest.raises(ParameterError, match=r"^feature 'x1', row 2: is missing"):
        inputs.rows(frame, PLAN)


TEXT = {
    "pandas": pandas.DataFrame(COLUMNS | {"x1": ["Ann", "Bob"]}),
    "pandas objects": pandas.DataFrame(COLUMNS | {"x1": pandas.Series([1, "Bob"], dtype=object)}),
    "pandas dates": pandas.DataFrame(COLUMNS | {"x1": pandas.to_datetime(["2020-01-01"] * 2)}),
    "pandas categories": pandas.DataFrame(COLUMNS | {"x1": pandas.Categorical(["a", "b"])}),
    "polars": polars.DataFrame(COLUMNS | {"x1": ["Ann", "Bob"]}),
    "pyarrow": pyarrow.table(COLUMNS | {"x1": ["Ann", "Bob"]}),
}


@each_case("kind", TEXT)
def test_a_column_of_something_else(kind):
    with pytest.raises(
        ParameterError, match=r"^feature 'x1'(: holds .*not numbers; correct or|, row 2: is n)"
    ):
        inputs.rows(TEXT[kind], PLAN)


@each_case(
    "table",
    [
        [["1", "2", "3"]],
        np.array([["1", "2", "3"]]),
        np.array([[1j, 2, 3]]),
        np.array([["2020-01-01"] * 3], "datetime64[D]"),
        [[1.0, [2], 3.0]],
        [[1.0, {}, 3.0]],
        [[10**400, 0, 0]],
        [[1.0, 2.0, 3.0], [1.0]],
        np.zeros((2, 3), "V8"),
    ],
)
def test_no_numbers(table):
    with pytest.raises(ParameterError, match=r"^the rows"):
        inputs.rows(table, PLAN)


@each_case(
    "table",
    [
        3.0,
        [1.0, 2.0, 3.0],
        np.zeros(3),
        np.zeros((2, 2)),
        np.zeros((2, 4)),
        np.zeros((1, 2, 3)),
        np.zeros((3, 2)),
        np.zeros((2, 0)),
        [],
        [[]],
    ],
)
def test_another_shape(table):
    with pytest.raises(ParameterError, match=r"^the rows have shape .*; expected \(n, 3\)"):
        inputs.rows(table, PLAN)


@each_case(
    "table",
    [np.zeros((0, 3)), pandas.DataFrame(COLUMNS).iloc[:0], polars.DataFrame(COLUMNS).clear()],
)
def test_no_row(table):
    with pytest.raises(ParameterError, match=r"^there is no row to predict"):
        inputs.rows(table, PLAN)


def test_too_many_rows():
    assert len(inputs.rows(np.zeros((MAX_ROWS, 3)), PLAN)) == MAX_ROWS
    with pytest.raises(ParameterError, match="131,073 rows, and a request has 1 to 131,072; split"):
        inputs.rows(np.zeros((MAX_ROWS + 1, 3)), PLAN)


@each_case("frame", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_a_missing_feature(frame):
    with pytest.raises(ParameterError, match=r"^the table has no column 'x1'; it has: x0, other"):
        inputs.rows(frame({"x0": [1.0], "other": [1.0], "x2": [1.0]}), PLAN)


class TestNothingIsConsumed:
    @each_case("table", [[[9.0, 0, 0]], [["a", 0, 0]], [[math.nan, 0, 0]], [], pandas.DataFrame()])
    def test_by_a_refusal(self, table):
        parties, twin = (Parties(linear_model(3, bound=8.0)) for _ in range(2))
        with pytest.raises((ParameterError, RangeError)):
            parties.ann.encrypt(table)
        assert parties.ann._pending == {}
        # no randomness was drawn: what follows is what would have been without it
        assert bytes(parties.ann.encrypt(ROWS)) == bytes(twin.ann.encrypt(ROWS))


class TestFaults:
    @each_case("rows", [np.array([[1.0, "Smith", 2.0]], object)])
    def test_the_value_is_not_shown(self, rows):
        with pytest.raises(ParameterError) as caught:
            inputs.rows(rows, PLAN)
        assert "Smith" not in str(caught.value)

    @each_case("value", ["Smith", None])
    def test_row_and_column_of_an_arrays_text(self, value):
        with pytest.raises(ParameterError, match="row 2") as caught:
            inputs.rows(np.array([[1.0, 2.0, 3.0], [1.0, value, 2.0]], object), PLAN)
        assert "x1" in str(caught.value)

    def test_a_column_twice(self):
        frame = pandas.DataFrame([[1.0, 2, 3, 4]], columns=["x0", "x1", "x2", "x2"])
        with pytest.raises(ParameterError):
            inputs.rows(frame, PLAN)

    def test_a_lazy_table(self):
        with pytest.raises(ParameterError):
            inputs.rows(polars.DataFrame(COLUMNS).lazy(), PLAN)

    def test_a_record_batch(self):
        batch = pyarrow.RecordBatch.from_pydict(COLUMNS)
        try:
            assert inputs.rows(batch, PLAN).tolist() == ROWS
        except ParameterError:
            return
