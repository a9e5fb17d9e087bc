"""The table of promises is what the package computes today, and noise is as large as it must be."""

import pytest
from cases import each_case
from scipy.stats import binom

from benchmarks import promises


def test_the_table_is_today_s():
    assert promises.PAGE.read_text() == promises.page(), "run: python -m benchmarks promises"


@each_case("epsilon", promises.EPSILONS)
def test_error_bars_hold_and_are_not_too_wide(epsilon):
    """Two-sided, so that also noise that is too small fails; one in 10^6 by chance."""
    low, high = binom.interval(1 - 1e-6, promises.RUNS, 0.95)
    found = [error for error in promises.errors(epsilon).values() if error.promised is not None]
    assert len(found) == 2
    for error in found:
        assert low <= error.inside * promises.RUNS <= high


def test_ten_times_the_epsilon_is_a_tenth_of_the_error():
    few, many = promises.errors(0.1), promises.errors(1)
    name = next(iter(few))
    assert few[name].typical / many[name].typical == pytest.approx(10, rel=1e-9)
    assert few[name].typical == pytest.approx(1, rel=0.05)  # 100 / 1000 / 0.1
