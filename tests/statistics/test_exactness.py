"""Numbers that ordinary arithmetic gets wrong: long, large, tiny, off every grid."""

import math
import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each_case
from scipy import stats
from sites import cut, decimals, exact, frame, mean, study, total, variance

from securecomp import Column
from securecomp.core import field
from securecomp.errors import RangeError
from securecomp.statistics import Histogram, Mean, Skewness, Sum, Variance

LOW, HIGH = -(2**63), 2**63 - 1
ALL = [Sum("x"), Mean("x"), Variance("x")]


def numbers(*sites, **options):
    """Sum, mean and variance of Python lists, one a site."""
    frames = [pd.DataFrame({"x": cells}) for cells in sites]
    return [result.value for result in study(*frames, **options).run(ALL)]


def pooled(*sites):
    cells = [cell for site in sites for cell in site]
    return [total(cells), mean(cells), variance(cells)]


def test_20000_values_around_a_million_with_variance_one():
    values = np.random.default_rng(2024).normal(10**6, 1, 20_000)
    # All are multiples of 2^-33 (they lie in [2^19, 2^20)), so that nothing is rounded.
    parts = np.split(values, 4)
    result = study(*(pl.DataFrame({"x": part}) for part in parts)).variance("x")
    fractions = [Fraction(value) for value in values.tolist()]
    assert result.value == float(statistics.variance(fractions))
    assert 0.95 < result.value < 1.05
    assert result.equal
    assert result.run.from_data["grid of x"] == "multiples of 2^-33"
    # The textbook formula on floats, for which such data are known, is off in the second decimal.
    n, naive = len(values), float((values**2).sum() - values.sum() ** 2 / len(values))
    assert abs(naive / (n - 1) - result.value) > 1e-6


def test_rounded_values_around_a_million():
    values = np.round(np.random.default_rng(5).normal(10**6, 1, 20_000), 2)
    result = study(*(pl.DataFrame({"x": part}) for part in np.split(values, 4))).variance("x")
    assert result.value == variance(values.tolist())
    assert result.run.from_data["grid of x"] == "2 decimals"


INTEGERS = {
    "2^53 and one more": ([2**53 + 1], [-(2**53) - 3, 1]),
    "2^53, an odd sum": ([2**53 + 1, 2**53 + 1], [2**53 + 1]),
    "ends of int64": ([HIGH, HIGH, LOW], [LOW, 1]),
    "a site's own sum passes int64": ([HIGH] * 5, [HIGH] * 3),
    "a site's own sum passes it below": ([LOW] * 5, [LOW]),
    "squares of the lowest": ([LOW, LOW], [LOW, 0]),
    "beyond int64": ([2**100, -(2**99)], [3]),
    "zeros": ([0, 0], [0]),
    "negative": ([-5, -7], [-5]),
}


@each_case("name", INTEGERS)
def test_integers(name):
    found = numbers(*INTEGERS[name])
    assert found == pooled(*INTEGERS[name])
    assert type(found[0]) is int


@each_case("cells", [[HIGH, HIGH], [LOW, LOW], [2**62] * 4])
def test_a_total_beyond_int64_is_equal_to_plaintext(cells):
    table = pd.DataFrame({"x": cells})
    assert study(table, table).sum("x").equal


def test_the_total_needs_limbs_and_each_limb_keeps_within_the_field(monkeypatch):
    seen = []
    run = study(frame("polars", x=[HIGH]), frame("polars", x=[1]))
    original = type(run.protocol).run

    def spied(self, carrier, layout, contributors, receivers=None):
        seen.append(layout)
        return original(self, carrier, layout, contributors, receivers)

    monkeypatch.setattr(type(run.protocol), "run", spied)
    assert run.sum("x").value == HIGH + 1
    (layout,) = seen
    assert layout.length > 1
    assert layout.labels == tuple(f"sum of x (limb {i + 1})" for i in range(layout.length))
    assert 2 * layout.bound <= field.LIMIT


DECIMALS = {
    "one decimal": ([0.1, 0.2], [0.3]),
    "cents that floats add up wrongly": ([0.1] * 10, [-1.0]),
    "squares beyond 60 bits": ([1234567.123456, 0.000001], [-7654321.654321]),
    "nine decimals, squares beyond 90 bits": ([1234567.123456789, 3.0], [-7654321.987654321]),
    "decimals at one site only": ([1, 2], [0.25]),
    "negative zero": ([-0.0], [0.0, -0.0]),
    "sixteen digits": ([123456789.1234567], [0.0000001]),
}


