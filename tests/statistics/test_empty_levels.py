"""Levels that no row has: left out of an analysis, and said; and which level is the reference."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.formula.api as smf
from cases import each_case
from sites import study
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.stats.oneway import anova_oneway

from securecomp import Column
from securecomp.errors import ParameterError, RangeError, ThresholdError

LEVELS = {"g": Column(levels=["a", "b", "c", "d"]), "h": Column(levels=["x", "y"])}


def rows(levels="abc"):
    n = np.arange(120)
    return pd.DataFrame(
        {
            "y": (n * 7 % 11 + n % 3).astype(float),
            "died": (n * 5 % 7 < 3).astype(int),
            "x": n % 13,
            "g": np.array(list(levels))[n % len(levels)],
            "h": np.where(n // 4 % 2, "x", "y"),
        }
    )


def fit(data, formula, family="linear"):
    return study(data.iloc[::2], data.iloc[1::2], columns=LEVELS).glm(formula, family)


def truth(data, formula):
    return smf.ols(formula, data).fit()


def test_a_level_without_rows_is_left_out_as_statsmodels_does():
    data = rows()
    found, wanted = fit(data, "y ~ x + C(g)"), truth(data, "y ~ x + C(g)")
    assert set(found.names) == set(wanted.params.index)
    assert found.params == pytest.approx(wanted.params[list(found.names)].to_numpy())
    assert found.bse == pytest.approx(wanted.bse[list(found.names)].to_numpy())
    assert "left out, because no row has them: C(g)[T.d]" in found.remarks()
    assert found.predict(data.head()) == pytest.approx(wanted.predict(data.head()).to_numpy())
    with pytest.raises(RangeError, match="row 2 has a level that no row of the fit had"):
        found.predict(data.head().assign(g=["a", "d", "a", "b", "c"]))


def test_a_reference_without_rows_gives_way():
    data = rows("bcd")
    found = fit(data, "y ~ x + C(g)")
    wanted = truth(data, "y ~ x + C(g)")  # whose reference is the first level that occurs
    assert found.params == pytest.approx(wanted.params[list(found.names)].to_numpy())
    assert "C(g)[a] has no rows: C(g)[T.b] is the reference instead" in found.remarks()
    assert found.predict(data.head()) == pytest.approx(wanted.predict(data.head()).to_numpy())
    with pytest.raises(RangeError, match="row 1 has a level that no row of the fit had"):
        found.predict(data.head().assign(g="a"))


def test_an_empty_cell_of_an_interaction():
    data = rows()
    data = data[~((data["g"] == "c") & (data["h"] == "y"))]
    found = fit(data, "y ~ C(g) * C(h) + x")
    assert any("C(g)[T.d]:C(h)" in remark for remark in found.remarks())
    linear = np.linalg.lstsq(
        pd.get_dummies(data["g"] + data["h"]).assign(x=data["x"]).to_numpy(float),
        data["y"].to_numpy(),
        rcond=None,
    )
    assert found.deviance == pytest.approx(float(linear[1][0]))


CROSSED = [
    "y ~ C(g) * C(h) + x",
    "y ~ C(h) / C(g) + x",
    "y ~ C(g) * x",
    "y ~ C(g) * C(h) * x",
    "y ~ C(h) + C(g) * x - 1",
    "y ~ C(g, Treatment('b')) * C(h)",
    "y ~ C(g) : C(h) - 1",
]


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
@each_case("formula", CROSSED)
@each_case("empty", ["ax", "ay", "cx", "axcy", "axaycx", "bxby"])
def test_empty_cells_of_a_cross_table_wherever_they_are(formula, empty):
    """A reference's cell has no column of its own, and makes one a combination of others."""
    data = rows()
    cells = [empty[i : i + 2] for i in range(0, len(empty), 2)]
    if "Treatment" in formula and "bxby" in empty:
        return  # statsmodels knows no reference without rows
    data = data[~(data["g"] + data["h"]).isin(cells)]
    found, wanted = fit(data, formula), truth(data, formula)
    assert found.deviance == pytest.approx(wanted.ssr, rel=1e-9)
    assert len(found.params) == np.linalg.matrix_rank(wanted.model.exog)
    assert found.predict(data) == pytest.approx(wanted.predict(data).to_numpy())


@each_case("empty", ["ay", "cx", "axaycx"])
def test_what_was_never_seen_is_not_predicted(empty):
    data = rows()
    cells = [empty[i : i + 2] for i in range(0, len(empty), 2)]
    found = fit(data[~(data["g"] + data["h"]).isin(cells)], "y ~ C(g) * C(h) + x")
    for cell in (g + h for g in "abcd" for h in "xy"):
        row = data.head(1).assign(g=cell[0], h=cell[1])
        if cell in cells or "d" in cell:
            with pytest.raises(RangeError, match="row 1 has a level that no row of the fit had"):
                found.predict(row)
        else:
            assert np.isfinite(found.predict(row)).all()


