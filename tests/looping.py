"""Loops over cases in one test, whose failure names the case."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def named(*facts: Any) -> Iterator[None]:
    """Add the case's facts to the message of whatever fails within."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {', '.join(map(repr, facts))}"[:500])
        raise
