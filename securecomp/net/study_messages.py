"""Messages among the parties of a study, outside of any sum, and what they are sealed in."""

import hashlib
from typing import ClassVar

from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.errors import AuthenticationError
from securecomp.net.parties import Parties
from securecomp.net.study_file import StudyFile
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import ID_BYTES, Conversation

_QUESTION = "question of an analyst"


class Nonces(wire.Message, frozen=True):
    """Between sites: random numbers that make this run another one than all before."""

    KIND: ClassVar[int] = 64
    nonces: dict[str, bytes]


class Announcement(wire.Message, frozen=True):
    """Site to server: the session of the run's next sum."""

    KIND: ClassVar[int] = 65
    run: str
    number: int
    session: bytes


class Proposal(wire.Message, frozen=True):
    """First site to the others: numbers that steer the next sum, float64, little-endian."""

    KIND: ClassVar[int] = 66
    values: bytes


class SitesKey(wire.Message, frozen=True):
    """First site to the others: random bytes that no analyst and no server has."""

    KIND: ClassVar[int] = 73
    key: bytes


class TotalsDigest(wire.Message, frozen=True):
    """Between sites: the head of the chain of all totals; site to server: this run is done.

    Signed beside its seal, so that a site can show others that all opened the same.
    """

    KIND: ClassVar[int] = 67
    digest: bytes
    signature: bytes


class Countersignatures(wire.Message, frozen=True):
    """First site to the others: the sites' signatures on the head of the run's chain."""

    KIND: ClassVar[int] = 72
    signatures: dict[str, bytes]


class AnalystQuestion(wire.Message, frozen=True):
    """Analyst to site: a question; without text, that there will be no more.

    Signed beside its seal, so that a site's log can show who asked.
    """

    KIND: ClassVar[int] = 69
    text: str
    signature: bytes

    @classmethod
    def signed(
        cls, identity: Identity, study: Parties, run: str, number: int, text: str
    ) -> "AnalystQuestion":
        """Return an analyst's question, bound to the study, the run and its number there."""
        about = (study.digest, run, number, text)
        return cls(text, identity.sign(_QUESTION, *about))

    def verify(self, analyst: str, study: Parties, run: str, number: int) -> None:
        """Check that the analyst signed it.

        Raises:
            AuthenticationError: It is another one's, or for another place.
        """
        about = (study.digest, run, number, self.text)
        identity_.verify(study.keys[analyst], self.signature, analyst, _QUESTION, *about)


class Turn(wire.Message, frozen=True):
    """First site to the others and to the analyst: whose question is the next."""

    KIND: ClassVar[int] = 70
    analyst: str
    number: int
    part: int
    digest: bytes


class SiteVerdict(wire.Message, frozen=True):
    """Site to the other sites and the analyst: why it refuses a question, or an empty text."""

    KIND: ClassVar[int] = 71
    refusal: str


class Stop(wire.Message, frozen=True):
    """To everybody: this party cannot go on."""

    KIND: ClassVar[int] = 68
    reason: str


class StudyTalk(Conversation):
    """Context in which the parties of a study seal messages. Each is bound to its tag."""

    __slots__ = ("digest", "id", "keys", "round")

    def __init__(self, study: StudyFile) -> None:
        self.id = study.digest[:ID_BYTES]
        self.round = 0
        self.keys = study.keys
        self.digest = study.digest

    @property
    def agreement(self) -> bytes:
        """SHA-256 over the study."""
        return self.bound("")

    @property
    def largest_message(self) -> int:
        """Bytes that no message's body passes."""
        return 1 << 26

    def bound(self, tag: str) -> bytes:
        """Return what a message of this tag is bound to."""
        return hashlib.sha256(prg.join("study message", self.digest, tag)).digest()

    def seal(
        self, identity: Identity, sender: str, recipient: str, tag: str, message: wire.Message
    ) -> bytes:
        """Return a sealed message."""
        header = self.header(message.KIND, sender, recipient, self.bound(tag))
        body = wire.encode_body(message)
        return bytes(identity_.seal(identity, self, header, body, entropy_.system))

    def open(
        self,
        identity: Identity,
        sender: str,
        recipient: str,
        tag: str,
        data: bytes,
        kind: type[wire.M],
    ) -> wire.M:
        """Verify and read a message.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: Not this sender's, or not of
                this tag and kind.
        """
        header, body = identity_.open_sealed(identity, self, self.bound(tag), data, recipient)
        if header.sender != sender or header.kind != kind.KIND:
            raise AuthenticationError(f"{sender}: sent another party's message")
        return wire.decode_body(body, kind)[0]