def test_a_level_whose_rows_are_all_incomplete():
    data = rows("abcd")
    data.loc[data["g"] == "d", "x"] = np.nan
    asked = study(data.iloc[::2], data.iloc[1::2], columns=LEVELS, missing="drop")
    found = asked.glm("y ~ x + C(g)", "linear")
    wanted = truth(data.dropna(), "y ~ x + C(g)")
    assert found.params == pytest.approx(wanted.params[list(found.names)].to_numpy())


def test_logistic_too():
    data = rows()
    found = fit(data, "died ~ x + C(g)", "logistic")
    wanted = smf.logit("died ~ x + C(g)", data).fit(disp=0)
    assert found.params == pytest.approx(wanted.params[list(found.names)].to_numpy(), rel=1e-5)


@each_case("equal_variance", [True, False])
@each_case("dropped", [False, True])
def test_anova_leaves_out_groups_without_rows(equal_variance, dropped):
    data = rows("abcd" if dropped else "abc")
    if dropped:  # complete cases have no d
        data.loc[data["g"] == "d", "y"] = np.nan
    asked = study(data.iloc[::2], data.iloc[1::2], columns=LEVELS, missing="drop")
    found = asked.anova("y", "g", equal_variance=equal_variance)
    there = data.dropna()
    samples = [part.to_numpy() for _, part in there.groupby("g")["y"]]
    use = "equal" if equal_variance else "unequal"
    wanted = anova_oneway(samples, use_var=use, welch_correction=True)
    assert found.statistic == pytest.approx(wanted.statistic)
    assert found.pvalue == pytest.approx(wanted.pvalue)
    assert [sample.name for sample in found.samples] == ["g=a", "g=b", "g=c"]
    assert "left out, as no row has it: g=d" in found.remarks()
    assert found.to_json()["absent"] == ["g=d"]


def test_anova_of_one_group_with_rows():
    data = rows("a")
    with pytest.raises(ThresholdError, match="groups of 'g' that have rows"):
        study(data.iloc[::2], data.iloc[1::2], columns=LEVELS).anova("y", "g")


def typed(data, order):
    """The rows at two sites, g with an order of its own at each; None for plain text."""
    halves = [data.iloc[::2], data.iloc[1::2]]
    return [
        half if o is None else half.assign(g=pd.Categorical(half["g"], list(o), ordered=True))
        for half, o in zip(halves, order, strict=True)
    ]


QUESTIONS = {
    "glm": lambda s: s.glm("y ~ C(g)", "linear"),
    "anova": lambda s: s.anova("y", "g"),
    "chi_square": lambda s: s.chi_square("g", "h"),
    "count": lambda s: s.count(by="g"),
    "cox": lambda s: s.cox("x", "died", ["g"]),
    "kaplan_meier": lambda s: s.kaplan_meier("x", "died", by="g"),
}


@each_case("question", QUESTIONS)
@each_case(
    "order, why",
    [(("abc", "cba"), "differ in their order"), (("abc", "abcd"), "differ; give"),
     (("abcd", "abc"), "differ; give"), (("abc", "bac"), "differ in their order")],
)  # fmt: skip
def test_ordered_categories_that_disagree_are_refused(question, order, why):
    with pytest.raises(ParameterError) as caught:
        QUESTIONS[question](study(*typed(rows(), order)))
    assert "column 'g': the ordered categories of north and south " + why in str(caught.value)


def test_all_sites_that_disagree_are_named():
    frames = [pl.DataFrame({"g": ["a"]}, schema={"g": pl.Enum(list(o))}) for o in ("ab", "ba")]
    with pytest.raises(ParameterError, match="of north, east and south, west differ"):
        study(*frames, *frames).count(by="g")


def test_a_site_without_rows_declares_too_but_not_without_levels():
    data = typed(rows(), ("cba", "cba"))
    empty = pd.DataFrame({"g": pd.Categorical([], [], ordered=True)})
    assert list(study(*data, empty).count(by="g").value) == ["c", "b", "a"]
    with pytest.raises(ParameterError, match="of north, south and east differ"):
        study(*data, typed(rows(), ("abc", "abc"))[0].iloc[:0]).count(by="g")


@each_case("order", [("cba", "cba"), ("cba", None), (None, None), ("bacd", "bacd")])
def test_the_reference_is_the_same_for_any_order_of_sites(order):
    one, other = typed(rows(), order)
    first = next((o for o in order if o), "abc")[0]
    for sites in ((one, other), (other, one)):
        found = study(*sites)
        assert f"C(g)[T.{first}]" not in found.glm("y ~ C(g)", "linear").names
        assert found.cox("x", "died", ["g"]).covariates.references == {"g": first}
        assert found.anova("y", "g").samples[0].name == f"g={first}"


def test_declared_levels_decide_between_sites_that_disagree():
    for sites in (("abc", "cba"), ("cba", "abc")):
        found = study(*typed(rows(), sites), columns={"g": Column(levels=["b", "c", "a"])})
        assert found.cox("x", "died", ["g"]).covariates.references == {"g": "b"}


