"""The time of a protocol's messages on a line, from its exact rounds and bytes.

The model. Every party, servers included, has its own line to all others.

- Latency is the round trip, as `ping` shows it. A round is one way: it takes half of that.
- Messages of one round travel at the same time, and a round waits for the one before. So the
  busiest party's line decides each round: the most bytes that one party sends or receives in it.
- Lines are full duplex: sending does not slow receiving in the same round.
- Bytes are those of the sealed messages. The model leaves out TCP's slow start (connections are
  open and warm), the headers of TCP (40 of 1,500 bytes) and TLS, losses, other traffic, and the
  time of computing, which a report adds.

`tests/overhead/test_network.py` checks it over real TCP between network namespaces.
"""

from dataclasses import dataclass

from securecomp.errors import ParameterError


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
        """The line's speed and round trip, in words."""
        speed = self.bandwidth
        unit, scale = ("Gbit/s", 1e9) if speed >= 1e9 else ("Mbit/s", 1e6)
        return f"{speed / scale:g} {unit}, {self.round_trip * 1e3:g} ms there and back"

    def seconds(self, rounds: int, sent: float, received: float = 0) -> float:
        """Return the time of messages on this line.

        Args:
            rounds: How many rounds, each one way.
            sent: Bytes that the busiest party sends in them.
            received: Bytes that it receives in the same rounds. If the busiest party or its
                direction changes between rounds, give the sum of `Transcript.loads` as `sent`.

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
