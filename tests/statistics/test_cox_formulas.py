"""Cox regressions by formula equal statsmodels' on the pooled rows."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from cases import each_case
from sites import Spy, study
from statsmodels.duration.hazard_regression import PHReg

from securecomp import Column
from securecomp.errors import ParameterError, RangeError


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(11)
    n = 240
    age = random.integers(20, 90, n)
    time = np.ceil(random.exponential(np.exp(-0.01 * (age - 50)) * 12)).clip(max=30)
    return pd.DataFrame(
        {
            "t": time.astype(int),
            "e": (random.random(n) < 0.7).astype(int),
            "age": age,
            "year": random.integers(2000, 2020, n),
            "dose": random.integers(1, 60, n) / 10,
            "ward": random.choice(list("abc"), n),
            "sex": random.choice(["f", "m"], n),
            "code": random.integers(1, 4, n),
            "length of stay": random.integers(0, 9, n),
        }
    )


def halves(rows):
    return rows.iloc[::2], rows.iloc[1::2]


def truth(rows, formula, ties="efron", strata=None):
    """statsmodels' fit of the columns that patsy makes, without the constant."""
    plain = formula.replace("`length of stay`", "Q('length of stay')")
    model = smf.ols(f"age {plain if plain.startswith('~') else '~ ' + plain}", rows)
    x = pd.DataFrame(model.exog, columns=model.exog_names).drop(columns="Intercept")
    groups = None if strata is None else rows[strata].to_numpy()
    fit = PHReg(rows["t"], x.to_numpy(), status=rows["e"], ties=ties, strata=groups).fit(disp=0)
    return dict(zip(x.columns, zip(fit.params, fit.bse, strict=True), strict=True)), fit.llf


FORMULAS = [
    "~ age",
    "age + dose",
    "~ age + C(ward)",
    "~ ward * sex",
    "~ C(ward) * age + dose",
    "~ C(code, Treatment(2)) + sex",
    "~ I(age - 60) * ward",
    "~ age + I(age ** 2)",
    "~ np.log(dose) + I(sex == 'm')",
    "~ (age + ward + sex) ** 2",
    "~ ward / sex",
    "~ C(code):sex",
    "~ year * ward",
    "~ year + I(year ** 2)",
    "~ age + `length of stay`",
]


@each_case("formula", FORMULAS)
@each_case("ties", ["efron", "breslow"])
def test_formulas_equal_statsmodels(rows, formula, ties):
    found = study(*halves(rows)).cox("t", "e", formula, ties=ties)
    wanted, llf = truth(rows, formula, ties)
    assert found.llf == pytest.approx(llf, rel=1e-9)
    params = np.array([v for v, _ in wanted.values()])
    bse = np.array([v for _, v in wanted.values()])
    order = np.argsort(found.params), np.argsort(params)  # names differ in white space
    np.testing.assert_allclose(found.params[order[0]], params[order[1]], rtol=1e-5, atol=1e-8)
    # A year's square and the year are one to the reference's floats, but for five digits.
    rtol = 1e-4 if "year **" in formula else 1e-6
    np.testing.assert_allclose(found.bse[order[0]], bse[order[1]], rtol=rtol)
    spaced = {name.replace(" ", "").replace("[T.True]", "") for name in wanted}
    spaced = {name.replace("Q('lengthofstay')", "lengthofstay") for name in spaced}
    assert {name.replace(" ", "") for name in found.names} == spaced


def test_names_are_those_of_glm(rows):
    sites = study(*halves(rows))
    found = sites.cox("t", "e", "~ C(ward) * age + I(dose * 2)")
    glm = sites.glm("dose ~ C(ward) * age + I(dose * 2)", "linear")
    assert ("Intercept", *found.names) == glm.names


@each_case("formula", ["~ ward - 1", "~ 0 + ward", "0 + ward", "~ ward"])
def test_the_baseline_hazard_is_the_constant(rows, formula):
    found = study(*halves(rows)).cox("t", "e", formula)
    assert found.names == ("ward[T.b]", "ward[T.c]")
    assert found.params == pytest.approx([v for v, _ in truth(rows, "~ ward")[0].values()])


def test_a_list_and_its_formula_are_one_model(rows):
    sites = study(*halves(rows))
    listed = sites.cox("t", "e", ["age", "ward"], strata="sex")
    written = sites.cox("t", "e", "~ age + ward", strata="sex")
    assert listed.params.tolist() == written.params.tolist()
    assert (listed.names, written.names) == (
        ("age", "ward=b", "ward=c"),
        ("age", "ward[T.b]", "ward[T.c]"),
    )
    wanted, _ = truth(rows, "~ age + ward", strata="sex")
    by_name = [wanted[name][0] for name in written.names]
    assert written.params == pytest.approx(by_name, rel=1e-6)


