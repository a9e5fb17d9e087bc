"""The table of rounds and bytes is what operations on shares take today."""

from benchmarks import prices


def test_the_table_is_today_s():
    assert prices.PAGE.read_text() == prices.page(), "run: python -m benchmarks prices"