@each_case("name", DECIMALS)
def test_floats_are_the_decimals_that_people_wrote(name):
    assert numbers(*DECIMALS[name]) == pooled(*DECIMALS[name])


def test_decimal_objects_keep_all_nine_decimals():
    sites = [decimals("0.000000001", "999999999.999999999"), decimals("-1e3", "7")]
    frames = [pd.DataFrame({"x": pd.Series(cells, dtype=object)}) for cells in sites]
    results = study(*frames).run(ALL)
    cells = [Fraction(cell) for site in sites for cell in site]
    assert results[0].value == float(sum(cells))
    assert results[2].value == float(statistics.variance(cells))
    assert results[0].run.from_data["grid of x"] == "9 decimals"


@each_case("text", ["999999999.999999999", "12345678901234567890"])
def test_the_bound_that_is_shown_holds_the_data(text):
    table = pd.DataFrame({"x": pd.Series(decimals(text, "1"), dtype=object)})
    shown = study(table, table).sum("x").run.from_data["bound of x"]
    assert Decimal(shown) == Decimal(text)
    assert study(table, table, columns={"x": Column(bound=Decimal(shown))}).sum("x").equal


def test_22_declared_decimals():
    sites = [decimals("0.1234567890123456789012", "-3"), decimals("0.0000000000000000000001")]
    frames = [pd.DataFrame({"x": pd.Series(cells, dtype=object)}) for cells in sites]
    found = study(*frames, columns={"x": Column(bound=5, decimals=22)}).sum("x")
    assert found.value == float(sum(Fraction(cell) for site in sites for cell in site))
    assert found.equal


class TestBinaryGrid:
    """Floats that no nine decimals hold are multiples of a power of two, all of their digits."""

    def test_as_fine_as_the_finest_value(self):
        cells = [1 / 3, 2 / 3, 1e-3 / 3], [0.1]
        result = study(*(pl.DataFrame({"x": c}) for c in cells)).sum("x")
        assert result.run.from_data == {
            "bound of x": "0.6666666666666666",
            "grid of x": "multiples of 2^-64",
        }
        assert result.value == float(sum(Fraction(c) for site in cells for c in site))

    @each_case("bits", [0, 1, 8, 20])
    def test_declared(self, bits):
        cells = np.random.default_rng(bits).normal(0, 100, 200).tolist()
        scale = 2**bits
        rounded = [Fraction(round(Fraction(cell) * scale), scale) for cell in cells]
        frames = (pl.DataFrame({"x": cells[:50]}), pl.DataFrame({"x": cells[50:]}))
        columns = {"x": Column(bound=1000, bits=bits)}
        summed, average, spread = study(*frames, columns=columns).run(ALL)
        assert summed.value == float(sum(rounded))
        assert average.value == float(statistics.mean(rounded))
        assert spread.value == float(statistics.variance(rounded))
        # The bound that the grid states: half a unit a value.
        assert abs(Fraction(summed.value) - sum(map(Fraction, cells))) <= Fraction(200, 2 * scale)
        assert summed.run.from_data == {}

    def test_ties_go_to_even(self):
        columns = {"x": Column(bits=0, bound=9)}
        assert (
            study(frame("polars", x=[0.5, 1.5]), frame("polars", x=[2.5, -0.5]), columns=columns)
            .sum("x")
            .value
            == 0 + 2 + 2 + 0
        )

    def test_a_coarse_grid_is_seen_to_differ_from_plaintext(self):
        columns = {"x": Column(bits=1, bound=9)}
        result = study(frame("polars", x=[1.3]), frame("polars", x=[0]), columns=columns).sum("x")
        assert result.value == 1.5
        assert not result.equal

    @each_case("bound", [2, 10**6, 10**12])
    def test_a_grid_may_be_off_by_a_billionth_whatever_the_bound(self, bound):
        """A tolerance that grew with the declared bound would see nothing."""
        for bits, near in ((27, False), (28, False), (29, True), (31, True)):
            # Halfway between two points of the grid: off by 2^-(bits + 1); 1e-9 is 2^-29.9.
            one, none = frame("polars", x=[1 + 2.0 ** -(bits + 1)]), frame("polars", x=[0])
            columns = {"x": Column(bits=bits, bound=bound)}
            for question in (Sum("x"), Mean("x")):
                (found,) = study(one, none, columns=columns).run([question])
                assert found.equal == near, (bits, question)

    def test_values_of_very_different_size(self):
        values = [1e-20, 1e20, 1e10]
        result = study(frame("polars", x=values[:2]), frame("polars", x=values[2:])).sum("x")
        assert result.value == 1e20 + 1e10
        assert result.run.from_data["grid of x"] == "multiples of 2^-119"

    @each_case("far", [1e15, 9.97e36, -1e300, 1.7e308])
    def test_one_far_value_takes_no_digit_from_the_other_groups(self, far):
        """A fill value in one group once made 0.0 of the means and variances of all others."""
        values = np.random.default_rng(120).normal(0.009, 0.001, 120).tolist()
        rows = pd.DataFrame({"x": [*values, far], "g": ["a"] * 120 + ["b"]})
        summed, average, spread, lean = study(*cut(rows)).run(
            [Sum("x", "g"), Mean("x", "g"), Variance("x", "g"), Skewness("x", "g")]
        )
        exactly = list(map(Fraction, values))
        assert summed.value == {"a": float(sum(exactly)), "b": far}
        assert average.value == {"a": float(statistics.mean(exactly)), "b": far}
        assert spread.value == {"a": float(statistics.variance(exactly)), "b": None}
        assert lean.value["a"] == pytest.approx(stats.skew(values, bias=False), rel=1e-12)
        assert all(result.equal for result in (summed, average, spread, lean))

    def test_a_long_column_of_floats_is_no_slower_than_its_length(self):
        """Encoding once took time that grew with the square of the rows."""
        cells = np.random.default_rng(3).normal(0, 1, 60_000)
        result = study(pl.DataFrame({"x": cells[:1]}), pl.DataFrame({"x": cells[1:]})).sum("x")
        assert result.value == math.fsum(cells)

    @each_case("size", [1e-250, 1e-12, 1e-9, 1e9, 1e30, 1e150])
    def test_mean_and_sum_of_any_size(self, size):
        cells = [size / 3, size * 0.7, -size / 7]
        result = study(pl.DataFrame({"x": cells[:1]}), pl.DataFrame({"x": cells[1:]})).run(ALL[:2])
        assert result[0].value == pytest.approx(float(sum(map(Fraction, cells))), rel=1e-13, abs=0)
        assert result[1].value == pytest.approx(
            float(sum(map(Fraction, cells)) / 3), rel=1e-13, abs=0
        )


