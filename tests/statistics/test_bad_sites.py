"""Whatever is wrong at any site: one error that names the place, no value, and nothing is sent."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import each_case
from sites import Spy, frame, study

from securecomp import Column, Study
from securecomp.errors import ParameterError, RangeError, SecureCompError, ThresholdError
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance, measures

GOOD = frame("polars", x=[1, 2], g=["a", "b"], h=["u", "v"])


def bad(**columns):
    return pl.DataFrame({"x": [1, 2], "g": ["a", "b"], "h": ["u", "v"], **columns}, strict=False)


@pytest.fixture
def spy(monkeypatch):
    return Spy(monkeypatch)


def test_the_spy_sees_messages(spy):
    study(GOOD, GOOD).sum("x")
    assert spy.made == ["north", "south", "server 1", "server 2", "server 3"]
    assert len(spy.carried) == 12


DIGITS = "987654"
NUMERIC = [Sum("x"), Mean("x"), Variance("x"), Histogram("x", None, (0, 1)), Sum("x", "g")]
GROUPED = [
    Count(None, "g"),
    Sum("x", "g"),
    Mean("x", "g"),
    Variance("x", "g"),
    Histogram("x", "g", (0, 1)),
    CrossTable(None, None, "g", "h"),
    CrossTable(None, None, "h", "g"),
    CrossTable(None, "g", "h", "h"),
]

# name: frame, questions, columns, error, its text after "south: "
CASES = {
    "no such column": (
        GOOD.drop("x"),
        NUMERIC,
        {},
        ParameterError,
        "there is no column 'x'; it has: g, h",
    ),
    "no such group": (
        GOOD.drop("g"),
        GROUPED,
        {"g": Column(levels=["a", "b"])},
        ParameterError,
        "there is no column 'g'; it has: x, h",
    ),
    "text among numbers": (
        pd.DataFrame({"x": pd.Series([1, "patient " + DIGITS], dtype=object), "g": ["a", "b"]}),
        NUMERIC,
        {},
        ParameterError,
        "column 'x': row 2 is text and not a number; correct it, or leave the cell empty and "
        "choose to drop missing values",
    ),
    "empty number": (
        bad(x=[int(DIGITS), None]),
        NUMERIC,
        {},
        RangeError,
        "column 'x': 1 empty or NaN cell, the first in row 2; fill them in, or drop such rows "
        'with missing="drop" (--missing drop)',
    ),
    "NaN": (
        bad(x=[float("nan"), float("nan")]),
        NUMERIC,
        {},
        RangeError,
        "column 'x': 2 empty or NaN cells, the first in row 1; fill them in, or drop such rows "
        'with missing="drop" (--missing drop)',
    ),
    "empty group": (
        bad(g=["a", None]),
        GROUPED,
        {},
        RangeError,
        "column 'g': 1 empty or NaN cell, the first in row 2; fill them in, or drop such rows "
        'with missing="drop" (--missing drop)',
    ),
    "infinite": (
        bad(x=[1.0, float("inf")]),
        NUMERIC,
        {},
        RangeError,
        "column 'x': row 2 is NaN or infinite; correct it",
    ),
    "minus infinite, declared": (
        bad(x=[float("-inf"), 1.0]),
        NUMERIC,
        {"x": Column(bound=10, decimals=0)},
        RangeError,
        "column 'x': row 1 is NaN or infinite; correct it",
    ),
    "beyond the bound": (
        bad(x=[1, int(DIGITS)]),
        NUMERIC,
        {"x": Column(bound=365)},
        RangeError,
        "column 'x': row 2 is beyond the agreed bound 365; correct it, or agree on a larger bound",
    ),
    "below the bound": (
        bad(x=[-int(DIGITS), -int(DIGITS)]),
        NUMERIC,
        {"x": Column(bound=2.5)},
        RangeError,
        "column 'x': row 1 (and 1 more) is beyond the agreed bound 2.5; correct it, or agree on "
        "a larger bound",
    ),
    "a float beyond the bound": (
        bad(x=[1.0, float(DIGITS) + 0.5]),
        NUMERIC,
        {"x": Column(bound=365)},
        RangeError,
        "column 'x': row 2 is beyond the agreed bound 365; correct it, or agree on a larger bound",
    ),
    "not an integer": (
        bad(x=[1.0, float(DIGITS) + 0.5]),
        NUMERIC,
        {"x": Column(decimals=0)},
        RangeError,
        "column 'x': row 2 is not an integer; declare more decimals, or a binary grid to round",
    ),
    "too many decimals": (
        bad(x=[0.987654, 1.0]),
        NUMERIC,
        {"x": Column(decimals=2)},
        RangeError,
        "column 'x': row 1 is not a number with 2 decimals; declare more decimals, or a binary "
        "grid to round",
    ),
    "not one of the levels": (
        bad(g=["a", "ward " + DIGITS]),
        GROUPED,
        {"g": Column(levels=["a", "b"])},
        RangeError,
        "column 'g': row 2 has a value that is not one of the agreed levels; correct it, or "
        "agree on one more level",
    ),
    "an integer that is not one of the levels": (
        bad(g=[int(DIGITS), int(DIGITS)]),
        GROUPED,
        {"g": Column(levels=["a", "b"])},
        RangeError,
        "column 'g': row 1 has a value that is not one of the agreed levels; correct it, or "
        "agree on one more level",
    ),
    "a group of fractions": (
        bad(g=[1.0, float(DIGITS) + 0.5]),
        GROUPED,
        {"g": Column(levels=["a", "b"])},
        ParameterError,
        "column 'g': row 2 cannot be a category; group by text or integers, or use a histogram",
    ),
}


def refused(case, question, good_site_first=True):
    table, _, columns, error, _ = CASES[case]
    sites = {"north": GOOD, "south": table} if good_site_first else {"south": table, "north": GOOD}
    with pytest.raises(SecureCompError) as caught:
        Study(sites, columns=columns).run([Count(), question])
    assert type(caught.value) is error
    return str(caught.value)


@pytest.mark.parametrize(
    ("case", "question"),
    [
        pytest.param(case, question, id=f"{case}, {question.name} {i}")
        for case, (_, questions, *_) in CASES.items()
        for i, question in enumerate(questions)
    ],
)
def test_one_error_and_nothing_is_sent(case, question, spy):
    for first in (True, False):
        text = refused(case, question, first)
        assert text == "south: " + CASES[case][4]
        assert DIGITS not in text.replace("_", "").replace(",", "")
    assert (spy.made, spy.carried) == ([], [])


@each_case("case", CASES)
def test_the_source_is_named_where_one_is_given(case):
    table, questions, columns, error, text = CASES[case]
    with pytest.raises(error) as caught:
        Study(
            {"north": GOOD, "south": table},
            columns=columns,
            sources={"south": "data/south.csv"},
        ).run([questions[0]])
    assert str(caught.value) == "data/south.csv: " + text


def test_each_row_number_is_the_first_that_is_wrong(spy):
    cells = list(range(500))
    cells[321] = 9876543210
    with pytest.raises(RangeError, match="row 322 is beyond the agreed bound 1000;"):
        study(pl.DataFrame({"x": cells}), GOOD, columns={"x": Column(bound=1000)}).mean("x")
    assert spy.made == []


def test_the_bound_itself_is_allowed():
    columns = {"x": Column(bound=365)}
    assert study(bad(x=[365, -365]), GOOD, columns=columns).sum("x").value == 3


def test_more_rows_than_can_be_counted(spy, monkeypatch):
    monkeypatch.setattr(measures, "MAX_ROWS", 3)
    long = pl.DataFrame({"x": [1, 2, 3, 4]})
    assert study(long[:3], GOOD).sum("x").value == 9
    spy.made.clear()
    for question in (Count(), Sum("x"), Histogram("x", None, (0, 1))):
        with pytest.raises(RangeError, match=r"^south: more than 3 rows"):
            study(GOOD, long).run([question])
    assert spy.made == []


def test_a_bad_site_is_found_although_others_were_declared_away(spy):
    """The last of many sites is bad; the others' parts are ready and stay where they are."""
    sites = {f"site {i}": GOOD for i in range(20)} | {"last": bad(x=[None, 1])}
    with pytest.raises(RangeError, match=r"^last: column 'x': 1 empty"):
        Study(sites, servers="all").mean("x")
    assert (spy.made, spy.carried) == ([], [])


