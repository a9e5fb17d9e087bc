"""The polynomials are the best ones, and their bounds hold."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import chebyshev
from scipy.optimize import linprog

from securecomp.core import minimax
from securecomp.core.minimax import logistic, sigmoid
from securecomp.errors import ParameterError, RangeError

DEGREES = (1, 3, 7, 15, 31, 63)
DOMAINS = (0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 30.0, 100.0, 128.0)


def on_domain(domain: float, points: int) -> np.ndarray:
    return domain * np.cos(np.linspace(0, np.pi, points))


@each_case("domain", DOMAINS)
@each_case("degree", DEGREES)
def test_the_stated_error_holds_and_is_tight(domain, degree):
    polynomial = sigmoid(domain, degree)
    x = on_domain(domain, 20_011)
    seen = np.max(np.abs(polynomial(x) - logistic(x)))
    assert seen <= polynomial.error <= 1.03 * seen + 3 * minimax.ROUNDING


@each_case("domain", DOMAINS)
@each_case("degree", DEGREES)
def test_no_interpolation_and_no_least_squares_is_better(domain, degree):
    polynomial = sigmoid(domain, degree)
    x = on_domain(domain, 4001)
    target = logistic(x)
    interpolated = chebyshev.chebinterpolate(lambda u: logistic(domain * u), degree)
    fitted = chebyshev.chebfit(x / domain, target, degree)
    for other in (interpolated, fitted):
        theirs = np.max(np.abs(chebyshev.chebval(x / domain, other) - target))
        assert np.max(np.abs(polynomial(x) - target)) <= theirs * (1 + 1e-6) + 1e-13


@pytest.mark.parametrize("domain", [1.0, 4.0, 8.0, 30.0, 100.0])
@pytest.mark.parametrize("degree", [1, 3, 7, 15])
def test_the_error_alternates_at_degree_plus_three_points(domain, degree):
    """Chebyshev's theorem: with degree + 2 such points no polynomial of the degree is better."""
    polynomial = sigmoid(domain, degree)
    if polynomial.error < 1e-9:
        pytest.skip("below float64's rounding")
    x = on_domain(domain, 200_001)
    error = polynomial(x) - logistic(x)
    runs = np.split(error, np.flatnonzero(np.diff(np.signbit(error))) + 1)
    peaks = np.array([np.max(np.abs(run)) for run in runs])
    assert len(peaks) == degree + 3
    assert peaks == pytest.approx(np.max(peaks), rel=2e-4)


def test_a_linear_program_finds_the_same_polynomial():
    domain, degree = 8.0, 7
    x = on_domain(domain, 2001)
    basis = chebyshev.chebvander(x / domain, degree)
    ones = np.ones((len(x), 1))
    found = linprog(
        np.eye(degree + 2)[-1],
        A_ub=np.block([[basis, -ones], [-basis, -ones]]),
        b_ub=np.concatenate([logistic(x), -logistic(x)]),
        bounds=(None, None),
    )
    assert sigmoid(domain, degree).error == pytest.approx(found.fun, rel=0.01)
    assert sigmoid(domain, degree).coefficients == pytest.approx(found.x[:-1], abs=1e-5)


@given(st.sampled_from(DOMAINS), st.sampled_from(DEGREES), st.floats(-1, 1))
def test_it_is_a_half_plus_an_odd_function(domain, degree, u):
    polynomial = sigmoid(domain, degree)
    assert polynomial(u * domain) + polynomial(-u * domain) == pytest.approx(1, abs=1e-12)
    assert polynomial.coefficients[0] == 0.5
    assert not any(polynomial.coefficients[2::2])


@given(st.fractions(-1, 1, max_denominator=1000))
def test_its_value_is_that_of_exact_arithmetic(u):
    polynomial = sigmoid(8.0, 15)
    before, now = Fraction(1), u
    exact = Fraction(polynomial.coefficients[0]) + Fraction(polynomial.coefficients[1]) * u
    for c in polynomial.coefficients[2:]:
        before, now = now, 2 * u * now - before
        exact += Fraction(c) * now
    assert float(polynomial(float(8 * u))) == pytest.approx(float(exact), abs=1e-13)


def test_a_higher_degree_and_a_smaller_domain_are_better():
    for domain in DOMAINS:
        errors = [sigmoid(domain, degree).error for degree in DEGREES]
        assert all(a >= b - minimax.ROUNDING for a, b in pairwise(errors))
    errors = [sigmoid(domain, 7).error for domain in DOMAINS]
    assert errors == sorted(errors)


def test_shapes_are_kept_and_results_are_cached():
    assert sigmoid(8.0, 3) is sigmoid(8, 3)
    assert sigmoid(8.0, 3)(np.zeros((2, 3))).shape == (2, 3)
    assert float(sigmoid(8.0, 3)(0)) == 0.5


def test_the_logistic_function_does_not_overflow():
    assert logistic([-1e4, 0, 1e4]).tolist() == [0, 0.5, 1]
    assert float(logistic(1.5)) == pytest.approx(1 / (1 + math.exp(-1.5)), rel=1e-15)


@each_case("degree", [0, 2, -1, 64, 65, 3.0, True, None, "3"])
def test_degrees_are_odd_and_bounded(degree):
    with pytest.raises(ParameterError, match="degree"):
        sigmoid(8.0, degree)


@each_case("domain", [0, -1, 0.49, 129, math.inf, math.nan])
def test_domains_are_bounded(domain):
    with pytest.raises(ParameterError, match="domain"):
        sigmoid(domain, 3)


@each_case("x", [8.01, -9, math.nan, math.inf, [0, 8.5]])
def test_a_logit_outside_the_domain_is_refused(x):
    with pytest.raises(RangeError, match="outside"):
        sigmoid(8.0, 3)(x)
