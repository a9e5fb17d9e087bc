"""Skewness: scipy's, from third power sums that are exact."""

import math
import random
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import skew
from sites import frame, study

from securecomp import Column
from securecomp.errors import RangeError
from securecomp.statistics.power_sums import power_sums
from securecomp.statistics.summaries.skewness import root


def test_it_is_scipys():
    rng = np.random.default_rng(5)
    x = rng.gamma(2, 3, 300).round(2)
    found = study(pl.DataFrame({"x": x[:100]}), pl.DataFrame({"x": x[100:]})).skewness("x")
    assert found.value == pytest.approx(skew(x, bias=False), rel=1e-12)
    assert found.rows[0]["n"] == 300
    assert found.equal


def test_by_group_and_where_it_is_not_defined():
    one = frame("polars", x=[1, 2, 9, 4, 4, 4, 1, 2], g=list("aaabbbcc"))
    two = frame("polars", x=[5], g=["a"])
    found = study(one, two).skewness("x", by="g")
    assert found.value == {"a": pytest.approx(skew([1, 2, 9, 5], bias=False)), "b": None, "c": None}
    assert found.equal


def test_values_far_from_zero_lose_nothing():
    """In floats the third powers around 10^12 cancel to noise; exact sums do not."""
    x = [10**12 + v for v in (0, 1, 5, 2, 2)]
    found = study(frame("polars", x=x[:2]), frame("polars", x=x[2:])).skewness("x")
    assert found.value == pytest.approx(skew([0, 1, 5, 2, 2], bias=False), rel=1e-15)


def test_it_is_suppressed_as_a_variance_is():
    rows = pl.DataFrame({"x": range(50), "g": ["a"] * 5 + ["b"] * 40 + ["c"] * 5})
    asked = study(rows, rows, minimum_count=11)
    spread, found = asked.variance("x", by="g"), asked.skewness("x", by="g")
    assert found.rows[0]["value"] is None
    assert found.rows[0]["suppressed"]["n"] == "<11"
    for one, other in zip(spread.rows, found.rows, strict=True):
        assert (one["value"] is None, one["n"]) == (other["value"] is None, other["n"])


def test_sums_of_cubes_are_exact_at_any_size():
    generator = random.Random(1)  # noqa: S311
    for bits in (3, 20, 30, 31, 40, 62):
        x = [generator.randrange(-(1 << bits), 1 << bits) for _ in range(50)]
        codes = np.arange(50) % 3
        wanted = [sum(v**3 for v in x[g::3]) for g in range(3)]
        assert power_sums(np.array(x), codes, 3, 3) == wanted, bits


def test_a_root_is_within_its_last_bit():
    for square in (Fraction(2), Fraction(1, 3), Fraction(10**40 + 1, 7), Fraction(0), Fraction(9)):
        found = root(square)
        assert abs(Fraction(found) ** 2 - square) <= square * Fraction(1, 1 << 51)
    assert root(Fraction(9)) == 3
    with pytest.raises(RangeError):
        root(Fraction(10**700))


def test_a_sign_and_a_bound():
    columns = {"x": Column(bound=10, decimals=0)}
    left = study(frame("polars", x=[10, 10, 10]), frame("polars", x=[0, 9]), columns=columns)
    assert left.skewness("x").value == pytest.approx(skew([10, 10, 10, 0, 9], bias=False))
    assert left.skewness("x").value < 0
    assert math.isfinite(left.skewness("x").value)
