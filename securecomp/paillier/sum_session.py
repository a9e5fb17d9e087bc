"""The encrypted sum: its agreement, its messages, and the checks that several roles share."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.core import checks
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.paillier.encoding import split_ciphertexts
from securecomp.paillier.keys import PublicKey
from securecomp.paillier.packing import Packing
from securecomp.paillier.threshold_key import ThresholdKey
from securecomp.paillier.vectors import EncryptedVector
from securecomp.protocol import wire
from securecomp.protocol.role import SessionRole
from securecomp.protocol.session import Session


def protocol_name(key: PublicKey | ThresholdKey) -> str:
    """Return a session's protocol. The key is part of it, so that all parties agree on it."""
    kind = "sum" if key.threshold == 1 else "threshold"
    return f"paillier/{kind}/1 key {key.id.hex()}"


def terms(
    contributors: int, *, minimum: int | None = None, blind: bool = False, threshold: int = 1
) -> dict[str, int]:
    """Return a session's parameters.

    Args:
        contributors: Number of contributors.
        minimum: Fewest contributors whose total may be decrypted; by default all.
        blind: Whether contributors mask their plaintexts among themselves (needs all of them).
        threshold: Number of key holders that decrypt together; 1 for a single key holder.

    Raises:
        ParameterError: A minimum below 2, above the contributors, or below them for a blind sum.
    """
    checks.integer(contributors, "the number of contributors")
    checks.integer(threshold, "the threshold", 1)
    checks.truth(blind, "blind")
    least = contributors if minimum is None else checks.integer(minimum, "the minimum")
    if not 2 <= least <= contributors:
        raise ParameterError(f"the minimum must be from 2 to {contributors}, not {least}")
    if blind and least < contributors:
        raise ParameterError("a blind sum needs every contributor; leave out minimum")
    agreed = {"minimum": least, "blind": int(blind)}
    return agreed if threshold == 1 else {**agreed, "threshold": threshold}


def check_session(session: Session, name: str, *, holders: int = 1, threshold: int = 1) -> None:
    """Refuse a session that does not protect its contributors, whoever proposed it.

    Args:
        session: The session.
        name: The role that refuses, for the error.
        holders: Number of key holders, who follow the aggregator among the servers.
        threshold: How many of them decrypt together.

    Raises:
        ParameterError: Other parameters or servers than this protocol's.
    """
    agreed = session.terms
    blind = agreed.get("blind") == 1
    if set(agreed) != set(terms(2, threshold=threshold)) or agreed["blind"] not in (0, 1):
        raise ParameterError(f"{name}: the session's parameters are not this protocol's")
    if agreed.get("threshold", 1) != threshold:
        raise ParameterError(f"{name}: the session's threshold is not the key's {threshold}")
    if len(session.servers) != 1 + holders:
        who = "one key holder" if holders == 1 else f"{holders} key holders"
        raise ParameterError(f"the session needs an aggregator and {who}")
    if 2 * threshold <= holders:
        # Each holder decrypts one total. Two groups without a common holder could decrypt two.
        raise ParameterError(
            f"{threshold} of {holders} key holders are too few: deal a key that needs more than "
            "half of them"
        )
    terms(len(session.contributors), minimum=agreed["minimum"], blind=blind, threshold=threshold)


BEYOND = "the total is beyond what the agreed bounds allow: a party did not keep to the protocol"


class Upload(wire.Message, frozen=True):
    """Contributor to aggregator: its encrypted vector, signed."""

    KIND: ClassVar[int] = 32
    ciphertexts: bytes
    signature: bytes


class EncryptedTotal(wire.Message, frozen=True):
    """Aggregator to key holder: the encrypted total, and whose vectors are in it."""

    KIND: ClassVar[int] = 33
    contributors: list[int]
    ciphertexts: bytes


class DecryptionRequest(wire.Message, frozen=True):
    """Aggregator to key holders and receivers: the encrypted total and its contributors, signed."""

    KIND: ClassVar[int] = 35
    contributors: list[int]
    ciphertexts: bytes
    signature: bytes


class DecryptionShare(wire.Message, frozen=True):
    """Key holder to receiver: its partial decryption, and the SHA-256 of the request's facts."""

    KIND: ClassVar[int] = 36
    request: bytes
    partial: bytes


class DecryptedTotal(wire.Message, frozen=True):
    """Key holder to receiver: the total, 8 bytes a value."""

    KIND: ClassVar[int] = 34
    contributors: list[int]
    values: bytes


class SumRole(SessionRole):
    """A role of the encrypted sum: its layout of slots, and the size of its messages."""

    def _layout(self, key: PublicKey | ThresholdKey) -> Packing:
        if self._session.protocol != protocol_name(key):
            raise KeyMismatchError(f"{self.name}: the session was agreed for another key")
        check_session(self._session, self.name, holders=key.holders, threshold=key.threshold)
        layout = self._session.layout
        return Packing.plan(key.public, layout.bound, len(self._session.contributors))

    _packing: Packing

    def _largest(self) -> int:
        # A ciphertext is twice as long as its plaintext, which its slots nearly fill.
        plaintext = self._packing.slot * (self._packing.slots + 1) // 8 + 64
        count = self._packing.ciphertexts(self._session.layout.length)
        return self._session.largest_message + 2 * plaintext * count

    def _send(self, message: wire.Message, recipient: str) -> wire.Buffer:
        return self._seal(message.KIND, wire.encode_body(message), recipient)


def read_vector(
    key: PublicKey, packing: Packing, session: Session, sender: str, data: bytes, weight: int
) -> EncryptedVector:
    """Read the vector of a message.

    Raises:
        RemoteProtocolError: It is not one of the agreed length under the agreed key.
    """
    length = session.layout.length
    try:
        ciphertexts = split_ciphertexts(key, data, packing.ciphertexts(length))
    except DecodeError as error:
        raise RemoteProtocolError(sender, str(error)) from None
    return EncryptedVector(key, packing, length, weight, ciphertexts)


def check_listed(sender: str, listed: list[int], session: Session) -> None:
    """Refuse a malformed list of contributors, or one that is too short.

    Raises:
        RemoteProtocolError, ThresholdError: It is.
    """
    if sorted(set(listed)) != listed or not all(0 <= i < len(session.contributors) for i in listed):
        raise RemoteProtocolError(sender, "its list of contributors is malformed")
    needed = session.terms["minimum"]
    if len(listed) < needed:
        raise ThresholdError(needed, len(listed), "too few contributors to hide among")


def check_total(values: npt.NDArray[np.int64], contributors: int, session: Session) -> None:
    """Refuse a total that inputs within the bounds cannot give.

    Raises:
        RangeError: A party did not keep to the protocol.
    """
    largest = contributors * session.layout.bound
    if values.size and max(int(values.max()), -int(values.min())) > largest:
        raise RangeError(BEYOND)
