"""Truncation is Python's `>>`: never off by one, whatever the value and the number of bits."""

import numpy as np
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from mpc.computers import LIMIT, computation, same, sent, units

from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import SharedArray

MOST = (1 << 59) - 1


@pytest.fixture(scope="module", params=[2, 3, pytest.param(5, marks=pytest.mark.slow)])
def run(request):
    return computation(request.param)


def shared(run, integers, bits=58, bound=MOST):
    """Integers over 2^bits."""
    x = run.share("north", integers, bound=bound)
    return SharedArray(x.engine, x.value, x.shape, 1 << bits, x.bound)


def adversarial(by):
    """Both ends, and what lies around multiples of 2^by."""
    some = {0, 1, 2, 3, MOST, MOST - 1, 1 << 58, (1 << 58) - 1, (1 << 31), (1 << 53) + 1}
    unit = 1 << by
    for k in (1, 2, 3, MOST // unit, MOST // unit - 1, MOST // unit // 2):
        some |= {k * unit - 1, k * unit, k * unit + 1}
    signed = some | {-v for v in some}
    return sorted(v for v in signed if abs(v) <= MOST)


@each_case("by", range(1, 59))
def test_all_bits(by):
    run = computation(2, seed=by)
    values = adversarial(by)
    cut = shared(run, values).truncate(by)
    assert units(cut) == [v >> by for v in values]
    assert cut.scale == 1 << (58 - by)
    assert cut.bound == (MOST >> by) + 1


@each_case("by", [1, 2, 3, 7, 8, 16, 29, 30, 31, 32, 45, 57, 58])
def test_any_number_of_parties(run, by):
    values = adversarial(by)
    assert units(shared(run, values).truncate(by)) == [v >> by for v in values]


@examples(60)
@given(
    values=st.lists(st.integers(-MOST, MOST), min_size=1, max_size=10),
    by=st.integers(1, 58),
    seed=st.integers(0, 1 << 20),
)
def test_any_values(values, by, seed):
    run = computation(2, seed=seed)
    assert units(shared(run, values).truncate(by)) == [v >> by for v in values]


@each_case("by", [1, 20, 40, 58])
def test_the_same_value_a_thousand_times(by):
    """Fresh masks: wraps, borrows and ties all happen, and no result differs."""
    run = computation(2, seed=by)
    for value in (MOST, -MOST, -1, 0, (1 << by) - 1, -(1 << by)):
        found = units(shared(run, np.full(1000, value)).truncate(by))
        assert set(found) == {value >> by}


def test_on_the_grid(run):
    x = run.share("north", [1.75, -1.75, 0.25, -0.25, 3], bound=4, bits=4)
    for by, unit in ((1, 8), (2, 4), (3, 2), (4, 1)):
        cut = x.truncate(by)
        assert cut.scale == unit
        want = [np.floor(v * unit) for v in (1.75, -1.75, 0.25, -0.25, 3)]
        assert units(cut) == want
        assert cut.bound >= max(abs(v) for v in want)
    same(x.reshape(5, 1)[:2].truncate(4), [[1], [-2]])
    same(run.share("south", 2.5, bound=4, bits=1).truncate(1), 2)


def test_truncated_products_of_long_chains(run):
    """Truncation makes room: a product a step, for as long as one likes."""
    bits, value, want = 20, 1.25, 5 << 18
    x = run.share("north", [value], bound=2, bits=bits)
    y = x
    for _ in range(5):
        y = (y * x).truncate(bits).within(20 << bits)
        want = want * (5 << 18) >> bits
        assert units(y) == [want]


def test_refused_beyond_its_range(run):
    before_scale = 1 << 58
    for bound in (MOST + 1, LIMIT):
        x = shared(run, [0], bound=bound)
        before = sent(run)
        with pytest.raises(RangeError, match=r"beyond 2\^59 units cannot be truncated; share few"):
            x.truncate(1)
        assert sent(run) == before
        assert x.scale == before_scale


@each_case("by", [0, -1, 59, 60, 61, 64, 1000, None, "3", 1.5])
def test_refused_numbers_of_bits(run, by):
    x = shared(run, [1])
    before = sent(run)
    with pytest.raises(ParameterError, match="binary digits to drop; share with bits="):
        x.truncate(by)
    assert sent(run) == before


@each_case("facts, by", [({"decimals": 2}, 3), ({}, 1), ({"bits": 4}, 5)])
def test_refused_grids(run, facts, by):
    x = run.share("north", [1], bound=3, **facts)
    before = sent(run)
    with pytest.raises(ParameterError, match=f"a scale of .* has no {by} binary digits to drop"):
        x.truncate(by)
    assert sent(run) == before
