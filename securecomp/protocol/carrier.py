"""Carrier of messages from role to role: within one process, or over a network.

Some parties are here, in this process; a protocol plays these and awaits the messages of the
others. In memory all are here. A protocol knows nothing else of where roles run.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Session

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Vector = npt.NDArray[np.int64]
Inputs = Mapping[str, Callable[[], npt.ArrayLike]]
"""Each contributor's name, and how it reads its vector. Only readers of parties here are called."""
Posts = Mapping[str, Mapping[str, wire.Buffer]]
"""Sender, recipient, message."""

SAME = 1e-6
"""Relative difference of numbers that two processors compute: far above rounding."""

HOSPITAL_LEARNS = "the result if it receives it, and what that implies beside its own data"


@dataclass(slots=True)
class Transcript:
    """Messages and bytes that crossed the network: counts, no contents.

    Attributes:
        sent: Bytes that each party sent to others.
        received: Bytes that each party got from others.
        messages: Number of messages between different parties.
        rounds: Number of rounds; messages of one round do not wait for each other.
        seconds: Wall time of all roles together in this process.
        crossed: The same bytes, by round, party and direction ("out" or "in").
    """

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    rounds: int = 1
    seconds: float = 0.0
    crossed: Counter[tuple[int, str, str]] = field(default_factory=Counter)

    def count(self, sender: str, recipient: str, size: int) -> None:
        """Count a message of this round."""
        self.sent[sender] += size
        self.received[recipient] += size
        self.crossed[self.rounds, sender, "out"] += size
        self.crossed[self.rounds, recipient, "in"] += size
        self.messages += 1

    @property
    def loads(self) -> list[int]:
        """For each round, the most bytes that one party sent or received: what its line carries."""
        found = [0] * self.rounds
        for (number, _, _), size in self.crossed.items():
            found[number - 1] = max(found[number - 1], size)
        return found

    @property
    def bytes_sent(self) -> int:
        """Bytes that all parties sent."""
        return self.sent.total()


class Carrier(Protocol):
    """Brings messages, and has the keys of the parties that run here.

    Attributes:
        entropy: Source of randomness for what is not a role's.
        session_ids: Source of the ids of sessions. Over a network all parties' give the same.
        transcript: Messages of this computation.
        receivers: Who gets the totals, if it is not every contributor.
    """

    entropy: Entropy
    session_ids: Entropy
    receivers: tuple[str, ...] | None
    transcript: Transcript

    def start(self) -> None:
        """Begin a new computation: count from zero."""

    def here(self, name: str) -> bool:
        """Return whether a party runs in this process."""

    def identity(self, name: str) -> Identity:
        """Return the long-term key of a party that runs here."""

    def public(self, name: str) -> bytes:
        """Return a party's public key."""

    def sites_key(self) -> bytes:
        """Return 32 random bytes that all sites have, other ones for every question.

        Nobody else has them: where no site is here, they are others.
        """

    def randomness(self, session: Session, name: str, role: str) -> Entropy:
        """Return the source of randomness of one of a party's roles."""

    def send(self, sender: str, recipient: str, data: wire.Buffer) -> wire.Buffer:
        """Bring a message from one party here to another, and return it as it arrives."""

    def deliver(
        self,
        session: Session,
        step: str,
        posts: Posts,
        senders: Collection[str],
        recipients: Collection[str],
        *,
        instead: str | None = None,
        patient: bool = True,
    ) -> dict[str, dict[str, wire.Buffer]]:
        """Send the messages of a step, and await those for the parties here.

        Args:
            session: Whose messages they are.
            step: Name of the step, once in a session.
            posts: Messages of the senders here.
            senders: Every party that sends in this step.
            recipients: Every party that gets something from each of them.
            instead: Another step. If its message arrives first, the recipient gets nothing here.
            patient: Whether all senders are awaited; else those that are late are left out.

        Returns:
            For each recipient here the messages, by sender, in the order of `senders`.

        Raises:
            RemoteProtocolError: A party is late, or has stopped; it is named.
        """

    def opened(self, session: Session, play: Callable[[], Vector | None]) -> Vector:
        """Return a session's total: the remembered one, or else that of `play`, remembered."""

    def counted(self, session: Session, names: Collection[str]) -> None:
        """Hear whose vectors are in a total that arrived, of a protocol that stands dropouts."""

    def agree(self, what: str, values: npt.ArrayLike, tolerance: float) -> npt.NDArray[np.float64]:
        """Return the sites' common version of numbers that each has computed in floating point.

        Their last bits depend on the processor. The first site proposes, and every other one
        compares that with its own.

        Args:
            what: What the numbers are, for errors.
            values: As computed here.
            tolerance: Largest accepted difference, relative to the largest number.

        Raises:
            RemoteProtocolError: The proposal differs by more; the first site is named.
        """

    def next_round(self) -> None:
        """Everything sent from now on waits for what was sent before."""

    def each(self, work: Callable[[K], T], names: Iterable[K], elements: int) -> dict[K, T]:
        """Do the work of several parties of one round, each on vectors of so many elements.

        It is told apart by the parties' names, or by names and parts of a party's vector.
        """


def agreed_bounds(carrier: Carrier, what: str, bounds: Sequence[int]) -> list[int]:
    """Return the sites' common version of bounds that follow from floating-point numbers.

    Beyond 2^53, where doubles have gaps, a bound is rounded up. A site's noise is its own
    calculation; only what all sums are laid out for is agreed.

    Raises:
        RemoteProtocolError: The first site's differ by more than rounding.
    """
    near = [(float(bound), bound) for bound in bounds]
    over = [f if int(f) >= bound else math.nextafter(f, math.inf) for f, bound in near]
    return [int(bound) for bound in carrier.agree(what, over, SAME).tolist()]


def check_apart(contributors: tuple[str, ...], servers: tuple[str, ...]) -> None:
    """Refuse a contributor that is named as a server is.

    Raises:
        ParameterError: It names the site.
    """
    both = sorted(set(contributors) & set(servers))
    if both:
        raise ParameterError(
            f"a site is named {both[0]!r}, as a computing server is; rename the site"
        )
