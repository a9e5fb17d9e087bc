"""Parties of a study file: names and public keys. A relay needs nothing else of it."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from securecomp.errors import ParameterError
from securecomp.net import key_texts
from securecomp.protocol import public_key, storage


@dataclass(frozen=True, slots=True)
class Parties:
    """The parties of a study.

    Attributes:
        digest: SHA-256 of the study file.
        sites: Names and public keys of those who bring rows.
        servers: Names and public keys of those who compute.
        analysts: Names and public keys of those who ask, and have no rows.
    """

    digest: bytes
    sites: Mapping[str, bytes]
    servers: Mapping[str, bytes]
    analysts: Mapping[str, bytes]

    @property
    def keys(self) -> dict[str, bytes]:
        """Public keys of all parties."""
        return {**self.sites, **self.servers, **self.analysts}

    @property
    def id(self) -> str:
        """Name of the study at a relay."""
        return self.digest.hex()[:32]


def load(path: Path) -> tuple[dict[str, Any], Parties]:
    """Read a study file: what it says, and its parties.

    Raises:
        ParameterError: Not such a file, or its parties cannot be; it names what is wrong.
    """
    data = storage.read_bytes(path)
    try:
        facts = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: not a study file: {error}") from None
    try:
        roles = [_parties(table(facts, what)) for what in ("sites", "servers", "analysts")]
        sites, servers, analysts = roles
        _check_keys({**sites, **servers, **analysts}, sum(map(len, roles)))
        if len(sites) < 2:
            raise ParameterError("[sites] names at least two sites, each with its public key")
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None
    return facts, Parties(hashlib.sha256(data).digest(), sites, servers, analysts)


def listing(agreed: Parties) -> str:
    """Return the text of a file for a relay: the parties, and the study file's SHA-256.

    A relay that is started with it, and not with the study file, does not learn which columns
    there are, nor what is asked.
    """
    lines = [f'digest = "{agreed.digest.hex()}"']
    for what in ("sites", "servers", "analysts"):
        lines += ["", f"[{what}]"]
        lines += [
            f"{json.dumps(name, ensure_ascii=False)} = {json.dumps(key_texts.to_text(key))}"
            for name, key in getattr(agreed, what).items()
        ]
    return "\n".join(lines)


def served(path: Path) -> Parties:
    """Read a relay's file: a study file, or its parties (`listing`).

    Raises:
        ParameterError: As `load`; or its digest is not a SHA-256.
    """
    facts, agreed = load(path)
    if "digest" not in facts:
        return agreed
    try:
        digest = bytes.fromhex(str(facts["digest"]))
    except ValueError:
        digest = b""
    if len(digest) != len(agreed.digest):
        raise ParameterError(
            f"{path}: digest is not a SHA-256; securecomp study parties writes this file"
        )
    return replace(agreed, digest=digest)


def table(facts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table of the file; an empty one if it is not there.

    Raises:
        ParameterError: It is something else.
    """
    found = facts.get(name, {})
    if not isinstance(found, Mapping):
        raise ParameterError(f"[{name}] is a table")
    return found


def _parties(given: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: key_texts.from_text(str(key), name) for name, key in sorted(given.items())}


def _check_keys(keys: Mapping[str, bytes], number: int) -> None:
    if len(keys) != number:
        raise ParameterError("a site, a server and an analyst have different names; rename one")
    owners: dict[bytes, str] = {}
    for name, key in keys.items():
        for half in public_key.halves(key):
            if half in owners:
                raise ParameterError(
                    f"{name!r} and {owners[half]!r} have the same key; each party has its own"
                )
            owners[half] = name
