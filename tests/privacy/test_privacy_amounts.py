"""Amounts are exact, and are read as people write them."""

import functools
import math
import operator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st

from securecomp.errors import ParameterError
from securecomp.privacy.privacy_amounts import (
    PrivacyCost,
    above,
    delta_of,
    epsilon_of,
    exact,
    written,
)


def test_ten_times_a_tenth_is_one():
    assert sum((exact(0.1, "epsilon") for _ in range(10)), Fraction(0)) == 1
    assert functools.reduce(operator.add, [0.1] * 10) != 1  # what floats make of it


def test_rounding_is_not_a_difference():
    assert exact(0.1 + 0.2, "epsilon") == Fraction(3, 10)
    assert exact(math.nextafter(1.0, 2), "epsilon") == 1
    assert exact(np.float64(0.7), "epsilon") == Fraction(7, 10)


def test_what_was_written_exactly_stays():
    assert exact(Decimal("1.0000000000000002"), "epsilon") > 1
    assert exact("1.0000000000000002", "epsilon") > 1
    assert exact("1/3", "epsilon") == exact(Fraction(1, 3), "epsilon") == Fraction(1, 3)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_float_is_read_to_15_digits(value):
    assert abs(exact(value, "epsilon") / Fraction(value) - 1) <= Fraction(5, 10**15)


@given(st.decimals(min_value=0, max_value=10**6, places=9) | st.fractions(0, 10**6))
def test_text_reads_back(value):
    fraction = Fraction(value)
    assert exact(written(fraction), "epsilon") == fraction
    assert exact(written(-fraction), "epsilon") == -fraction


@each_case("value, text", [("1e-6", "0.000001"), ("5e-10", "5e-10"), ("3", "3")])
def test_text_is_short(value, text):
    assert written(exact(value, "delta")) == text


@each_case(
    "value",
    [
        *(math.nan, math.inf, -math.inf, "", "one", "1/0", "nan", "inf", "1e999999999"),
        *(True, None, [1], Decimal("NaN"), Decimal("1e99999"), 1e400),
    ],
)
def test_what_is_no_finite_number(value):
    with pytest.raises(ParameterError, match="epsilon is a"):
        exact(value, "epsilon")


@each_case("value", [0, 0.0, -1, "-0.1", Decimal(0)])
def test_epsilon_is_above_zero(value):
    with pytest.raises(ParameterError, match="epsilon must be above 0"):
        epsilon_of(value)


@each_case("value", [-1e-9, 1, 1.5, "2"])
def test_delta_is_a_probability(value):
    with pytest.raises(ParameterError, match="delta is a probability"):
        delta_of(value, needed=False)


def test_delta_where_it_is_needed():
    assert delta_of(0, needed=False) == 0
    with pytest.raises(ParameterError, match=r"guarantee at delta 0.*Laplace"):
        delta_of(0.0, needed=True)


@given(st.fractions(min_value=Fraction(1, 10**300)))
def test_rounding_never_takes_noise_away(value):
    number = above(value)
    assert Fraction(number) >= value > Fraction(math.nextafter(number, 0))


def test_noise_beyond_all_floats():
    with pytest.raises(ParameterError, match="beyond all floating-point numbers"):
        above(Fraction(10**400))


def test_costs_compare_in_both_parts():
    assert PrivacyCost.of("0.1", "1e-6").fits(PrivacyCost.of("0.1", "1e-6"))
    assert not PrivacyCost.of("0.1", "2e-6").fits(PrivacyCost.of(1, "1e-6"))
    assert not PrivacyCost.of("1.1").fits(PrivacyCost.of(1, "0.5"))
    assert str(PrivacyCost.of(0.1, 1e-6) + PrivacyCost.of(0.2, 0)) == "epsilon 0.3, delta 0.000001"
    with pytest.raises(ParameterError, match="must not be negative"):
        PrivacyCost.of(-0.1)
