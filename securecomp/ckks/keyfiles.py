"""What a client's and a server's key file have in common: how they are read."""

from typing import Protocol, TypeVar

import msgspec

from securecomp.errors import DecodeError, KeyMismatchError
from securecomp.protocol.identity import Identity

VERSION = 1


class _Kept(Protocol):
    @property
    def format(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def identity(self) -> bytes: ...


K = TypeVar("K", bound=_Kept)


def read(text: str | bytes, kind: type[K], name: str, owner: str) -> tuple[K, Identity]:
    """Return a key file's facts and its identity.

    Args:
        text: The file, JSON.
        kind: What it is decoded as.
        name: The format that it must say it is of.
        owner: Whose key it is, for errors.

    Raises:
        DecodeError: It is no such file.
    """
    try:
        facts = msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        raise DecodeError(f"not a {owner}'s key: {error}") from None
    if facts.format != name or facts.version != VERSION:
        raise DecodeError(f"not a {name} of version {VERSION}")
    try:
        return facts, Identity(facts.identity)
    except KeyMismatchError as error:
        raise DecodeError(f"not a {owner}'s key: {error}") from None
