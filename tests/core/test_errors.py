"""The one exception tree."""

import copy
import inspect
import pickle

from cases import each_case

from securecomp import errors

BASES = {
    "ParameterError": {ValueError},
    "RangeError": {ValueError},
    "DecodeError": {ValueError},
    "KeyMismatchError": {ValueError},
    "AuthenticationError": set(),
    "ProtocolError": set(),
    "LocalProtocolError": {errors.ProtocolError},
    "RemoteProtocolError": {errors.ProtocolError},
    "ThresholdError": {errors.ProtocolError},
    "WrongResultError": set(),
    "BudgetError": set(),
    "RefutedError": set(),
    "BackendUnavailableError": {ImportError},
}
TREE = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, BaseException)
}
SIMPLE = sorted(set(BASES) - {"RemoteProtocolError", "ThresholdError"})


def test_there_is_one_tree():
    assert set(TREE) == {*BASES, "SecureCompError"}
    assert errors.SecureCompError.__bases__ == (Exception,)
    assert all(value.__doc__ for value in TREE.values())


@each_case("name, bases", BASES.items())
def test_what_catches_an_error(name, bases):
    kind = TREE[name]
    assert issubclass(kind, errors.SecureCompError)
    assert bases <= set(kind.__mro__)
    builtin = {b for b in kind.__mro__ if b.__module__ == "builtins"}
    assert builtin - {object, BaseException, Exception} == {
        b for b in bases if b.__module__ == "builtins"
    }


@each_case("name", SIMPLE)
def test_an_error_says_what_it_was_given(name):
    assert str(TREE[name]("east.csv: no column 'age'")) == "east.csv: no column 'age'"


def test_a_remote_error_says_who():
    error = errors.RemoteProtocolError("north", "sent it twice")
    assert error.sender == "north"
    assert str(error) == "north: sent it twice"


def test_a_threshold_error_says_how_many():
    error = errors.ThresholdError(3, 2, "too few servers")
    assert (error.needed, error.got) == (3, 2)
    assert str(error) == "too few servers (2 of at least 3)"


@each_case(
    "error",
    [
        *(TREE[name]("why") for name in SIMPLE),
        errors.RemoteProtocolError("north", "why"),
        errors.ThresholdError(3, 2, "why"),
    ],
)
def test_an_error_crosses_to_another_process(error):
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
