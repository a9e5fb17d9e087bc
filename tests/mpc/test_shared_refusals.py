"""What does not work says where and what to do, and sends nothing."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from mpc.computers import NAMES, Listener, computation, same, sent

from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.mpc.computation import Computation
from securecomp.mpc.selection import concatenate, where


@pytest.fixture(scope="module", params=[2, 3, pytest.param(5, marks=pytest.mark.slow)])
def run(request):
    return computation(request.param)


def refused(run, error, match, operation):
    before = sent(run)
    with pytest.raises(error, match=match):
        operation()
    assert sent(run) == before


# The parties


@each_case(
    "names, error, match",
    [
        ("ab", ParameterError, "the parties are several names, each once"),
        (["a", "a"], ParameterError, "the parties are several names, each once"),
        (["a", "b", "a"], ParameterError, "the parties are several names, each once"),
        ([], ThresholdError, r"one party alone would see every value \(0 of at least 2\)"),
        (["a"], ThresholdError, r"one party alone would see every value \(1 of at least 2\)"),
        (["a", "dealer"], ParameterError, "'dealer' is the dealer's name; rename the party"),
        (["a", ""], ParameterError, "name"),
        (["a", "x" * 101], ParameterError, "name"),
    ],
)
def test_parties_that_cannot_compute(names, error, match):
    listener = Listener()
    with pytest.raises(error, match=match):
        Computation(names, listener)
    assert not listener.record


def test_names_in_any_sequence():
    for names in (["a", "b"], ("a", "b")):
        run = Computation(names, Listener())
        assert run.engine.names == ("a", "b")
        same(run.share("b", 1, bound=1), 1)


# Inputs


INPUTS = {
    "a party that is none": ("west coast", [1], {}, ParameterError,
                             "'west coast' is no party or client; those are north, south"),
    "the dealer": ("dealer", [1], {}, ParameterError, "'dealer' is no party or client"),
    "two grids": ("north", [1], {"decimals": 1, "bits": 1}, ParameterError,
                  "give decimals or bits, not both"),
    "nan": ("north", [1, float("nan")], {}, RangeError, "north: .* is NaN or infinite; correct"),
    "inf": ("north", [float("inf")], {"bits": 2}, RangeError, "north: .* is NaN or infinite"),
    "text": ("north", ["1"], {}, ParameterError, "north: expected numbers"),
    "none": ("north", None, {}, ParameterError, "north: .* is not a real number"),
    "off the grid": ("north", [1, 0.5], {}, RangeError, "north: .* is not an integer; declare"),
    "off a decimal grid": ("north", [0.25], {"decimals": 1}, RangeError, "with 1 decimals; decl"),
    "beyond": ("north", [0, 6], {}, RangeError, "north: .* is beyond the agreed bound 5; correct"),
    "beyond below": ("north", [-6], {"bits": 3}, RangeError, "north: .* is beyond the agreed"),
    "ragged": ("north", [[1], [1, 2]], {}, ParameterError, "north: not an array"),
    "masked": ("north", np.ma.array([1], mask=[1]), {}, ParameterError, "north: an array with a"),
    "negative digits": ("north", [1], {"bits": -1}, ParameterError, "bits must be from 0"),
    "half a digit": ("north", [1], {"decimals": 0.5}, ParameterError, "decimals must be an int"),
    "a shared array": ("north", [1], {"bound": "five"}, ParameterError, "a bound must be a finite"),
    "no bound": ("north", [1], {"bound": float("inf")}, ParameterError, "a bound must be a finite"),
    "a negative bound": ("north", [1], {"bound": -1}, ParameterError, "a bound must be a finite"),
    "a bound beyond the field": ("north", [1], {"bound": 2**60}, RangeError, "the input could re"),
}  # fmt: skip


@each_case("case", INPUTS.values())
def test_inputs_that_cannot_be_shared(run, case):
    owner, values, facts, error, match = case
    refused(run, error, match, lambda: run.share(owner, values, **{"bound": 5} | facts))


def test_errors_about_inputs_name_no_value(run):
    with pytest.raises(RangeError) as error:
        run.share("north", [4711], bound=5)
    assert "4711" not in str(error.value)


# Truth, length, hash


def test_shared_values_have_no_truth(run):
    x = run.share("north", [1, 2], bound=3)
    match = r"a shared value has no truth; use where\(\), or reveal\(\) it"
    for operation in (lambda: bool(x), lambda: not x, lambda: x and 1, lambda: 0 < x < 3,
                      lambda: 1 if x == 1 else 2, lambda: x in [1], lambda: 1 in x,
                      lambda: max(x[0], x[1])):  # fmt: skip
        with pytest.raises(TypeError, match=match):
            operation()


def test_shared_arrays_are_not_hashed_copied_or_turned_into_numbers(run):
    x = run.share("north", [1], bound=3)
    for operation in (hash, int, float, lambda v: {v}, copy.deepcopy, pickle.dumps, range):
        with pytest.raises(TypeError):
            operation(x)


def test_length_and_iteration_as_numpys(run):
    x = run.share("north", [[1, 2], [3, 4], [5, 6]], bound=6)
    assert (len(x), x.ndim, x.size, x.shape) == (3, 2, 6, (3, 2))
    for row, want in zip(x, ([1, 2], [3, 4], [5, 6]), strict=True):
        same(row, want)
    with pytest.raises(TypeError, match="a shared number has no length"):
        len(x[0, 0])
    same(sum(x[0], x[1].sum()), 10)
    for index in (3, (0, 2), -4):
        with pytest.raises(IndexError):
            x[index]


def test_repr_tells_shape_scale_and_bound(run):
    x = run.share("north", [[1, 2]], bound=6, decimals=1)
    assert repr(x) == "SharedArray(shape=(1, 2), scale=10, bound=60)"


# Shapes


def test_shapes_that_do_not_go_together(run):
    x, y = run.share("north", [1, 2, 3], bound=3), run.share("south", [1, 2], bound=3)
    match = r"shapes \(3,\) and \(2,\) do not go together"
    condition, two = x.within(1), [1, 2]
    for operation in (lambda: x + y, lambda: x - y, lambda: x * y, lambda: x < y, lambda: x == y,
                      lambda: x + two, lambda: x * np.ones(2), lambda: where(condition, x, y),
                      lambda: where(condition, y, 0)):  # fmt: skip
        refused(run, ParameterError, match, operation)


def test_matrices_that_do_not_match(run):
    x = run.share("north", np.ones((2, 3)), bound=3)
    y = run.share("south", np.ones((2, 3)), bound=3)
    number = run.share("south", 1, bound=3)
    cube = run.share("south", np.ones((2, 2, 2)), bound=3)
    for operation in (lambda: x @ y, lambda: x @ np.ones((2, 3)), lambda: np.ones((2, 2)) @ x.T,
                      lambda: x @ [1, 2], lambda: [1, 2, 3] @ x, lambda: x[0] @ y[0, :2],
                      lambda: x @ number, lambda: number @ x, lambda: x @ 2, lambda: cube @ cube,
                      lambda: cube @ x[0, :2], lambda: 2 @ x):  # fmt: skip
        refused(run, ParameterError, r"matmul: shapes \(.*\) and \(.*\) do not match", operation)


def test_moves_that_cannot_be_made(run):
    x = run.share("north", np.ones((2, 3)), bound=3)
    for operation in (lambda: x.reshape(4), lambda: x.broadcast((3, 3)), lambda: x.sum(2),
                      lambda: x.sum(-3), lambda: x[0, 0].sum(0), lambda: x[0, 0, 0]):  # fmt: skip
        refused(run, (ValueError, IndexError), ".", operation)


# Revealing, and other computations


@each_case("to", ["west coast", ["north", "nobody"], [], "", ("dealer",), "nort"])
def test_revealing_to_nobody(run, to):
    x = run.share("north", [1], bound=3)
    refused(
        run, ParameterError, "reveal to parties or clients: north, south", lambda: x.reveal(to=to)
    )


def test_a_party_that_is_named_twice_is_told_once(run):
    x = run.share("north", [1], bound=3)
    before = sent(run)
    assert x.reveal(to=["south", "south"]).tolist() == [1]
    assert sent(run) - before == len(run.engine.names) - 1


def test_arrays_of_two_computations_do_not_meet(run):
    other = Computation(NAMES[: len(run.engine.names)], Listener())
    x, y = run.share("north", [1, 0], bound=1), other.share("north", [1, 1], bound=1)
    match = "of different computations"
    for operation in (lambda: x + y, lambda: x - y, lambda: x * y, lambda: x @ y, lambda: x < y,
                      lambda: x == y, lambda: where(x, y, y), lambda: where(x, x, y),
                      lambda: concatenate([x, y])):  # fmt: skip
        refused(run, ParameterError, match, operation)


def test_a_false_bound_shows_when_the_result_is_revealed(run):
    x = run.share("north", [5], bound=9)
    with pytest.raises(RangeError, match="a revealed value: a value is beyond the bound 4"):
        x.within(4).reveal()
    assert x.within(20).bound == 9
    same(x.within(5), [5])


def test_revealed_numbers_are_the_nearest_floats(run):
    wide = run.share("north", [2**58 - 1, 2**58 - 2, -3], bound=2**58)
    same(wide.mean(), Fraction(2**59 - 6, 3))
    same(wide[:2].mean(), Fraction(2**59 - 3, 2))
    tenth = run.share("north", [0.1, 0.7, -0.3], bound=1, decimals=1)
    assert tenth.reveal().tolist() == [0.1, 0.7, -0.3]
    large = run.share("south", np.array([10**17 + 1, 3], object), bound=2 * 10**17)
    mean = large.mean()
    assert mean.reveal() == float(Fraction(10**17 + 4, 2))
    third = large.like(large.value, large.shape, 3)
    assert third.reveal().tolist() == [float(Fraction(10**17 + 1, 3)), 1.0]