def hazards(levels="abc"):
    random = np.random.default_rng(5)
    n = 200
    return pd.DataFrame(
        {
            "t": random.integers(1, 25, n),
            "e": random.integers(0, 2, n),
            "x": random.integers(0, 9, n),
            "g": random.choice(list(levels), n),
            "h": random.choice(["x", "y"], n),
        }
    )


def cox(data, covariates, **options):
    asked = study(data.iloc[::2], data.iloc[1::2], columns=LEVELS, missing="drop")
    return asked.cox("t", "e", covariates, **options)


def cox_truth(data, columns):
    """statsmodels' fit; columns as pandas makes them of the levels that there are."""
    x = pd.get_dummies(data[columns], drop_first=True, dtype=float).astype(float)
    return PHReg(data["t"], x.to_numpy(), status=data["e"], ties="efron").fit(disp=0)


@each_case(
    "levels, reference, said",
    [
        ("abc", "a", "left out, because no row has them: {d}."),
        ("bcd", "b", "{a} has no rows: {b} is the reference instead."),
        ("cd", "c", "left out, because no row has them: {b}."),
    ],
)
@each_case(
    "covariates, called",
    [
        (["x", "g"], {k: f"g={k}" for k in "abcd"}),
        ("~ x + C(g)", {"a": "C(g)[a]"} | {k: f"C(g)[T.{k}]" for k in "bcd"}),
    ],
)
def test_cox_leaves_out_levels_without_rows(levels, reference, said, covariates, called):
    data = hazards(levels)
    found, wanted = cox(data, covariates), cox_truth(data, ["x", "g"])
    assert found.params == pytest.approx(wanted.params, rel=1e-6)
    assert found.bse == pytest.approx(wanted.bse, rel=1e-6)
    assert found.llf == pytest.approx(wanted.llf, rel=1e-10)
    assert found.names == ("x", *(called[k] for k in levels[1:]))
    assert list(found.covariates.references.values()) == [reference]
    assert said.format(**called) in found.remarks()
    for level in "abcd":
        row = {"x": 3, "g": level}
        if level in levels:
            assert 0 < found.survival(row, [5])[0] < 1
        else:
            with pytest.raises(RangeError, match="has a level that no row of the fit had"):
                found.survival(row, [5])


def test_cox_whose_level_has_no_complete_row():
    data = hazards("abcd").astype({"x": float})
    data.loc[data["g"] == "d", "x"] = np.nan
    found, wanted = cox(data, ["x", "g"]), cox_truth(data.dropna(), ["x", "g"])
    assert found.params == pytest.approx(wanted.params, rel=1e-6)
    assert found.rows == len(data.dropna())


@each_case("empty", ["ax", "ay", "cx", "axcy", "axaycx", "bxby"])
@each_case("formula", ["~ C(g) * C(h) + x", "~ C(h) / C(g)", "~ C(g) * x", "~ C(g) * C(h) * x"])
def test_cox_with_empty_cells(empty, formula):
    """The fit of the cells that there are, whatever columns are left to say it."""
    data = hazards()
    cells = [empty[i : i + 2] for i in range(0, len(empty), 2)]
    data = data[~(data["g"] + data["h"]).isin(cells)]
    found = cox(data, formula)
    x = smf.ols("x " + formula, data).exog[:, 1:]
    # The columns that are no combinations of a constant and those before.
    ranks = [np.linalg.matrix_rank(np.c_[np.ones(len(x)), x[:, :k]]) for k in range(x.shape[1] + 1)]
    wanted = PHReg(data["t"], x[:, np.diff(ranks) > 0], status=data["e"], ties="efron").fit(disp=0)
    assert len(found.params) == len(wanted.params)
    assert found.llf == pytest.approx(wanted.llf, rel=1e-9)
    assert found.wald.statistic > 0


def test_cox_refuses_a_level_with_rows_and_no_events():
    data = hazards()
    for level, covariates, said in [
        ("b", ["g", "x"], "column 'g': level b has no events"),
        ("a", "~ C(g) + x", "column 'g': level a has no events"),
        ("c", "~ C(g) + x", "column 'g': level c has no events"),
    ]:
        with pytest.raises(RangeError, match=said):
            cox(data.assign(e=data["e"] * (data["g"] != level)), covariates)
    both = (data["g"] == "b") & (data["h"] == "y")
    with pytest.raises(RangeError, match=r"covariate 'C\(g\)\[T.b\]:C\(h\)\[T.y\]' has no events"):
        cox(data.assign(e=data["e"] * ~both), "~ C(g) * C(h)")


def test_cox_of_one_level():
    for covariates in (["g"], "~ C(g)"):
        with pytest.raises(ParameterError, match=r"no covariate is left: .*has no rows"):
            cox(hazards("b"), covariates)


def test_a_stratum_without_events_is_named():
    data = hazards()
    found = cox(data.assign(e=data["e"] * (data["g"] != "b")), ["x"], strata="g")
    assert "No events in g: b, d." in found.remarks()
