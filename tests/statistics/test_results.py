"""A result: its value, rows, records, frames, JSON, text and HTML, and whether it is equal."""

import dataclasses
import functools
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from sites import NAMES, Spy, frame, variance

from securecomp import Column, Result, Study
from securecomp.errors import BackendUnavailableError
from securecomp.sharing.additive_sum import Sharing
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Skewness, Sum, Variance
from securecomp.statistics.summaries import pool

NORTH = frame("polars", x=[1, -7, 12], y=[0.5, 2.25, 1.0], g=["a", "b", "b"], h=[2, 10, 2])
SOUTH = frame("polars", x=[3], y=[1.0], g=["b"], h=[10])
COLUMNS = {"g": Column(levels=["b", "a", "none"])}
QUESTIONS = {
    "count": Count(),
    "count by": Count(None, "g"),
    "sum": Sum("x"),
    "sum of decimals": Sum("y"),
    "sum by": Sum("x", "g"),
    "mean": Mean("x"),
    "mean by": Mean("x", "g"),
    "variance": Variance("x"),
    "variance by": Variance("x", "g"),
    "skewness": Skewness("x"),
    "skewness by": Skewness("x", "g"),
    "histogram": Histogram("x", None, (-5.0, 0.0, 2.5, 9.0)),
    "histogram by": Histogram("x", "g", (-5.0, 0.0, 9.0)),
    "crosstab": CrossTable(None, None, "g", "h"),
    "crosstab by": CrossTable(None, "h", "g", "h"),
}


def study(*frames, **options):
    return Study(dict(zip(NAMES, frames, strict=False)), **{"minimum_count": 0, **options})


def equal(result, **options):
    """Whether a result is what the pooled rows give."""
    (found,) = study(NORTH, SOUTH, columns=COLUMNS, **options).compare([result])
    return found.equal


@functools.cache
def results():
    """The answer to each question; one secure sum for all."""
    answers = study(NORTH, SOUTH, columns=COLUMNS).run(list(QUESTIONS.values()))
    return dict(zip(QUESTIONS, answers, strict=True))


@pytest.fixture
def result(request):
    return results()[request.param]


every = pytest.mark.parametrize("result", QUESTIONS, indirect=True)


def test_values_and_rows():
    assert results()["count"].value == 4
    assert results()["count by"].value == {"b": 3, "a": 1, "none": 0}
    assert results()["count by"].rows == (
        {"group": "b", "value": 3},
        {"group": "a", "value": 1},
        {"group": "none", "value": 0},
    )
    assert results()["mean"].rows == ({"value": 2.25, "n": 4},)
    assert results()["mean by"].rows[2] == {"group": "none", "value": None, "n": 0}
    assert results()["histogram"].rows == (
        {"value": [0, 1, 1], "edges": [-5, 0, 2.5, 9], "below": 1, "above": 1},
    )
    assert results()["crosstab"].rows == (
        {
            "value": [[1, 2], [1, 0], [0, 0]],
            "row": "g",
            "col": "h",
            "row_levels": ["b", "a", "none"],
            "col_levels": [2, 10],
        },
    )


VARIANCE = variance([1, -7, 12, 3])
RECORDS = {
    "count": [{"value": 4}],
    "count by": [
        {"g": "b", "value": 3},
        {"g": "a", "value": 1},
        {"g": "none", "value": 0},
    ],
    "mean by": [
        {"g": "b", "value": 8 / 3, "n": 3},
        {"g": "a", "value": 1.0, "n": 1},
        {"g": "none", "value": None, "n": 0},
    ],
    "variance": [{"value": VARIANCE, "sd": VARIANCE**0.5, "n": 4}],
    "histogram": [
        {"from": -5.0, "to": 0.0, "count": 0},
        {"from": 0.0, "to": 2.5, "count": 1},
        {"from": 2.5, "to": 9.0, "count": 1},
    ],
    "histogram by": [
        {"g": "b", "from": -5.0, "to": 0.0, "count": 0},
        {"g": "b", "from": 0.0, "to": 9.0, "count": 1},
        {"g": "a", "from": -5.0, "to": 0.0, "count": 0},
        {"g": "a", "from": 0.0, "to": 9.0, "count": 1},
        {"g": "none", "from": -5.0, "to": 0.0, "count": 0},
        {"g": "none", "from": 0.0, "to": 9.0, "count": 0},
    ],
    "crosstab": [
        {"g": "b", "h": 2, "count": 1},
        {"g": "b", "h": 10, "count": 2},
        {"g": "a", "h": 2, "count": 1},
        {"g": "a", "h": 10, "count": 0},
        {"g": "none", "h": 2, "count": 0},
        {"g": "none", "h": 10, "count": 0},
    ],
}


