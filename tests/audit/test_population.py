"""Estimates of the population: against sums, and against populations that are known."""

import math
from itertools import pairwise

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import nbinom

from securecomp.audit.reidentification.population import (
    estimate,
    parameters,
    pitman,
    right_match,
    zayatz,
)


def matched(size, fraction, alpha=0.0):
    """E[1/F] for groups of `size`; theta 0, so that without alpha the fraction is all there is."""
    sample = 10**6
    sizes = np.atleast_1d(np.array(size))
    return right_match(sizes, (alpha, 0.0), sample, round(sample / fraction))


@each_case("fraction", [0.8, 0.5, 0.1, 0.01])
@each_case("size", [1, 2, 7, 40])
@each_case("alpha", [0, 0.4, 0.95])
def test_right_match_is_the_mean_of_one_over_a_negative_binomial(size, fraction, alpha):
    beyond = np.arange(0, int(60 * size / fraction))
    wanted = (nbinom.pmf(beyond, size - alpha, fraction) / (beyond + size)).sum()
    assert matched(size, fraction, alpha)[0] == pytest.approx(wanted, rel=1e-6)


def test_right_match_of_one_as_published():
    # Benedetti & Franconi: for f = 1 it is p / (1 - p) log(1 / p).
    assert matched(1, 0.2)[0] == pytest.approx(0.25 * math.log(5))
    assert matched([1, 4], 1).tolist() == [1, 0.25]


@each_case("fraction", [0.8, 1e-3, 1e-6, 1e-9])
@each_case("alpha", [0, 1e-12, 0.3, 0.9])
def test_right_match_of_any_size(fraction, alpha):
    sizes = np.array([1, 2, 3, 19, 20, 21, 22, 99, 1000, 10**6])
    found = matched(sizes, fraction, alpha)
    assert ((found > 0) & (found <= 1 / sizes)).all()
    # E[1/F] is the integral over s in 0..1 of s^(f-1) E[s^(F-f)].
    for size, value in zip(sizes.tolist(), found, strict=True):

        def integrand(u, size=size):
            return math.exp(
                (size - 1) * math.log1p(-u) - (size - alpha) * math.log1p((1 / fraction - 1) * u)
            )

        ends = [0, *np.geomspace(1e-9 * min(1, fraction), 0.999, 40), 1 - 1e-12]
        parts = [quad(integrand, a, b, epsabs=0, limit=200)[0] for a, b in pairwise(ends)]
        assert value == pytest.approx(sum(parts), rel=1e-6, abs=0), size


def spectrum(sizes):
    return np.unique(sizes, return_counts=True)


def sample(population, fraction, seed):
    """The sizes that groups of a population have in it and in a sample."""
    rng = np.random.default_rng(seed)
    whole = np.bincount(population)
    drawn = np.bincount(population[rng.random(len(population)) < fraction], minlength=len(whole))
    return whole, drawn


def ewens_pitman(people, alpha, theta, seed):
    """The group of each of some people, by the sequential scheme that defines the model."""
    rng = np.random.default_rng(seed)
    tables, counts = np.empty(people, np.int64), []
    for n in range(people):
        if rng.random() < (theta + alpha * len(counts)) / (theta + n):
            tables[n] = len(counts)
            counts.append(1)
            continue
        # A person before, whose group is joined with probability (size - alpha) / (n - alpha k).
        while True:
            table = tables[rng.integers(n)]
            if rng.random() < 1 - alpha / counts[table]:
                break
        tables[n] = table
        counts[table] += 1
    return tables


def test_pitman_on_its_own_model():
    groups = ewens_pitman(60_000, 0.6, 30.0, 1)
    truth, found = [], []
    for seed in range(5):
        whole, drawn = sample(groups, 0.1, seed)
        ones = (drawn == 1).sum()
        truth.append(((drawn == 1) & (whole == 1)).sum() / ones)
        values, times = spectrum(drawn[drawn > 0])
        model = parameters(values, times)
        assert model[0] == pytest.approx(0.6, abs=0.1)
        found.append(pitman(model, int(values @ times), len(groups)))
    assert np.mean(found) == pytest.approx(np.mean(truth), rel=0.1)


def test_zayatz_with_a_large_fraction():
    groups = np.random.default_rng(2).zipf(1.6, 40_000) % 30_000
    whole, drawn = sample(groups, 0.7, 3)
    ones = drawn == 1
    truth = (ones & (whole == 1)).sum() / ones.sum()
    assert zayatz(*spectrum(drawn[drawn > 0]), len(groups)) == pytest.approx(truth, rel=0.1)


def test_zayatz_by_its_sum():
    values, times, population = np.array([1, 2, 5]), np.array([6, 3, 2]), 50
    n = int(values @ times)
    seen = {
        i: i * math.comb(population - i, n - 1) / math.comb(population, n) for i in values.tolist()
    }
    weights = {i: t * seen[i] for i, t in zip(values.tolist(), times.tolist(), strict=True)}
    wanted = weights[1] / sum(weights.values())
    assert zayatz(values, times, population) == pytest.approx(wanted, rel=1e-9)


@each_case("fraction", [0.02, 0.2, 0.6])
def test_matches_with_known_populations(fraction):
    groups = np.random.default_rng(4).zipf(1.4, 100_000) % 50_000
    truth, found = [], []
    for seed in range(5):
        whole, drawn = sample(groups, fraction, seed)
        ones = drawn == 1
        there = drawn > 0
        journalist = (drawn[there] / whole[there]).sum() / drawn.sum()
        truth.append((ones.sum() / whole[ones].sum(), journalist))
        sizes = drawn[there]
        smallest = np.repeat(sizes, sizes)
        made = estimate(sizes, smallest, round(len(smallest) / fraction))
        found.append((made.match, made.journalist_mean))
    assert np.mean(found, 0) == pytest.approx(np.mean(truth, 0), rel=0.1)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.floats(0.001, 1))
def test_estimates_are_probabilities(sizes, fraction):
    sizes = np.array(sizes)
    smallest = np.repeat(sizes, sizes)
    found = estimate(sizes, smallest, round(len(smallest) / fraction))
    for name in ("match", "zayatz", "pitman", "journalist_mean", "journalist_smallest"):
        value = getattr(found, name)
        assert value is None or 0 <= value <= 1 + 1e-12, name
    if found.journalist_mean is not None:
        prosecutor = (1 / smallest).mean()
        assert found.journalist_mean <= prosecutor * (1 + 1e-12)
        assert found.journalist_smallest <= 1 / sizes.min() * (1 + 1e-12)


def test_the_whole_population():
    sizes = np.array([1, 1, 2, 3])
    found = estimate(sizes, np.array([1, 1, 2, 2, 3, 3, 3]), 7)
    assert (found.fraction, found.match, found.zayatz, found.pitman) == (1, 1, 1, 1)
    assert found.journalist_mean == pytest.approx(4 / 7)
    assert found.journalist_smallest == 1


def test_nobody_or_everybody_alone():
    everybody = estimate(np.ones(9, int), np.ones(9, int), 90)
    assert (everybody.pitman, everybody.journalist_mean) == (None, None)
    assert everybody.zayatz == 1
    nobody = estimate(np.array([3, 3]), np.full(6, 3), 60)
    assert (nobody.match, nobody.zayatz, nobody.pitman) == (None, None, None)
