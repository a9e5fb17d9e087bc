"""ROC curves against scikit-learn on the pooled rows, and DeLong's error as it was published."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from hypothesis import given, settings
from hypothesis import strategies as st
from sites import frame, study
from sklearn.metrics import roc_auc_score, roc_curve

from securecomp import Column
from securecomp.errors import ParameterError, RangeError, ThresholdError


def asked(score, outcome, parts=3, **options):
    rows = pd.DataFrame({"score": score, "died": outcome})
    return study(*[rows.iloc[i::parts] for i in range(parts)], **options)


def delong(score, outcome):
    """DeLong et al. 1988 as written: every case against every control."""
    x, y = score[outcome == 1], score[outcome == 0]
    psi = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    v10, v01 = psi.mean(1), psi.mean(0)
    return math.sqrt(v10.var(ddof=1) / len(x) + v01.var(ddof=1) / len(y))


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(5)
    outcome = rng.integers(0, 2, 400)
    score = 1 / (1 + np.exp(-rng.normal(1.5 * outcome - 0.7, 1)))
    return score.round(6), outcome


def test_the_true_area_is_within_the_bounds(scored):
    score, outcome = scored
    true = roc_auc_score(outcome, score)
    widths = []
    for bins in (10, 100, 1000):
        found = asked(score, outcome).roc_auc("score", "died", bins=bins)
        assert found.auc_low <= true <= found.auc_high
        assert found.auc == pytest.approx((found.auc_low + found.auc_high) / 2, rel=1e-14)
        widths.append(found.auc_high - found.auc_low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.002


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=2, max_size=40),
    st.integers(1, 25),
)
@settings(max_examples=40, deadline=None)
def test_any_scores_are_within_the_bounds(rows, bins):
    outcome = [True, False, *(died for _, died in rows[2:])]
    score = [value for value, _ in rows]
    columns = {"score": Column(bound=20)}
    edges = np.linspace(0, 20, bins + 1)
    found = asked(score, outcome, columns=columns).roc_auc("score", "died", edges=edges)
    true = roc_auc_score(outcome, score)
    assert found.auc_low - 1e-12 <= true <= found.auc_high + 1e-12


def test_a_bin_for_each_score_is_exact(scored):
    score, outcome = (scored[0] * 20).astype(int), scored[1]
    found = asked(score, outcome).roc_auc("score", "died", edges=range(22))
    assert found.auc == pytest.approx(roc_auc_score(outcome, score), rel=1e-14)
    assert found.bse == pytest.approx(delong(score, outcome), rel=1e-12)
    fpr, tpr, thresholds = roc_curve(outcome, score, drop_intermediate=False)
    for x, y, threshold in zip(fpr, tpr, thresholds, strict=True):
        if np.isfinite(threshold):
            assert found.at(threshold) == pytest.approx((y, 1 - x))
    best = np.max(tpr - fpr)
    assert sum(found.at(found.youden)) - 1 == pytest.approx(best)


def test_hanley_and_mcneil_1982():
    """Table I of the paper: 109 images in five ratings; W = 0.893, SE by the formula 0.032."""
    normal, abnormal = [33, 6, 6, 11, 2], [3, 2, 2, 11, 33]
    score = [r for counts in (normal, abnormal) for r, n in enumerate(counts, 1) for _ in range(n)]
    outcome = [0] * sum(normal) + [1] * sum(abnormal)
    found = asked(score, outcome).roc_auc("score", "died", edges=[1, 2, 3, 4, 5, 6])
    assert round(found.auc, 3) == 0.893
    assert round(found.bse_hanley, 3) == 0.032


def test_the_curve(scored):
    found = asked(*scored).roc_auc("score", "died", bins=20)
    (plot,) = found.plots()
    curve = next(iter(plot.series.values()))
    assert (curve["x"][0], curve["y"][0], curve["x"][-1], curve["y"][-1]) == (0, 0, 1, 1)
    area = np.trapezoid(curve["y"], curve["x"])
    assert area == pytest.approx(found.auc, rel=1e-12)
    assert found.to_frame("pandas")["threshold"].tolist() == list(found.edges)
    assert json.loads(json.dumps(found.to_json()))["youden"] == found.youden
    assert "(Youden)" in str(found)
    with pytest.raises(ParameterError, match=r"0\.51 is not an edge .*; the nearest is 0\.5"):
        found.at(0.51)


def test_default_bins():
    found = asked([0.0, 0.2, 1.0, 0.7], [0, 1, 1, 0]).roc_auc("score", "died", bins=4)
    assert found.edges == (0, 0.25, 0.5, 0.75, 1)
    assert found.cases == (1, 0, 0, 1)
    assert found.controls == (1, 0, 1, 0)
    columns = {"score": Column(bound=8)}
    found = asked([-3, 7, 2, 8], [0, 1, 1, 0], columns=columns).roc_auc("score", "died", bins=4)
    assert found.edges == (-8, -4, 0, 4, 8)
    assert (found.cases, found.controls) == ((0, 0, 1, 1), (0, 1, 0, 1))
    assert len(asked([0.0, 1.0], [0, 1], 2).roc_auc("score", "died").edges) == 101


def test_what_is_opened():
    run = asked([0.0, 0.2, 1.0, 0.7], [0, 1, 1, 0]).roc_auc("score", "died", bins=2).run
    assert run.opened == (
        "rows with score [0, 0.5) died=0",
        "rows with score [0.5, 1] died=0",
        "rows with score [0, 0.5) died=1",
        "rows with score [0.5, 1] died=1",
    )
    assert run.sums == 1


def test_the_event_may_be_the_first_level(scored):
    score, outcome = scored
    words = np.where(outcome == 1, "dead", "home")
    one = asked(score, words).roc_auc("score", "died", event="dead")
    other = asked(score, words).roc_auc("score", "died", event="home")
    assert one.auc + other.auc == pytest.approx(1)
    assert one.cases == other.controls
    assert "is event the right level?" in str(other)


def test_one_case_has_no_error_by_delong():
    found = asked([0.1, 0.9, 0.3], [0, 1, 0]).roc_auc("score", "died")
    assert math.isnan(found.bse)
    assert found.facts()["bse"] is None
    assert (found.low, found.high) == (0, 1)
    assert found.auc == 1
    assert found.bse_hanley == 0


def test_perfect_scores_have_an_interval_of_one():
    found = asked([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]).roc_auc("score", "died")
    assert (found.auc, found.bse, found.low, found.high) == (1, 0, 1, 1)


@each_case(
    "options, text",
    [
        ({"edges": "01"}, "edges are the bins' borders"),
        ({"edges": 10}, "edges are the bins' borders"),
        ({"edges": ["low", "high"]}, "edges are numbers"),
        ({"edges": [None, 1]}, "edges are numbers"),
        ({"edges": [0]}, "give at least two edges that increase"),
        ({"edges": [0, 1, 1]}, "give at least two edges that increase"),
        ({"edges": [0, math.inf]}, "edges are finite"),
        ({"edges": range(10_002)}, "at most 10000 bins"),
        ({"bins": 0}, "bins is a number from 1 to 10000"),
        ({"bins": 2.5}, "bins is a number from 1"),
        ({"event": 2}, "event=2 is not a level of 'died'"),
    ],
)
def test_what_cannot_be_asked(options, text):
    with pytest.raises(ParameterError, match=text):
        asked([0.1, 0.9, 0.3], [0, 1, 0]).roc_auc("score", "died", **options)


def test_a_score_outside_the_bins_is_named():
    with pytest.raises(
        RangeError,
        match="south: column 'score': row 1 is outside the bins, 0 to 1; give edges that hold",
    ):
        asked([0.1, -0.9, 0.3], [0, 1, 0]).roc_auc("score", "died")
    rows = asked([0.1, 1e300, 0.3], [0, 1, 0], columns={"score": Column(bound=10**400)})
    with pytest.raises(RangeError, match="the bound of 'score' is larger than any float"):
        rows.roc_auc("score", "died")


def test_no_cases():
    columns = {"died": Column(levels=[0, 1])}
    with pytest.raises(ThresholdError, match="roc_auc: rows with died=1 over all sites"):
        asked([0.1, 0.9], [0, 0], 2, columns=columns).roc_auc("score", "died")
    with pytest.raises(ThresholdError, match="roc_auc: rows without died=1 over all sites"):
        asked([0.1, 0.9], [1, 1], 2, columns=columns).roc_auc("score", "died")


def test_missing_values_and_decimals():
    found = study(
        frame("pandas", score=[0.5, None, 0.25, 0.75], died=[1, 1, None, 0]),
        frame("polars", died=[0, 1], score=[0.1, 0.9]),
        frame("pyarrow", score=[], died=[]),
        missing="drop",
    ).roc_auc("score", "died")
    assert found.auc == roc_auc_score([1, 0, 0, 1], [0.5, 0.75, 0.1, 0.9])