@each_case("name", RECORDS)
def test_records(name):
    """Bins between two edges; for what is below and above, see the next test."""
    records = results()[name].records()
    inside = [r for r in records if None not in (r.get("from", 0), r.get("to", 0))]
    assert inside == RECORDS[name]


def test_records_of_a_histogram_add_up_to_all_rows():
    assert sum(record["count"] for record in results()["histogram"].records()) == 4


@each_case(
    "name, question, columns, groups",
    [
        ("value", Sum("x", "value"), 2, {"a", "b"}),
        ("n", Mean("x", "n"), 3, {"a", "b"}),
        ("sd", Variance("x", "sd"), 4, {"a", "b"}),
        ("from", Histogram("x", "from", (0.0, 9.0)), 4, {"a", "b"}),
        ("count", CrossTable(None, None, "count", "h"), 3, {"a", "b"}),
        ("twin", CrossTable(None, None, "h", "h"), 3, {2, 10}),
        ("twin", CrossTable(None, "h", "g", "h"), 4, {2, 10}),
    ],
)
def test_records_of_a_column_with_a_name_of_ours(name, question, columns, groups):
    """No record loses its group, whatever the columns are called."""
    table = NORTH.with_columns(NORTH["g"].alias(name))
    records = study(table, table).run([question])[0].records()
    assert len({tuple(r.items()) for r in records}) == len(records)
    assert {len(r) for r in records} == {columns}
    assert groups <= {value for r in records for value in r.values()}


def plain(table):
    """A frame of any library as a dict of lists."""
    if isinstance(table, pd.DataFrame):
        return {k: [None if v != v else v for v in table[k]] for k in table}
    return table.to_dict(as_series=False) if hasattr(table, "with_columns") else table.to_pydict()


