"""ROC curves against scikit-learn on the pooled rows, and DeLong's error as it was published."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from cases import each_case, examples, named, some_or_all
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sites import frame, study
from sklearn.metrics import roc_auc_score, roc_curve

from securecomp import Column
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.statistics.comparisons import roc_area


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
@examples(40)
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


def recounted(found, score, outcome):
    """Check every bin of a result against the rows."""
    assert list(found.edges) == sorted(set(found.edges))
    bins = [*found.edges[:-1], np.inf]
    for level, counts in ((1, found.cases), (0, found.controls)):
        here = np.asarray(score, float)[np.asarray(outcome) == level]
        assert np.histogram(here, bins)[0].tolist() == list(counts)
        assert (here <= found.edges[-1]).all()


class TestChosenBins:
    """Bins are where the scores are, whatever their bound."""

    @each_case(
        "scale, shift, bound",
        [
            (1, 0, None),
            (1, 0, 10**6),
            (1, 0, 10**12),
            (1e-4, 0, 1),
            (1, 10**6, 10**7),
            (50, 0, 999),
        ],
    )
    @each_case("protocol", ["sharing", "masking"])
    def test_a_wide_bound_costs_no_bins(self, scored, scale, shift, bound, protocol):
        score, outcome = np.round(scored[0] * scale, 7) + shift, scored[1]
        columns = {} if bound is None else {"score": Column(bound=bound)}
        found = asked(score, outcome, columns=columns, protocol=protocol).roc_auc("score", "died")
        true = roc_auc_score(outcome, score)
        assert found.auc_low <= true <= found.auc_high
        assert found.auc == pytest.approx(true, abs=1e-3)
        assert found.auc_high - found.auc_low < 0.01
        assert len(found.cases) <= 100
        assert 1 < found.run.sums < 25
        recounted(found, score, outcome)

    def test_skewed_scores(self):
        """Most risks are small: equal bins of [0, 1] tell few of them apart."""
        rng = np.random.default_rng(2)
        risk = np.exp(rng.normal(-6, 1, 3000)).clip(0, 1).round(7)
        outcome = (rng.random(3000) < 30 * risk.clip(0, 0.03)).astype(int)
        found = asked(risk, outcome).roc_auc("score", "died")
        equal = asked(risk, outcome).roc_auc("score", "died", edges=np.linspace(0, 1, 101))
        true = roc_auc_score(outcome, risk)
        assert abs(found.auc - true) < 5e-4
        assert found.auc_high - found.auc_low < (equal.auc_high - equal.auc_low) / 10

    def test_few_different_scores_are_exact(self, scored):
        score, outcome = (scored[0] * 40 - 15).astype(int), scored[1]
        columns = {"score": Column(bound=10**9, decimals=0)}
        found = asked(score, outcome, columns=columns).roc_auc("score", "died")
        true = roc_auc_score(outcome, score)
        assert found.auc == pytest.approx(true, rel=1e-14)
        assert found.auc_low == found.auc_high == found.auc
        assert not any("more bins narrow it" in text for text in found.remarks())
        recounted(found, score, outcome)

    @examples(60)
    @given(
        st.lists(st.tuples(st.integers(-999, 999), st.booleans()), min_size=2, max_size=40),
        st.sampled_from([1, 10, 999, 10**5]),
        st.sampled_from([1, 2, 3, 7, 30, 200]),
    )
    def test_any_scores(self, rows, scale, bins):
        outcome = [True, False, *(died for _, died in rows[2:])]
        score = [value / scale for value, _ in rows]
        found = asked(score, outcome).roc_auc("score", "died", bins=bins)
        true = roc_auc_score(outcome, score)
        assert found.auc_low - 1e-12 <= true <= found.auc_high + 1e-12
        assert len(found.cases) <= bins
        recounted(found, score, np.array(outcome, int))
        if bins == 200:
            assert found.auc == pytest.approx(true, rel=1e-12)

    def test_edges_are_round(self, scored):
        found = asked(*scored).roc_auc("score", "died")
        assert all(round(edge, 3) == edge for edge in found.edges)

    def test_what_is_opened(self):
        asked_ = asked([0.0, 0.2, 1.0, 0.7], [0, 1, 1, 0])
        run = asked_.roc_auc("score", "died", edges=[0, 0.5, 1]).run
        assert run.opened == (
            "rows with score [0, 0.5) died=0",
            "rows with score [0.5, 1] died=0",
            "rows with score [0, 0.5) died=1",
            "rows with score [0.5, 1] died=1",
        )
        assert run.sums == 1
        run = asked_.roc_auc("score", "died", bins=3).run
        assert run.opened[:4] == (
            "rows with score [-1, 0) died=0",
            "rows with score [0, 1] died=0",
            "rows with score [-1, 0) died=1",
            "rows with score [0, 1] died=1",
        )
        assert run.opened[4:6] == (
            "rows with score [0, 0.5) died=0",
            "rows with score [0.5, 1] died=0",
        )
        assert run.sums == 3


def test_the_event_may_be_the_first_level(scored):
    score, outcome = scored
    words = np.where(outcome == 1, "dead", "home")
    one = asked(score, words).roc_auc("score", "died", event="dead")
    other = asked(score, words).roc_auc("score", "died", event="home")
    assert one.auc + other.auc == pytest.approx(1)
    assert one.cases == other.controls
    assert "is event the right level?" in str(other)


@each_case("outcome", [[0, 1, 0], [1, 0, 1]])
def test_of_one_case_no_error_is_known(outcome):
    found = asked([0.1, 0.9, 0.3], outcome).roc_auc("score", "died")
    assert math.isnan(found.bse)
    assert math.isnan(found.bse_hanley)
    assert found.facts()["bse"] is found.facts()["bse_hanley"] is None
    assert found.auc in (0, 1)
    assert 0.2 < abs(found.low - found.high) < 0.8
    assert "a single c" in str(found)
    assert "how much another would differ is not known" in " ".join(str(found).split())


@each_case("rows", [2, 10, 100])
def test_an_area_of_one_has_an_interval(rows):
    score = np.r_[np.arange(rows), 1000 + np.arange(rows)]
    outcome = np.arange(2 * rows) // rows
    found = asked(score, outcome).roc_auc("score", "died", bins=500)
    assert (found.auc, found.bse, found.bse_hanley, found.high) == (1, 0, 0, 1)
    assert found.low == pytest.approx(newcombe(1, rows, rows, 0.95)[0], abs=2e-6)
    assert "standard errors of 0 say nothing of other rows" in " ".join(str(found).split())
    other = asked(score, 1 - outcome).roc_auc("score", "died", bins=500)
    assert (other.low, other.high) == pytest.approx((0, 1 - found.low), abs=1e-9)


def newcombe(area, m, n, level):
    """Newcombe 2006, method 5, by a grid: the areas whose own error reaches ours."""
    theta = np.linspace(0, 1, 2_000_001)[1:-1]
    others = (m + n) / 2 - 1
    own = 1 + others * ((1 - theta) / (2 - theta) + theta / (1 + theta))
    z = stats.norm.ppf((1 + level) / 2)
    inside = np.abs(theta - area) <= z * np.sqrt(theta * (1 - theta) * own / (m * n))
    return theta[inside].min(), theta[inside].max()


NEWCOMBE = [
    (m, n, area, level)
    for m, n in [(1, 1), (1, 40), (12, 5), (58, 51)]
    for area in [0, 0.1, 0.5, 0.893, 0.999, 1]
    for level in [0.5, 0.95, 0.999]
]


@some_or_all("cases", NEWCOMBE[::5], NEWCOMBE)
def test_newcombes_interval(cases):
    for m, n, area, level in cases:
        with named(m, n, area, level):
            is_newcombes(m, n, area, level)


def is_newcombes(m, n, area, level):
    found = roc_area.newcombe(area, m, n, stats.norm.ppf((1 + level) / 2))
    assert found == pytest.approx(newcombe(area, m, n, level), abs=2e-6)


@each_case("shift, spread, m, n", [(3, 1, 15, 15), (2.5, 2, 10, 30), (0.5, 1, 40, 8), (4, 1, 5, 5)])
def test_the_interval_covers_what_it_should(shift, spread, m, n):
    rng = np.random.default_rng(6)
    true = stats.norm.cdf(shift / math.hypot(1, spread))
    hits = 0
    for _ in range(1500):
        x, y = rng.normal(shift, spread, m), rng.normal(0, 1, n)
        area = float((x[:, None] > y).mean())
        low, high = roc_area.newcombe(area, m, n, 1.959964)
        hits += low <= true <= high
    assert 0.925 < hits / 1500 < 0.995


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
        asked([0.1, -0.9, 0.3], [0, 1, 0]).roc_auc("score", "died", edges=[0, 1])
    assert asked([0.1, -0.9, 0.3], [0, 1, 0]).roc_auc("score", "died").auc == 0
    rows = asked([0.1, 1e300, 0.3], [0, 1, 0], columns={"score": Column(bound=10**400)})
    with pytest.raises(RangeError, match="the bound of 'score' is larger than any float"):
        rows.roc_auc("score", "died")


def test_no_cases():
    columns = {"died": Column(levels=[0, 1])}
    with pytest.raises(ThresholdError, match="roc_auc: rows with score and died over all sites"):
        asked([], [], 2, columns={**columns, "score": Column(bound=1)}).roc_auc("score", "died")
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
