"""One test over many cases of one rule."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(
    names: str, cases: Iterable[Any], make: Callable[..., Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every case; a failure says in which.

    All cases see the same fixtures. Use it where no case changes them.

    Args:
        names: The test's arguments that a case gives, with commas between.
        cases: One value for each case, or a tuple where there are several names.
        make: Makes the one argument of a case; it is called when the test runs.
    """
    keys = [name.strip() for name in names.split(",")]
    listed = list(cases)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def every(*arguments: Any, **fixtures: Any) -> None:
            for case in listed:
                values = dict(zip(keys, case if len(keys) > 1 else (case,), strict=True))
                shown = ", ".join(f"{key}={value!r}"[:300] for key, value in values.items())
                try:
                    if make is not None:
                        values = {keys[0]: make(case)}
                    test(*arguments, **fixtures, **values)
                except BaseException as error:
                    error.add_note(f"in the case {shown}")
                    raise

        whole = inspect.signature(test)
        left = [p for name, p in whole.parameters.items() if name not in keys]
        every.__signature__ = whole.replace(parameters=left)  # type: ignore[attr-defined]
        return every

    return decorate
