"""Scales and deltas against published values, numeric integrals and another library."""

import math
from fractions import Fraction
from itertools import pairwise

import dp_accounting
import numpy as np
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from securecomp.errors import ParameterError
from securecomp.privacy import calibration, sensitivity
from securecomp.privacy.sensitivity import Bounds, Neighbours, Sensitivity

ONE = Sensitivity(Fraction(1), Fraction(1))
TWO_COUNTS = sensitivity.histogram(Neighbours("replace-one"))


@each_case(
    "epsilon, sigma",
    [
        (0.1, 30.74957),
        (0.5, 7.031827),
        (1, 3.730632),
        (2, 1.993812),
        (4, 1.081162),
        (8, 0.600229),
        (10, 0.499889),
    ],
)
def test_analytic_sigma(epsilon, sigma):
    found = calibration.gaussian_scale(ONE, epsilon, 1e-5)
    assert found == pytest.approx(sigma, rel=1e-6)
    assert found == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, 1e-5), rel=1e-9)


@each_case("epsilon, delta", [(0.5, 0.2384217), (1, 0.1269367), (2, 0.0209236)])
def test_delta_at_sigma_one(epsilon, delta):
    assert calibration.gaussian_delta(1, epsilon) == pytest.approx(delta, abs=1e-7)


def test_classical():
    assert calibration.classical_gaussian_scale(ONE, 1, 1e-5) == pytest.approx(4.844805, abs=1e-6)
    mean = sensitivity.mean(Bounds(0, 200_000), 10_000, Neighbours("replace-one"))
    assert calibration.classical_gaussian_scale(mean, 0.9, 1e-5) == pytest.approx(107.7, abs=0.05)


@each_case("epsilon", [1.01, 2, 50])
def test_the_classical_formula_ends_at_one(epsilon):
    with pytest.raises(ParameterError, match=r"holds up to epsilon 1.*gaussian_scale"):
        calibration.classical_gaussian_scale(ONE, epsilon, 1e-5)
    # And for good reason: for large epsilon its noise is too small.
    sigma = math.sqrt(2 * math.log(1.25 / 0.5)) / 50
    assert calibration.gaussian_delta(sigma, 50) > 0.5


@each_case("ratio", [0.3, 1, 5, 40])
@each_case("epsilon", [0, 0.01, 0.3, 2, 6])
def test_delta_is_the_integral(ratio, epsilon):
    """Both signs of the exponent, where a sign error in either branch would show."""

    def excess(x):
        return max(norm.pdf(x, 1, ratio) - math.exp(epsilon) * norm.pdf(x, 0, ratio), 0)

    start = ratio**2 * epsilon + 0.5  # where the densities meet
    integral, error = quad(excess, start, 1 + 40 * ratio, epsabs=1e-14, limit=500)
    found = calibration.gaussian_delta(ratio, epsilon)
    assert found == pytest.approx(integral, rel=1e-6, abs=10 * error + 1e-13)


@examples(200)
@given(st.floats(-5, 4), st.floats(-40, -0.05))
def test_the_promise_is_kept_and_tight(log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    ratio = calibration.gaussian_ratio(epsilon, delta)
    assert calibration.gaussian_delta(ratio, epsilon) <= delta * (1 + 1e-12)
    assert calibration.gaussian_delta(ratio * (1 - 1e-6), epsilon) > delta
    # The other way the epsilon of this noise is the one that was asked for, and never above.
    back = calibration.gaussian_epsilon(ratio, delta)
    assert back <= epsilon * (1 + 1e-9)
    assert back == pytest.approx(epsilon, rel=1e-3, abs=1e-9)


def test_more_noise_never_costs_more():
    ratios = np.geomspace(0.05, 1000, 40)
    epsilons = [calibration.gaussian_epsilon(ratio, 1e-6) for ratio in ratios]
    assert all(a > b for a, b in pairwise(epsilons))
    assert calibration.gaussian_epsilon(1e6, 1e-2) == 0  # delta alone is enough
    assert calibration.gaussian_epsilon(4, 1e-5) == pytest.approx(
        dp_accounting.get_epsilon_gaussian(4, 1e-5), rel=1e-9
    )


def test_noise_grows_with_the_sensitivity():
    assert calibration.laplace_scale(TWO_COUNTS, 0.5) == 4
    assert calibration.gaussian_scale(TWO_COUNTS, 1, 1e-5) == pytest.approx(
        math.sqrt(2) * 3.730632, rel=1e-6
    )
    # Seven thirds: an integer division would make it two.
    assert (
        calibration.laplace_scale(Sensitivity(Fraction(7, 3), Fraction(49, 9)), 1) > 7 / 3 - 1e-15
    )


@given(st.fractions(Fraction(1, 1000), 1000), st.floats(1e-3, 1e3))
def test_a_laplace_scale_is_never_too_small(l1, epsilon):
    scale = calibration.laplace_scale(Sensitivity(l1, l1**2), epsilon)
    assert Fraction(scale) * Fraction(f"{epsilon:.15g}") >= l1


def test_error_bars():
    # Laplace at epsilon .5: within 6 with probability .950.
    scale = calibration.laplace_scale(ONE, 0.5)
    assert 1 - math.exp(-6 / scale) == pytest.approx(0.950, abs=5e-4)
    assert calibration.laplace_error(scale) == pytest.approx(5.99, abs=0.01)
    assert calibration.gaussian_error(2) == pytest.approx(3.92, abs=0.01)
    assert calibration.gaussian_error(1, 0.6827) == pytest.approx(1, abs=1e-4)
    for confidence in (0, 1, math.nan):
        with pytest.raises(ParameterError, match="confidence is between"):
            calibration.laplace_error(1, confidence)


@each_case("epsilon", [0, 0.0, -1, math.nan, math.inf, "x"])
@each_case(
    "scale",
    [
        lambda epsilon: calibration.laplace_scale(ONE, epsilon),
        lambda epsilon: calibration.gaussian_scale(ONE, epsilon, 1e-5),
        lambda epsilon: calibration.classical_gaussian_scale(ONE, epsilon, 1e-5),
    ],
)
def test_an_epsilon_that_is_none_ends_at_once(scale, epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        scale(epsilon)


@each_case("delta", [0, -0.1, 1, 2, math.nan])
def test_a_delta_that_is_none(delta):
    for scale in (calibration.gaussian_scale, calibration.classical_gaussian_scale):
        with pytest.raises(ParameterError, match="delta"):
            scale(ONE, 1, delta)
    with pytest.raises(ParameterError, match="delta"):
        calibration.gaussian_epsilon(1, delta)


@each_case(
    "epsilon, delta", [(1e-300, 1e-5), (1e-9, 1e-100), (1, "1e-310"), (1e7, 1e-5), ("1e300", 0.1)]
)
def test_beyond_what_floats_tell_is_refused_and_not_searched(epsilon, delta):
    refused = "floating point cannot tell|below 1e-300|promises nothing"
    with pytest.raises(ParameterError, match=refused):
        calibration.gaussian_ratio(epsilon, delta)


@each_case("ratio", [0, -1, math.nan, math.inf])
def test_noise_that_is_none(ratio):
    for find in (calibration.gaussian_delta, calibration.gaussian_epsilon):
        with pytest.raises(ParameterError, match="finite number above 0"):
            find(ratio, 0.1)


def test_a_delta_too_small_for_floats_is_zero():
    assert calibration.gaussian_delta(1000, 100) == 0
