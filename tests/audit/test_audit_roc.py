"""The ROC curve: scikit-learn's numbers, ties, intervals that cover, laws."""

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve

from securecomp.audit.membership.roc_curve import Roc, rows_needed
from securecomp.errors import ParameterError

SCORES = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=40)


def labels(members, holdout):
    return np.r_[np.ones(len(members)), np.zeros(len(holdout))], np.r_[members, holdout]


@given(SCORES, SCORES)
def test_area_and_curve_are_scikit_learns(members, holdout):
    roc = Roc(members, holdout)
    truth, scores = labels(members, holdout)
    assert roc.area().value == pytest.approx(roc_auc_score(truth, scores))
    alarms, found, _ = roc_curve(truth, scores, drop_intermediate=False)
    x, y = roc.curve()
    np.testing.assert_allclose(x, alarms)
    np.testing.assert_allclose(y, found)


@given(SCORES, SCORES)
def test_only_the_order_counts(members, holdout):
    roc = Roc(members, holdout)
    for other in (
        Roc(np.exp(members), np.exp(holdout)),
        Roc(np.multiply(3, members) - 7, np.multiply(3, holdout) - 7),
        Roc(members[::-1], holdout[::-1]),
    ):
        assert other.area() == roc.area()
        assert other.advantage() == roc.advantage()
        assert [c.tolist() for c in other.counts()] == [c.tolist() for c in roc.counts()]


@given(SCORES, SCORES)
def test_an_interval_has_its_estimate_and_turns_with_the_scores(members, holdout):
    area = Roc(members, holdout).area()
    assert 0 <= area.low <= area.value + 1e-12
    assert area.value - 1e-12 <= area.high <= 1
    turned = Roc(np.negative(members), np.negative(holdout)).area()
    assert turned.value == pytest.approx(1 - area.value)
    assert turned.low == pytest.approx(1 - area.high)


@given(SCORES, SCORES, st.sampled_from([0.1, 0.25, 0.5]))
def test_a_detection_by_counting(members, holdout, rate):
    if len(holdout) < rows_needed(rate):
        return
    found = Roc(members, holdout).detection(rate)
    # The best of all thresholds that accuse no more of the holdout than was asked for.
    best = max(
        np.mean(np.array(members) > t)
        for t in [*members, *holdout, -9.0]
        if np.mean(np.array(holdout) > t) <= rate
    )
    assert found.found == pytest.approx(best)
    assert found.accused == np.sum(np.array(holdout) > found.threshold)
    assert 0 <= found.low <= found.high <= 1


def test_infinite_scores_are_ordered():
    roc = Roc([np.inf, 0.0, -np.inf], [-np.inf, 0.0])
    assert roc.area().value == pytest.approx((1 + 1 + 0.5 + 1 + 0 + 0.5) / 6)


def test_delong_is_near_the_bootstrap():
    rng = np.random.default_rng(0)
    members, holdout = np.round(rng.normal(0.7, 1, 150), 1), np.round(rng.normal(0, 1, 200), 1)
    area = Roc(members, holdout).area()
    draws = [
        Roc(rng.choice(members, 150), rng.choice(holdout, 200)).area().value for _ in range(1000)
    ]
    assert (area.high - area.low) / 2 / 1.96 == pytest.approx(np.std(draws), rel=0.1)


def test_a_perfect_attack_has_an_interval():
    area = Roc(np.ones(50), np.zeros(60)).area()
    assert area.value == area.high == 1
    # As 50 of 50 successes, by Agresti and Coull's interval.
    centre = 52 / 54
    margin = stats.norm.isf(0.025) * np.sqrt(centre * (1 - centre) / 54)
    assert area.low == pytest.approx(centre - margin, abs=0.01)
    assert Roc([1.0], [0.0]).area().low < 0.5


def covers(truth, interval, runs, level=0.9):
    """Whether an interval has the truth at least as often as it should."""
    inside = sum(low <= truth <= high for low, high in (interval() for _ in range(runs)))
    return stats.binomtest(inside, runs, level, "less").pvalue > 1e-3


