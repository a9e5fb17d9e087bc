"""Session: the facts that all parties agree on before anything is computed.

A `Session` names everyone who takes part, their keys, the round and what the vector's elements
mean. Its digest, the *agreement*, is in every message and in every key, so a message of another
session, round, layout or list of parties is refused.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import msgspec

from securecomp.core import checks
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import (
    DecodeError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    SecureCompError,
    ThresholdError,
)
from securecomp.protocol import public_key, wire

ID_BYTES = 16
MAX_TERM = (1 << 63) - 1
_MAGIC = b"securecomp session 1\n"
_MAX_BYTES = 1 << 28
_MOST_DIGITS = 1000


class Layout(msgspec.Struct, frozen=True):
    """Meaning of a vector's elements.

    Attributes:
        length: Number of elements.
        bound: Largest absolute value of any element of one contributor.
        labels: One label an element, or none at all.
    """

    length: int
    bound: int
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse a layout that cannot be; how it was made does not matter.

        Raises:
            ParameterError: A length, a bound or labels that cannot be agreed on.
        """
        # numpy's integers would wrap where headroom is computed.
        checks.integer(self.length, "a layout's length", 0, wire.MAX_ELEMENTS)
        checks.integer(self.bound, "a layout's bound", 0)
        if type(self.labels) is not tuple or not all(type(x) is str for x in self.labels):
            raise ParameterError("a layout's labels are a tuple of texts")
        if self.labels and len(self.labels) != self.length:
            raise ParameterError(f"{len(self.labels)} labels for {self.length} elements")


class _Agreed(dict[str, Any]):
    """A dict that does not change; a mapping proxy could be neither encoded nor pickled."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("what was agreed on does not change; agree on another session")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = _refuse
    setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return _Agreed, (dict(self),)


class Conversation:
    """Context in which messages are sealed: the speakers, their keys and the round.

    Subclasses have the attributes.
    """

    __slots__ = ()
    id: bytes
    round: int
    keys: Mapping[str, bytes]

    @property
    def agreement(self) -> bytes:
        """SHA-256 over everything that the parties agreed on."""
        raise NotImplementedError

    @property
    def largest_message(self) -> int:
        """Bytes that no message's body passes."""
        raise NotImplementedError

    def header(self, kind: int, sender: str, recipient: str, agreement: bytes) -> wire.Header:
        """Return the header of a message of this round."""
        return wire.Header(kind, self.id, self.round, agreement, sender, recipient)

    def check(self, header: wire.Header, agreement: bytes, recipient: str) -> None:
        """Refuse a message that is not of this session, round and agreement, or not for us.

        Raises:
            RemoteProtocolError: It says which of them differs.
        """
        if header.session != self.id:
            reason = "the message belongs to another session"
        elif header.round != self.round:
            reason = f"the message is of round {header.round} and this is round {self.round}"
        elif header.agreement != agreement:
            reason = "the message was made for another layout or other parties"
        elif header.recipient != recipient:
            reason = f"the message is for {header.recipient!r}, not for {recipient!r}"
        elif header.sender not in self.keys:
            reason = "takes no part in this session"
        else:
            return
        # Nothing is verified yet: anybody could have put the sender's name there.
        raise RemoteProtocolError(header.sender, reason, authenticated=False)


