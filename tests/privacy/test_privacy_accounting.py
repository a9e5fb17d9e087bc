"""What answers cost together, against published values."""

import itertools
import math

import pytest
from cases import each_case, some_or_all

from securecomp.errors import BackendUnavailableError, ParameterError
from securecomp.privacy import accounting
from securecomp.privacy.accounting import (
    DiscreteGaussian,
    GaussianNoise,
    LaplaceNoise,
    Promised,
    Sampled,
    renyi,
    renyi_epsilon,
    total,
)
from securecomp.privacy.calibration import gaussian_epsilon

ABADI = [(Sampled(0.01, 4), 10_000)]
"""Abadi et al., Deep Learning with Differential Privacy (2016), section 3.2."""
ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(11, 64)) + [128, 256, 512, 1024]


def test_ten_thousand_samples():
    found = total(ABADI, 1e-5)
    assert found.bounds["RDP"] == pytest.approx(1.0355, abs=5e-5)
    assert found.bounds["PLD"] == pytest.approx(0.9470, abs=5e-5)
    assert (found.epsilon, found.accountant) == (found.bounds["PLD"], "PLD")
    assert found.bounds["plain"] > 100
    old = renyi_epsilon(ORDERS, renyi(ABADI, ORDERS), 1e-5, basic=True)
    assert old == pytest.approx(1.2584, abs=2e-4)
    assert round(old, 2) == 1.26  # the paper's


def test_a_constant_divergence():
    orders = range(2, 33)
    found = renyi_epsilon(orders, [1.1] * len(orders), 1e-5)
    assert found == pytest.approx(1.32783806176, abs=1e-10)


def test_samples_under_replace_one():
    with pytest.raises(ParameterError, match=r"RDP: Poisson samples under replace-one.*use PLD"):
        total(ABADI, 1e-5, "replace-one", "RDP")
    with pytest.raises(ParameterError, match="RDP: Poisson samples"):
        renyi(ABADI, ORDERS, "replace-one")
    found = total(ABADI, 1e-5, "replace-one")
    assert (found.accountant, set(found.bounds)) == ("PLD", {"PLD"})
    assert found.epsilon > total(ABADI, 1e-5).epsilon  # a contribution is exchanged, not lost
    assert "use PLD" in found.refused["RDP"]


def test_one_gaussian_is_the_analytic_one():
    found = total([(GaussianNoise(4), 1)], 1e-5)
    assert found.bounds["plain"] == gaussian_epsilon(4, 1e-5)
    assert found.epsilon <= found.bounds["plain"]
    assert found.bounds["PLD"] == pytest.approx(gaussian_epsilon(4, 1e-5), rel=1e-3)
    # n of them are as one with the noise over the root of n.
    many = total([(GaussianNoise(20), 25)], 1e-5)
    assert many.epsilon == pytest.approx(gaussian_epsilon(4, 1e-5), rel=1e-3)
    assert many.epsilon >= gaussian_epsilon(4, 1e-5) * (1 - 1e-9)


def test_laplace_needs_no_delta():
    found = total([(LaplaceNoise(2), 3), (LaplaceNoise(10), 1)], 0)
    assert (found.epsilon, found.accountant) == (pytest.approx(1.6), "plain")
    assert total([(LaplaceNoise(10), 100)], 1e-6).epsilon < 5
    with pytest.raises(ParameterError, match="no guarantee at delta 0"):
        total([(GaussianNoise(2), 3), (LaplaceNoise(10), 1)], 0)


def test_discrete_gaussian():
    one, vector = DiscreteGaussian(5.0), DiscreteGaussian(5.0, 1, vector=True)
    found = total([(one, 100)], 1e-6)
    assert found.epsilon == pytest.approx(total([(GaussianNoise(5), 100)], 1e-6).epsilon, rel=1e-2)
    several = total([(vector, 100)], 1e-6)
    assert (several.accountant, set(several.bounds)) == ("RDP", {"plain", "RDP"})
    assert several.bounds["RDP"] == pytest.approx(
        total([(GaussianNoise(5), 100)], 1e-6).bounds["RDP"], rel=1e-9
    )
    # The same noise for three times the sensitivity.
    assert total([(DiscreteGaussian(15.0, 9), 1)], 1e-6).epsilon == pytest.approx(
        total([(one, 1)], 1e-6).epsilon, rel=1e-2
    )
    assert "PLD" not in total([(DiscreteGaussian(5.0, 2), 1)], 1e-6).bounds


def test_what_is_only_promised():
    found = total([(Promised(0.1, 1e-8), 10), (GaussianNoise(5), 3), (LaplaceNoise(4), 1)], 1e-6)
    assert set(found.bounds) == {"plain", "PLD"}
    assert found.bounds["PLD"] < found.bounds["plain"]
    with pytest.raises(ParameterError, match="add up to more than the given delta"):
        total([(Promised(0.1, 1e-6), 2)], 1e-6)
    assert total([(Promised(0.1), 2)], 0).epsilon == pytest.approx(0.2)


@each_case(
    "steps, known",
    [
        # The library's transform said 7.013, 6.884, 6.936: less for less delta, and too little.
        ([(Sampled(0.001, 0.6), 10_000)], {2e-12: 6.865, 1.2e-12: 7.003, 1e-12: 7.052}),
        ([(Sampled(1e-5, 0.4), 10**6)], {1e-12: 9.882}),
    ],
)
def test_a_small_delta_is_not_lost_in_rounding(steps, known):
    for delta, epsilon in known.items():
        found = total(steps, delta)
        assert found.epsilon == pytest.approx(epsilon, abs=3e-3)
        assert found.accountant == "PLD"


