"""Noise too wide to write its distribution out: the bound is right, and not larger than needed."""

import math

import numpy as np
from cases import each_case
from scipy import stats

from securecomp.privacy import noise_distributions
from securecomp.privacy.calibration import gaussian_delta, gaussian_ratio
from securecomp.privacy.distributed import plan
from securecomp.privacy.noise_distributions import UnitChange


def rounded_gaussian(x, sigma):
    """Return the logarithm of a rounded Gaussian's probabilities of integers from 0 on."""
    near, far = (x - 0.5) / sigma, (x + 0.5) / sigma
    logs = stats.norm.logsf(near)
    return logs + np.log(-np.expm1(stats.norm.logsf(far) - logs))


@each_case("sigma", [40.0, 200.0, 1000.0, 4000.0])
def test_wide_noise_is_nearly_rounded_gaussian_noise(sigma):
    """The two lemmas: by how much logarithms of probabilities differ, up to sigma / 4."""
    variance = sigma**2
    x = np.arange(1, int(sigma * min(sigma / 4, 12)), max(1, int(sigma / 50)))
    t, q = x / sigma, rounded_gaussian(x, sigma)
    lost = 1e-10  # of the differences of tails
    skellam = np.log(noise_distributions.skellam_mass(variance, x[-1])[x])
    assert (np.abs(skellam - q) <= (t**4 / 24 + t**2 / 3 + 1) / variance + lost).all()
    discrete = np.log(noise_distributions.gaussian_mass(variance, int(40 * sigma))[x])
    assert (np.abs(discrete - q) <= (t**2 + 2) / (23 * variance) + lost).all()
    assert np.abs(skellam - q).max() > 0.5 * t[-1] ** 4 / (24 * variance)  # it is that far off


@each_case("sigma", [300.0, 1000.0, 6000.0, 16_000.0])
@each_case("shift", [1, 30, 500])
@each_case("distance", [3.0, 5.0])
def test_the_bound_for_wide_noise_is_above_the_truth_and_near_it(sigma, shift, distance):
    epsilon, variance = distance * shift / sigma, sigma**2
    change = UnitChange(1, shift, float(shift), one=True)
    upto = noise_distributions.reach(variance) + shift
    for kind, mass in (
        ("skellam", noise_distributions.skellam_mass(variance, upto)),
        ("discrete-gaussian", noise_distributions.gaussian_mass(variance, upto)),
    ):
        exact = noise_distributions.exact_delta(mass, shift, epsilon)
        found = noise_distributions.near_gaussian(kind, [(change, variance)], epsilon)
        assert found >= exact
        if sigma * shift > 10**5:
            assert found <= exact * 1.02


@each_case(
    "kind, most", [("skellam", lambda t: t**4 / 24), ("discrete-gaussian", lambda t: t**2 / 23)]
)
@each_case("numbers", [1, 40])
@each_case("sigma", [300.0, 3000.0])
@each_case("epsilon", [0.5, 2.0])
def test_all_that_wide_noise_differs_by_is_paid_for(kind, most, numbers, sigma, epsilon):
    """One number's truth is better than the proof; what is not proved is not claimed."""
    variance, ratio = sigma**2, 4.5 / epsilon
    change = UnitChange(numbers, int(sigma * numbers), sigma / ratio)
    found = noise_distributions.near_gaussian(kind, [(change, variance)], epsilon)
    least = gaussian_delta(ratio, epsilon)
    h = numbers * most(math.sqrt(-2 * math.log(least))) / variance
    assert found >= math.exp(h) * gaussian_delta(ratio, max(0.0, epsilon - 2 * h))
    apart = noise_distributions.near_gaussian(kind, [(change, variance)], epsilon, 0.01)
    assert apart >= min(1.0, math.exp(0.01) * gaussian_delta(ratio, epsilon - 0.02))


def proved(kind, numbers, sigma, epsilon, ratio):
    """The bound of the module's text, term by term."""
    seen = gaussian_delta(ratio, epsilon) * 1e-6 / (8 * numbers)
    t = math.sqrt(2 * (epsilon - math.log(seen)))
    terms = {"skellam": (t**4 / 24, t**2 / 3, 1.0), "discrete-gaussian": (t**2 / 23, 2 / 23)}
    h = numbers * math.fsum(terms[kind]) / sigma**2
    beyond = 4 * numbers * math.exp(-(t**2) / 2 + t**4 / (24 * sigma**2))
    within = math.exp(h) * gaussian_delta(ratio, epsilon - 2 * h)
    return within + beyond * (1 + math.exp(epsilon + h))


@each_case("kind", ["skellam", "discrete-gaussian"])
@each_case("numbers", [1, 40])
@each_case("sigma", [300.0, 3000.0])
@each_case("epsilon", [0.5, 2.0])
def test_the_bound_for_wide_noise_is_the_one_that_is_proved(kind, numbers, sigma, epsilon):
    """Every term in full: the proof needs all of them, though a distribution may not show it."""
    ratio = 4.5 / epsilon
    change = UnitChange(numbers, int(sigma * numbers), sigma / ratio)
    found = noise_distributions.near_gaussian(kind, [(change, sigma**2)], epsilon)
    assert math.isclose(found, proved(kind, numbers, sigma, epsilon, ratio), rel_tol=1e-9)


@each_case("kind", ["skellam", "discrete-gaussian"])
@each_case("epsilon", [1e-3, 0.1, 1.0, 5.0])
@each_case("delta", [1e-6, 1e-12])
def test_wide_noise_is_no_larger_than_it_must_be(kind, epsilon, delta):
    """The analytic Gaussian's, for one number and many; Renyi divergence asks for 7 % more."""
    least = gaussian_ratio(epsilon, delta)
    for change in (
        UnitChange(1, 10**5, 1e5, one=True),
        UnitChange(1, 1_000_003, 1_000_003.0),
        UnitChange(64, 8 * 10**6, 1e6),
    ):
        made = plan(kind, [change], epsilon, delta, 5)
        assert least * (1 - 1e-6) <= made.deviation(0, made.honest) / change.l2 <= least * 1.001
        assert made.accountant == "analytic"
    blocks = [UnitChange(1, 10**6, 1e6), UnitChange(8, 10**7, 9e6)]
    made = plan(kind, blocks, epsilon, delta, 5)
    spread = [made.deviation(i, made.honest) / change.l2 for i, change in enumerate(blocks)]
    both = 1 / math.sqrt(sum(1 / one**2 for one in spread))
    assert least * (1 - 1e-6) <= both <= least * 1.001


@each_case("kind", ["skellam", "discrete-gaussian"])
def test_there_is_no_step_where_distributions_are_not_written_out_any_more(kind):
    change = UnitChange(1, 1, 1.0, one=True)
    for epsilon in (0.01, 0.001, 3e-4, 1.5e-4, 1e-4, 1e-5):
        made = plan(kind, [change], epsilon, 1e-6, 2)
        assert 0.9999 <= made.deviation(0, 1) / gaussian_ratio(epsilon, 1e-6) <= 1.02