class Session(Conversation, msgspec.Struct, frozen=True, weakref=True):
    """A computation's public facts and parties; equal for everybody.

    The constructor checks every field. A role calls `checked`, so that a session that was made in
    another way, such as by `msgspec.structs.replace`, is checked too.

    Attributes:
        protocol: Name of the protocol and its variant.
        id: 16 bytes, drawn once.
        round: Counted from 0 within a session.
        contributors: Who puts a vector in, in order.
        servers: Who computes, in order.
        receivers: Who gets the result, in order.
        keys: Each party's public key.
        layout: What is summed.
        limit: The largest absolute total that the protocol returns exactly.
        terms: The protocol's own parameters, by name.
    """

    protocol: str
    id: bytes
    round: int
    contributors: tuple[str, ...]
    servers: tuple[str, ...]
    receivers: tuple[str, ...]
    keys: Mapping[str, bytes]
    layout: Layout
    limit: int
    terms: Mapping[str, int] = {}

    @classmethod
    def create(
        cls,
        protocol: str,
        *,
        contributors: Sequence[str],
        servers: Sequence[str],
        receivers: Sequence[str],
        keys: Mapping[str, bytes],
        layout: Layout,
        limit: int,
        minimum_servers: int = 1,
        terms: Mapping[str, int] | None = None,
        entropy: Entropy = entropy_.system,
    ) -> "Session":
        """Draw a session id and agree. How a session is made does not matter: all are checked.

        Args:
            protocol: Name of the protocol and its variant.
            contributors: Who puts a vector in.
            servers: Who computes.
            receivers: Who gets the result.
            keys: Public keys of at least these parties.
            layout: What is summed.
            limit: The largest absolute total that the protocol returns exactly.
            minimum_servers: Fewest servers that protect the contributors.
            terms: The protocol's own parameters.
            entropy: Source of the id.

        Raises:
            ParameterError: A party named twice in one role, without a key, or with another's.
            KeyMismatchError: A key is not a point of the curve.
            ThresholdError: Fewer than two contributors, or too few servers.
            RangeError: The sum could pass `limit`.
        """
        checks.integer(minimum_servers, "minimum_servers", 1)
        if len(servers) < minimum_servers:
            raise ThresholdError(
                minimum_servers, len(servers), "one server alone would see every value"
            )
        for names in (contributors, servers, receivers):
            if isinstance(names, str):
                raise ParameterError(f"expected several names, got one text: {names!r}")
        parties = {wire.check_name(n) for n in (*contributors, *servers, *receivers)}
        return cls(
            protocol,
            entropy(ID_BYTES),
            0,
            tuple(contributors),
            tuple(servers),
            tuple(receivers),
            {name: keys[name] for name in sorted(parties) if name in keys},
            layout,
            limit,
            terms or {},
        )

    def __post_init__(self) -> None:
        # A key that changes after the check would be trusted without one.
        for name in ("keys", "terms"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise ParameterError(f"a session's {name} are given by name")
            msgspec.structs.force_setattr(self, name, _Agreed(given))
        self._check_facts()
        self._check_parties()
        self._check_keys()
        if self.layout.bound * len(self.contributors) > self.limit:
            raise RangeError(
                f"{len(self.contributors)} contributors with values up to {self.layout.bound} "
                f"could pass the largest exact total {self.limit}; use a smaller bound"
            )
        _checked[id(self)] = self

    def checked(self) -> "Session":
        """Return this session if its constructor checked it, else a copy that is checked.

        Raises:
            ParameterError, KeyMismatchError, ThresholdError, RangeError: As `create`.
        """
        if _checked.get(id(self)) is self:
            return self
        return Session(*(getattr(self, name) for name in self.__struct_fields__))

    def _check_facts(self) -> None:
        """Check each field for its type before it is compared with anything."""
        if type(self.protocol) is not str or not isinstance(self.layout, Layout):
            raise ParameterError("a session has a protocol's name and a layout")
        if type(self.id) is not bytes or len(self.id) != ID_BYTES:
            raise ParameterError(f"a session has an id of {ID_BYTES} bytes")
        self.layout.check()
        checks.integer(self.round, "a session's round", 0, (1 << 32) - 1)
        checks.integer(self.limit, "a session's limit", 0)
        for term, value in self.terms.items():
            if type(term) is not str:
                raise ParameterError("a session's terms are given by name")
            checks.integer(value, f"the term {term!r}", -MAX_TERM - 1, MAX_TERM)

    def _check_parties(self) -> None:
        """Refuse lists of parties that are too short, or that name one twice."""
        for names in (self.contributors, self.servers, self.receivers):
            if type(names) is not tuple:
                raise ParameterError("a session's parties are tuples of names")
        if len(self.contributors) < 2:
            raise ThresholdError(
                2, len(self.contributors), "a sum over one party is that party's own value"
            )
        if not self.servers:
            raise ThresholdError(1, 0, "nobody computes")
        if not self.receivers:
            raise ThresholdError(1, 0, "nobody receives the result")
        for role, names in (
            ("contributor", self.contributors),
            ("server", self.servers),
            ("receiver", self.receivers),
        ):
            seen: set[str] = set()
            for name in names:
                wire.check_name(name)
                if name in seen:
                    raise ParameterError(f"{name!r} is named twice as {role}; names are unique")
                if name not in self.keys:
                    raise ParameterError(f"{role} {name!r} has no public key in this session")
                seen.add(name)

    def _check_keys(self) -> None:
        """Refuse invalid keys, and one key for two names: they would be one party."""
        owners: dict[bytes, str] = {}
        for name, key in self.keys.items():
            wire.check_name(name)
            public_key.check(key, name)
            for half in public_key.halves(key):
                if half in owners:
                    raise ParameterError(
                        f"{name!r} has the same key as {owners[half]!r}; each party has its own"
                    )
                owners[half] = name

    def next(self, layout: Layout) -> "Session":
        """Return the same session's next round, with another layout."""
        facts = {name: getattr(self, name) for name in self.__struct_fields__}
        return Session(**facts | {"round": self.round + 1, "layout": layout})

    @property
    def agreement(self) -> bytes:
        """SHA-256 over everything above."""
        return hashlib.sha256(self._facts()).digest()

    def to_bytes(self) -> bytes:
        """Return the session as bytes, one encoding for each session. Nothing in it is secret."""
        return _MAGIC + self._facts()

    @classmethod
    def from_bytes(cls, data: wire.Buffer) -> "Session":
        """Read what `to_bytes` wrote, and check it as the constructor does.

        Raises:
            DecodeError: Not a session, or one that cannot be agreed on; it says why.
        """
        view = bytes(memoryview(data)[: _MAX_BYTES + 1])
        if not view.startswith(_MAGIC) or len(view) > _MAX_BYTES:
            raise DecodeError("not a session of this version")
        try:
            facts = msgspec.msgpack.decode(view[len(_MAGIC) :], type=_Facts)
            name, drawn, number, contributors, servers, receivers = facts[:6]
            keys, length, bound, labels, limit, terms = facts[6:]
            if max(len(bound), len(limit)) > _MOST_DIGITS:
                raise DecodeError("not a session: a number has too many digits")
            layout = Layout(length, int(bound), labels)
            parties = (contributors, servers, receivers, dict(keys))
            session = cls(name, drawn, number, *parties, layout, int(limit), dict(terms))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise DecodeError(f"not a session: {error}") from None
        except (SecureCompError, ValueError) as error:
            raise DecodeError(f"a session that cannot be agreed on: {error}") from None
        if session.to_bytes() != view:
            raise DecodeError("not a session: another encoding than the one that counts")
        return session

    def _facts(self) -> bytes:
        # Big integers do not fit MessagePack; tuples of text and numbers have one encoding each.
        facts = (
            self.protocol,
            self.id,
            self.round,
            self.contributors,
            self.servers,
            self.receivers,
            sorted(self.keys.items()),
            self.layout.length,
            str(self.layout.bound),
            self.layout.labels,
            str(self.limit),
            sorted(self.terms.items()),
        )
        return msgspec.msgpack.encode(facts)

    @property
    def largest_message(self) -> int:
        """Bytes that no message of a sum passes: a vector, and facts on every contributor."""
        vector = wire.packed_size(self.layout.length + 1, 64)
        return vector + 1024 * (len(self.contributors) + 1) + 4096


Names = tuple[str, ...]
_Facts = tuple[
    str,
    bytes,
    int,
    Names,
    Names,
    Names,
    list[tuple[str, bytes]],
    int,
    str,
    Names,
    str,
    list[tuple[str, int]],
]
"""What the agreement is a digest of."""
_checked: "WeakValueDictionary[int, Session]" = WeakValueDictionary()
"""The sessions that a constructor has checked, by identity."""