@each_case(
    "steps",
    [
        [(Sampled(0.001, 0.8), 1000)],
        [(Sampled(0.1, 1.0), 100), (LaplaceNoise(5), 3)],
        [(GaussianNoise(50), 10_000), (DiscreteGaussian(4.0, 1), 2)],
        [(LaplaceNoise(1), 300)],
        [(GaussianNoise(0.5), 10)],
        [(DiscreteGaussian(30.0, 9, vector=True), 10)],
        [(Promised(0.1, 1e-200), 100)],
    ],
)
@some_or_all("powers", (3, 11.9, 12.05, 99, 101), (3, 9, 11.7, 11.9, 12, 12.05, 60, 99, 101))
def test_less_delta_never_costs_less(steps, powers):
    """Over all orders of magnitude, also where one accountant gives way to another."""
    found = [total(steps, 10.0**-power) for power in powers]
    assert all(a.epsilon <= b.epsilon for a, b in itertools.pairwise(found))
    for one in found:  # but for the grid
        assert one.bounds.get("PLD", 0) <= one.bounds.get("RDP", math.inf) * 1.001


@each_case("relation", ["add/remove", "replace-one"])
@each_case("times", [1, 9])
@each_case("delta", [1e-3, 1e-6, 1e-12, 1e-18])
def test_no_accountant_promises_less_than_there_is(relation, times, delta):
    """A whole sample has a formula: a unit that is replaced goes and comes, twice the change."""
    ratio = 2.0 if relation == "add/remove" else 1.0
    exact = gaussian_epsilon(ratio / math.sqrt(times), delta)
    rate = 1 if times == 1 else 1.0
    found = total([(Sampled(rate, 2.0), times)], delta, relation)
    assert set(found.bounds) >= {"plain", "PLD"}
    for name, epsilon in found.bounds.items():
        assert epsilon >= exact * (1 - 1e-9), name
    assert found.epsilon <= exact * 1.001


@each_case("steps", [ABADI, [(LaplaceNoise(3), 7), (GaussianNoise(2), 2)]])
def test_the_tightest_is_named(steps):
    found = total(steps, 1e-5)
    assert found.epsilon == min(found.bounds.values()) == found.bounds[found.accountant]
    for name in found.bounds:
        alone = total(steps, 1e-5, accountant=name)
        assert (alone.epsilon, alone.accountant) == (found.bounds[name], name)


def test_more_answers_cost_more():
    for mechanism in (LaplaceNoise(5), GaussianNoise(5), DiscreteGaussian(5.0), Sampled(0.1, 2)):
        found = [total([(mechanism, n)], 1e-5).epsilon for n in (1, 5, 25)]
        assert found == sorted(found)
        assert found[0] < found[2] <= 25 * found[0]


@each_case(
    "mechanism",
    [
        LaplaceNoise(1e-3),
        GaussianNoise(1e-2),
        GaussianNoise(1e4),
        LaplaceNoise(1e4),
        Sampled(1, 1e-2),
    ],
)
def test_far_too_little_and_far_too_much_noise_end(mechanism):
    assert 0 <= total([(mechanism, 1000)], 1e-5).epsilon < math.inf


def test_a_whole_sample_is_no_sample():
    assert total([(Sampled(1.0, 3), 4)], 1e-5).epsilon == pytest.approx(
        total([(GaussianNoise(3), 4)], 1e-5).epsilon, rel=1e-6
    )


@each_case(
    "steps, message",
    [
        ([], "nothing was answered"),
        ([(LaplaceNoise(0), 1)], "ratio of noise is a finite number above 0"),
        ([(GaussianNoise(math.nan), 1)], "ratio of noise is a finite number above 0"),
        ([(GaussianNoise(1), 0)], "how often a mechanism answered"),
        ([(GaussianNoise(1), 1.5)], "how often a mechanism answered"),
        ([(Sampled(0, 1), 1)], "sampling rate"),
        ([(Sampled(1.1, 1), 1)], "sampling rate"),
        ([(Sampled(math.nan, 1), 1)], "sampling rate"),
        ([(DiscreteGaussian(2.0, 0), 1)], "the squared sensitivity"),
        ([(DiscreteGaussian(2.0, 1.5), 1)], "the squared sensitivity"),
        ([(Promised(0.0), 1)], "promised epsilon"),
        ([(Promised(1.0, 1.0), 1)], "delta is a probability"),
    ],
)
def test_steps_that_make_no_sense(steps, message):
    with pytest.raises(ParameterError, match=message):
        total(steps, 1e-5)


@each_case("delta", [-1, 1, math.nan])
def test_a_delta_that_is_none(delta):
    with pytest.raises(ParameterError, match="delta"):
        total([(LaplaceNoise(1), 1)], delta)


def test_without_the_library(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(accounting.importlib, "import_module", absent)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'securecomp\[privacy\]'"):
        total([(GaussianNoise(1), 1)], 1e-5)
    assert total([(LaplaceNoise(2), 2)], 0, accountant="plain").epsilon == 1
