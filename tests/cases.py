"""Many cases of one rule in one test."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet  # made by pytest.param
from hypothesis import given, settings


@contextlib.contextmanager
def named(*facts: Any, **given: Any) -> Iterator[None]:
    """Add a case's facts to the message of whatever fails within."""
    try:
        yield
    except BaseException as error:
        facts = (*map(repr, facts), *(f"{name}={value!r}" for name, value in given.items()))
        error.add_note(f"in the case {', '.join(facts)}")
        raise


def each_case(
    names: str, cases: Iterable[Any], make: Callable[..., Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test once for each case; a failure says in a note which case it was.

    For tests of one rule over many values, whose fixtures keep nothing from case to case.

    Args:
        names: Of the arguments, with commas between them.
        cases: A value each; with several names, as many values.
        make: Makes the one argument of a case, while the test runs.
    """
    keys = [name.strip() for name in names.split(",")]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def every(*args: Any, **fixtures: Any) -> None:
            for case in cases:
                marked = isinstance(case, ParameterSet)
                cells = case.values if marked else (case,) if len(keys) == 1 else case
                given = dict(zip(keys, cells, strict=True))
                with named(**given):
                    if make is not None:
                        given = {keys[0]: make(case)}
                    test(*args, **{**fixtures, **given})

        # What is left are fixtures.
        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in keys]
        every.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return every

    return decorate


def some_or_all(names: str, some: Iterable[Any], every: Iterable[Any]) -> Any:
    """Call a test once with some cases and, with `-m slow`, once with every case.

    The argument of that name gets them, and the test goes through them.
    """
    rest = pytest.param(every, id="all", marks=pytest.mark.slow)
    return pytest.mark.parametrize(names, [pytest.param(some, id="some"), rest])


def searched(
    some: int, every: int, *strategies: Any, **named: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Search some examples for one that fails and, with `-m slow`, so many as every.

    For tests without fixtures. Hypothesis draws the same ones each time.

    Args:
        some: Examples of the default suite.
        every: Examples of the whole one.
        strategies: As `given` takes them.
        named: Likewise.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        tests = {
            n: settings(max_examples=n)(given(*strategies, **named)(test)) for n in (some, every)
        }

        @pytest.mark.parametrize("examples", [some, pytest.param(every, marks=pytest.mark.slow)])
        @functools.wraps(test)
        def search(*args: Any, examples: int) -> None:
            tests[examples](*args)

        place = inspect.Parameter("examples", inspect.Parameter.KEYWORD_ONLY)
        left = inspect.signature(tests[some]).parameters.values()
        search.__signature__ = inspect.Signature([*left, place])  # type: ignore[attr-defined]
        return search

    return decorate


def altered(struct: Any, **changes: Any) -> Any:
    """A struct with other fields, made and checked by its constructor.

    `msgspec.structs.replace` runs `__post_init__` in some versions of msgspec only.
    """
    facts = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return type(struct)(**facts | changes)
