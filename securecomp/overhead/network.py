"""How long a protocol's messages take on a line, from its exact rounds and bytes.

The model. Every party, servers included, has one line of its own to all others.

- Latency is the round trip, as `ping` shows it. A round is one way: it takes half of that.
- Messages of one round travel at the same time, and a round waits for the one before. So the
  slowest party's line decides each round: the most bytes that one party sends or receives in it.
- Lines are full duplex: what a party sends does not slow what it receives in the same round.
- Bytes are those of the sealed messages. Left out, as far as they go beyond them: TCP's slow
  start (connections are open and warm), its headers (40 of 1,500 bytes) and TLS's, losses, other
  traffic, and the time of computing, which a report adds.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field

from securecomp import wire
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.local import LocalCarrier


@dataclass(frozen=True, slots=True)
class Line:
    """A party's line to the others.

    Attributes:
        name: What people call it.
        bandwidth: Bits a second, in each direction.
        round_trip: Seconds there and back.
    """

    name: str
    bandwidth: float
    round_trip: float

    @property
    def facts(self) -> str:
        """What the line can do, in words."""
        speed = self.bandwidth
        unit, scale = ("Gbit/s", 1e9) if speed >= 1e9 else ("Mbit/s", 1e6)
        return f"{speed / scale:g} {unit}, {self.round_trip * 1e3:g} ms there and back"

    def seconds(self, rounds: int, sent: float, received: float = 0) -> float:
        """Return the time of messages on this line.

        Args:
            rounds: How many rounds, each one way.
            sent: Bytes that the busiest party sends in them.
            received: Bytes that it receives meanwhile, in the same rounds. For a protocol whose
                rounds have different directions, add up the times of its rounds, or give the sum
                of the rounds' larger numbers (`Metered.load`) as `sent`.

        Raises:
            ParameterError: A negative number.
        """
        if min(rounds, sent, received) < 0:
            raise ParameterError("rounds and bytes are at least 0")
        return rounds * self.round_trip / 2 + 8 * max(sent, received) / self.bandwidth


LINES = (
    Line("LAN", 1e9, 1e-3),
    Line("WAN", 100e6, 40e-3),
    Line("slow hospital line", 20e6, 80e-3),
)


@dataclass(slots=True)
class Round:
    """What crossed the network in one round, by party."""

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)

    @property
    def load(self) -> int:
        """Bytes that the busiest party sent or received."""
        return max((*self.sent.values(), *self.received.values()), default=0)


class Metered(LocalCarrier):
    """Brings messages within this process, and counts them round by round."""

    def __init__(self, entropy: Entropy = entropy_.system) -> None:
        super().__init__(entropy)
        self.rounds = [Round()]
        self._counting = threading.Lock()

    @property
    def load(self) -> int:
        """Bytes on the busiest party's line, added up over the rounds."""
        return sum(each.load for each in self.rounds)

    def seconds(self, line: Line) -> float:
        """Return the time that all rounds take on a line."""
        return line.seconds(len(self.rounds), self.load)

    def start(self) -> None:
        """Begin a new computation: count from zero. The parties keep their keys."""
        super().start()
        self.rounds = [Round()]

    def send(self, sender: str, recipient: str, data: wire.Buffer) -> wire.Buffer:
        """Count a message and return it. What a party keeps to itself is not counted."""
        if sender != recipient:
            with self._counting:
                self.rounds[-1].sent[sender] += len(data)
                self.rounds[-1].received[recipient] += len(data)
        return super().send(sender, recipient, data)

    def next_round(self) -> None:
        """Count a round."""
        super().next_round()
        self.rounds.append(Round())
