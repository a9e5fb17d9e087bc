"""What the parties agreed on before anything was computed.

A `Session` names everyone who takes part, their keys, the round and what the vector's elements
mean. Its digest, the *agreement*, is in every message and in every key, so a message of another
session, round, layout or list of parties is refused.
"""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from securecomp import wire
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError, RangeError, RemoteProtocolError, ThresholdError

ID_BYTES = 16


class Layout(msgspec.Struct, frozen=True):
    """What a vector's elements mean.

    Attributes:
        length: Number of elements.
        bound: Largest absolute value of any element of one contributor.
        labels: One label an element, or none at all.
    """

    length: int
    bound: int
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.length <= wire.MAX_ELEMENTS:
            raise ParameterError(f"a vector has 0 to {wire.MAX_ELEMENTS} elements")
        if self.bound < 0:
            raise ParameterError("a bound is at least 0")
        if self.labels and len(self.labels) != self.length:
            raise ParameterError(f"{len(self.labels)} labels for {self.length} elements")


class Session(msgspec.Struct, frozen=True):
    """Who computes what together; equal for all parties, and public.

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
    keys: dict[str, bytes]
    layout: Layout
    limit: int
    terms: dict[str, int] = {}

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
        """Draw a session id and check that the parties and the sum make sense.

        Raises:
            ParameterError: A party named twice in one role or without a key.
            ThresholdError: Fewer than two contributors, or too few servers.
            RangeError: The sum could pass `limit`.
        """
        if len(contributors) < 2:
            raise ThresholdError(
                2, len(contributors), "a sum over one party is that party's own value"
            )
        if len(servers) < minimum_servers:
            raise ThresholdError(
                minimum_servers, len(servers), "one server alone would see every value"
            )
        if not receivers:
            raise ThresholdError(1, 0, "nobody receives the result")
        for role, names in (
            ("contributor", contributors),
            ("server", servers),
            ("receiver", receivers),
        ):
            for name in names:
                wire.check_name(name)
                if names.count(name) > 1:
                    raise ParameterError(f"{name!r} is named twice as {role}; names are unique")
                if name not in keys:
                    raise ParameterError(f"{role} {name!r} has no public key in this session")
        if layout.bound * len(contributors) > limit:
            raise RangeError(
                f"{len(contributors)} contributors with values up to {layout.bound} could pass "
                f"the largest exact total {limit}; use a smaller bound"
            )
        parties = {*contributors, *servers, *receivers}
        return cls(
            protocol,
            entropy(ID_BYTES),
            0,
            tuple(contributors),
            tuple(servers),
            tuple(receivers),
            {name: keys[name] for name in sorted(parties)},
            layout,
            limit,
            dict(terms or {}),
        )

    def next(self, layout: Layout) -> "Session":
        """Return the same session's next round, with another layout."""
        if layout.bound * len(self.contributors) > self.limit:
            raise RangeError(f"the total could pass {self.limit}; use a smaller bound")
        return msgspec.structs.replace(self, round=self.round + 1, layout=layout)

    @property
    def agreement(self) -> bytes:
        """SHA-256 over everything above."""
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
        return hashlib.sha256(msgspec.msgpack.encode(facts)).digest()

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
        raise RemoteProtocolError(header.sender, reason)