@each_case("size", [1e-6, 1e-7])
def test_small_decimals(size):
    assert numbers([size, 0.0], [0.0]) == pooled([size, 0.0], [0.0])


@each_case("tiny", [1e-12 / 3, 2e-15])
def test_integers_at_one_site_where_others_have_tiny_floats(tiny):
    assert numbers([0, 0], [tiny])[0] == tiny


def test_many_declared_decimals_and_a_site_with_integers():
    assert numbers([0, 0], [0.5], columns={"x": Column(bound=9, decimals=20)})[0] == 0.5


@each_case("question", [Variance("x"), Sum("x")])
def test_a_result_that_no_float_holds_is_an_error_of_ours(question):
    cells = [1.7e308, 1.6e308 + 0.0] if question.name == "sum" else [1e200, -1e200]
    table = pl.DataFrame({"x": cells})
    with pytest.raises(RangeError, match="'x'"):
        study(table, table, columns={"x": Column(bound=1.7e308, bits=1)}).run([question])


@each_case("question", [*ALL, Histogram("x", None, (0, 1))])
@each_case("tiny", [1e-300, -1e-300, 5e-324, 2.0**-948 * (1 - 2**-53)])
def test_values_too_small_for_the_finest_grid_are_refused(question, tiny):
    """On multiples of 2^-1000 they would have fewer digits than the data have, if any."""
    reason = (
        r"^south: column 'x': row 2 has more digits than the finest grid, of multiples of "
        r"2\^-1000, holds; multiply the column .* or declare bits"
    )
    with pytest.raises(RangeError, match=reason):
        study(frame("polars", x=[2.5e-5, 1.0]), frame("polars", x=[3.0, tiny])).run([question])


@each_case("tiny", ["1e-400", "1e-23", "0.12345678901234567890123"])
def test_a_decimal_finer_than_22_places_is_refused(tiny):
    table = pd.DataFrame({"x": pd.Series(decimals("0.10", tiny), dtype=object)})
    with pytest.raises(RangeError, match=r"column 'x': row 2 has more digits .* of 22 decimals"):
        study(table, table).sum("x")


