"""Choosing: where, extremes, sorting and quantiles, against numpy."""

import itertools

import numpy as np
import pytest
from cases import each_case, examples, named, some_or_all
from hypothesis import given
from hypothesis import strategies as st
from mpc.computers import computation, exact, fractions, same, sent

from securecomp.errors import ParameterError
from securecomp.mpc import SharedArray, selection
from securecomp.mpc.selection import (
    argmax,
    concatenate,
    maximum,
    median,
    minimum,
    network,
    quantile,
    sort,
    where,
)


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def run(request):
    return computation(request.param)


# where


def test_where_takes_shared_and_public_values(run):
    a, b = np.array([3, -4, 0, 7]), np.array([1, 2, 0, -9])
    x, y = run.share("north", a, bound=9), run.share("south", b, bound=9)
    for condition, mask in ((x < y, a < b), (x >= y, a >= b), (x == y, a == b), (x != y, a != b),
                            (x > y, a > b), (x <= y, a <= b)):  # fmt: skip
        for one, two, want in (
            (x, y, np.where(mask, a, b)), (x, 5, np.where(mask, a, 5)),
            (-1, y, np.where(mask, -1, b)), (x, b, np.where(mask, a, b)),
            (a, y, np.where(mask, a, b)), (x, x, a),
        ):  # fmt: skip
            chosen = where(condition, one, two)
            same(chosen, want)
            assert chosen.bound == 9
        same(where(condition, x, 0.5), np.where(mask, fractions(a), fractions([0.5] * 4)))
        same(where(condition, 0.5, x), np.where(mask, fractions([0.5] * 4), fractions(a)))
        same(where(condition * condition, x, y), np.where(mask, a, b))
        same(where((1 - condition).within(1), x, y), np.where(mask, b, a))


def test_where_broadcasts(run):
    a = np.arange(6).reshape(2, 3)
    x, y = run.share("north", a, bound=9), run.share("south", 7, bound=9)
    same(where(x > 2, x, y), np.where(a > 2, a, 7))
    same(where(x[0] > 0, x, y), np.where(a[0] > 0, a, 7))
    same(where(y > 2, x, 0), a)


def test_where_of_different_grids_keeps_the_bound_of_the_finer(run):
    x = run.share("north", [1.5, 2], bound=2, bits=1)
    y = run.share("south", [0.25, -3], bound=4, bits=3)
    chosen = where(x > 1.75, x, y)
    same(chosen, fractions([0.25, 2]))
    assert (chosen.scale, chosen.bound) == (8, 32)


def test_where_refuses_what_is_no_condition(run):
    x = run.share("north", [1, 2], bound=9)
    before = sent(run)
    for condition in (x, x.within(2), x * 0, True, np.array([True, False]), None):
        with pytest.raises(ParameterError, match="the condition is what a comparison returns"):
            where(condition, x, 0)
    ones = x.within(1)
    with pytest.raises(ParameterError, match="share one of the values; both are public here"):
        where(ones, 1, 2)
    assert sent(run) == before


# Extremes


@each_case("size", [1, 2, 3, 4, 5, 8, 9, 17])
def test_extremes_of_all_lengths(size):
    run = computation(2, seed=size)
    values = np.random.default_rng(size).integers(-4, 4, size)
    x = run.share("north", values, bound=4)
    largest, smallest = maximum(x), minimum(x)
    same(largest, values.max())
    same(smallest, values.min())
    same(argmax(x), values.argmax())
    assert largest.bound == smallest.bound == 4


@each_case("values", list(itertools.product([0, 1], repeat=4)))
def test_of_equal_ones_argmax_is_the_first(values):
    x = computation(2).share("north", values, bound=1)
    same(argmax(x), np.argmax(values))


def test_extremes_of_any_shape(run):
    values = np.array([[1.5, -2.25], [0, 3.75]])
    x = run.share("north", values, bound=4, bits=2)
    same(maximum(x), fractions([3.75])[0])
    same(minimum(x), fractions([-2.25])[0])
    same(maximum(x[0, 0]), fractions([1.5])[0])
    same(argmax(x.reshape(-1)), 3)


@each_case("size", [2, 3, 8, 64])
def test_rounds_of_extremes_grow_with_the_logarithm(size):
    run = computation(2)
    x = run.share("north", np.arange(size), bound=100)
    for function, each in ((maximum, 8), (minimum, 8), (argmax, 9)):
        before = run.engine.run.rounds
        function(x)
        assert run.engine.run.rounds - before == each * (size - 1).bit_length()


# Sorting


def layers_sort(values, layers):
    values = list(values)
    for low, high in layers:
        for i, j in zip(low, high, strict=True):
            if values[j] < values[i]:
                values[i], values[j] = values[j], values[i]
    return values


