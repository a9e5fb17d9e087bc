"""Median, quantiles and extremes are numpy's of the pooled rows, and little else is opened."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import each_case, examples, named, some_or_all
from hypothesis import given
from hypothesis import strategies as st
from sites import Spy, frame, study

from securecomp import Column
from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import SharedArray
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.sharing.additive_sum import Sharing

SITES = [
    frame("pandas", x=[5, -3, 8, 8], g=["a", "b", "a", "b"]),
    frame("polars", x=[], g=[]),
    frame("pyarrow", x=[0, 8, 100], g=["a", "a", "a"]),
    frame("polars", x=[-100], g=["b"]),
]
POOLED = np.array([5, -3, 8, 8, 0, 8, 100, -100])
GROUPS = {"a": np.array([5, 8, 0, 8, 100]), "b": np.array([-3, 8, -100])}
WAYS = [("shares", "replicated"), ("shares", "dealer"), ("shares", "mac"), ("counts", "dealer")]
Q = (0, 0.1, 0.25, 0.5, 0.75, 0.999999, 1)


def inverted(values, q):
    return np.quantile(values, q, method="inverted_cdf")


@each_case("method, engine", WAYS)
def test_numpys_values(method, engine):
    how = {"method": method, "engine": engine}
    sites = study(*SITES)
    assert sites.median("x", **how).value == np.median(POOLED)
    found = sites.quantiles("x", Q, **how).values[0]
    assert list(found) == [inverted(POOLED, q) for q in Q]
    assert sites.extremes("x", **how).value == {"minimum": -100, "maximum": 100}
    medians = {g: np.median(v) for g, v in GROUPS.items()}
    assert sites.median("x", by="g", **how).value == medians
    quarters = sites.quantiles("x", [0.25, 0.75], by="g", **how).value
    for group, values in GROUPS.items():
        assert quarters[group] == {
            "0.25": inverted(values, 0.25),
            "0.75": inverted(values, 0.75),
        }


@each_case("protocol", sums.PROTOCOLS)
def test_every_sum_protocol_counts(protocol):
    found = study(*SITES, protocol=protocol).median("x", by="g", method="counts")
    assert found.value == {g: np.median(v) for g, v in GROUPS.items()}
    assert found.run.protocol == protocol


@each_case("protocol, method", [("sharing", "shares"), ("masking", "counts")])
def test_the_default_method(protocol, method):
    assert study(*SITES, protocol=protocol).median("x").method == method


@given(
    rows=st.lists(
        st.lists(st.decimals(-50, 50, places=1).map(float), max_size=6), min_size=2, max_size=5
    ),
    q=st.integers(0, 1000).map(lambda n: n / 1000),
    way=st.sampled_from([WAYS[0], WAYS[1], WAYS[3]]),
)
@examples(40)
def test_any_rows(rows, q, way):
    values = np.array([v for part in rows for v in part])
    sites = study(*[frame("polars", x=part) for part in rows], columns={"x": Column(50, 1)})
    how = dict(zip(("method", "engine"), way, strict=True))
    found = sites.quantiles("x", [q], **how).value
    middle = sites.median("x", **how).value
    if values.size:
        assert found == inverted(values, q)
        assert middle == pytest.approx(np.median(values), rel=1e-15, abs=1e-15)
    else:
        assert found is middle is None


@each_case("method, engine", WAYS)
@each_case("end", [1, -1])
def test_both_ends_of_the_grid(method, engine, end):
    sites = study(
        frame("polars", x=[end * 7] * 3), frame("polars", x=[end * 7]), columns={"x": Column(7)}
    )
    for found in (sites.median("x", method=method, engine=engine).value, end * 7):
        assert found == end * 7
    assert set(sites.extremes("x", method=method, engine=engine).value.values()) == {end * 7}


def test_values_of_any_kind_are_what_they_were():
    floats = [0.1, 2.5e-7, 1 / 3]
    sites = study(frame("polars", x=floats), frame("polars", x=[-1e-3, 0.7]))
    assert sites.median("x").value == pytest.approx(0.1, abs=1e-15)
    wide = study(frame("polars", x=[2**53, 5]), frame("polars", x=[-(2**53)]))
    assert wide.extremes("x").value == {"minimum": -(2**53), "maximum": 2**53}
    zero = study(frame("polars", x=[0, 0]), frame("polars", x=[0]))
    assert zero.median("x").value == 0


def test_missing_rows_are_dropped_if_so_agreed():
    tables = [frame("pandas", x=[1, None, 3]), frame("pandas", x=[None, 9])]
    assert study(*tables, missing="drop").median("x").value == 3
    with pytest.raises(RangeError, match="north: column 'x': 1 empty or NaN cell"):
        study(*tables).median("x")


def test_groups_without_rows_have_no_median():
    sites = study(*SITES, columns={"g": Column(levels=["a", "b", "c"])})
    for method in ("shares", "counts"):
        assert sites.median("x", by="g", method=method).value["c"] is None


def test_shares_open_the_result_only(monkeypatch):
    sums_run = []
    run = Sharing.run
    monkeypatch.setattr(Sharing, "run", lambda *a: sums_run.append(1) or run(*a))
    found = study(*SITES).median("x")
    assert (found.run.opened, found.run.sums, sums_run) == ((), 0, [])
    assert "nothing was opened but these values" in str(found)
    assert "two of the 3 together: every site's" in str(found)
    assert found.run.from_data["most rows of a site"] == "4"


def test_counts_open_what_they_say():
    found = study(*SITES, columns={"x": Column(100)}).median("x", method="counts")
    assert found.run.sums == 1 + 8
    assert found.run.opened[:2] == ("rows with x", "rows with x below 28")
    assert all(name.startswith("rows with x") for name in found.run.opened)
    assert "rows below each candidate are known" in str(found)


@pytest.mark.parametrize("engine", ["replicated", "dealer", "mac"])
def test_no_message_depends_on_how_many_rows_a_site_has(monkeypatch, engine):
    """Routes and lengths of all messages are the same, whichever site has the rows."""

    def routes(*tables):
        seen = []
        send = LocalCarrier.send

        def keep(carrier, sender, recipient, data):
            seen.append((sender, recipient, len(data)))
            return send(carrier, sender, recipient, data)

        with monkeypatch.context() as patch:
            patch.setattr(LocalCarrier, "send", keep)
            columns = {"x": Column(9), "g": Column(levels=["a", "b"])}
            study(*tables, rows=4, columns=columns).median("x", by="g", engine=engine)
        return seen

    many, few = {"x": [1, -9, 9, 5], "g": ["a", "b", "b", "b"]}, {"x": [0], "g": ["a"]}
    one = routes(frame("polars", **many), frame("polars", **few))
    assert one == routes(frame("polars", **few), frame("polars", **many))


def test_more_rows_than_declared_are_refused(monkeypatch):
    spy = Spy(monkeypatch)
    with pytest.raises(RangeError, match="north: more rows than the 3 that were declared"):
        study(*SITES, rows=3).median("x")
    assert not spy.carried
    declared = study(*SITES, rows=10, columns={"x": Column(100, 0)}).median("x")
    assert declared.value == 6.5
    assert not declared.run.from_data


@each_case("rows", [0, -1, True, 1 << 31, 4.0, 4.5, "5"])
def test_numbers_of_rows_that_are_none(rows):
    with pytest.raises(ParameterError, match="rows is a number from 1"):
        study(*SITES, rows=rows)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda s: s.quantiles("x", [1.5]), ParameterError, "from 0 to 1, not 1.5"),
        (lambda s: s.quantiles("x", [-0.1]), ParameterError, "from 0 to 1"),
        (lambda s: s.quantiles("x", [float("nan")]), ParameterError, "from 0 to 1"),
        (lambda s: s.quantiles("x", [True]), ParameterError, "from 0 to 1"),
        (lambda s: s.quantiles("x", ["0.5"]), ParameterError, "from 0 to 1"),
        (lambda s: s.quantiles("x", [1 / 3]), ParameterError, "at most six decimals"),
        (lambda s: s.quantiles("x", []), ParameterError, "at least one quantile"),
        (lambda s: s.quantiles("x", [0.5, 0.1, 0.5]), ParameterError, "each once"),
        (lambda s: s.quantiles("x", "0.5"), ParameterError, "from 0 to 1"),
        (lambda s: s.median("y"), ParameterError, "there is no column 'y'"),
        (lambda s: s.median("g"), ParameterError, "column 'g'"),
        (lambda s: s.median("x", by="y"), ParameterError, "there is no column 'y'"),
        (lambda s: s.median("x", method="guess"), ParameterError, '"shares" or "counts"'),
        (lambda s: s.median("x", engine="spdz"), ParameterError, "replicated, dealer, mac"),
        (lambda s: s.median("x", method="counts", engine="x"), ParameterError, "engine is one"),
        (lambda s: s.median(["x"]), ParameterError, "column is a column's name"),
        (lambda s: s.median("x", by=["g"]), ParameterError, "by is a column's name"),
        (lambda s: s.quantiles("x", [0.0, -0.0]), ParameterError, "each once"),
    ],
)
def test_bad_questions(monkeypatch, ask, error, words):
    spy = Spy(monkeypatch)
    with pytest.raises(error, match=words):
        ask(study(*SITES))
    assert not spy.carried


def wide_columns():
    """Values of more digits than a share, and the column's declaration."""
    draw = np.random.default_rng(58)
    normal = draw.normal(0.009, 0.001, 21)
    sizes = draw.normal(0, 1, 9)
    return {
        "sixteen decimals": ([8.5, 8.25, -3.0, 100.0], Column(100, 16)),
        "one far value": ([*normal, 1e15], None),
        "a fill value": ([*normal, 9.97e36, -9.97e36], None),
        "several sizes": ([*sizes * 10.0 ** np.arange(-16, 17, 4)], None),
        "many sizes": ([*sizes * 10.0 ** np.arange(-40, 41, 10)], None),
        "close together": ([1 + 2.0**-52, 1.0, 1 + 2.0**-51, 2.0**100, 2.0**-60], None),
    }