class TestSites:
    @pytest.mark.parametrize("sites", [{}, {"north": GOOD}])
    def test_fewer_than_two(self, sites, spy):
        with pytest.raises(ThresholdError) as caught:
            Study(sites)
        assert (caught.value.needed, caught.value.got) == (2, len(sites))
        assert "other sites to hide among" in str(caught.value)
        assert str(caught.value).endswith(f"({len(sites)} of at least 2)")

    @each_case(
        "name, text",
        [
            ("", "a party's name is empty"),
            ("n" * 101, "must have 1 to 100 bytes"),
            ("ü" * 51, "must have 1 to 100 bytes"),
            ("two\nlines", "must be printable, without spaces around it"),
            (" south", "must be printable, without spaces around it"),
            ("south ", "must be printable, without spaces around it"),
            ("\x1b[31m", "must be printable, without spaces around it"),
            ("Zu\u0308rich", "is not in Unicode's composed form"),
        ],
    )
    def test_a_name_that_cannot_stand_in_a_message(self, name, text):
        with pytest.raises(ParameterError, match=text):
            Study({"north": GOOD, name: GOOD})

    def test_a_name_that_is_no_text(self):
        # As a file name that is not UTF-8 reaches Python.
        with pytest.raises(ParameterError, match="is not UTF-8; rename it"):
            Study({"north": GOOD, "s\udcfcd": GOOD})

    @each_case("name", ["St. Mary's", "Zürich", "北京", "a/b", "n" * 100, "<b>&"])
    def test_a_name_that_can(self, name):
        result = Study({"north": GOOD, name: GOOD}, minimum_count=0).count()
        assert result.value == 4
        assert result.run.parties == ("north", name)

    def test_numbers_are_names(self):
        assert Study({1: GOOD, 2: GOOD}).count().run.parties == ("1", "2")

    def test_two_keys_that_give_one_name(self):
        with pytest.raises(ParameterError, match="two sites are named '1'; names are unique"):
            Study({1: GOOD, "1": GOOD})

    def test_a_site_that_is_named_as_a_server_is(self, spy):
        """It must not become that server unseen; where there is no such server, it is a name."""
        with pytest.raises(
            ParameterError, match="a site is named 'server 1', as a computing server is; rename"
        ):
            Study({"server 1": GOOD, "server 9": GOOD}).count()
        assert spy.made == []
        assert (
            Study({"server 1": GOOD, "server 9": GOOD}, servers="all", minimum_count=0)
            .count()
            .value
            == 4
        )

    @each_case(
        "thing, kind",
        [
            ({"x": [1]}, "dict"),
            ([[1, 2]], "list"),
            (None, "NoneType"),
            (pd.Series([1], name="x"), "Series"),
            (pl.Series("x", [1]), "Series"),
            (pa.array([1]), "Int64Array"),
            ("north.csv", "str"),
            (pd.DataFrame({"x": [1]}).to_numpy(), "ndarray"),
            (pd.DataFrame({"x": [1], "g": [1]}).groupby("g"), "DataFrameGroupBy"),
        ],
    )
    def test_what_is_no_frame(self, thing, kind):
        with pytest.raises(ParameterError) as caught:
            Study({"north": GOOD, "south": thing})
        assert str(caught.value) == (
            f"south: expected a pandas, polars or pyarrow data frame, got {kind}"
        )

    def test_a_lazy_frame(self):
        with pytest.raises(ParameterError, match=r"^south: expected a .* frame, got LazyFrame"):
            Study({"north": GOOD, "south": GOOD.lazy()})

    @each_case(
        "table",
        [
            pd.DataFrame([[1, 2, 3, 4, 5]], columns=["x", "g", "x", "h", "g"]),
            pa.table([[1], [2], [3], [4], [5]], names=["x", "g", "x", "h", "g"]),
        ],
    )
    def test_two_columns_of_one_name(self, table):
        with pytest.raises(ParameterError, match=r"^south: two columns are named g, x; rename"):
            Study({"north": GOOD, "south": table})

    @each_case("sites", [[GOOD, GOOD], (GOOD, GOOD), GOOD, None])
    def test_what_is_no_mapping(self, sites):
        with pytest.raises(ParameterError, match="sites is a mapping from site name to data frame"):
            Study(sites)


