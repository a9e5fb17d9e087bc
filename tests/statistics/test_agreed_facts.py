"""What is declared is kept; what is not is taken from the data, and listed."""

from decimal import Decimal

import polars as pl
import pytest
from cases import each_case
from sites import frame, study

from securecomp import Column, Study
from securecomp.errors import ParameterError, RangeError
from securecomp.protocol.sum_protocols import SumProtocol
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance
from securecomp.statistics.schema import MAX_ROWS

NORTH = frame("polars", x=[1, -7], y=[0.5, 2.25], g=["a", "b"], h=[2, 10])
SOUTH = frame("pyarrow", x=[3], y=[1.0], g=["b"], h=[9])


def facts(questions, **columns):
    return dict(study(NORTH, SOUTH, columns=columns).run(questions)[0].run.from_data)


def test_what_was_not_declared_is_listed_and_nothing_else():
    assert facts([Count()]) == {}
    assert facts([Sum("x")]) == {"bound of x": "7", "grid of x": "integers"}
    assert facts([Mean("y")]) == {"bound of y": "2.25", "grid of y": "2 decimals"}
    assert facts([Count(None, "g")]) == {"levels of g": "a, b"}
    assert facts([CrossTable(None, "g", "h", "g")]) == {
        "levels of g": "a, b",
        "levels of h": "2, 9, 10",
    }
    assert facts([Variance("x", "h"), Sum("y")]) == {
        "bound of x": "7",
        "grid of x": "integers",
        "levels of h": "2, 9, 10",
        "bound of y": "2.25",
        "grid of y": "2 decimals",
    }


@each_case(
    "column, left",
    [
        (Column(bound=8), {"grid of x": "integers"}),
        (Column(decimals=2), {"bound of x": "7"}),
        (Column(bits=3), {"bound of x": "7"}),
        (Column(bound=8, decimals=0), {}),
        (Column(bound=8, bits=3), {}),
        (Column(levels=[1]), {"bound of x": "7", "grid of x": "integers"}),
    ],
)
def test_a_declared_part_is_not_listed(column, left):
    assert facts([Variance("x")], x=column) == left


def test_everything_declared():
    columns = {"x": Column(bound=10, decimals=0), "g": Column(levels=["a", "b", "c"])}
    assert facts([Sum("x", "g"), Histogram("x", "g", (0, 1))], **columns) == {}


def test_a_second_question_lists_its_own_facts_only():
    sites = study(NORTH, SOUTH)
    assert set(sites.sum("x").run.from_data) == {"bound of x", "grid of x"}
    assert set(sites.count(by="g").run.from_data) == {"levels of g"}


def test_declared_levels_come_in_their_order_and_may_not_occur():
    columns = {"g": Column(levels=("c", "b", "a")), "h": Column(levels=[10, 2, 9, 8])}
    counted, table = study(NORTH, SOUTH, columns=columns).run(
        [Count(None, "g"), CrossTable(None, None, "g", "h")]
    )
    assert list(counted.value.items()) == [("c", 0), ("b", 2), ("a", 1)]
    assert table.value == [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]]
    assert counted.equal
    assert table.equal


ALIKE = [("a", "a "), ("a", "\ta"), ("a", "a\u00a0"), ("é", "e\u0301"), ("", " ")]


@each_case("one, other", ALIKE)
@each_case("question", [Count(None, "g"), CrossTable(None, None, "h", "g")])
def test_levels_that_look_alike_are_not_two_groups(one, other, question):
    sites = {
        "north": frame("polars", h=[1, 2], g=["b", one]),
        "south": frame("polars", h=[1, 2], g=[other, "b"]),
    }
    with pytest.raises(ParameterError) as caught:
        Study(sites, sources={"north": "north.csv"}).run([question])
    places = {one: "north.csv", other: "south"}
    first, second = (f"{level!r} ({places[level]})" for level in sorted(places))
    assert str(caught.value) == (
        f"column 'g': {first} and {second} differ only in white space or in how Unicode writes an "
        "accent; agree on one of them"
    )


def test_levels_that_look_alike_at_one_site():
    table = frame("polars", g=["a", "a "])
    with pytest.raises(ParameterError, match=r"'a' \(north\) and 'a ' \(north\) differ only"):
        study(table, frame("polars", g=["b"])).count(by="g")


def test_declared_levels_that_look_alike():
    columns = {"g": Column(levels=["a", "b", "c", "c "])}
    reason = r"'c' \(declared\) and 'c ' \(declared\) differ only in white space"
    with pytest.raises(ParameterError, match=reason):
        study(NORTH, SOUTH, columns=columns).count(by="g")


def test_spaces_within_and_capitals_make_another_level():
    table = frame("polars", g=["a b", "ab", "AB", " ab2 "])
    assert study(table, table).count(by="g").value == {" ab2 ": 2, "AB": 2, "a b": 2, "ab": 2}


def test_levels_of_the_data_are_sorted_as_their_kind_is():
    assert list(study(NORTH, SOUTH).count(by="h").value) == [2, 9, 10]


def test_declared_decimals_make_the_sum_a_float():
    result = study(NORTH, SOUTH, columns={"x": Column(decimals=1)}).sum("x")
    assert (result.value, type(result.value)) == (-3.0, float)


@each_case("bound", [7, 7.0, Decimal(7), Decimal("7.00"), 10**30])
def test_a_bound_of_any_type(bound):
    assert study(NORTH, SOUTH, columns={"x": Column(bound=bound)}).variance("x").equal


