"""Tails and quantiles equal scipy's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from securecomp.errors import ParameterError
from securecomp.statistics.tails import chi_square_p_value, normal_p_value, normal_quantile


@given(st.floats(0, 600), st.integers(1, 60))
def test_chi_square(statistic, df):
    assert chi_square_p_value(statistic, df) == pytest.approx(
        stats.chi2.sf(statistic, df), rel=1e-11
    )


def test_a_statistic_of_nothing():
    assert chi_square_p_value(0.0, 3) == 1.0
    assert chi_square_p_value(-1e-20, 3) == 1.0


@given(st.floats(-37, 37))
def test_normal(z):
    assert normal_p_value(z) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-11)


@given(st.floats(0.001, 0.9999))
def test_quantile(level):
    assert normal_quantile(level) == pytest.approx(stats.norm.ppf((1 + level) / 2), rel=1e-9)


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, float("nan"), "0.95", None, True])
def test_what_is_no_level(level):
    with pytest.raises(ParameterError, match=r"^level is a probability between 0 and 1"):
        normal_quantile(level)