def test_decimals_of_ten_to_22_places_are_exact_beside_floats():
    cells = decimals("0.1234567890123456789012", "-3.000000000000000000")
    floats = [1 / 3, 1e-5 / 3, 2.5e30]
    frames = [pd.DataFrame({"x": pd.Series(c, dtype=object)}) for c in (cells, floats)]
    result = study(*frames).sum("x")
    assert result.run.from_data["grid of x"] == "22 decimals"
    assert result.value == float(sum(map(Fraction, cells)) + sum(map(exact, floats)))
    assert result.equal


def test_wide_integer_decimals_do_not_make_decimals_of_floats():
    cells, floats = decimals("123456789012345678901234567891"), [1e-30 / 3]
    frames = [pd.DataFrame({"x": pd.Series(c, dtype=object)}) for c in (cells, floats)]
    result = study(*frames).run([Sum("x"), Mean("x")])
    assert result[0].value == float(cells[0])
    assert result[0].run.from_data["bound of x"] == "123456789012345678901234567891"
    assert all(r.equal for r in result)


def test_the_smallest_values_that_the_finest_grid_holds():
    tiny = 2.0**-948 * (1 + 2**-52)
    result = study(frame("polars", x=[tiny, 0.0]), frame("polars", x=[tiny])).sum("x")
    assert result.value == 2 * tiny
    assert result.equal
    assert result.run.from_data["grid of x"] == "multiples of 2^-1000"


def test_tiny_values_are_rounded_if_that_is_declared():
    columns = {"x": Column(bits=1000)}
    result = study(frame("polars", x=[1e-300]), frame("polars", x=[0.0]), columns=columns).sum("x")
    assert result.value == 11 / 2**1000
    assert not result.equal


def test_an_exact_result_that_plaintext_rounds_is_called_equal():
    result = study(frame("polars", x=[1000000.1, -1000000.2]), frame("polars", x=[0.1])).sum("x")
    assert result.value == 0
    assert result.equal


def test_wide_integers_as_groups_and_bins():
    wide = frame("polars", x=[2**53 + 1, 2**53], g=["a", "b"])
    result = study(wide, wide).histogram("x", [0, 2**53], by="g")
    # As numpy has it: in float64 the value and the edge are one number.
    assert result.value == {"a": [2], "b": [2]}
    assert study(wide, wide).sum("x", by="g").value == {"a": 2**54 + 2, "b": 2**54}
    assert study(wide, wide).count(by="x").value == {2**53: 2, 2**53 + 1: 2}


def test_histogram_of_decimals():
    cells = decimals("0.1", "0.3", "0.2999999", "-0.1", "0.31")
    table = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    result = study(table, table).run([Histogram("x", None, (0, 0.1, 0.3))])[0]
    assert (result.value, result.rows[0]["below"], result.rows[0]["above"]) == ([0, 6], 2, 2)


def test_exact_is_what_it_says():
    assert exact(0.1) == Fraction(1, 10)
    assert exact(Decimal("0.1")) == Fraction(1, 10)
    assert total([0.1] * 3) == 0.3


WHOLE = {
    "a sum beyond 2^53": ([2.0**53, 1.0], [0.0]),
    "a sum below -2^53": ([-(2.0**53), -1.0], [0.0]),
    "terms that cancel": ([2.0**60, 1.0], [-(2.0**60)]),
    "a sum of 2^53": ([2.0**52, 1.0], [2.0**52 - 1]),
    "integers of 54 bits beside floats": ([2**53 + 1, 4], [0.0, 2.0]),
    "signed beside unsigned ones": ([2**53 + 1, -4], [2**63 + 1]),
}


@each_case("name", WHOLE)
def test_whole_numbers_that_floats_add_up_wrongly_are_equal_to_plaintext(name):
    sites = WHOLE[name]
    result = study(*(frame("polars", x=cells) for cells in sites)).sum("x")
    assert result.value == sum(int(cell) for cells in sites for cell in cells)
    assert type(result.value) is int
    assert type(result.plaintext[0]) is int or result.plaintext[0].is_integer()
    assert result.equal


def test_integers_on_a_grid_of_fractions_do_not_wrap_in_plaintext():
    table = frame("polars", x=[HIGH, HIGH])
    assert study(table, table, columns={"x": Column(bound=HIGH, decimals=2)}).sum("x").equal