@each_case("bound", [0, Decimal(0)])
def test_a_bound_of_zero(bound):
    zeros = frame("polars", x=[0, 0])
    assert study(zeros, zeros, columns={"x": Column(bound=bound)}).variance("x").value == 0
    with pytest.raises(RangeError, match=r"row 1 \(and 1 more\) is beyond the agreed bound 0;"):
        study(NORTH, zeros, columns={"x": Column(bound=bound)}).sum("x")


class Seen(SumProtocol):
    """A sum protocol that adds in the open and keeps what it was asked."""

    name = "in the open"
    limit = 2**60

    def __init__(self, limit=2**60):
        self.limit = limit
        self.layouts = []
        self.vectors = []

    def run(self, carrier, layout, contributors, receivers=None):
        self.layouts.append(layout)
        vectors = {name: read() for name, read in contributors.items()}
        self.vectors.append(vectors)
        assert all(abs(int(cell)) <= layout.bound for v in vectors.values() for cell in v)
        return sum(vectors.values())

    def learned(self):
        return {"everybody": "everything"}


def test_what_is_agreed_does_not_depend_on_data_when_all_is_declared():
    """The layout, which everybody sees, is the same for other data."""
    columns = {"x": Column(bound=100, decimals=1), "g": Column(levels=["a", "b", "c"])}
    layouts = []
    for x, g in (([1, 100], ["a", "b"]), ([0], ["c"])):
        seen = Seen()
        table = frame("polars", x=x, g=g)
        study(table, table, columns=columns, protocol=seen).run(
            [Mean("x", "g"), Variance("x"), Histogram("x", "g", (0, 50))]
        )
        layouts += seen.layouts
    assert layouts[0] == layouts[1]


def test_each_element_is_labelled():
    seen = Seen(2**62)
    study(NORTH, SOUTH, protocol=seen).run(
        [
            Count(),
            Mean("x", "g"),
            Variance("x"),
            Histogram("x", None, (0, 2, 5)),
            CrossTable(None, None, "g", "h"),
        ]
    )
    (layout,) = seen.layouts
    assert layout.labels == (
        "rows",
        "rows with x g=a",
        "rows with x g=b",
        "sum of x g=a",
        "sum of x g=b",
        "rows with x",
        "sum of x",
        "sum of x squared",
        "rows with x [0, 2)",
        "rows with x [2, 5]",
        "rows with x below",
        "rows with x above",
        "rows g=a h=2",
        "rows g=a h=9",
        "rows g=a h=10",
        "rows g=b h=2",
        "rows g=b h=9",
        "rows g=b h=10",
    )
    assert layout.length == len(layout.labels)
    # A site's size is not in the bound: it is what 2^31 - 1 rows of the largest square make.
    assert layout.bound == MAX_ROWS * 49
    (vectors,) = seen.vectors
    assert vectors["north"].tolist()[:8] == [2, 1, 1, 1, -7, 2, -6, 50]
    assert vectors["south"].tolist()[8:] == [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]


@each_case("edges", [(1000000, 1000001, 1000002), (0.1234567, 0.12345678, 0.5)])
def test_other_edges_are_other_labels(edges):
    """The labels are what binds the edges into the agreement."""
    seen = Seen()
    result = study(NORTH, SOUTH, protocol=seen).histogram("x", edges)
    labels = seen.layouts[0].labels
    assert len(set(labels)) == len(labels)
    assert all(str(edge) in str(result) for edge in edges)


def test_a_measure_that_two_statistics_use_is_summed_once():
    seen = Seen()
    study(NORTH, SOUTH, protocol=seen).run([Sum("x"), Mean("x"), Sum("x"), Count(), Count()])
    assert seen.layouts[0].labels == ("sum of x", "rows with x", "rows")


@each_case("limit", [2**62, 2**60, 2**50])
@each_case("bound", [1, 10**6, 10**15])
def test_on_a_protocol_of_any_width(limit, bound):
    """Limbs come and go with the protocol's limit; the answers do not change."""
    seen = Seen(limit)
    columns = {"x": Column(bound=max(7, bound), decimals=0)}
    results = study(NORTH, SOUTH, protocol=seen, columns=columns).run(
        [Sum("x"), Variance("x", "g"), Count(None, "h")]
    )
    assert results[0].value == -3
    assert results[1].value == {"a": None, "b": 50.0}
    assert results[2].value == {2: 1, 9: 1, 10: 1}
    assert 2 * seen.layouts[0].bound <= limit
    assert (seen.layouts[0].length == 1 + 2 * 3 + 3) == (MAX_ROWS * max(7, bound) ** 2 * 2 <= limit)


def test_a_protocol_too_narrow_for_any_limb():
    with pytest.raises(RangeError, match="2 parties with values up to"):
        study(NORTH, SOUTH, protocol=Seen(2**30)).sum("x")


def test_a_result_says_which_protocol_computed_it():
    result = study(NORTH, SOUTH, protocol=Seen()).sum("x")
    assert result.protocol == "in the open"
    assert result.learned == {"everybody": "everything"}
    assert "everybody learned: everything" in str(result)


def test_a_declared_column_that_no_site_has():
    with pytest.raises(Exception, match="'X'"):
        study(NORTH, SOUTH, columns={"X": Column(bound=10)}).sum("x")


def test_a_declared_column_that_is_not_asked_for():
    columns = {"y": Column(bound=0, decimals=0), "g": Column(levels=["z"])}
    assert study(NORTH, SOUTH, columns=columns).sum("x").value == -3


@each_case("order", [1, -1])
def test_booleans_at_one_site_and_integers_at_another(order):
    tables = [pl.DataFrame({"g": [True, False]}), pl.DataFrame({"g": [1, 0]})][::order]
    with pytest.raises(Exception, match="'g' is coded as bool and int at different sites"):
        study(*tables).count(by="g")
