"""The one policy for types that hold secrets: nothing prints, copies or pickles them."""

from typing import Any, NoReturn


class Secret:
    """Base of types that hold keys, seeds, shares, masks or opened private values.

    `repr` and rich's printer show the type's name; a subclass may show public facts instead. A
    secret is written out only by a method that is named for it, such as `export` or `to_json`.
    Copying and pickling are refused: they would put a second secret where nobody looks for it, and
    a one-time secret exists once.

    A dataclass among the subclasses needs `repr=False`.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} holds secrets and cannot be copied or pickled")

    __copy__ = __deepcopy__ = __replace__ = __reduce__ = __reduce_ex__ = _refuse