QUARTILES = (0.25, 0.75)
WIDE = [
    # On shares each bit is a comparison: the short columns are enough.
    *((name, "shares", q) for name in ("sixteen decimals", "close together") for q in QUARTILES),
    *((name, "shares", "median") for name in ("sixteen decimals", "close together")),
    *((name, "counts", q) for name in wide_columns() for q in (*QUARTILES, "median")),
]
SOME_WIDE = [
    ("sixteen decimals", "shares", "median"),
    ("close together", "shares", 0.25),
    ("sixteen decimals", "counts", 0.75),
    ("one far value", "counts", "median"),
    ("one far value", "counts", 0.25),
    ("several sizes", "counts", "median"),
    ("close together", "counts", "median"),
    ("close together", "counts", 0.75),
]


@some_or_all("asked", SOME_WIDE, WIDE)
def test_values_wider_than_a_share_are_found_by_their_digits(asked):
    """Digits of 58 bits: two, three and more of them; ties in the highest one; few rows."""
    columns = wide_columns()
    for name, method, q in asked:
        values, column = columns[name]
        sites = [frame("polars", x=list(map(float, values[i::3]))) for i in range(3)]
        there = study(*sites, **({} if column is None else {"columns": {"x": column}}))
        with named(name, method, q):
            if q == "median":
                ranked = sorted(map(Fraction, values))
                middle = (ranked[(len(values) - 1) // 2] + ranked[len(values) // 2]) / 2
                assert there.median("x", method=method).value == float(middle)
            else:
                assert there.quantiles("x", q, method=method).value == inverted(values, q)


def test_a_wide_median_opens_no_digit_of_the_middle_two(monkeypatch):
    opened = []
    reveal = SharedArray.reveal
    monkeypatch.setattr(
        SharedArray, "reveal", lambda array, to: opened.append(reveal(array, to)) or opened[-1]
    )
    one, two = 2**70 + 2**40 - 1, 2**71 + 2**40 - 3
    sites = [pd.DataFrame({"x": pd.Series([value], dtype=object)}) for value in (one, two)]
    found = study(*sites, columns={"x": Column(bound=2**72, decimals=0)}).median("x")
    assert found.value == (one + two) / 2
    low, high, empty = (array.tolist() for array in opened)
    width = 37  # of 74 bits
    assert empty == [0]
    total = one + two + 2 * 2**72
    assert (low, high) == ([[total % 2**width]], [[total >> width]])


def test_a_site_named_as_a_server():
    sites = {"server 1": SITES[0], "south": SITES[2]}
    from securecomp import Study

    with pytest.raises(ParameterError, match="'server 1', as a computing server is"):
        Study(sites, protocol="masking").median("x", method="shares")


def test_what_a_machine_reads():
    found = study(*SITES).quantiles("x", [0.5], by="g")
    facts = found.to_json()
    assert facts["values"] == [{"group": "a", "0.5": 8}, {"group": "b", "0.5": -3}]
    assert (facts["method"], facts["column"], facts["by"]) == ("shares", "x", "g")


def test_neither_of_the_middle_two_is_opened(monkeypatch):
    opened = []
    reveal = SharedArray.reveal
    monkeypatch.setattr(
        SharedArray, "reveal", lambda array, to: opened.append(reveal(array, to)) or opened[-1]
    )
    assert study(frame("polars", x=[10]), frame("polars", x=[20])).median("x").value == 15
    # Counted from the least value of the grid, -20.
    assert [found.tolist() for found in opened] == [
        [[30 + 2 * 20]],
        [0],
    ]


def test_a_quantile_of_any_type_of_number():
    sites = study(*SITES)
    for q in (0.5, np.float64(0.5), np.array(0.5), [0.5], np.array([0.5])):
        assert sites.quantiles("x", q).value == inverted(POOLED, 0.5)
    assert sites.quantiles("x", np.int64(1)).value == 100
    assert set(sites.quantiles("x", [0.501953, 0.501952]).value) == {"0.501953", "0.501952"}


def test_rows_that_no_message_holds_are_refused(monkeypatch):
    spy = Spy(monkeypatch)
    for ask in (lambda s: s.median("x"), lambda s: s.scores({"x": 1.0})):
        with pytest.raises(RangeError, match="declare fewer rows, or ask by counts"):
            ask(study(*SITES, rows=2**31 - 1))
    assert not spy.carried


def test_where_every_site_computes_no_servers_are_trusted_by_default():
    assert study(*SITES, servers="all").median("x").method == "counts"
