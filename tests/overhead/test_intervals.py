"""The bootstrap interval of a median: against every resample, scipy's, and what it promises."""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.stats
from cases import named
from hypothesis import given, settings
from hypothesis import strategies as st

from securecomp.overhead import intervals


def test_every_resample():
    for values in [
        [3.0],
        [5, 1],
        [2, 9, 4],
        [2, 9, 4, 11],
        [5, 5, 1, 2],
        [1, 2, 4, 8, 16],
        [6, 1, 4, 1, 5, 9],
    ]:
        with named(values):
            medians = Counter(
                float(np.median(s)) for s in itertools.product(values, repeat=len(values))
            )
            points, weights = intervals.resampled(values)
            assert (np.diff(points) >= 0).all()
            found = Counter()
            for point, weight in zip(points, weights, strict=True):
                found[float(point)] += weight
            total = len(values) ** len(values)
            assert {p: w for p, w in found.items() if w > 1e-15} == pytest.approx(
                {median: count / total for median, count in medians.items()}, abs=1e-12
            )


def test_scipy_draws_the_same():
    for number in [15, 40, 101]:
        with named(number):
            rng = np.random.default_rng(number)
            values = rng.lognormal(size=number)
            drawn = scipy.stats.bootstrap(
                (values,), np.median, n_resamples=20_000, method="percentile", rng=rng
            ).confidence_interval
            spread = intervals.spread(values)
            for ours, theirs in ((spread["low"], drawn.low), (spread["high"], drawn.high)):
                # Between neighbouring samples: the simulation's quantile is a little off.
                assert abs((values <= ours).sum() - (values <= theirs).sum()) <= 1
            assert spread["median"] == np.median(values)
            assert [spread["q1"], spread["q3"]] == np.percentile(values, [25, 75]).tolist()


def test_it_covers_the_median_as_often_as_it_says():
    for number in [15, 40]:
        for draw in ["lognormal", "normal", "exponential"]:
            with named(number, draw):
                rng = np.random.default_rng(1)
                truth = {"lognormal": 1.0, "normal": 0.0, "exponential": np.log(2)}[draw]
                spreads = [intervals.spread(getattr(rng, draw)(size=number)) for _ in range(1000)]
                covered = np.mean([s["low"] <= truth <= s["high"] for s in spreads])
                assert 0.92 <= covered <= 0.985


def test_the_ratio_of_two_runs_covers_the_true_one():
    rng = np.random.default_rng(2)

    def ratio():
        return intervals.ratio_of_medians(
            2 * rng.lognormal(sigma=0.3, size=21), rng.lognormal(sigma=0.3, size=16)
        )

    found = [ratio() for _ in range(400)]
    assert 0.92 <= np.mean([r["low"] <= 2 <= r["high"] for r in found]) <= 0.99
    assert np.mean([r["low"] > 1 for r in found]) > 0.95  # and it finds what is there


def test_the_ratio_is_that_of_all_pairs_of_medians():
    first, second = [1.0, 2.0, 3.5, 4.0, 8.0, 9.0, 11.0], [0.5, 0.7, 1.0, 1.1, 1.3, 2.0, 2.5]
    (a, of_a), (b, of_b) = intervals.resampled(first), intervals.resampled(second)
    ratios, weights = np.divide.outer(a, b).ravel(), np.outer(of_a, of_b).ravel()
    order = np.argsort(ratios)
    below = np.cumsum(weights[order])
    ends = [float(ratios[order][np.searchsorted(below, p)]) for p in (0.025, 0.975)]
    found = intervals.ratio_of_medians(first, second)
    assert [found["low"], found["high"]] == pytest.approx(ends, rel=1e-9)
    assert found["median"] == 4.0 / 1.1


def test_few_samples_have_no_interval():
    assert intervals.spread([1, 2, 3, 4, 5])["low"] is None
    assert intervals.spread([1, 2, 3, 4, 5, 6])["low"] is not None
    assert intervals.ratio_of_medians([1.0] * 5, [2.0] * 9) == {
        "median": 0.5,
        "low": None,
        "high": None,
    }


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1e3), min_size=6, max_size=30), st.floats(1e-3, 1e3))
def test_laws(values, scale):
    found = intervals.spread(values)
    assert min(values) <= found["low"] <= found["median"] <= found["high"] <= max(values)
    assert intervals.spread(values[::-1]) == found
    larger = intervals.spread([scale * value for value in values])
    assert [larger[e] for e in ("low", "median", "high")] == pytest.approx(
        [scale * found[e] for e in ("low", "median", "high")]
    )
    assert np.isclose(intervals.resampled(values)[1].sum(), 1)


def test_neighbours_are_compared_with_each_other():
    # A busy moment hits both sides of a pair: the ratio stays.
    assert intervals.ratio([2.0, 20.0, 4.0], [1.0, 10.0, 2.0])["q3"] == 2.0