class TestChoices:
    @each_case("missing", ["ignore", "", None, True, "Drop"])
    def test_missing(self, missing):
        with pytest.raises(ParameterError, match='missing is "error" or "drop", not '):
            study(GOOD, GOOD, missing=missing)

    @each_case("servers", [0, 1, -3, 1001])
    def test_a_number_of_servers_that_cannot_hide(self, servers):
        with pytest.raises(ParameterError, match=f"servers must be from 2 to 1000, not {servers}"):
            study(GOOD, GOOD, servers=servers)

    @each_case("servers", ["3", "ALL", 2.0, True])
    def test_what_is_no_number_of_servers(self, servers):
        with pytest.raises(ParameterError, match='servers is a number of at least 2 or "all"'):
            study(GOOD, GOOD, servers=servers)

    def test_a_protocol_that_there_is_not(self):
        with pytest.raises(ParameterError, match="no protocol 'ckks'; choose from: sharing"):
            study(GOOD, GOOD, protocol="ckks")

    def test_no_question(self):
        with pytest.raises(ParameterError, match="ask for at least one statistic"):
            study(GOOD, GOOD).run([])

    @each_case("question", [Sum(), Mean(), Variance(), Histogram(edges=(0, 1))])
    def test_a_question_without_its_column(self, question):
        with pytest.raises(ParameterError, match=f"{question.name}: name a column"):
            study(GOOD, GOOD).run([question])

    @pytest.mark.parametrize("edges", [[], [1], [1, 1], [3, 1], [0, 2, 1], [0, float("nan")]])
    def test_edges_that_do_not_increase(self, edges, spy):
        with pytest.raises(
            ParameterError, match="histogram of 'x': give at least two edges that increase"
        ):
            study(GOOD, GOOD).histogram("x", edges)
        assert spy.made == []

    @each_case("edges", [[0, float("inf")], [float("-inf"), 0]])
    def test_edges_that_are_not_finite(self, edges):
        with pytest.raises(
            ParameterError, match="histogram of 'x': edges are finite; what is outside is counted"
        ):
            study(GOOD, GOOD).histogram("x", edges)