def test_intervals_cover_the_truth():
    rng = np.random.default_rng(1)

    def roc():
        return Roc(rng.normal(1, 1, 150), rng.normal(0, 1, 300))

    def area():
        found = roc().area(0.9)
        return found.low, found.high

    def detected():
        found = roc().detection(0.05, 0.9)
        return found.low, found.high

    def advantage():
        found = roc().advantage(0.9)
        return found.low, found.high

    assert covers(stats.norm.cdf(1 / np.sqrt(2)), area, 300)
    assert covers(stats.norm.sf(stats.norm.isf(0.05) - 1), detected, 300)
    assert covers(2 * stats.norm.cdf(0.5) - 1, advantage, 100)


@each_case("few, many", [(20, 1000), (30, 30), (8, 8)])
@each_case("shift", [0, 2, 3])
def test_the_areas_interval_covers_near_1_and_for_few_rows(few, many, shift):
    """DeLong's alone covers two thirds of the time there, where it should in nineteen of twenty."""
    rng = np.random.default_rng(3)

    def area():
        found = Roc(rng.normal(shift, 1, few), rng.normal(0, 1, many)).area()
        return found.low, found.high

    assert covers(stats.norm.cdf(shift / np.sqrt(2)), area, 200, 0.95)


def test_a_detections_interval_covers_where_scores_are_equal():
    """Of rounded scores, the rate is that of the smallest threshold that does not exceed it."""
    rng = np.random.default_rng(2)

    # Others have 0, 1, 2 with .9, .06, .04; members .5, .2, .3: at 5 % the threshold is 1.
    def detected():
        members = rng.choice(3, 200, p=[0.5, 0.2, 0.3])
        found = Roc(members, rng.choice(3, 400, p=[0.9, 0.06, 0.04])).detection(0.05, 0.9)
        return found.low, found.high

    assert covers(0.3, detected, 200)


@each_case("size, rate", [(150, 0.05), (400, 0.02), (1000, 0.3)])
def test_a_detections_interval_by_another_way(size, rate):
    """Thresholds whose rate surely is not higher, and not lower, by scipy's beta distribution."""
    rng = np.random.default_rng(3)
    members, holdout = rng.normal(1, 1, 200), np.sort(rng.normal(0, 1, size))
    lower = [k for k in range(1, size + 1) if stats.beta.sf(rate, k, size + 1 - k) <= 0.0125]
    higher = [k for k in range(1, size + 1) if stats.beta.cdf(rate, k, size + 1 - k) <= 0.0125]
    low = high = None
    if lower:
        hits = int((members > holdout[-max(lower)]).sum())
        low = stats.beta.ppf(0.0125, hits, 201 - hits)
    if higher:
        hits = int((members > holdout[-min(higher)]).sum())
        high = stats.beta.ppf(0.9875, hits + 1, 200 - hits)
    found = Roc(members, holdout).detection(rate)
    assert found.low == pytest.approx(low or 0.0)
    assert found.high == pytest.approx(high or 1.0)


def test_the_advantages_interval():
    found = Roc(np.r_[np.ones(80), np.zeros(20)], np.r_[np.ones(30), np.zeros(70)]).advantage()
    slack = 2 * np.sqrt(np.log(4 / 0.05) / 200)  # Massart's constant, half of the failure a side
    assert found.value == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx((0.5 - slack, 0.5 + slack))


def test_rows_needed():
    assert [rows_needed(rate) for rate in (0.001, 0.01, 0.3, 0.5)] == [1000, 100, 4, 2]
    for rate in (0, 1, -1, 2, True):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            rows_needed(rate)


def test_a_holdout_that_is_too_small():
    with pytest.raises(ParameterError, match=r"0.1 % needs at least 1,000 rows.*there are 999"):
        Roc(np.ones(10), np.zeros(999)).detection(0.001)
    assert Roc(np.ones(10), np.zeros(1000)).detection(0.001).found == 1


@each_case("scores", [[], [[1.0]], [np.nan, 1.0], ["a"]])
def test_scores_that_are_none(scores):
    with pytest.raises(ParameterError, match="members"):
        Roc(scores, [0.0])
