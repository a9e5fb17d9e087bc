"""Many cases of one rule in one test."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet  # made by pytest.param
from hypothesis import settings


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


def examples(every: int, **options: Any) -> settings:
    """Settings of a Hypothesis test that searches so many examples, or a share of them.

    The default suite searches four tenths, `pytest --hypothesis-profile=thorough` all of them.

    Args:
        every: Examples of a thorough search.
        options: More of what `settings` takes.
    """
    share = settings.default.max_examples / 100  # a test that says nothing has 100
    return settings(max_examples=max(6, round(every * share)), **options)


def altered(struct: Any, **changes: Any) -> Any:
    """A struct with other fields, made and checked by its constructor.

    `msgspec.structs.replace` runs `__post_init__` in some versions of msgspec only.
    """
    facts = {name: getattr(struct, name) for name in struct.__struct_fields__}
    return type(struct)(**facts | changes)