def ours(text, build):
    """What is wrong with an argument is said by this package, and names the argument."""
    with pytest.raises(SecureCompError, match=text):
        build()


RAW = {
    "edges: a number of bins": ("edges", lambda s: s.histogram("x", 10)),
    "edges: text": ("edges", lambda s: s.histogram("x", "0,1,2")),
    "by: a list": ("by", lambda s: s.count(by=["g", "h"])),
    "column: a list": ("column", lambda s: s.sum(["x"])),
    "run: not a list": ("statistic", lambda s: s.run(Count())),
    "run: text": ("statistic", lambda s: s.run(["count"])),
    "columns: not a Column": ("Column", lambda s: study(GOOD, GOOD, columns={"x": 3}).sum("x")),
    "protocol: None": ("protocol", lambda s: study(GOOD, GOOD, protocol=None).count()),
    "levels: of lists": (
        "levels",
        lambda s: study(GOOD, GOOD, columns={"g": Column(levels=[[1]])}).count(by="g"),
    ),
    "levels: one text": (
        "levels",
        lambda s: study(GOOD, GOOD, columns={"g": Column(levels="ab")}).count(by="g"),
    ),
    "levels: None among them": (
        "levels",
        lambda s: study(GOOD, GOOD, columns={"g": Column(levels=["a", "b", None])}).count(by="g"),
    ),
    "columns: of no site": (
        "'los'",
        lambda s: study(GOOD, GOOD, columns={"los": Column(bound=3)}).sum("x"),
    ),
}


@each_case("name", RAW)
def test_an_argument_of_a_wrong_kind(name):
    text, ask = RAW[name]
    ours(text, lambda: ask(study(GOOD, GOOD)))


@each_case("fact", ["decimals", "bits"])
def test_a_grid_that_is_no_integer(fact):
    ours(fact, lambda: Column(**{fact: 1.5}))


def test_a_bound_beyond_float64():
    columns = {"x": Column(bound=10**400)}
    assert study(bad(x=[0.5, 1.0]), GOOD, columns=columns).sum("x").value == 4.5


class TestDeclarations:
    def test_decimals_and_bits(self):
        with pytest.raises(ParameterError, match="declare decimals or bits, not both"):
            Column(decimals=1, bits=2)

    @pytest.mark.parametrize("bound", [-1, float("nan"), float("inf"), "10"])
    def test_a_bound_that_is_none(self, bound, spy):
        with pytest.raises(ParameterError, match="a bound must be a finite number of at least 0"):
            study(GOOD, GOOD, columns={"x": Column(bound=bound)}).sum("x")
        assert spy.made == []

    @each_case("fact, most", [("decimals", 22), ("bits", 1000)])
    def test_a_grid_that_is_none(self, fact, most):
        for number in (-1, most + 1):
            with pytest.raises(ParameterError, match=f"{fact} must be from 0 to {most}, not"):
                study(GOOD, GOOD, columns={"x": Column(**{fact: number})}).sum("x")

    @each_case("levels", [[], ["a", "b", "a"], [1, 1]])
    def test_levels_that_are_no_set(self, levels):
        with pytest.raises(ParameterError, match="column 'g': the declared levels must be"):
            study(GOOD, GOOD, columns={"g": Column(levels=levels)}).count(by="g")

    def test_too_many_levels_in_the_data(self, spy):
        many = pl.DataFrame({"g": range(1001)})
        assert len(study(many[:1000], many[:1]).count(by="g").value) == 1000
        spy.made.clear()
        with pytest.raises(
            ParameterError, match="column 'g' has 1001 different values, which is no grouping"
        ):
            study(many, many).count(by="g")
        assert spy.made == []

    def test_no_value_at_any_site(self):
        empty = bad(g=[None, None])
        with pytest.raises(
            ParameterError, match="column 'g' has no values at any site; declare its levels"
        ):
            study(empty, empty, missing="drop").count(by="g")