@each_case("size", range(11))
def test_the_network_sorts_all_zeros_and_ones(size):
    """The 0-1 principle: a network that sorts these sorts everything (Knuth, 5.3.4)."""
    layers = network(size)
    for bits in itertools.product([0, 1], repeat=size):
        assert layers_sort(bits, layers) == sorted(bits)


@each_case("size", [*range(70), 100, 129])
def test_the_networks_layers(size):
    """A place is in at most one pair of a layer; the lower place is first; Batcher's depth."""
    layers = network(size)
    for low, high in layers:
        assert low.size > 0
        places = [*low.tolist(), *high.tolist()]
        assert len(set(places)) == len(places)
        assert all(0 <= i < j < size for i, j in zip(low, high, strict=True))
    k = max(size - 1, 0).bit_length()
    assert len(layers) == k * (k + 1) // 2


@some_or_all("sizes", [*range(10), 16, 17, 33], range(41))
def test_sorting_all_lengths(sizes):
    for size in sizes:
        with named(size):
            sorted_vector(size)


def sorted_vector(size):
    run = computation(2, seed=size)
    values = np.random.default_rng(size).integers(-9, 9, size)
    ordered = sort(run.share("north", values, bound=9))
    same(ordered, np.sort(values))
    assert ordered.bound == 9


def test_sorting_fractions_among_more_parties(run):
    values = np.array([0.5, -1.25, 0.5, 3, 0, -1.25, 2.75])
    same(sort(run.share("south", values, bound=4, bits=2)), fractions(np.sort(values)))
    same(sort(run.share("south", values, bound=4, decimals=2)), fractions(np.sort(values)))


def test_sorting_leaves_the_vector_as_it_was(run):
    x = run.share("north", [3, 1, 2], bound=3)
    sort(x)
    same(x, [3, 1, 2])


@examples(30)
@given(st.lists(st.integers(-(2**58), 2**58), max_size=9))
def test_sorting_anything(values):
    run = computation(2)
    x = run.share("north", np.array(values, np.int64), bound=2**58)
    same(sort(x), sorted(values))


# Quantiles


@each_case("size", range(1, 13))
def test_medians(size):
    run = computation(2)
    values = np.random.default_rng(size).integers(-20, 20, size)
    x = run.share("north", values, bound=20)
    found = median(x)
    assert found.shape == ()
    assert exact(found) == fractions([float(np.median(values))])[0]
    assert found.reveal() == np.median(values)
    same(median(x.reshape(-1, 1)) * 2, int(2 * np.median(values)))


QUANTILES = [0, 0.1, 0.2, 0.25, 0.3, 1 / 3, 0.5, 0.6, 0.7, 0.75, 0.9, 0.95, 1, 1.0, 1e-9]


@pytest.mark.parametrize("size", [1, 2, 7, 10, 20])
def test_quantiles_are_numpys_inverted_cdf(size, monkeypatch):
    run = computation(2)
    values = np.random.default_rng(size).permutation(size) * 3
    x = run.share("north", values, bound=100)
    ordered = sort(x)
    monkeypatch.setattr(selection, "sort", lambda _: ordered)
    for q in QUANTILES:
        same(quantile(x, q), np.quantile(values, q, method="inverted_cdf"))
        same(quantile(x, np.float64(q)), np.quantile(values, q, method="inverted_cdf"))


def test_a_tenth_of_ten_elements_is_one(run):
    x = run.share("north", range(10), bound=10)
    same(quantile(x, 0.1), 0)
    same(quantile(x, 0.7), 6)


@each_case("q", [-0.1, 1.1, float("nan"), 2, -1])
def test_quantiles_that_are_none(run, q):
    with pytest.raises(ParameterError, match="a quantile is from 0 to 1"):
        quantile(run.share("north", [1], bound=1), q)


def test_empty_arrays_have_no_extremes(run):
    empty = run.share("north", [], bound=1)
    functions = [maximum, minimum, argmax, median, SharedArray.mean]
    for function in (*functions, lambda x: quantile(x, 0.5)):
        with pytest.raises(ParameterError, match=r"empty|at least one"):
            function(empty)
    for function in (sort, argmax):
        with pytest.raises(ParameterError, match="takes a vector"):
            function(run.share("north", [[1, 2]], bound=2))


# Concatenating


def test_concatenating_sends_nothing(run):
    x, y = run.share("north", [1, -2], bound=2), run.share("south", [9], bound=9)
    before = sent(run)
    joined = concatenate([x, y, x[:0], x])
    assert sent(run) == before
    assert joined.bound == 9
    same(joined, [1, -2, 9, 1, -2])
    same(concatenate([x]), [1, -2])


def test_what_cannot_be_concatenated(run):
    x = run.share("north", [1, 2], bound=2)
    half = run.share("north", [0.5], bound=1, bits=1)
    for parts in ([], [x, x.reshape(1, 2)], [x, half], [x[0]]):
        with pytest.raises(ParameterError, match="concatenate takes vectors of one scale"):
            concatenate(parts)
