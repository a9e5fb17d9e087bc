"""Models at the edge: constants far away or almost there, no intercept, sums that have no room."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from cases import each_case
from sites import study
from test_glm import check, reference

from securecomp.errors import ParameterError
from securecomp.statistics.regression import cross_products

draw = np.random.default_rng(3)
SIZE = 300
ROWS = pd.DataFrame(
    {
        "x": np.round(draw.normal(0, 1, SIZE), 2),
        "z": draw.integers(0, 4, SIZE),
        "n": draw.poisson(3, SIZE),
        "w": draw.integers(1, 4, SIZE),
        "near": 10_000 + np.round(draw.uniform(-0.2, 0.2, SIZE), 3),
        "k": 5,
        "one": 1,
        "zero": 0,
    }
)
ROWS["y"] = (draw.random(SIZE) < 1 / (1 + np.exp(-ROWS["x"]))).astype(int)


def fit(formula, family="logistic", rows=ROWS, **options):
    return study(rows[:90], rows[90:91], rows[91:]).glm(formula, family, **options)


class TestLargeOffsets:
    @each_case("offset", [20, -30, 40, 100, 1e9])
    @each_case("weights", [None, "w"])
    @each_case("formula", ["y ~ x", "y ~ 1", "y ~ 0 + C(z) + x"])
    def test_a_constant_is_only_in_the_constant(self, offset, weights, formula):
        found = fit(formula, rows=ROWS.assign(off=float(offset)), offset="off", weights=weights)
        expected, _ = reference(formula, "logistic", ROWS, weights)
        moved = expected.params[list(found.names)].to_numpy(copy=True)
        moved[[name.startswith(("Inter", "C(z)")) for name in found.names]] -= offset
        np.testing.assert_allclose(found.params, moved, rtol=1e-9, atol=1e-9 + 1e-15 * abs(offset))
        order = [found.names.index(name) for name in expected.params.index]
        np.testing.assert_allclose(found.bse[order], expected.bse, rtol=1e-9)
        for name in ("llf", "llnull", "deviance", "null_deviance"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-10), name
        if abs(offset) <= 100:
            assert found.pearson_chi2 == pytest.approx(expected.pearson_chi2, rel=1e-9)
        label = "sum of w * off" if weights else "sum of off"
        assert label in found.run.opened

    @each_case("offset", [-30, -100, 100])
    @each_case("formula", ["n ~ x", "n ~ 0 + C(z) + x"])
    def test_of_counts(self, offset, formula):
        rows = ROWS.assign(off=offset + ROWS["x"].abs(), less=ROWS["x"].abs())
        found = fit(formula, "poisson", rows, offset="off")
        expected = fit(formula, "poisson", rows, offset="less")
        for name in ("llf", "llnull", "deviance", "null_deviance"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-10), name
        assert found.params[-1] == pytest.approx(expected.params[-1], rel=1e-9)
        assert found.params[0] == pytest.approx(expected.params[0] - offset, rel=1e-12)

    def test_one_that_differs(self):
        rows = ROWS.assign(off=40.0 + ROWS["z"], less=ROWS["z"])
        found = fit("y ~ x", rows=rows, offset="off")
        expected = fit("y ~ x", rows=rows, offset="less")
        np.testing.assert_allclose(found.params, expected.params - [40, 0], rtol=1e-9)
        assert found.llnull == pytest.approx(expected.llnull, rel=1e-12)
        np.testing.assert_allclose(
            found.predict(rows), expected.predict(rows), rtol=1e-9, atol=1e-12
        )

    def test_without_a_constant(self):
        rows = ROWS.assign(off=4.0)
        found = fit("y ~ x - 1", rows=rows, offset="off")
        expected, _ = reference("y ~ x - 1", "logistic", rows, None, "off")
        np.testing.assert_allclose(found.params, expected.params, rtol=1e-9)
        assert found.llf == pytest.approx(expected.llf, rel=1e-12)
        assert found.llnull == pytest.approx(smf.logit("y ~ 1", ROWS).fit(disp=0).llf, rel=1e-9)

    @each_case("formula", ["y ~ 1", "y ~ x"])
    def test_one_that_leaves_no_weight_is_named(self, formula):
        rows = ROWS.assign(wild=np.where(ROWS.index % 2, 1e6, -1e6))
        with pytest.raises(ParameterError, match="the offset wild is so large that it leaves rows"):
            fit(formula, rows=rows, offset="wild")


class TestAlmostConstant:
    def test_linear(self):
        found = fit("x ~ 0 + near", "linear")
        assert found.df_model == 1
        check(found, *reference("x ~ 0 + near", "linear", ROWS))

    @each_case("response, family", [("n", "poisson"), ("y", "logistic")])
    def test_counts_and_events(self, response, family):
        found = fit(f"{response} ~ 0 + near", family)
        check(found, *reference(f"{response} ~ 0 + near", family, ROWS))

    def test_a_sum_of_rounded_columns_is_a_constant(self):
        """p + q = 1, though neither is on a grid."""
        rows = ROWS.assign(p=ROWS["z"] / (ROWS["z"] + ROWS["x"] ** 2 + 1))
        formula = "n ~ 0 + I(z / (z + x**2 + 1)) + I((x**2 + 1) / (z + x**2 + 1))"
        found = fit(formula, "linear")
        expected = smf.ols("n ~ p", rows).fit()
        assert found.df_model == 1
        assert found.rsquared == pytest.approx(expected.rsquared, rel=1e-7)
        assert found.fvalue == pytest.approx(expected.fvalue, rel=1e-7)

    def test_levels_of_a_category_are_a_constant(self):
        assert fit("x ~ 0 + C(z)", "linear").df_model == 3


class TestFarFromZero:
    """A column whose values are large and hardly differ: moving it moves the intercept alone."""

    @each_case("far", [10**9, 10**12, 10**15])
    @each_case(
        "response, family, weights",
        [
            ("n", "linear", None),
            ("y", "logistic", None),
            ("n", "poisson", None),
            ("n", "linear", "w"),
            ("y", "logistic", "w"),
        ],
    )
    def test_it_is_fitted_as_it_is_near_zero(self, far, response, family, weights):
        formula = f"{response} ~ z + x"
        found = fit(formula, family, ROWS.assign(z=far + ROWS["z"]), weights=weights)
        expected, _ = reference(formula, family, ROWS, weights)
        np.testing.assert_allclose(found.params[1:], expected.params.iloc[1:], rtol=1e-9)
        np.testing.assert_allclose(found.bse[1:], expected.bse.iloc[1:], rtol=1e-9)
        assert found.llf == pytest.approx(expected.llf, rel=1e-10)

    def test_decimals_that_floats_cannot_tell_apart(self):
        cents = [Decimal(10**12) + Decimal(int(z)) / 100 for z in ROWS["z"]]
        for family, response in (("linear", "x"), ("logistic", "y")):
            found = fit(f"{response} ~ z", family, ROWS.assign(z=cents))
            expected, _ = reference(f"{response} ~ z", family, ROWS)
            assert found.params[1] == pytest.approx(100 * expected.params["z"], rel=1e-9)

    @each_case("far", [5, 10**12, 10**15])
    def test_one_that_is_the_same_is_still_named(self, far):
        with pytest.raises(ParameterError, match="z is the same in every row of all sites, as the"):
            fit("x ~ z", "linear", ROWS.assign(z=far))

    @each_case(
        "formula, text",
        [
            ("x ~ log(z)", r"log\(z\) varies so little beside its bound .* as in I\(x - 1000\)"),
            ("log(z) ~ x", r"log\(z\) varies so little beside its bound .* as in I\(y - 1000\)"),
            ("n ~ x + x:z", r"x:z is a combination of x up to a constant, or nearly one, so that"),
        ],
    )
    def test_digits_that_are_gone_are_not_called_a_constant(self, formula, text):
        with pytest.raises(ParameterError, match=text):
            fit(formula, "linear", ROWS.assign(z=10**14 + ROWS["z"]))

    def test_what_the_message_advises(self):
        rows = ROWS.assign(z=10**14 + ROWS["z"])
        formula, less = "n ~ x * I(z - 100000000000000)", "I(z - 100000000000000)"
        with pytest.raises(
            ParameterError, match=r"of each factor: bounds=\{'x': \.\.\., 'I\(z - 1"
        ):
            fit(formula, "linear", rows)
        found = fit(formula, "linear", rows, bounds={less: 4})
        expected = smf.ols("n ~ x * z", ROWS).fit()
        np.testing.assert_allclose(found.params, expected.params, rtol=1e-9)


class TestOneResponse:
    @each_case("right", ["x - 1", "x + z - 1"])
    def test_linear_without_an_intercept(self, right):
        found = fit(f"k ~ {right}", "linear")
        check(found, *reference(f"k ~ {right}", "linear", ROWS))
        assert "k ~" in str(found)
        json.dumps(found.facts(), allow_nan=False)

    @each_case("response", ["one", "zero"])
    def test_logistic_without_an_intercept(self, response):
        found = fit(f"{response} ~ x - 1")
        expected = sm.Logit(ROWS[response], ROWS[["x"]]).fit(disp=0, tol=1e-14)
        np.testing.assert_allclose(found.params, expected.params, rtol=1e-8)
        np.testing.assert_allclose(found.bse, expected.bse, rtol=1e-8)
        assert found.llf == pytest.approx(expected.llf, rel=1e-12)
        assert found.llnull == 0

    def test_no_counts_without_an_intercept(self):
        found = fit("zero ~ x - 1", "poisson")
        rate = np.exp(found.params[0] * ROWS["x"])
        assert abs(rate @ ROWS["x"]) < 1e-6
        assert found.llf == pytest.approx(-rate.sum(), rel=1e-12)

    @each_case(
        "formula, family",
        [
            ("k ~ x", "linear"),
            ("k ~ 0 + C(z)", "linear"),
            ("zero ~ x - 1", "linear"),
            ("one ~ x", "logistic"),
            ("zero ~ x", "poisson"),
        ],
    )
    def test_nothing_to_explain(self, formula, family):
        with pytest.raises(ParameterError, match="there is nothing to explain"):
            fit(formula, family)

    @each_case("family", ["logistic", "poisson"])
    def test_separated_without_an_intercept(self, family):
        with pytest.raises(ParameterError, match="separation"):
            fit("zero ~ near - 1", family)


def test_why_pearsons_statistic_is_not_there():
    found = fit("y ~ x", rows=ROWS.assign(off=1000.0), offset="off")
    assert np.isnan(found.pearson_chi2)
    assert found.facts()["fit"]["Pearson chi squared"] is None
    (remark,) = [text for text in found.remarks() if "Pearson" in text]
    assert remark == (
        "Pearson's chi squared was not summed: by the columns' bounds a row could add more than "
        "e^300 to it; agree on smaller bounds"
    )
    assert not any("Pearson" in text for text in fit("y ~ x").remarks())


class TestWideDesigns:
    def test_rows_are_counted_first(self, monkeypatch):
        def forbidden(*_):
            raise AssertionError("products of a wide design were computed")

        monkeypatch.setattr(cross_products, "products", forbidden)
        right = " + ".join(f"I(x > {i} / 1000)" for i in range(700))
        with pytest.raises(ParameterError, match="300 rows do not determine 701 coefficients"):
            fit(f"y ~ {right}")

    def test_so_many_rows_are_the_same_number(self):
        rows = pd.DataFrame({"x": np.arange(400), "z": np.arange(400) % 110})
        found = fit("x ~ C(z)", "linear", rows)
        expected = rows.groupby("z")["x"].mean()
        assert found.params[0] == pytest.approx(expected[0], rel=1e-12)
        assert found.run.opened.count("rows") == 1
        assert found.run.sums == 2

    def test_columns_are_limited(self):
        rows = pd.DataFrame({"g": np.arange(300), "h": np.arange(300), "y": 1})
        with pytest.raises(ParameterError, match="more than 1000 columns; use fewer terms or"):
            fit("y ~ C(g):C(h)", rows=rows)