@pytest.mark.parametrize(
    ("backend", "module"), [("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "pyarrow")]
)
@every
def test_to_frame(result, backend, module):
    table = result.to_frame(backend)
    assert type(table).__module__.split(".")[0] == module
    records = result.records()
    assert plain(table) == {key: [record[key] for record in records] for key in records[0]}


def test_to_frame_gives_arrow_unless_told_otherwise():
    assert type(results()["count"].to_frame()).__module__.startswith("pyarrow")


def test_edges_of_both_kinds_in_a_frame():
    (result,) = study(NORTH, SOUTH).run([Histogram("x", None, (0, 2.5, 9))])
    assert result.to_frame("polars")["from"].to_list()[:2] == [0.0, 2.5]


@each_case("value", [2**63, 2**80, -(2**70)])
def test_a_wide_sum_in_a_frame(value):
    table = frame("polars", x=[2**62])
    result = dataclasses.replace(study(table, table).sum("x"), rows=({"value": value},))
    assert int(result.to_frame("pyarrow")["value"][0].as_py()) == value


def test_a_library_that_is_not_installed(monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError("No module named 'polars'")

    monkeypatch.setattr("narwhals.from_dict", missing)
    with pytest.raises(
        BackendUnavailableError, match=r"^polars is not installed; pip install polars"
    ):
        results()["count"].to_frame("polars")


def test_a_library_that_there_is_not():
    from securecomp.errors import ParameterError

    with pytest.raises(ParameterError, match='"pandas", "polars" or "pyarrow", not \'panda\''):
        results()["count"].to_frame("panda")


@every
def test_to_json(result):
    rows = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert len(rows) == len(result.rows)
    for row, source in zip(rows, result.rows, strict=True):
        assert list(row)[:3] == ["statistic", "column", "by"]
        assert row["statistic"] == result.statistic.name
        assert row["column"] == result.statistic.column
        assert row["by"] == result.statistic.by
        assert {k: v for k, v in row.items() if k not in ("statistic", "column", "by")} == source


def test_to_json_in_full():
    assert results()["mean by"].to_json()[2] == {
        "statistic": "mean",
        "column": "x",
        "by": "g",
        "group": "none",
        "n": 0,
        "value": None,
    }


@each_case("levels", [[2, 10], [True, False]])
def test_levels_stay_what_they_are_in_json(levels):
    table = frame("polars", g=levels)
    rows = json.loads(json.dumps(study(table, table).count(by="g").to_json()))
    assert sorted(row["group"] for row in rows) == sorted(levels)
    assert {type(row["group"]) for row in rows} == {type(levels[0])}


def test_declared_levels_of_numpy_types():
    columns = {"h": Column(levels=np.array([2, 10]))}
    result = study(NORTH, SOUTH, columns=columns).count(by="h")
    assert json.loads(json.dumps(result.to_json()))[0]["group"] == 2


@every
def test_text_opens_with_the_question_and_its_table(result):
    lines = str(result).split("\n")
    header, cells = result.grid()
    assert lines[0] == result.title
    assert lines[1].split() == " ".join(header).split()
    assert [line.split() for line in lines[2 : 2 + len(cells)]] == [
        " ".join(row).split() for row in cells
    ]
    assert lines[2 + len(cells)] == ""
    assert len({len(line) for line in lines[1 : 2 + len(cells)]}) == 1  # columns are aligned
    assert repr(result) == str(result)


TITLES = {
    "count": "count",
    "count by": "count, by g",
    "sum": "sum of x",
    "mean by": "mean of x, by g",
    "variance": "variance of x",
    "histogram by": "histogram of x, by g",
    "crosstab": "crosstab of g by h",
    "crosstab by": "crosstab of g by h, by h",
}


@each_case("name", TITLES)
def test_title(name):
    assert results()[name].title == TITLES[name]


def test_the_table_in_full():
    assert str(results()["histogram by"]).split("\n")[1:6] == [
        "   g        x  rows",
        "   b  [-5, 0)     0",
        "   b   [0, 9]     1",
        "   b    below     1",
        "   b    above     1",
    ]
    assert str(results()["mean by"]).split("\n")[1:5] == [
        "   g     mean  n",
        "   b  2.66667  3",
        "   a        1  1",
        "none        -  0",
    ]
    assert str(results()["crosstab"]).split("\n")[1:5] == [
        "   g  h=2  h=10",
        "   b    1     2",
        "   a    1     0",
        "none    0     0",
    ]


@every
def test_text_says_what_it_took_and_who_learned_what(result):
    lines = str(result).split("\n")
    most = max(result.run.transcript.sent[site] for site in ("north", "south"))
    assert (
        f"sharing, 2 sites, 3 servers: 12 messages, 2 rounds, at most {most:,} bytes sent by a site"
    ) in lines
    assert any(re.fullmatch(r"[0-9.]+ ms", line) for line in lines)
    text = " ".join(lines)
    assert "hospital learned: the result" in text
    assert "any 2 of the 3 servers together: nothing" in text
    assert result.protocol == "sharing"
    assert set(result.learned) == {"hospital", "server"}


def test_text_with_all_sites_as_servers():
    result = study(NORTH, SOUTH, servers="all").count()
    assert "sharing, 2 sites, all sites compute: 4 messages, 2 rounds" in str(result)
    assert set(result.learned) == {"hospital"}


@every
def test_text_fits_100_columns(result):
    assert max(map(len, str(result).split("\n"))) <= 100


@every
def test_the_table_fits_100_columns(result):
    table = str(result).split("\n\n")[0]
    assert max(map(len, table.split("\n"))) <= 100


@every
def test_text_lists_what_was_taken_from_the_data(result):
    assert all(fact in str(result) for fact in ("taken from the data", *result.run.from_data))


@each_case(
    "x, shown",
    [
        ([1000, 1234567], "1,235,567"),
        ([0.5, 1.25], "1.75"),
        ([-1234.5, 0.25], "-1,234.25"),
        ([2**70, 1], f"{2**70 + 1:,}"),
    ],
)
def test_a_sum_as_people_write_it(x, shown):
    result = study(pd.DataFrame({"x": x[:1]}), pd.DataFrame({"x": x[1:]})).sum("x")
    assert result.grid()[1] == [[shown]]


@each_case("x, shown", [([1234567.25, 0.5], "1,234,567.75"), ([100000.01, 0.01], "100,000.02")])
def test_an_exact_sum_of_decimals_is_shown_exactly(x, shown):
    result = study(frame("polars", x=x[:1]), frame("polars", x=x[1:])).sum("x")
    assert result.grid()[1] == [[shown]]


class Shape(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        assert attributes == []
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@every
def test_html_has_the_same_table(result):
    header, cells = result.grid()
    shape = Shape(result._repr_html_())
    assert shape.tags.count("th") == len(header)
    assert shape.tags.count("td") == sum(map(len, cells))
    assert shape.tags.count("tr") == 1 + len(cells)
    flat = [result.title, *header, *(cell for row in cells for cell in row)]
    assert shape.texts[: len(flat)] == flat


HOSTILE = '<script>alert("1")</script>&\''


@each_case(
    "question",
    [
        Count(None, HOSTILE),
        Sum(HOSTILE + "x", HOSTILE),
        Histogram(HOSTILE + "x", HOSTILE, (0, 1)),
        CrossTable(None, HOSTILE, HOSTILE, HOSTILE),
    ],
)
def test_html_escapes_what_the_data_bring(question):
    table = frame("polars", **{HOSTILE: ["<img src=x onerror=alert(1)>"], HOSTILE + "x": [1]})
    (result,) = study(table, table).run([question])
    page = result._repr_html_()
    assert set(Shape(page).tags) <= {
        *("h4", "table", "thead", "tbody", "tr", "th", "td", "p", "small", "br")
    }
    assert html.escape(HOSTILE) in page
    assert html.escape("<img src=x onerror=alert(1)>") in page
    assert "<script" not in page
    assert "<img" not in page


def test_html_escapes_what_a_protocol_brings():
    result = results()["count"]
    run = dataclasses.replace(result.run, protocol="<b>", learned={"<i>": "<u>"})
    page = dataclasses.replace(result, run=run)._repr_html_()
    assert not {"b", "i", "u"} & set(Shape(page).tags)
    assert "&lt;b&gt;" in page
    assert "&lt;i&gt; learned: &lt;u&gt;" in page


class TestEqual:
    @every
    def test_it_is(self, result):
        assert equal(result)

    @every
    def test_a_changed_result_is_not(self, result):
        for index, row in enumerate(result.rows):
            for change in changes(row["value"]):
                rows = list(result.rows)
                rows[index] = row | {"value": change}
                assert not equal(dataclasses.replace(result, rows=tuple(rows))), change

    def test_the_last_bit_counts(self):
        result = results()["mean by"]
        rows = [dict(row) for row in result.rows]
        rows[0]["value"] = np.nextafter(rows[0]["value"], 9).item()
        (found,) = study(NORTH, SOUTH, columns=COLUMNS).compare(
            [dataclasses.replace(result, rows=tuple(rows))]
        )
        assert found.wrong == ("row 1: value",)

    def test_what_is_beside_the_value_counts(self):
        for name, key in (("mean", "n"), ("variance", "sd"), ("histogram", "below")):
            result = results()[name]
            rows = ({**result.rows[0], key: result.rows[0][key] + 1},)
            assert not equal(dataclasses.replace(result, rows=rows)), name

    def test_another_number_of_rows_is_refused(self):
        result = results()["count by"]
        with pytest.raises(ValueError, match="zip"):
            equal(dataclasses.replace(result, rows=result.rows[:2]))

    def test_a_wrong_protocol_is_found_out(self):
        """A protocol that adds one somewhere: what it is compared with is not its own."""

        class Wrong(Sharing):
            def run(self, carrier, layout, contributors, receivers=None):
                total = super().run(carrier, layout, contributors, receivers)
                total[-1] += 1
                return total

        for name, question in QUESTIONS.items():
            if name in (
                "mean",
                "mean by",
                "variance by",
                "skewness by",
                "histogram",
                "histogram by",
            ):
                continue  # the last element is "above", or a group without rows
            (found,) = study(NORTH, SOUTH, columns=COLUMNS, protocol=Wrong()).compare([question])
            assert not found.equal, name

    def test_a_production_run_pools_nothing(self, monkeypatch):
        monkeypatch.setattr(pool.Pool, "__init__", lambda *_: pytest.fail("rows were pooled"))
        study(NORTH, SOUTH, columns=COLUMNS).run(list(QUESTIONS.values()))

    def test_what_is_above_is_compared_too(self):
        class Wrong(Sharing):
            def run(self, *args):
                total = super().run(*args)
                total[-1] += 1
                return total

        asked = study(NORTH, SOUTH, protocol=Wrong())
        assert not asked.compare([Histogram("x", None, (0, 2))])[0].equal


def changes(value):
    """Values that are nearly this one and wrong."""
    if isinstance(value, list):
        for i, cell in enumerate(value):
            for change in changes(cell):
                yield [*value[:i], change, *value[i + 1 :]]
    elif value is None:
        yield from (0, 0.0, 1)
    else:
        yield from (value + 1, value - 1, None)
        if isinstance(value, float):
            yield from (value * (1 + 1e-6), value + 1e-6)


def test_a_result_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        results()["count"].rows = ()
    assert isinstance(results()["count"], Result)


def test_looking_at_a_result_computes_nothing(monkeypatch):
    spy = Spy(monkeypatch)
    for result in results().values():
        str(result), result.to_json(), result.to_frame(), result._repr_html_()
    assert (spy.made, spy.carried) == ([], [])
