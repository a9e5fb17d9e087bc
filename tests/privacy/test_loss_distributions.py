"""Sums of privacy losses: against sums without a transform, closed forms and fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from scipy import stats

from securecomp.privacy import loss_distributions
from securecomp.privacy.calibration import gaussian_delta, gaussian_epsilon
from securecomp.privacy.loss_distributions import (
    Losses,
    discrete_gaussian,
    epsilon_of,
    exchanged,
    gaussian,
    laplace,
    promised,
    sampled,
)

REACH = 25.0  # standard deviations; beyond lies less than 1e-136
FAR = [1e-3, 1e-6, 1e-12, 1e-17, 1e-30, 1e-60, 1e-99]


def delta_of(one, epsilon):
    """Return the delta of losses on a grid, from the definition."""
    losses = (one.lowest + np.arange(len(one.masses))) * one.width
    above = losses > epsilon
    return one.infinite - float(np.expm1(epsilon - losses[above]) @ one.masses[above])


def added_up(one, times):
    """Compose by convolving positive numbers: no sum of them loses a small one."""
    found, lowest = np.ones(1), 0
    masses = one.masses
    for bit in bin(times)[2:]:
        found, lowest = np.convolve(found, found), 2 * lowest
        if bit == "1":
            found, lowest = np.convolve(found, masses), lowest + one.lowest
    infinite = -math.expm1(times * math.log1p(-one.infinite))
    return Losses(one.width, lowest, found, infinite, 0.0)


@pytest.mark.parametrize("times", [1, 7, pytest.param(120, marks=pytest.mark.slow)])
def test_compositions_are_those_of_plain_sums(times):
    """The tilt and the transform lose nothing, and what they add on top is not seen."""
    for one in (*sampled(0.02, 0.7, REACH, 0.05), gaussian(3.0, REACH, 0.05)):
        whole = added_up(one, times)
        for delta in FAR:
            found = epsilon_of([(one, times)], delta)
            assert delta_of(whole, found) <= delta * (1 + 1e-12)
            if found > 0:
                assert delta_of(whole, found - 1e-5) > delta


@each_case("delta", FAR)
@each_case(
    "ratio, times, width", [(4, 1, 1e-3), (20, 25, 1e-4), (50, 100, 1e-4), (30, 10_000, 1e-3)]
)
def test_gaussians_are_as_one(ratio, times, width, delta):
    """Many answers are one with less noise, for which delta has a formula."""
    exact = gaussian_epsilon(ratio / math.sqrt(times), delta)
    found = epsilon_of([(gaussian(ratio, REACH, width), times)], delta)
    assert exact <= found <= exact * 1.001


@each_case("delta", [1e-3, 1e-9, 1e-15, 1e-25, 1e-50])
def test_promises_add_up_as_in_fractions(delta):
    """Randomised response, whose deltas are binomial sums (Kairouz, Oh, Viswanath 2015)."""
    times, epsilon = 60, 0.25
    found = epsilon_of([(promised(epsilon, 0.0, 2.0**-10), times)], delta)
    grow = Fraction(math.exp(epsilon))
    right = grow / (1 + grow)

    def exact(at):
        terms = (
            math.comb(times, k)
            * right**k
            * (1 - right) ** (times - k)
            * Fraction(-math.expm1(at - (2 * k - times) * epsilon))
            for k in range(times + 1)
            if (2 * k - times) * epsilon > at
        )
        return float(sum(terms))

    assert exact(found) <= delta * (1 + 1e-9)
    assert exact(found - 1e-6) > delta


def densities(name, rate, ratio):
    """Return how likely outcomes are with a unit and without, at x in steps of 1e-4."""
    x = np.arange(-40, 40, 1e-4)
    kind = stats.laplace if name == "laplace" else stats.norm

    def mixed(shift):
        return rate * kind.pdf(x, shift, ratio) + (1 - rate) * kind.pdf(x, 0, ratio)

    return {"come": (mixed(0), mixed(1)), "exchanged": (mixed(1), mixed(-1))}.get(
        name, (mixed(1), mixed(0))
    )


@each_case(
    "name, rate, ratio",
    [
        ("gaussian", 1.0, 0.8),
        ("laplace", 1.0, 1.5),
        ("gone", 0.2, 0.8),
        ("come", 0.2, 0.8),
        ("exchanged", 0.2, 0.8),
        ("exchanged", 0.9, 3.0),
        ("gone", 0.01, 2.0),
        ("come", 0.01, 2.0),
    ],
)
def test_one_answer_is_what_its_densities_say(name, rate, ratio):
    width = 1e-3
    one = {
        "gaussian": lambda: gaussian(ratio, REACH, width),
        "laplace": lambda: laplace(ratio, width),
        "gone": lambda: sampled(rate, ratio, REACH, width)[0],
        "come": lambda: sampled(rate, ratio, REACH, width)[1],
        "exchanged": lambda: exchanged(rate, ratio, REACH, width),
    }[name]()
    assert (one.masses >= 0).all()
    assert one.masses.sum() + one.infinite == pytest.approx(1, abs=1e-8)
    near, other = densities(name, rate, ratio)
    for epsilon in (-1.0, -0.1, -0.0505, 0.0, 0.01, 0.3, 0.6543, 1.5, 4.0):
        exact = float(np.maximum(near - math.exp(epsilon) * other, 0).sum()) * 1e-4
        assert exact - 1e-8 <= delta_of(one, epsilon) <= exact + 1e-5


def test_discrete_noise_is_summed_up():
    sigma, change = 2.5, 3
    one = discrete_gaussian(sigma, change, REACH, 1e-3)
    x = np.arange(-80, 81)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    weights /= weights.sum()
    moved = np.interp(x + change, x, weights, right=0)
    for epsilon in (-2.0, 0.0, 0.5, 1.2345, 5.0):
        exact = float(np.maximum(weights - math.exp(epsilon) * moved, 0).sum())
        assert exact <= delta_of(one, epsilon) * (1 + 1e-12) <= exact + 1e-6


@each_case("delta", [1e-4, 1e-13, 1e-40])
def test_a_finer_grid_never_costs_more(delta):
    for make in (
        lambda width: gaussian(2.0, REACH, width),
        lambda width: laplace(3.0, width),
        lambda width: sampled(0.05, 1.0, REACH, width)[0],
        lambda width: exchanged(0.05, 1.0, REACH, width),
        lambda width: discrete_gaussian(4.0, 1, REACH, width),
        lambda width: promised(0.3, 0.0, width),
    ):
        found = [epsilon_of([(make(2.0**-k), 20)], delta) for k in (12, 10, 8, 6, 4)]
        assert all(fine <= wide + 1e-8 for fine, wide in itertools.pairwise(found))


def test_several_kinds_together():
    """Two kinds of Gaussian noise are one of both ratios; the rest is infinite or nothing."""
    both = [(gaussian(20.0, REACH, 1e-3), 30), (gaussian(10.0, REACH, 1e-3), 5)]
    exact = gaussian_epsilon(1 / math.sqrt(30 / 400 + 5 / 100), 1e-15)
    assert exact <= epsilon_of(both, 1e-15) <= exact * 1.001
    lost = [*both, (promised(0.1, 1e-7, 1e-3), 2)]
    assert epsilon_of(lost, 1e-7) == math.inf
    assert epsilon_of(lost, 3e-7) < math.inf
    assert epsilon_of([(gaussian(1e4, REACH, 1e-4), 1)], gaussian_delta(1e4, 0) * 1.01) == 0.0


@pytest.mark.parametrize("times", [1, 30, pytest.param(500, marks=pytest.mark.slow)])
def test_masses_are_none_too_small_if_the_transform_is_as_wrong_as_it_may_be(times, monkeypatch):
    """Numbers of 30 bits, whose rounding makes every coefficient smaller."""
    real, unit = loss_distributions.fft.rfft, 2.0**-30

    def rfft(masses):
        return real(masses) * (1 - 4 * unit * math.log2(len(masses)))

    monkeypatch.setattr(loss_distributions, "_UNIT", unit)
    monkeypatch.setattr(loss_distributions.fft, "rfft", rfft)
    one = sampled(0.3, 2.0, 6.0, 0.01)[0]
    whole = added_up(one, times)
    weights = loss_distributions._Weights([(one, times)], 1e-6)
    first, masses, _ = weights.composed()
    places = first + np.arange(len(masses))
    exact = whole.masses[places - whole.lowest]
    exact = exact * np.exp(weights.tilt * places * one.width - weights.log_norm)
    assert (masses >= exact).all()
    assert (masses <= exact + 1e3 * times * unit).all()


def test_no_rounding_is_left_out(monkeypatch):
    """With numbers as coarse as of 20 bits the bound grows, and epsilon with it."""
    one = gaussian(20.0, REACH, 1e-3)
    fine = epsilon_of([(one, 25)], 1e-9)
    monkeypatch.setattr(loss_distributions, "_UNIT", 2.0**-20)
    assert epsilon_of([(one, 25)], 1e-9) > fine * 1.0001