def test_survival_is_predicted_from_columns(rows):
    found = study(*halves(rows)).cox("t", "e", "~ ward * I(age - 60) + log(dose)")
    row = {"age": 70, "ward": "b", "dose": 2.5}
    x = {"I(age - 60)": 10, "ward[T.b]": 1, "ward[T.b]:I(age - 60)": 10, "log(dose)": np.log(2.5)}
    coefficients = dict(zip(found.names, found.params, strict=True))
    predictor = sum(coefficients[name] * value for name, value in x.items())
    at, hazard = found.baseline_cumulative_hazard()
    np.testing.assert_allclose(
        found.survival(row, at), np.exp(-hazard * np.exp(predictor)), rtol=1e-9
    )
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert again.survival(row, at).tolist() == found.survival(row, at).tolist()
    for bad, error, text in [
        ({"age": 70, "ward": "b"}, ParameterError, "give a value for each of"),
        ({**row, "ward": "z"}, ParameterError, "'ward' is one of a, b, c; not 'z'"),
        ({**row, "dose": 0}, RangeError, r"log\(dose\)"),
    ]:
        with pytest.raises(error, match=text):
            found.survival(bad, [1])


def test_it_says_what_was_asked(rows):
    found = study(*halves(rows)).cox("t", "e", "~ age * ward")
    facts = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert facts["covariates"] == "~ age * ward"
    assert facts["references"] == {"ward": "a"}
    assert "rows with ward[T.b]" in facts["opened"]
    assert "rows in which age:ward[T.b] is not 0" in facts["opened"]


def test_a_bound_of_a_factor(rows):
    sites = study(*halves(rows))
    found = sites.cox("t", "e", "~ exp(dose)", bounds={"exp(dose)": 400})
    assert found.llf == pytest.approx(truth(rows, "~ np.exp(dose)")[1], rel=1e-9)
    with pytest.raises(RangeError, match="is beyond the agreed bound 5"):
        sites.cox("t", "e", "~ exp(dose)", bounds={"exp(dose)": 5})


def test_a_year_and_its_square_say_how_far_rows_are_from_the_mean(rows):
    sites = study(*halves(rows))
    far, near = (
        sites.cox("t", "e", formula)
        for formula in ("~ year + I(year ** 2)", "~ I(year - 2010) + I((year - 2010) ** 2)")
    )
    assert far.llf == pytest.approx(near.llf, rel=1e-12)
    assert far.params[1] == pytest.approx(near.params[1], rel=1e-6)
    assert far.bse[1] == pytest.approx(near.bse[1], rel=1e-6)
    opened = [n for n in far.run.opened if "with |x'b| beyond" in n]
    assert opened[:2] == [f"in every step: sites with |x'b| beyond {n}" for n in (100, 50)]
    # By its columns' bound the shifted square could be in the millions, and is below 101.
    assert any("sites with I((year - 2010) ** 2) further than" in n for n in near.run.opened)


@each_case(
    "asked, text",
    [
        ("t ~ age", "it is what explains alone, as in '~ age + C(ward)'"),
        ("Surv(t, e) ~ age", "it is what explains alone"),
        ("~ age ~ dose", "it is what explains alone"),
        ("~ age | dose", "it has several parts"),
        ("~ 1", "it has no covariate; name one"),
        ("", "a formula is text such as"),
        ("~ missing", "there is no column 'missing'"),
        ("~ scale(age)", "scale() depends on all rows of a site"),
        ("~ e", "column 'e' is both event and covariate; name two columns"),
        ("~ t + age", "column 't' is both time and covariate; name two columns"),
        ("~ age +", "formula '~ age +'"),
        ("~ exp(year)", "bounds={'exp(year)': ...}"),
        (17, "covariates are a list of columns' names, or a formula such as"),
    ],
)
def test_what_is_refused(rows, asked, text):
    with pytest.MonkeyPatch.context() as patch:
        spy = Spy(patch)
        with pytest.raises(ParameterError) as caught:
            study(*halves(rows)).cox("t", "e", asked)
        assert text in str(caught.value)
        assert spy.made == []


def test_what_belongs_to_the_other_form(rows):
    sites = study(*halves(rows))
    with pytest.raises(ParameterError, match=r"a formula has C\(column\)"):
        sites.cox("t", "e", "~ code", categorical=["code"])
    with pytest.raises(ParameterError, match="bounds are for the factors of a formula"):
        sites.cox("t", "e", ["age"], bounds={"age": 100})


def test_a_tilde_within_a_level(rows):
    named = rows.assign(ward=rows["ward"].replace("a", "~a"))
    found = study(*halves(named)).cox("t", "e", "~ I(ward == '~a')")
    wanted, _ = truth(rows, "~ I(ward == 'a')")
    assert found.params == pytest.approx([v for v, _ in wanted.values()])


@each_case("protocol", ["masking", "paillier"])
def test_other_protocols(rows, protocol):
    columns = {"age": Column(bound=120, decimals=0), "ward": Column(levels=["a", "b", "c", "d"])}
    sites = rows.iloc[::3], rows.iloc[1::3], rows.iloc[2::3]
    found = study(*sites, columns=columns, protocol=protocol).cox(
        "t", "e", "~ I(age - 60) + ward", times=range(0, 31, 5)
    )
    up = rows.assign(t=np.ceil(rows["t"] / 5) * 5)
    wanted, llf = truth(up, "~ I(age - 60) + ward")
    assert found.llf == pytest.approx(llf, rel=1e-10)
    assert found.params == pytest.approx([wanted[n][0] for n in found.names], rel=1e-6)
